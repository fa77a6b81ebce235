#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/memory.h"
#include "tests/harness/saved.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"
#include "train/files/run_folder.h"

/* What a disk may hold after a power cut. The calls of one save (link and retention included) are recorded. After any
 * number of them, the disk holds what fsync has confirmed, and of the rest anything: a name that was given or taken away
 * without fsync of its folder is there or not, each by itself; the contents of a file without fsync are empty, half, zeros
 * or whole. Every such state is made in an empty folder, and must load. */

enum { WIDTH = 6, OLD = 10, NEW = 20, MAX_NODES = 300, MAX_EVENTS = 1000, NONE = -1 };

/* ---- recording ---- */

typedef struct {
    int is_folder;
    char target[64];      /* of a link; "": it is none */
    unsigned char *bytes; /* at the end, or when it was last seen */
    size_t n;
} node;

typedef enum { NAME_GIVEN, NAME_TAKEN, MOVED, CONTENTS_SYNCED, FOLDER_SYNCED, OTHER } event_kind;

typedef struct {
    event_kind kind;
    int folder, to_folder; /* nodes */
    char name[NAME_MAX + 1], to_name[NAME_MAX + 1];
    int what; /* node */
} event;

typedef struct {
    int folder;
    char name[NAME_MAX + 1];
    int what;
} entry;

typedef struct {
    entry entry[MAX_NODES];
    int n;
} tree;

static struct {
    node node[MAX_NODES];
    int n_node;
    event event[MAX_EVENTS];
    int n_event;
    tree before, now; /* node 0 is the folder of the run */
    int reported;     /* events when the checkpoint was said to be written; link and retention come after */
} disk;

static char run[PATH_MAX / 2];

static int find(const tree *t, int folder, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (t->entry[i].folder == folder && strcmp(t->entry[i].name, name) == 0) return i;
    return NONE;
}

static void unset(tree *t, int folder, const char *name)
{
    int i = find(t, folder, name);
    if (i == NONE) return;
    t->entry[i] = t->entry[t->n - 1];
    t->n--;
}

static void set(tree *t, int folder, const char *name, int what)
{
    unset(t, folder, name);
    assert_true(t->n < MAX_NODES);
    t->entry[t->n].folder = folder;
    t->entry[t->n].what = what;
    snprintf(t->entry[t->n].name, sizeof t->entry[t->n].name, "%s", name);
    t->n++;
}

static int new_node(int is_folder)
{
    assert_true(disk.n_node < MAX_NODES);
    disk.node[disk.n_node] = (node){.is_folder = is_folder};
    disk.n_node++;
    return disk.n_node - 1;
}

/* The folder and name of a path within the run. */
static int folder_of(const char *path, char *name)
{
    size_t n_run = strlen(run);
    assert_int_equal(strncmp(path, run, n_run), 0);
    int folder = 0;
    const char *at = path + n_run;
    while (*at == '/') {
        at++;
        const char *end = strchr(at, '/');
        snprintf(name, NAME_MAX + 1, "%.*s", (int)(end ? end - at : (long)strlen(at)), at);
        if (!end) break;
        int i = find(&disk.now, folder, name);
        if (i == NONE) fail_msg("no folder of %s", path);
        folder = disk.now.entry[i].what;
        at = end;
    }
    return folder;
}

static int node_of(const char *path)
{
    char name[NAME_MAX + 1];
    if (strcmp(path, run) == 0) return 0;
    int i = find(&disk.now, folder_of(path, name), name);
    return i == NONE ? NONE : disk.now.entry[i].what;
}

static void read_contents(node *to, const char *path)
{
    free(to->bytes);
    to->bytes = calloc(1, 1 << 17);
    assert_non_null(to->bytes);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    to->n = fread(to->bytes, 1, 1 << 17, f);
    fclose(f);
}

static void record(event e)
{
    assert_true(disk.n_event < MAX_EVENTS);
    disk.event[disk.n_event] = e;
    disk.n_event++;
}

/* Before the call is made; all of them succeed. */
static int note(void *ctx, const shim_call *call)
{
    (void)ctx;
    char path[PATH_MAX] = "";
    if (call->path) snprintf(path, sizeof path, "%s", call->path);
    if (call->fd >= 0) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", call->fd);
        ssize_t n = readlink(link, path, sizeof path - 1);
        if (n > 0) path[n] = 0;
    }
    event e = {.kind = OTHER};
    int makes = strcmp(call->name, "mkdir") == 0 || strcmp(call->name, "symlink") == 0 ||
                (strcmp(call->name, "open") == 0 && call->flags & O_CREAT);
    if (makes) {
        e.kind = NAME_GIVEN;
        e.folder = folder_of(path, e.name);
        e.what = new_node(strcmp(call->name, "mkdir") == 0);
        if (strcmp(call->name, "symlink") == 0)
            snprintf(disk.node[e.what].target, sizeof disk.node[e.what].target, "%s", call->to);
        set(&disk.now, e.folder, e.name, e.what);
    } else if (strcmp(call->name, "unlink") == 0 || strcmp(call->name, "rmdir") == 0) {
        e.kind = NAME_TAKEN;
        e.folder = folder_of(path, e.name);
        unset(&disk.now, e.folder, e.name);
    } else if (strcmp(call->name, "rename") == 0) {
        e.kind = MOVED;
        e.folder = folder_of(path, e.name);
        e.to_folder = folder_of(call->to, e.to_name);
        e.what = node_of(path);
        unset(&disk.now, e.folder, e.name);
        set(&disk.now, e.to_folder, e.to_name, e.what);
    } else if (strcmp(call->name, "fsync") == 0) {
        e.what = node_of(path);
        assert_int_not_equal(e.what, NONE);
        e.kind = disk.node[e.what].is_folder ? FOLDER_SYNCED : CONTENTS_SYNCED;
        if (!disk.node[e.what].is_folder) read_contents(&disk.node[e.what], path);
    }
    record(e);
    return 0;
}

/* What is there before the save, all of it on the disk. */
static void take_stock(const char *path, int folder)
{
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        char inside[PATH_MAX];
        struct stat about;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        assert_int_equal(lstat(inside, &about), 0);
        int what = new_node(S_ISDIR(about.st_mode));
        set(&disk.now, folder, e->d_name, what);
        if (S_ISLNK(about.st_mode))
            assert_true(readlink(inside, disk.node[what].target, sizeof disk.node[what].target - 1) > 0);
        else if (S_ISDIR(about.st_mode))
            take_stock(inside, what);
        else
            read_contents(&disk.node[what], inside);
    }
    closedir(d);
}

/* ---- what may be left of it ---- */

static uint64_t random_bits;

static unsigned coin(unsigned sides)
{
    random_bits = random_bits * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_bits >> 33) % sides;
}

typedef enum { NOTHING, ANYTHING, EVERYTHING } chance; /* of what is not confirmed */

static int persists(chance c)
{
    return c == EVERYTHING || (c == ANYTHING && coin(2));
}

/* Was the folder given to fsync after event i, before the cut? */
static int is_confirmed(int i, int folder, int cut)
{
    for (int later = i + 1; later < cut; later++)
        if (disk.event[later].kind == FOLDER_SYNCED && disk.event[later].what == folder) return 1;
    return 0;
}

static tree left_after(int cut, chance c)
{
    tree t = disk.before;
    for (int i = 0; i < cut; i++) {
        const event *e = &disk.event[i];
        int is_name = e->kind == NAME_GIVEN || e->kind == NAME_TAKEN || e->kind == MOVED;
        if (!is_name || !(is_confirmed(i, e->folder, cut) || persists(c))) continue;
        if (e->kind != NAME_GIVEN) unset(&t, e->folder, e->name);
        if (e->kind == NAME_GIVEN) set(&t, e->folder, e->name, e->what);
        if (e->kind == MOVED) set(&t, e->to_folder, e->to_name, e->what);
    }
    return t;
}

static int is_synced(int what, int cut)
{
    int is_new = 0;
    for (int i = 0; i < disk.n_event; i++) {
        const event *e = &disk.event[i];
        if (e->kind == CONTENTS_SYNCED && e->what == what && i < cut) return 1;
        if (e->kind == NAME_GIVEN && e->what == what) is_new = 1;
    }
    return !is_new;
}

static void make_file(const char *path, int what, int cut, chance c)
{
    static const unsigned char zeros[1 << 17];
    const node *n = &disk.node[what];
    const unsigned char *bytes = n->bytes;
    size_t size = n->n;
    if (!is_synced(what, cut) && c != EVERYTHING) {
        unsigned which = c == NOTHING ? 0 : coin(4);
        if (which == 0) size = 0;
        if (which == 1) size /= 2;
        if (which == 2) bytes = zeros;
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    if (size > 0) assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void make_folder(const char *path, const tree *t, int folder, int cut, chance c)
{
    assert_int_equal(mkdirat(AT_FDCWD, path, 0777), 0);
    for (int i = 0; i < t->n; i++) {
        char inside[PATH_MAX];
        const entry *e = &t->entry[i];
        if (e->folder != folder) continue;
        snprintf(inside, sizeof inside, "%s/%s", path, e->name);
        if (disk.node[e->what].is_folder)
            make_folder(inside, t, e->what, cut, c);
        else if (disk.node[e->what].target[0])
            assert_int_equal(symlinkat(disk.node[e->what].target, AT_FDCWD, inside), 0);
        else
            make_file(inside, e->what, cut, c);
    }
}

static void remove_tree(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        char inside[PATH_MAX];
        snprintf(inside, sizeof inside, "%s/%s", path, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) remove_tree(inside);
    }
    if (d) closedir(d);
    remove(path);
}

/* The step that loads there; a checkpoint that is damaged under its final name is a failure as well. */
static int64_t load_from(const char *path, int cut)
{
    ttn_error err = {0};
    ttn_checkpoint *c;
    saved_model m;
    saved_forget();
    if (ttn_run_newest(path, &saved_log, &c, &err) != TTN_OK) fail_msg("cut after call %d: %s", cut, err.text);
    if (!c) fail_msg("cut after call %d: no checkpoint is left", cut);
    if (saved_said[0]) fail_msg("cut after call %d: %s", cut, saved_said);
    saved_create(&m, WIDTH);
    assert_ok(saved_load(&m, c, &err), &err);
    int64_t step = ttn_checkpoint_state(c)->step;
    saved_check(&m, step);
    saved_destroy(&m);
    ttn_checkpoint_close(c);
    return step;
}

/* Older ones as well: one that is being removed is whole as long as it has its name. */
static void check_all_of(const char *path, int cut)
{
    int64_t *step, n;
    ttn_error err = {0};
    assert_ok(ttn_run_checkpoints(path, &step, &n, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        char folder[PATH_MAX + TTN_STEP_NAME + 8], name[TTN_STEP_NAME];
        ttn_checkpoint *c;
        snprintf(folder, sizeof folder, "%s/ckpt/%s", path, ttn_step_name(step[i], name));
        if (ttn_checkpoint_open(folder, &c, NULL, &err) != TTN_OK) fail_msg("cut after call %d: %s", cut, err.text);
        ttn_checkpoint_close(c);
    }
    ttn_free(step);
}

static void save(const ttn_run_folder *r, int64_t step)
{
    saved_model m;
    ttn_error err = {0};
    char path[PATH_MAX], name[TTN_STEP_NAME];
    snprintf(path, sizeof path, "%s/ckpt/%s", run, ttn_step_name(step, name));
    saved_create(&m, WIDTH);
    assert_ok(saved_write(&m, path, step, NULL, &err), &err);
    disk.reported = disk.n_event;
    saved_destroy(&m);
    assert_ok(ttn_run_set_latest(r, step, &err), &err);
    assert_ok(ttn_run_retain(r, 1, step, NULL, &err), &err);
}

/* Fills `disk` with a run that had OLD, and the calls that saved NEW and removed OLD. */
static void record_a_save(void)
{
    ttn_error err = {0};
    ttn_run_folder *r;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/run", ttn_test_folder());
    char *real_path = realpath(ttn_test_folder(), NULL);
    assert_non_null(real_path);
    snprintf(run, sizeof run, "%s/run", real_path);
    free(real_path);
    remove_tree(run);
    memset(&disk, 0, sizeof disk);
    assert_ok(ttn_run_folder_open(run, NULL, NULL, &r, &err), &err);
    save(r, OLD);
    new_node(1);
    take_stock(run, 0);
    disk.before = disk.now;
    shim_watch(note, NULL);
    save(r, NEW);
    shim_watch(NULL, NULL);
    ttn_run_folder_close(r);
}

static void power_cut_after_any_call_leaves_a_checkpoint_that_loads(void **state)
{
    (void)state;
    record_a_save();
    random_bits = ttn_test_seed();
    assert_true(disk.n_event > 50);
    const int n_state = ttn_test_long() ? 10000 : (int)ttn_scaled(500, 100);
    int n_new = 0, n_old = 0, must_be_new = 0;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.after", run);
    for (int s = 0; s < n_state; s++) {
        const int cut = s % (disk.n_event + 1);
        const chance c = s <= disk.n_event ? NOTHING : s <= 2 * disk.n_event + 1 ? EVERYTHING : ANYTHING;
        const tree t = left_after(cut, c);
        remove_tree(path);
        make_folder(path, &t, 0, cut, c);
        int64_t step = load_from(path, cut);
        assert_true(step == OLD || step == NEW);
        check_all_of(path, cut);
        if (cut >= disk.reported && step != NEW)
            fail_msg("cut after call %d: the new one is gone, and call %d had reported it", cut, disk.reported);
        must_be_new += cut >= disk.reported;
        n_new += step == NEW;
        n_old += step == OLD;
        if (s % 16 == 0) { /* and a new process can go on there */
            ttn_error err = {0};
            ttn_run_folder *r;
            assert_ok(ttn_run_folder_open(path, NULL, NULL, &r, &err), &err);
            ttn_run_folder_close(r);
            assert_int_equal(load_from(path, cut), step);
        }
    }
    assert_true(n_new > 10 && n_old > 10 && must_be_new > 0);
    remove_tree(path);
    for (int i = 0; i < disk.n_node; i++)
        free(disk.node[i].bytes);
}

/* ---- the manifest is the last ---- */

static struct {
    int n_unsynced_data; /* files whose contents were not on the disk when the manifest was begun */
    int has_manifest;
    int n_after; /* files begun after the manifest */
    char written[16][PATH_MAX];
    int synced[16];
    int n;
} order;

static int note_order(void *ctx, const shim_call *call)
{
    (void)ctx;
    char path[PATH_MAX] = "", link[64];
    if (call->fd < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", call->fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n > 0) path[n] = 0;
    int is_manifest = strstr(path, "MANIFEST.json") != NULL;
    if (strcmp(call->name, "write") == 0 && is_manifest) {
        order.has_manifest = 1;
        for (int i = 0; i < order.n; i++)
            order.n_unsynced_data += !order.synced[i];
    }
    if (strcmp(call->name, "write") == 0 && !is_manifest) {
        order.n_after += order.has_manifest;
        int i = 0;
        while (i < order.n && strcmp(order.written[i], path) != 0)
            i++;
        assert_true(i < 16);
        if (i == order.n) order.n++;
        snprintf(order.written[i], PATH_MAX, "%s", path);
        order.synced[i] = 0;
    }
    if (strcmp(call->name, "fsync") == 0)
        for (int i = 0; i < order.n; i++)
            if (strcmp(order.written[i], path) == 0) order.synced[i] = 1;
    return 0;
}

static void manifest_is_written_when_all_data_are_on_the_disk(void **state)
{
    (void)state;
    ttn_error err = {0};
    saved_model m;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/one", ttn_test_folder());
    saved_create(&m, WIDTH);
    memset(&order, 0, sizeof order);
    shim_watch(note_order, NULL);
    ttn_status status = saved_write(&m, path, 1, NULL, &err);
    shim_watch(NULL, NULL);
    assert_ok(status, &err);
    saved_destroy(&m);
    assert_int_equal(order.has_manifest, 1);
    assert_int_equal(order.n, 3);
    assert_int_equal(order.n_unsynced_data, 0);
    assert_int_equal(order.n_after, 0);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1); /* the disk is played here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_cut_after_any_call_leaves_a_checkpoint_that_loads),
        cmocka_unit_test(manifest_is_written_when_all_data_are_on_the_disk),
    };
    return ttn_test_run(tests);
}
