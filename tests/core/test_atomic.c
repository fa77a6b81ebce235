#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/atomic.h"
#include "tests/core/utf8.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

/* Set-up and checks go through the C library's own streams and the *at calls, which the shim does not see. */

enum { NOBODY = 65534, PASSED = 17, IMPOSSIBLE = 77 };

static void join(char *path, const char *folder, const char *name) /* path (PATH_MAX) */
{
    int n = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    assert_true(n < PATH_MAX);
}

/* ---- a place for each test ---- */

static char place[PATH_MAX / 2]; /* empty at its start */

static void new_place(void)
{
    static int n;
    snprintf(place, sizeof place, "%s/%d", ttn_test_folder(), n++);
    assert_int_equal(mkdirat(AT_FDCWD, place, 0777), 0);
}

/* place/NAME; good for the next 16 calls. */
static const char *in_place(const char *name)
{
    static char paths[16][PATH_MAX];
    static int next;
    char *path = paths[next++ % 16];
    join(path, place, name);
    return path;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void make_folder(const char *path)
{
    assert_int_equal(mkdirat(AT_FDCWD, path, 0777), 0);
}

static void remove_tree(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        char inside[PATH_MAX];
        join(inside, path, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) remove_tree(inside);
    }
    if (d) closedir(d);
    remove(path);
}

/* ---- what is there, as text: to be compared whole ---- */

typedef struct {
    char text[4000];
} description;

static void add(description *d, const char *format, ...) TTN_PRINTF(2, 3);
static void add(description *d, const char *format, ...)
{
    size_t used = strlen(d->text);
    va_list args;
    va_start(args, format);
    vsnprintf(d->text + used, sizeof d->text - used, format, args);
    va_end(args);
    assert_true(strlen(d->text) < sizeof d->text - 1);
}

static void describe_into(description *d, const char *path, const char *name)
{
    struct stat about;
    if (lstat(path, &about) != 0) {
        add(d, "%s: %s\n", name, strerror(errno));
        return;
    }
    if (S_ISDIR(about.st_mode)) {
        add(d, "%s/\n", name);
        struct dirent **entry;
        int n = scandir(path, &entry, NULL, alphasort);
        assert_true(n >= 2);
        for (int i = 0; i < n; i++) {
            char inside[PATH_MAX], longer[PATH_MAX];
            join(inside, path, entry[i]->d_name);
            join(longer, name, entry[i]->d_name);
            if (strcmp(entry[i]->d_name, ".") != 0 && strcmp(entry[i]->d_name, "..") != 0)
                describe_into(d, inside, longer);
            free(entry[i]);
        }
        free(entry);
        return;
    }
    if (S_ISLNK(about.st_mode)) {
        add(d, "%s: a link\n", name);
        return;
    }
    FILE *f = fopen(path, "r");
    if (!f) {
        add(d, "%s: %s\n", name, strerror(errno));
        return;
    }
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    static char bytes[1 << 16];
    for (size_t n = fread(bytes, 1, sizeof bytes, f); n > 0; n = fread(bytes, 1, sizeof bytes, f))
        for (size_t i = 0; i < n; i++)
            hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
    fclose(f);
    add(d, "%s: %lld bytes, %016llx\n", name, (long long)about.st_size, (unsigned long long)hash);
}

static description describe(const char *path)
{
    description d = {{0}};
    describe_into(&d, path, "it");
    return d;
}

static void assert_text(const char *path, const char *text)
{
    char got[200] = {0};
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s: %s", path, strerror(errno));
    size_t n = fread(got, 1, sizeof got - 1, f);
    fclose(f);
    got[n] = 0;
    assert_string_equal(got, text);
}

/* How many temporaries lie in the folder, and (unless NULL) the path of one. */
static int temporaries(const char *folder, char *path)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (!ttn_atomic_is_temporary(e->d_name)) continue;
        if (path) join(path, folder, e->d_name);
        n++;
    }
    closedir(d);
    return n;
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* ---- the four things that can be written: a file or a folder, new or over another ---- */

typedef struct {
    const char *label;
    int is_folder, replaces;
} scene;

static const scene scenes[] = {
    {"a new file", 0, 0},
    {"a file over another", 0, 1},
    {"a new folder", 1, 0},
    {"a folder over another", 1, 1},
};
enum { N_SCENE = sizeof scenes / sizeof *scenes, N_BYTES = 150000 /* more than two buffers */ };

static void fill(unsigned char *bytes, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)((i * 31 + i / 251) ^ (unsigned)kind);
}

static void put_bytes(const char *folder, const char *name, size_t n, int kind)
{
    static unsigned char bytes[N_BYTES];
    char path[PATH_MAX];
    join(path, folder, name);
    fill(bytes, n, kind);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void fill_folder(const char *path, int kind)
{
    char inside[PATH_MAX];
    put_bytes(path, "model", 5000, kind);
    join(inside, path, "optimizer");
    make_folder(inside);
    put_bytes(inside, "m", 700, kind);
    if (kind == 'o') put_bytes(inside, "only in the old one", 20, kind);
    join(inside, path, "optimizer/empty");
    make_folder(inside);
}

/* What was there before the test. */
static void put_old(const scene *s, const char *path)
{
    remove_tree(path);
    if (!s->replaces) return;
    if (s->is_folder) {
        make_folder(path);
        fill_folder(path, 'o');
    } else {
        put_bytes(place, strrchr(path, '/') + 1, 40000, 'o');
    }
}

typedef struct {
    ttn_status status;
    ttn_error err;
    int in_place;
    char leftover[PATH_MAX]; /* "": none */
} outcome;

/* Write the new contents as a careful caller does. */
static outcome save(const scene *s, const char *path)
{
    static unsigned char bytes[N_BYTES];
    outcome o = {.status = TTN_OK};
    ttn_atomic *a;
    o.status = (s->is_folder ? ttn_atomic_folder_create : ttn_atomic_file_create)(path, &a, &o.err);
    if (o.status != TTN_OK) {
        assert_null(a);
        return o;
    }
    if (s->is_folder) {
        fill_folder(ttn_atomic_path(a), 'n');
    } else {
        fill(bytes, N_BYTES, 'n');
        for (size_t at = 0; at < N_BYTES && o.status == TTN_OK;) {
            size_t n = at < 1000 ? 7 : 70000;
            if (n > N_BYTES - at) n = N_BYTES - at;
            o.status = ttn_atomic_write(a, bytes + at, n, &o.err);
            at += n;
        }
    }
    if (o.status == TTN_OK) o.status = ttn_atomic_commit(a, &o.err);
    o.in_place = ttn_atomic_in_place(a);
    if (ttn_atomic_leftover(a)) snprintf(o.leftover, sizeof o.leftover, "%s", ttn_atomic_leftover(a));
    ttn_atomic_destroy(a);
    return o;
}

/* What the scene's old and new contents look like; written plainly, under other names. */
static description old_of(const scene *s)
{
    put_old(s, in_place("old"));
    description d = describe(in_place("old"));
    remove_tree(in_place("old"));
    return d;
}

static description new_of(const scene *s)
{
    if (s->is_folder) {
        make_folder(in_place("new"));
        fill_folder(in_place("new"), 'n');
    } else {
        put_bytes(place, "new", N_BYTES, 'n');
    }
    description d = describe(in_place("new"));
    remove_tree(in_place("new"));
    return d;
}

/* ---- the plain cases ---- */

static void what_is_committed_appears_whole(void **state)
{
    (void)state;
    for (int i = 0; i < N_SCENE; i++) {
        new_place();
        const char *path = in_place("it");
        description wanted = new_of(&scenes[i]);
        put_old(&scenes[i], path);
        int open_before = open_files();
        outcome o = save(&scenes[i], path);
        assert_ok(o.status, &o.err);
        assert_int_equal(o.in_place, 1);
        assert_string_equal(o.leftover, "");
        assert_string_equal(describe(path).text, wanted.text);
        assert_int_equal(temporaries(place, NULL), 0);
        assert_int_equal(open_files(), open_before);
    }
}

static void a_file_is_saved_in_one_call(void **state)
{
    (void)state;
    ttn_error err = {0};
    new_place();
    put(in_place("it"), "what was there before, and longer");
    assert_ok(ttn_atomic_save(in_place("it"), "a\0b", 3, &err), &err);
    assert_int_equal(temporaries(place, NULL), 0);
    FILE *f = fopen(in_place("it"), "r");
    assert_non_null(f);
    char bytes[8];
    assert_int_equal(fread(bytes, 1, sizeof bytes, f), 3);
    assert_memory_equal(bytes, "a\0b", 3);
    fclose(f);
    shim_arm(SHIM_FSYNC, 1, SHIM_FAIL, EIO, 0);
    assert_int_equal(ttn_atomic_save(in_place("it"), "new", 3, &err), TTN_EIO);
    shim_disarm();
    assert_int_equal(temporaries(place, NULL), 0);
}

static void nothing_appears_without_a_commit(void **state)
{
    (void)state;
    for (int i = 0; i < N_SCENE; i++) {
        const scene *s = &scenes[i];
        new_place();
        const char *path = in_place("it");
        description before = old_of(s);
        put_old(s, path);
        ttn_error err = {0};
        ttn_atomic *a;
        assert_ok((s->is_folder ? ttn_atomic_folder_create : ttn_atomic_file_create)(path, &a, &err), &err);
        assert_int_equal(ttn_atomic_path(a)[0], '/');
        assert_int_equal(temporaries(place, NULL), 1);
        if (s->is_folder)
            fill_folder(ttn_atomic_path(a), 'n');
        else
            assert_ok(ttn_atomic_write(a, path, 30, &err), &err);
        assert_string_equal(describe(path).text, before.text);
        assert_int_equal(ttn_atomic_in_place(a), 0);
        ttn_atomic_destroy(a);
        assert_string_equal(describe(path).text, before.text);
        assert_int_equal(temporaries(place, NULL), 0);
    }
    ttn_atomic_destroy(NULL);
}

/* Around the buffer's borders, whole, short and interrupted writes mixed. */
static void pieces_of_any_size_arrive_in_order(void **state)
{
    (void)state;
    enum { BUFFER = 64 << 10 };
    const size_t special[] = {0, 1, BUFFER - 1, BUFFER, BUFFER + 1, 2 * BUFFER, 3 * BUFFER + 5};
    uint64_t random = ttn_test_seed();
    for (int run = (int)ttn_scaled(20, 4); run > 0; run--) {
        new_place();
        ttn_error err = {0};
        ttn_atomic *a;
        assert_ok(ttn_atomic_file_create(in_place("it"), &a, &err), &err);
        unsigned char *all = calloc(1, 64 * BUFFER);
        assert_non_null(all);
        size_t n_all = 0;
        for (int i = 0; i < 15; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t n = random >> 63 ? special[(random >> 40) % 7] : (random >> 40) % BUFFER;
            fill(all + n_all, n, i);
            shim_arm(SHIM_WRITE, 1 + i % 2, run % 2 ? SHIM_SHORT : SHIM_FAIL, EINTR, run % 2);
            ttn_status status = ttn_atomic_write(a, all + n_all, n, &err);
            shim_disarm();
            assert_ok(status, &err);
            n_all += n;
        }
        assert_ok(ttn_atomic_commit(a, &err), &err);
        ttn_atomic_destroy(a);
        unsigned char *got = calloc(1, n_all + 1);
        assert_non_null(got);
        FILE *f = fopen(in_place("it"), "r");
        assert_non_null(f);
        assert_int_equal(fread(got, 1, n_all + 1, f), n_all);
        fclose(f);
        assert_same_bits(got, all, n_all);
        free(got);
        free(all);
    }
}

static void file_may_be_written_by_its_name(void **state)
{
    (void)state;
    new_place();
    ttn_error err = {0};
    ttn_atomic *a;
    assert_ok(ttn_atomic_file_create(in_place("it"), &a, &err), &err);
    put(ttn_atomic_path(a), "by another library");
    assert_ok(ttn_atomic_commit(a, &err), &err);
    ttn_atomic_destroy(a);
    assert_text(in_place("it"), "by another library");

    /* Another file under that name has not been watched by fsync. */
    assert_ok(ttn_atomic_file_create(in_place("it"), &a, &err), &err);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", ttn_atomic_path(a));
    put(in_place("elsewhere"), "replaced");
    assert_int_equal(renameat(AT_FDCWD, in_place("elsewhere"), AT_FDCWD, path), 0);
    assert_fails(ttn_atomic_commit(a, &err), TTN_EIO, &err, "put another file");
    ttn_atomic_destroy(a);
    assert_text(in_place("it"), "by another library");
    assert_int_equal(temporaries(place, NULL), 0);
}

static void after_a_failure_every_call_fails(void **state)
{
    (void)state;
    new_place();
    put(in_place("it"), "old");
    ttn_error first = {0}, second = {0}, third = {0};
    ttn_atomic *a;
    static char bytes[100000];
    assert_ok(ttn_atomic_file_create(in_place("it"), &a, &first), &first);
    shim_arm(SHIM_WRITE, 1, SHIM_FAIL, ENOSPC, 0);
    assert_fails(ttn_atomic_write(a, bytes, sizeof bytes, &first), TTN_EIO, &first, "No space left on device");
    shim_disarm();
    assert_contains(first.text, "free some space");
    assert_contains(first.text, "(what was there stays)");
    assert_fails(ttn_atomic_write(a, bytes, 5, &second), TTN_EIO, &second, "an earlier step failed");
    assert_fails(ttn_atomic_commit(a, &third), TTN_EIO, &third, "an earlier step failed");
    assert_int_equal(ttn_atomic_in_place(a), 0);
    assert_int_equal(temporaries(place, NULL), 0);
    ttn_atomic_destroy(a);
    assert_text(in_place("it"), "old");
}

/* ---- every call fails once ---- */

typedef struct {
    int n;
    const char *name[1000];
} call_names;

static int note_name(void *ctx, const shim_call *call)
{
    call_names *names = ctx;
    assert_true(names->n < 1000);
    names->name[names->n++] = call->name;
    return 0;
}

static int is_removal(const char *name)
{
    return strcmp(name, "unlink") == 0 || strcmp(name, "rmdir") == 0;
}

static void check_after_fault(const scene *s, const outcome *o, const char *path, const char *hit, int error,
                              const description *before, const description *after)
{
    if (o->status == TTN_OK) assert_int_equal(o->in_place, 1);
    assert_string_equal(describe(path).text, o->in_place ? after->text : before->text);
    if (o->status != TTN_OK) {
        assert_int_equal(o->status, TTN_EIO);
        assert_contains(o->err.text, path);
        assert_contains(o->err.text, strerror(error));
    }
    char left[PATH_MAX] = "";
    int n_left = temporaries(place, left);
    assert_string_equal(o->leftover, left);
    int is_kept = s->is_folder && s->replaces && o->in_place && o->status != TTN_OK;
    if (is_kept) {
        assert_int_equal(n_left, 1);
        assert_string_equal(describe(left).text, before->text);
        assert_contains(o->err.text, left);
    } else if (!is_removal(hit)) {
        assert_int_equal(n_left, 0);
    }
}

static void single_fault_leaves_the_old_or_the_new_and_the_status_says_which(void **state)
{
    (void)state;
    static const struct {
        unsigned calls;
        shim_action action;
        int error;
    } faults[] = {
        {SHIM_FILES, SHIM_FAIL, ENOSPC},
        {SHIM_FILES, SHIM_FAIL, EIO},
        {SHIM_FILES, SHIM_FAIL, EINTR},
        {SHIM_WRITE, SHIM_SHORT, EIO},
    };
    for (int i = 0; i < N_SCENE; i++)
        for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
            const scene *s = &scenes[i];
            new_place();
            const char *path = in_place("it");
            description before = old_of(s), after = new_of(s);
            int heals = faults[f].error == EINTR || faults[f].action == SHIM_SHORT;
            int hit = 1;
            int open_before = open_files();
            for (int n = 1; hit; n++) {
                put_old(s, path);
                static call_names names;
                names.n = 0;
                shim_watch(note_name, &names);
                shim_arm(faults[f].calls, n, faults[f].action, faults[f].error, 0);
                outcome o = save(s, path);
                shim_disarm();
                shim_watch(NULL, NULL);
                hit = shim_was_hit();
                int is_ok = o.status == TTN_OK;
                if ((heals || !hit) && !is_ok) fail_msg("%s, call %d: %s", s->label, n, o.err.text);
                const char *name = hit && faults[f].calls == SHIM_FILES ? names.name[n - 1] : "";
                check_after_fault(s, &o, path, name, faults[f].error, &before, &after);
                /* Only what remains to be removed, and the lock of a file and the folder, which are closed last, may
                 * fail unnoticed. */
                int n_last = s->is_folder ? 1 : 2;
                int matters = !heals && hit && !is_removal(name) && n <= names.n - n_last;
                if (matters && is_ok) fail_msg("%s, call %d: nobody noticed that %s failed", s->label, n, name);
                if (heals || !hit) assert_int_equal(temporaries(place, NULL), 0);
                assert_int_equal(open_files(), open_before);
                if (*o.leftover) remove_tree(o.leftover);
            }
        }
}

/* A disk that is full stays full; one that is gone takes no unlink either. */
static void lasting_fault_leaves_the_old_or_the_new(void **state)
{
    (void)state;
    static const struct {
        unsigned calls;
        int error;
    } faults[] = {{SHIM_WRITE | SHIM_FSYNC | SHIM_OPEN, ENOSPC}, {SHIM_FILES, EIO}};
    for (int i = 0; i < N_SCENE; i++)
        for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
            const scene *s = &scenes[i];
            new_place();
            const char *path = in_place("it");
            description before = old_of(s), after = new_of(s);
            int hit = 1;
            for (int n = 1; hit; n++) {
                put_old(s, path);
                shim_arm(faults[f].calls, n, SHIM_FAIL, faults[f].error, 1);
                outcome o = save(s, path);
                shim_disarm();
                hit = shim_was_hit();
                if (faults[f].calls != SHIM_FILES) {
                    check_after_fault(s, &o, path, "", faults[f].error, &before, &after);
                } else {
                    assert_string_equal(describe(path).text, o.in_place ? after.text : before.text);
                    if (o.status == TTN_OK) assert_int_equal(o.in_place, 1);
                }
                char left[PATH_MAX];
                while (temporaries(place, left) > 0)
                    remove_tree(left);
            }
        }
}

static void no_memory_is_a_status_and_the_old_stays(void **state)
{
    (void)state;
    for (int i = 0; i < N_SCENE; i++) {
        const scene *s = &scenes[i];
        new_place();
        const char *path = in_place("it");
        description before = old_of(s), after = new_of(s);
        int open_before = open_files();
        int hit = 1;
        int n = 1;
        for (; hit; n++) {
            put_old(s, path);
            shim_arm(SHIM_ALLOC, n, SHIM_FAIL, ENOMEM, 0);
            outcome o = save(s, path);
            shim_disarm();
            hit = shim_was_hit();
            assert_int_equal(o.status, hit ? TTN_ENOMEM : TTN_OK);
            assert_string_equal(describe(path).text, hit ? before.text : after.text);
            assert_int_equal(temporaries(place, NULL), 0);
            assert_int_equal(open_files(), open_before);
        }
        assert_true(n > 3);
    }
}

/* ---- killed at every call ---- */

typedef struct {
    const scene *s;
    const char *path;
    int nth;
    int without_exchange;
} killing;

/* ctx: the errno; NULL: EINVAL. */
static int refuse_exchange(void *ctx, const shim_call *call)
{
    const int *error = ctx;
    if (strcmp(call->name, "renameat2") != 0) return 0;
    return error ? *error : EINVAL;
}

static int save_and_be_killed(void *arg)
{
    const killing *k = arg;
    if (k->without_exchange) shim_watch(refuse_exchange, NULL);
    shim_arm(SHIM_FILES, k->nth, SHIM_KILL, 0, 0);
    outcome o = save(k->s, k->path);
    shim_disarm();
    if (o.status != TTN_OK) fprintf(stderr, "%s\n", o.err.text);
    return o.status == TTN_OK ? PASSED : 1;
}

/* Everything in place is the final name or recognised as a temporary. Removes the latter. */
static void sweep(void)
{
    char left[PATH_MAX];
    while (temporaries(place, left) > 0)
        remove_tree(left);
    DIR *d = opendir(place);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        if (e->d_name[0] != '.' && strcmp(e->d_name, "it") != 0) fail_msg("%s was left behind", e->d_name);
    closedir(d);
}

static void killed_at_any_call_leaves_the_old_or_the_new(void **state)
{
    (void)state;
    for (int i = 0; i < N_SCENE; i++) {
        const scene *s = &scenes[i];
        new_place();
        const char *path = in_place("it");
        description before = old_of(s), after = new_of(s);
        int n_old = 0, n_new = 0, killed = 1;
        for (int n = 1; killed; n++) {
            put_old(s, path);
            killing k = {.s = s, .path = path, .nth = n};
            ttn_child child = run_in_child((ttn_child_limit){0}, save_and_be_killed, &k);
            killed = !child.exited;
            if (killed ? child.signal != SIGKILL : child.exit_code != PASSED)
                fail_msg("%s, call %d: %s", s->label, n, child.output);
            description now = describe(path);
            int is_new = strcmp(now.text, after.text) == 0;
            if (!is_new) assert_string_equal(now.text, before.text);
            n_old += !is_new;
            n_new += is_new;
            outcome again = save(s, path); /* what is left behind is in nobody's way */
            assert_ok(again.status, &again.err);
            sweep();
        }
        assert_true(n_old > 5 && n_new >= 2); /* before and after the rename */
    }
}

/* ---- file systems that cannot swap two names ---- */

static void without_exchange_a_folder_is_replaced_in_two_steps(void **state)
{
    (void)state;
    const scene *s = &scenes[3];
    new_place();
    const char *path = in_place("it");
    description before = old_of(s), after = new_of(s);
    for (int n = 0; n <= 2; n++) {
        put_old(s, path);
        shim_watch(refuse_exchange, NULL);
        shim_arm(SHIM_RENAME, n, SHIM_FAIL, EIO, 0);
        outcome o = save(s, path);
        shim_disarm();
        shim_watch(NULL, NULL);
        if (n == 0)
            assert_ok(o.status, &o.err);
        else
            assert_fails(o.status, TTN_EIO, &o.err, strerror(EIO));
        assert_string_equal(describe(path).text, n == 0 ? after.text : before.text);
        assert_int_equal(temporaries(place, NULL), 0);
    }
    int errors[] = {ENOSYS, EOPNOTSUPP};
    for (int i = 0; i < 2; i++) {
        put_old(s, path);
        shim_watch(refuse_exchange, &errors[i]);
        outcome o = save(s, path);
        shim_watch(NULL, NULL);
        assert_ok(o.status, &o.err);
        assert_string_equal(describe(path).text, after.text);
    }
    /* The way back is barred as well: the message says where the previous one is. */
    put_old(s, path);
    shim_watch(refuse_exchange, NULL);
    shim_arm(SHIM_RENAME, 2, SHIM_FAIL, EIO, 1);
    outcome o = save(s, path);
    shim_disarm();
    shim_watch(NULL, NULL);
    assert_fails(o.status, TTN_EIO, &o.err, "rename it");
    assert_contains(o.err.text, o.leftover);
    assert_string_equal(describe(o.leftover).text, before.text);
    assert_int_equal(temporaries(place, NULL), 1);
}

/* ---- what is kept ---- */

enum { IS_FOLDER, IS_FILE, IS_LINK, N_THING };

static void put_thing(int thing, const char *path)
{
    if (thing == IS_FOLDER) make_folder(path);
    if (thing == IS_FOLDER) put_bytes(path, "mine", 10, 1);
    if (thing == IS_FILE) put(path, "mine");
    if (thing == IS_LINK) assert_int_equal(symlink("elsewhere", path), 0);
}

/* kept (PATH_MAX): as it is said. */
static ttn_status write_beside(const char *path, char *kept, ttn_error *err)
{
    ttn_atomic *a;
    *kept = 0;
    assert_ok(ttn_atomic_folder_create_beside(path, &a, err), err);
    put_bytes(ttn_atomic_path(a), "new", 10, 2);
    ttn_status status = ttn_atomic_commit(a, err);
    assert_int_equal(ttn_atomic_in_place(a), status == TTN_OK);
    if (ttn_atomic_kept(a)) snprintf(kept, PATH_MAX, "%s", ttn_atomic_kept(a));
    ttn_atomic_destroy(a);
    return status;
}

/* With and without exchange; the nth rename fails, and the way back does not. */
static void what_is_kept_gets_another_name_and_a_failure_leaves_it_in_place(void **state)
{
    (void)state;
    for (int thing = 0; thing < N_THING; thing++)
        for (int refused = 0; refused < 2; refused++)
            for (int n = 0; n <= 4; n++) {
                const int fails = n > 0 && n <= (refused ? 4 : 2), stays_there = refused && n == 2;
                ttn_error err = {0};
                char kept[PATH_MAX], wanted[PATH_MAX + 8];
                new_place();
                const char *path = in_place("it");
                put_thing(thing, path);
                put(in_place("it.kept-1"), "another");
                const description before = describe(path);
                if (refused) shim_watch(refuse_exchange, NULL);
                shim_arm(SHIM_RENAME, n, SHIM_FAIL, EIO, 0);
                ttn_status status = write_beside(path, kept, &err);
                shim_disarm();
                shim_watch(NULL, NULL);
                snprintf(wanted, sizeof wanted, "%s.kept-2", path);
                assert_int_equal(status, fails ? TTN_EIO : TTN_OK);
                assert_string_equal(describe(fails ? path : wanted).text, before.text);
                struct stat about;
                assert_int_equal(lstat(wanted, &about) == 0, !fails || stays_there);
                if (!fails) assert_string_equal(strrchr(kept, '/'), "/it.kept-2");
                if (!fails) assert_int_equal(access(in_place("it/new"), F_OK), 0);
                if (fails) assert_string_equal(kept, "");
                assert_text(in_place("it.kept-1"), "another");
                assert_int_equal(temporaries(place, NULL), 0);
            }
    ttn_error err = {0};
    char kept[PATH_MAX];
    new_place();
    assert_ok(write_beside(in_place("it"), kept, &err), &err); /* nothing was there */
    assert_string_equal(kept, "");
    assert_int_equal(access(in_place("it/new"), F_OK), 0);
}

static void without_exchange_a_kill_leaves_old_and_new_whole(void **state)
{
    (void)state;
    const scene *s = &scenes[3];
    new_place();
    const char *path = in_place("it");
    description before = old_of(s), after = new_of(s);
    int n_between = 0, killed = 1;
    for (int n = 1; killed; n++) {
        put_old(s, path);
        killing k = {.s = s, .path = path, .nth = n, .without_exchange = 1};
        ttn_child child = run_in_child((ttn_child_limit){0}, save_and_be_killed, &k);
        killed = !child.exited;
        struct stat about;
        if (lstat(path, &about) == 0) {
            description now = describe(path);
            if (strcmp(now.text, after.text) != 0) assert_string_equal(now.text, before.text);
        } else {
            n_between++;
            char aside[PATH_MAX];
            int length = snprintf(aside, sizeof aside, "%s/.it.tmp-", place);
            DIR *d = opendir(place);
            for (struct dirent *e = readdir(d); e; e = readdir(d)) {
                char found[PATH_MAX];
                join(found, place, e->d_name);
                if (strncmp(found, aside, (size_t)length) != 0) continue;
                int is_old = strstr(e->d_name, ".old") != NULL;
                assert_string_equal(describe(found).text, is_old ? before.text : after.text);
            }
            closedir(d);
            assert_int_equal(temporaries(place, NULL), 2);
        }
        sweep();
    }
    assert_int_equal(n_between, 1);
}

/* ---- file systems without fsync for folders ---- */

/* ctx: whether folders are meant, or files. */
static int refuse_fsync(void *ctx, const shim_call *call)
{
    const int *folders = ctx;
    struct stat about;
    if (strcmp(call->name, "fsync") != 0 || fstat(call->fd, &about) != 0) return 0;
    return S_ISDIR(about.st_mode) == *folders ? EINVAL : 0;
}

static void folders_need_no_fsync_where_there_is_none_but_files_do(void **state)
{
    (void)state;
    for (int i = 0; i < N_SCENE; i++)
        for (int folders = 0; folders <= 1; folders++) {
            const scene *s = &scenes[i];
            new_place();
            const char *path = in_place("it");
            description before = old_of(s), after = new_of(s);
            put_old(s, path);
            shim_watch(refuse_fsync, &folders);
            outcome o = save(s, path);
            shim_watch(NULL, NULL);
            if (folders)
                assert_ok(o.status, &o.err);
            else
                assert_fails(o.status, TTN_EIO, &o.err, strerror(EINVAL));
            assert_string_equal(describe(path).text, folders ? after.text : before.text);
            assert_int_equal(temporaries(place, NULL), 0);
        }
}

/* ---- another writer between create and commit ---- */

/* What the file system answers, and how often it is asked. */
typedef struct {
    int error;    /* of the rename, in place of ENOTEMPTY; 0: the system's own */
    int exchange; /* of the exchange; 0: it works */
    int n_rename;
    int n_exchange;
} rival;

static int answer(void *ctx, const shim_call *call)
{
    rival *r = ctx;
    if (strcmp(call->name, "rename") == 0) {
        r->n_rename++;
        return r->error;
    }
    if (strcmp(call->name, "renameat2") == 0) {
        r->n_exchange++;
        return r->exchange;
    }
    return 0;
}

static ttn_atomic *started_folder(const char *path)
{
    ttn_error err = {0};
    ttn_atomic *a;
    assert_ok(ttn_atomic_folder_create(path, &a, &err), &err);
    fill_folder(ttn_atomic_path(a), 'n');
    return a;
}

static void folder_that_came_meanwhile_is_swapped(void **state)
{
    (void)state;
    const int errors[] = {0, EEXIST, ENOTEMPTY};
    for (int i = 0; i < 3; i++) {
        new_place();
        const char *path = in_place("it");
        description after = new_of(&scenes[2]);
        ttn_atomic *a = started_folder(path);
        make_folder(path);
        fill_folder(path, 'o');
        ttn_error err = {0};
        rival r = {.error = errors[i]};
        shim_watch(answer, &r);
        ttn_status status = ttn_atomic_commit(a, &err);
        shim_watch(NULL, NULL);
        assert_ok(status, &err);
        assert_int_equal(r.n_rename, 1);
        assert_int_equal(r.n_exchange, 1);
        assert_null(ttn_atomic_leftover(a));
        ttn_atomic_destroy(a);
        assert_string_equal(describe(path).text, after.text);
        assert_int_equal(temporaries(place, NULL), 0);
    }
}

static void folder_that_went_meanwhile_is_not_missed(void **state)
{
    (void)state;
    new_place();
    const char *path = in_place("it");
    description after = new_of(&scenes[2]);
    make_folder(path);
    ttn_atomic *a = started_folder(path);
    remove_tree(path);
    ttn_error err = {0};
    assert_ok(ttn_atomic_commit(a, &err), &err);
    ttn_atomic_destroy(a);
    assert_string_equal(describe(path).text, after.text);
    assert_int_equal(temporaries(place, NULL), 0);
}

/* Any other answer ends it, and answers that contradict each other do not go on for ever. */
static void other_answers_to_a_rename_are_failures(void **state)
{
    (void)state;
    static const struct {
        rival r;
        int n_rename, n_exchange;
    } cases[] = {{{.error = EACCES}, 1, 0},
                 {{.error = EEXIST, .exchange = EACCES}, 1, 1},
                 {{.error = EEXIST, .exchange = ENOENT}, 4, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        new_place();
        ttn_atomic *a = started_folder(in_place("it"));
        ttn_error err = {0};
        rival r = cases[i].r;
        shim_watch(answer, &r);
        ttn_status status = ttn_atomic_commit(a, &err);
        shim_watch(NULL, NULL);
        assert_fails(status, TTN_EIO, &err, "cannot take its name");
        assert_int_equal(r.n_rename, cases[i].n_rename);
        assert_int_equal(r.n_exchange, cases[i].n_exchange);
        ttn_atomic_destroy(a);
        assert_int_equal(temporaries(place, NULL), 0);
    }
}

/* The same words of a file are no reason to swap. */
static void file_is_never_swapped(void **state)
{
    (void)state;
    new_place();
    rival r = {.error = EEXIST};
    shim_watch(answer, &r);
    outcome o = save(&scenes[0], in_place("it"));
    shim_watch(NULL, NULL);
    assert_fails(o.status, TTN_EIO, &o.err, "cannot take its name");
    assert_int_equal(r.n_exchange, 0);
}

/* ---- the order of calls that a power cut needs ---- */

typedef struct {
    const char *name;
    char path[PATH_MAX];
    char to[PATH_MAX];
    int flags;
} event;

static struct {
    event *event;
    int n;
    int n_unsynced; /* files and folders that were not on the disk when they got their name */
    char final[PATH_MAX];
} trace;

enum { MAX_EVENTS = 400 };

static int last_event(const char *name, const char *path)
{
    for (int i = trace.n - 1; i >= 0; i--)
        if (strcmp(trace.event[i].name, name) == 0 && strcmp(trace.event[i].path, path) == 0) return i;
    return -1;
}

/* Everything in the tree was given to fsync, after the last write to it. */
static void count_unsynced(const char *path)
{
    struct stat about;
    assert_int_equal(lstat(path, &about), 0);
    int synced = last_event("fsync", path);
    if (synced < 0 || synced < last_event("write", path)) {
        print_message("# not on the disk: %s\n", path);
        trace.n_unsynced++;
    }
    if (!S_ISDIR(about.st_mode)) return;
    DIR *d = opendir(path);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        char inside[PATH_MAX];
        join(inside, path, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) count_unsynced(inside);
    }
    closedir(d);
}

static int note_event(void *ctx, const shim_call *call)
{
    (void)ctx;
    assert_true(trace.n < MAX_EVENTS);
    event *e = &trace.event[trace.n];
    *e = (event){.name = call->name, .flags = call->flags};
    if (call->path) snprintf(e->path, sizeof e->path, "%s", call->path);
    if (call->to) snprintf(e->to, sizeof e->to, "%s", call->to);
    if (call->fd >= 0) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", call->fd);
        ssize_t n = readlink(link, e->path, sizeof e->path - 1);
        if (n > 0) e->path[n] = 0;
    }
    if (strcmp(e->to, trace.final) == 0) count_unsynced(e->path);
    trace.n++;
    return 0;
}

static void contents_are_on_the_disk_before_the_name_and_the_name_before_success(void **state)
{
    (void)state;
    trace.event = calloc(MAX_EVENTS, sizeof *trace.event);
    assert_non_null(trace.event);
    for (int i = 0; i < N_SCENE; i++) {
        const scene *s = &scenes[i];
        new_place();
        snprintf(trace.final, sizeof trace.final, "%s/it", place);
        put_old(s, trace.final);
        trace.n = trace.n_unsynced = 0;
        shim_watch(note_event, NULL);
        outcome o = save(s, trace.final);
        shim_watch(NULL, NULL);
        assert_ok(o.status, &o.err);
        int named = -1, n_named = 0, confirmed = -1;
        for (int e = 0; e < trace.n; e++) {
            const event *now = &trace.event[e];
            if (strcmp(now->to, trace.final) == 0) {
                named = e;
                n_named++;
            }
            if (named >= 0 && confirmed < 0 && strcmp(now->name, "fsync") == 0 && strcmp(now->path, place) == 0)
                confirmed = e;
            /* Nothing is written under the final name, and the old one is there until the new one is for certain. */
            if (strcmp(now->name, "write") == 0) assert_true(named < 0 && strcmp(now->path, trace.final) != 0);
            if (strcmp(now->name, "open") == 0 && (now->flags & O_ACCMODE) != O_RDONLY)
                assert_string_not_equal(now->path, trace.final);
            if (is_removal(now->name) && confirmed < 0)
                fail_msg("%s: %s of %s before the new name was confirmed", s->label, now->name, now->path);
        }
        assert_int_equal(n_named, 1);
        assert_int_equal(trace.n_unsynced, 0);
        if (confirmed < 0) fail_msg("%s: the folder was not given to fsync after the rename", s->label);
    }
    free(trace.event);
}

/* ---- links and rights ---- */

static void save_text(const char *path, const char *text)
{
    ttn_error err = {0};
    ttn_atomic *a;
    assert_ok(ttn_atomic_file_create(path, &a, &err), &err);
    assert_ok(ttn_atomic_write(a, text, strlen(text), &err), &err);
    assert_ok(ttn_atomic_commit(a, &err), &err);
    assert_null(ttn_atomic_leftover(a));
    ttn_atomic_destroy(a);
}

static int is_link(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
}

static void links_stay_and_what_they_point_to_is_written(void **state)
{
    (void)state;
    new_place();
    make_folder(in_place("disk"));
    put(in_place("disk/real"), "old");
    assert_int_equal(symlink("disk/real", in_place("relative")), 0);
    assert_int_equal(symlink(in_place("relative"), in_place("absolute")), 0);
    save_text(in_place("absolute"), "new");
    assert_true(is_link(in_place("absolute")) && is_link(in_place("relative")));
    assert_text(in_place("disk/real"), "new");

    assert_int_equal(symlink("disk/not yet", in_place("dangling")), 0);
    save_text(in_place("dangling"), "first");
    assert_true(is_link(in_place("dangling")));
    assert_text(in_place("disk/not yet"), "first");

    assert_int_equal(symlink("disk/folder/", in_place("to folder")), 0);
    for (int i = 0; i < 2; i++) { /* new, then replaced */
        outcome o = save(&scenes[2], in_place("to folder/"));
        assert_ok(o.status, &o.err);
    }
    assert_true(is_link(in_place("to folder")));
    assert_string_equal(describe(in_place("disk/folder")).text, new_of(&scenes[2]).text);
    assert_int_equal(temporaries(place, NULL) + temporaries(in_place("disk"), NULL), 0);

    /* Links inside a folder are neither followed nor removed through. */
    ttn_error err = {0};
    ttn_atomic *a;
    assert_ok(ttn_atomic_folder_create(in_place("with links"), &a, &err), &err);
    char inside[PATH_MAX];
    join(inside, ttn_atomic_path(a), "out");
    assert_int_equal(symlink(in_place("disk"), inside), 0);
    join(inside, ttn_atomic_path(a), "nowhere");
    assert_int_equal(symlink("no such thing", inside), 0);
    join(inside, ttn_atomic_path(a), "pipe");
    assert_int_equal(mkfifo(inside, 0600), 0); /* opening it would wait for ever */
    assert_ok(ttn_atomic_commit(a, &err), &err);
    ttn_atomic_destroy(a);
    assert_true(is_link(in_place("with links/out")));
    outcome o = save(&scenes[3], in_place("with links"));
    assert_ok(o.status, &o.err);
    assert_text(in_place("disk/real"), "new");

    assert_int_equal(symlink("loop b", in_place("loop a")), 0);
    assert_int_equal(symlink("loop a", in_place("loop b")), 0);
    assert_fails(ttn_atomic_file_create(in_place("loop a"), &a, &err), TTN_EINVAL, &err, "symbolic links");
}

/* Also one that leads nowhere, and one to a folder: what it leads to is neither made nor changed, and its rights are nobody's. */
static void own_file_takes_the_place_of_a_link(void **state)
{
    (void)state;
    static const char *const targets[] = {"disk/real", "disk/not yet", "disk", "link"};
    struct stat about;
    ttn_error err = {0};
    const mode_t mask = umask(022);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        new_place();
        assert_int_equal(mkdir(in_place("disk"), 0777), 0);
        save_text(in_place("disk/real"), "theirs");
        assert_int_equal(symlink(targets[i], in_place("link")), 0);
        assert_ok(ttn_atomic_save(in_place("link"), "ours", 4, &err), &err);
        assert_text(in_place("link"), "ours");
        assert_int_equal(lstat(in_place("link"), &about), 0);
        assert_true(S_ISREG(about.st_mode));
        assert_int_equal(about.st_mode & 0777, 0644);
        assert_text(in_place("disk/real"), "theirs");
        assert_int_not_equal(lstat(in_place("disk/not yet"), &about), 0);
        assert_int_equal(temporaries(place, NULL) + temporaries(in_place("disk"), NULL), 0);
    }
    umask(mask);
    assert_fails(ttn_atomic_save(in_place("disk"), "ours", 4, &err), TTN_EINVAL, &err, "is a folder");
}

static mode_t mode_of(const char *path)
{
    struct stat about;
    assert_int_equal(lstat(path, &about), 0);
    return about.st_mode & 07777;
}

static void permissions_are_those_of_what_was_there_or_the_usual(void **state)
{
    (void)state;
    new_place();
    mode_t before = umask(027);
    save_text(in_place("new"), "x");
    outcome o = save(&scenes[2], in_place("new folder"));
    assert_ok(o.status, &o.err);
    assert_int_equal(mode_of(in_place("new")), 0640);
    assert_int_equal(mode_of(in_place("new folder")), 0750);

    const mode_t modes[] = {0600, 0444, 0666, 0604, 0777, 02755};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        put(in_place("old"), "old");
        assert_int_equal(chmod(in_place("old"), modes[i]), 0);
        ttn_error err = {0};
        ttn_atomic *a;
        assert_ok(ttn_atomic_file_create(in_place("old"), &a, &err), &err);
        mode_t meanwhile = mode_of(ttn_atomic_path(a));
        assert_int_equal(meanwhile, 0600);
        assert_ok(ttn_atomic_commit(a, &err), &err);
        ttn_atomic_destroy(a);
        assert_int_equal(mode_of(in_place("old")), modes[i]);
        assert_int_equal(remove(in_place("old")), 0);
    }
    make_folder(in_place("old folder"));
    assert_int_equal(chmod(in_place("old folder"), 0511), 0);
    for (int i = 0; i < 2; i++) { /* the second time it has contents, which nobody may remove */
        o = save(&scenes[3], in_place("old folder"));
        assert_ok(o.status, &o.err);
        assert_string_equal(o.leftover, "");
        assert_int_equal(mode_of(in_place("old folder")), 0511);
    }
    assert_int_equal(chmod(in_place("old folder"), 0755), 0); /* so that it can be cleared away */
    umask(before);
}

static void owner_stays_where_it_may(void **state)
{
    (void)state;
    if (geteuid() != 0) skip_because("only root may give a file to another owner");
    new_place();
    put(in_place("theirs"), "old");
    assert_int_equal(chown(in_place("theirs"), 1234, 5678), 0);
    assert_int_equal(chmod(in_place("theirs"), 04754), 0);
    save_text(in_place("theirs"), "new");
    struct stat about;
    assert_int_equal(stat(in_place("theirs"), &about), 0);
    assert_int_equal(about.st_uid, 1234);
    assert_int_equal(about.st_gid, 5678);
    assert_int_equal(about.st_mode & 07777, 04754);
}

/* For the rest of a child's life. */
static void become_nobody(void)
{
    if (geteuid() != 0) return;
    assert_int_equal(setgroups(0, NULL), 0);
    assert_int_equal(setgid(NOBODY), 0);
    assert_int_equal(setuid(NOBODY), 0);
}

static void assert_child_passes(ttn_child_limit limit, int (*body)(void *arg))
{
    ttn_child child = run_in_child(limit, body, NULL);
    if (!child.exited || child.exit_code != PASSED) fail_msg("%s", child.output);
}

static int replace_as_nobody(void *arg)
{
    (void)arg;
    become_nobody();
    save_text(in_place("theirs"), "new");
    return PASSED;
}

static void rights_of_a_group_do_not_pass_to_another(void **state)
{
    (void)state;
    if (geteuid() != 0) skip_because("only root may set up files of another group");
    new_place();
    assert_int_equal(chmod(ttn_test_folder(), 0755), 0);
    assert_int_equal(chmod(place, 0777), 0);
    put(in_place("theirs"), "old");
    assert_int_equal(chown(in_place("theirs"), 1234, 5678), 0);
    assert_int_equal(chmod(in_place("theirs"), 06774), 0);
    assert_child_passes((ttn_child_limit){0}, replace_as_nobody);
    assert_text(in_place("theirs"), "new");
    struct stat about;
    assert_int_equal(stat(in_place("theirs"), &about), 0);
    assert_int_equal(about.st_uid, NOBODY);
    assert_int_equal(about.st_gid, NOBODY);
    assert_int_equal(about.st_mode & 07777, 0744);
}

/* Of the writer's group, and not of the group that may read what is replaced. arg: a temporary's path. */
static int look_at_what_is_written(void *arg)
{
    const char *path = arg;
    assert_int_equal(setgroups(0, NULL), 0);
    assert_int_equal(setuid(NOBODY), 0);
    FILE *f = fopen(path, "r");
    if (!f && errno == EACCES) return PASSED;
    fprintf(stderr, "%s: %s\n", path, f ? "can be opened" : strerror(errno));
    if (f) fclose(f);
    return 1;
}

/* The old one is for its group (5678) to read; what is written belongs to the writer's group until the end. */
static void what_is_being_written_is_nobody_elses(void **state)
{
    (void)state;
    if (geteuid() != 0) skip_because("only root may become somebody else of the same group");
    assert_int_equal(chmod(ttn_test_folder(), 0755), 0);
    for (int is_folder = 0; is_folder <= 1; is_folder++) {
        new_place();
        const char *path = in_place("theirs");
        assert_int_equal(chmod(place, 0755), 0);
        if (is_folder)
            make_folder(path);
        else
            put(path, "old");
        assert_int_equal(chown(path, 1234, 5678), 0);
        assert_int_equal(chmod(path, 0770), 0);
        ttn_error err = {0};
        ttn_atomic *a;
        assert_ok((is_folder ? ttn_atomic_folder_create : ttn_atomic_file_create)(path, &a, &err), &err);
        char temporary[PATH_MAX];
        snprintf(temporary, sizeof temporary, "%s", ttn_atomic_path(a));
        ttn_child child = run_in_child((ttn_child_limit){0}, look_at_what_is_written, temporary);
        if (!child.exited || child.exit_code != PASSED) fail_msg("%s", child.output);
        assert_int_equal(mode_of(temporary), is_folder ? 0700 : 0600);
        assert_ok(ttn_atomic_commit(a, &err), &err);
        ttn_atomic_destroy(a);
        assert_int_equal(mode_of(path), 0770);
    }
}

/* ---- names that cannot be ---- */

static void assert_refused(int is_folder, const char *path, ttn_status status, const char *words)
{
    ttn_error err = {0};
    ttn_atomic *a = (ttn_atomic *)place;
    ttn_status got = (is_folder ? ttn_atomic_folder_create : ttn_atomic_file_create)(path, &a, &err);
    assert_fails(got, status, &err, words);
    assert_null(a);
}

static void impossible_names_are_refused_with_a_sentence(void **state)
{
    (void)state;
    new_place();
    put(in_place("file"), "x");
    make_folder(in_place("folder"));
    assert_int_equal(mkfifo(in_place("pipe"), 0600), 0);
    assert_refused(0, "", TTN_EINVAL, "is empty");
    assert_refused(1, "", TTN_EINVAL, "is empty");
    assert_refused(0, "/", TTN_EINVAL, "the name of a folder");
    assert_refused(1, "/", TTN_EINVAL, "does not end in a name");
    assert_refused(1, in_place("folder/.."), TTN_EINVAL, "does not end in a name");
    assert_refused(1, in_place("folder/."), TTN_EINVAL, "does not end in a name");
    assert_refused(0, in_place("folder/.."), TTN_EINVAL, "is a folder");
    assert_refused(0, in_place("folder"), TTN_EINVAL, "is a folder, and a file is to be written");
    assert_refused(0, in_place("folder/"), TTN_EINVAL, "ends in '/'");
    assert_refused(1, in_place("file"), TTN_EINVAL, "is not a folder");
    assert_refused(0, in_place("pipe"), TTN_EINVAL, "device, pipe or socket");
    assert_refused(0, "/dev/null", TTN_EINVAL, "device, pipe or socket");
    assert_refused(0, in_place("missing/it"), TTN_EINVAL, "there is no folder");
    assert_refused(0, in_place("missing/it"), TTN_EINVAL, "mkdir -p");
    assert_refused(1, in_place("missing/it"), TTN_EINVAL, in_place("missing"));
    assert_refused(0, in_place("file/it"), TTN_EINVAL, "Not a directory");
    char name[NAME_MAX + 2];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_refused(0, in_place(name), TTN_EINVAL, "choose a shorter name");

    /* A path so long that a message cannot hold it: its end, that of its folder, and the reason are there. */
    char path[3500];
    int at = snprintf(path, sizeof path, "%s", place);
    while (at < 3000)
        at += snprintf(path + at, sizeof path - (size_t)at, "/%.100s", name);
    snprintf(path + at, sizeof path - (size_t)at, "/the end");
    assert_refused(0, path, TTN_EINVAL, "/the end: there is no folder ...");
    assert_refused(0, path, TTN_EINVAL, "xxx/; create it first (mkdir -p)");
    assert_int_equal(temporaries(place, NULL), 0);
}

static int write_where_one_may_not(void *arg)
{
    (void)arg;
    become_nobody();
    assert_refused(0, in_place("it"), TTN_EIO, "Permission denied");
    assert_refused(1, in_place("it"), TTN_EIO, "check who may write to its folder");
    return PASSED;
}

static void folder_that_one_may_not_write_to_is_a_status(void **state)
{
    (void)state;
    new_place();
    assert_int_equal(chmod(ttn_test_folder(), 0755), 0);
    assert_int_equal(chmod(place, 0555), 0);
    assert_child_passes((ttn_child_limit){0}, write_where_one_may_not);
    assert_int_equal(chmod(place, 0755), 0);
}

static void names_of_any_length_have_temporaries(void **state)
{
    (void)state;
    new_place();
    for (int n = 1; n <= NAME_MAX; n += n < 220 ? 31 : 1)
        for (int wide = 0; wide < 2; wide++) {
            char name[NAME_MAX + 1];
            for (int i = 0; i < n; i++)
                name[i] = wide && n - i >= 1 + (i + n) % 2 ? "\xc3\xa9"[(i + n) % 2] : 'n';
            if (wide) name[0] = 'n';
            name[n] = 0;
            for (int is_folder = 0; is_folder < 2; is_folder++) {
                ttn_error err = {0};
                ttn_atomic *a;
                assert_ok((is_folder ? ttn_atomic_folder_create : ttn_atomic_file_create)(in_place(name), &a, &err),
                          &err);
                assert_true(ttn_atomic_is_temporary(strrchr(ttn_atomic_path(a), '/') + 1));
                assert_int_equal(temporaries(place, NULL), 1);
                assert_ok(ttn_atomic_commit(a, &err), &err);
                ttn_atomic_destroy(a);
                assert_int_equal(temporaries(place, NULL), 0);
                remove_tree(in_place(name));
            }
        }
}

/* The name is cut between characters, and as little as that needs: ".NAME.tmp-PID-COUNTER.old" fits. */
static void long_names_are_cut_between_characters(void **state)
{
    (void)state;
    new_place();
    char tail[64];
    const size_t room = NAME_MAX - (size_t)snprintf(tail, sizeof tail, "..tmp-%ld-0.old", (long)getpid());
    for (size_t size = 1; size <= 4; size++)
        for (size_t shift = 1; shift <= 4; shift++) {
            char name[NAME_MAX + 1];
            fill_utf8(name, NAME_MAX, shift, size);
            name[0] = 'n';
            ttn_error err = {0};
            ttn_atomic *a;
            assert_ok(ttn_atomic_file_create(in_place(name), &a, &err), &err);
            const char *temporary = strrchr(ttn_atomic_path(a), '/') + 1;
            assert_true(is_whole(temporary));
            size_t kept = (size_t)(strstr(temporary, ".tmp-") - temporary) - 1;
            assert_in_range(kept, room - (size - 1), room);
            assert_int_equal(strncmp(temporary + 1, name, kept), 0);
            ttn_atomic_destroy(a);
        }
}

static void relative_path_means_what_it_meant_at_the_start(void **state)
{
    (void)state;
    new_place();
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    make_folder(in_place("here"));
    make_folder(in_place("there"));
    assert_int_equal(chdir(in_place("here")), 0);
    ttn_error err = {0};
    ttn_atomic *file, *folder;
    assert_ok(ttn_atomic_file_create("file", &file, &err), &err);
    assert_ok(ttn_atomic_folder_create(".././here//folder//", &folder, &err), &err);
    assert_int_equal(chdir(in_place("there")), 0);
    fill_folder(ttn_atomic_path(folder), 'n');
    assert_ok(ttn_atomic_commit(file, &err), &err);
    assert_ok(ttn_atomic_commit(folder, &err), &err);
    ttn_atomic_destroy(file);
    ttn_atomic_destroy(folder);
    assert_int_equal(chdir(before), 0);
    assert_text(in_place("here/file"), "");
    assert_string_equal(describe(in_place("here/folder")).text, new_of(&scenes[2]).text);
    assert_string_equal(describe(in_place("there")).text, "it/\n");
}

static void temporaries_are_told_by_their_name(void **state)
{
    (void)state;
    static const char *const yes[] = {".it.tmp-1-0", ".model.bin.tmp-4194304-999", "..tmp-1-0", ".a.tmp-x.tmp-12-3",
                                      ".it.tmp-1-0.old"};
    static const char *const no[] = {
        "",          ".",          "..",           "it",           "it.tmp-1-0",  ".tmp-1-0",
        ".it.tmp-1", ".it.tmp--0", ".it.tmp-1-0x", ".it.tmp-1-0.", ".it.tmp-a-0", ".it.tmp-1-"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!ttn_atomic_is_temporary(yes[i])) fail_msg("%s is one", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (ttn_atomic_is_temporary(no[i])) fail_msg("%s is none", no[i]);
}

static void taken_temporary_names_are_passed_over(void **state)
{
    (void)state;
    new_place();
    char taken[100];
    snprintf(taken, sizeof taken, ".it.tmp-%ld-0", (long)getpid());
    put(in_place(taken), "somebody's");
    snprintf(taken, sizeof taken, ".it.tmp-%ld-1.old", (long)getpid());
    put(in_place(taken), "somebody's");
    outcome file = save(&scenes[0], in_place("it"));
    assert_ok(file.status, &file.err);
    assert_text(in_place(taken), "somebody's");
    remove_tree(in_place("it"));
    outcome folder = save(&scenes[2], in_place("it"));
    assert_ok(folder.status, &folder.err);
    shim_watch(refuse_exchange, NULL);
    folder = save(&scenes[3], in_place("it"));
    shim_watch(NULL, NULL);
    assert_ok(folder.status, &folder.err);
    assert_text(in_place(taken), "somebody's");
    assert_int_equal(temporaries(place, NULL), 2);
}

/* ---- links, removal, leftovers ---- */

static const char *target_of(const char *path)
{
    static char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target - 1);
    assert_true(n > 0);
    target[n] = 0;
    return target;
}

static void link_is_replaced_in_one_step(void **state)
{
    (void)state;
    new_place();
    ttn_error err = {0};
    assert_ok(ttn_atomic_link(in_place("latest"), "step-1", &err), &err);
    assert_string_equal(target_of(in_place("latest")), "step-1"); /* also when that is not there */
    int hit = 1, n_old = 0, n_new = 0, n_unconfirmed = 0;
    for (int n = 1; hit; n++) {
        assert_ok(ttn_atomic_link(in_place("latest"), "step-1", &err), &err);
        int open_before = open_files();
        err = (ttn_error){0};
        shim_arm(SHIM_FILES, n, SHIM_FAIL, EIO, 0);
        ttn_status status = ttn_atomic_link(in_place("latest"), "step-2", &err);
        shim_disarm();
        hit = shim_was_hit();
        int is_new = strcmp(target_of(in_place("latest")), "step-2") == 0;
        if (!is_new) assert_string_equal(target_of(in_place("latest")), "step-1");
        if (status == TTN_OK) assert_true(is_new);
        if (!hit) assert_ok(status, &err);
        if (status != TTN_OK) assert_contains(err.text, is_new ? "the new link is in place" : "what was there stays");
        n_old += !is_new;
        n_new += is_new;
        n_unconfirmed += is_new && status != TTN_OK;
        assert_int_equal(open_files(), open_before);
        assert_int_equal(temporaries(place, NULL), 0);
        err = (ttn_error){0};
    }
    assert_true(n_old >= 3 && n_new >= 2);
    assert_int_equal(n_unconfirmed, 1); /* the fsync of its folder */
    put(in_place("a file"), "");
    assert_fails(ttn_atomic_link(in_place("a file"), "step-1", &err), TTN_EINVAL, &err, "is no symbolic link");
    err = (ttn_error){0};
    assert_fails(ttn_atomic_link(in_place("no/latest"), "step-1", &err), TTN_EINVAL, &err, "there is no folder");
}

/* A reader that only looks at the name sees all of it or nothing. */
static void folder_goes_whole(void **state)
{
    (void)state;
    new_place();
    ttn_error err = {0};
    const char *path = in_place("it");
    const scene *s = &scenes[3];
    description before = old_of(s);
    int hit = 1, n_there = 0, n_gone = 0;
    for (int n = 1; hit; n++) {
        put_old(s, path);
        int open_before = open_files();
        err = (ttn_error){0};
        shim_arm(SHIM_FILES, n, SHIM_FAIL, EIO, 0);
        ttn_status status = ttn_atomic_remove(path, &err);
        shim_disarm();
        hit = shim_was_hit();
        struct stat about;
        int is_there = lstat(path, &about) == 0;
        if (is_there) assert_string_equal(describe(path).text, before.text);
        if (status == TTN_OK) assert_false(is_there);
        if (!hit) assert_ok(status, &err);
        if (status != TTN_OK) assert_contains(err.text, is_there ? "cannot" : "its name is gone");
        n_there += is_there;
        n_gone += !is_there;
        assert_int_equal(open_files(), open_before);
        char left[PATH_MAX];
        while (temporaries(place, left) > 0)
            remove_tree(left);
    }
    assert_true(n_there >= 2 && n_gone >= 5);
    err = (ttn_error){0};
    assert_fails(ttn_atomic_remove(path, &err), TTN_EINVAL, &err, "is no folder");
    make_folder(in_place("real"));
    assert_int_equal(symlink("real", path), 0);
    err = (ttn_error){0};
    assert_fails(ttn_atomic_remove(path, &err), TTN_EINVAL, &err, "is no folder");
}

static int note_removal_order(void *ctx, const shim_call *call)
{
    int *stage = ctx;
    if (strcmp(call->name, "rename") == 0) *stage = 1;
    if (strcmp(call->name, "fsync") == 0 && *stage == 1) *stage = 2;
    if (is_removal(call->name) && *stage != 2)
        fail_msg("%s of %s before the disk knows that the name is gone", call->name, call->path);
    return 0;
}

static void nothing_is_removed_before_the_disk_knows_that_the_name_is_gone(void **state)
{
    (void)state;
    new_place();
    put_old(&scenes[3], in_place("it"));
    int stage = 0;
    shim_watch(note_removal_order, &stage);
    ttn_error err = {0};
    ttn_status status = ttn_atomic_remove(in_place("it"), &err);
    shim_watch(NULL, NULL);
    assert_ok(status, &err);
    assert_int_equal(stage, 2);
}

static int remove_and_be_killed(void *arg)
{
    const killing *k = arg;
    shim_arm(SHIM_FILES, k->nth, SHIM_KILL, 0, 0);
    ttn_status status = ttn_atomic_remove(k->path, NULL);
    shim_disarm();
    return status == TTN_OK ? PASSED : 1;
}

static int is_it(const char *name, int is_folder)
{
    return is_folder && strcmp(name, "it") == 0;
}

static void killed_removal_is_finished_by_a_sweep(void **state)
{
    (void)state;
    new_place();
    const char *path = in_place("it");
    description before = old_of(&scenes[3]);
    int killed = 1, n_swept = 0;
    for (int n = 1; killed; n++) {
        put_old(&scenes[3], path);
        killing k = {.path = path, .nth = n};
        killed = !run_in_child((ttn_child_limit){0}, remove_and_be_killed, &k).exited;
        struct stat about;
        if (lstat(path, &about) == 0) assert_string_equal(describe(path).text, before.text);
        n_swept += temporaries(place, NULL);
        ttn_error err = {0};
        assert_ok(ttn_atomic_sweep(place, is_it, NULL, &err), &err);
        assert_int_equal(temporaries(place, NULL), 0);
    }
    assert_true(n_swept >= 5);
}

static void sweep_removes_what_is_ours_and_nothing_else(void **state)
{
    (void)state;
    new_place();
    static const char *const ours[] = {".it.tmp-1-0", ".it.trash-12-3"};
    static const char *const others[] = {".other.tmp-1-0", ".it.tmp-1", ".it.tmp-a-0", ".it.trash-1-0.old",
                                         "it.tmp-1-0",     ".it",       "notes",       ".tmp-1-0",
                                         ".its.tmp-4-4"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        make_folder(in_place(ours[i]));
        fill_folder(in_place(ours[i]), 'o');
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        make_folder(in_place(others[i]));
    put(in_place(".it.tmp-9-9"), "a file: is_ours takes folders");
    make_folder(in_place("far"));
    put(in_place("far/away"), "not to be followed");
    char inside[PATH_MAX];
    join(inside, in_place(ours[0]), "link");
    assert_int_equal(symlink(in_place("far"), inside), 0);
    ttn_error err = {0};
    assert_ok(ttn_atomic_sweep(place, is_it, NULL, &err), &err);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        assert_int_not_equal(access(in_place(ours[i]), F_OK), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(access(in_place(others[i]), F_OK), 0);
    assert_text(in_place(".it.tmp-9-9"), "a file: is_ours takes folders");
    assert_text(in_place("far/away"), "not to be followed");
    assert_fails(ttn_atomic_sweep(in_place("nowhere"), is_it, NULL, &err), TTN_EINVAL, &err, "looked through");
}

/* On a file system without exchange a kill may leave the previous folder aside and nobody under its name. */
static void sweep_gives_the_previous_folder_its_name_back(void **state)
{
    (void)state;
    new_place();
    const scene *s = &scenes[3];
    const char *path = in_place("it");
    description before = old_of(s), after = new_of(s);
    int n_restored = 0, killed = 1;
    for (int n = 1; killed; n++) {
        put_old(s, path);
        killing k = {.s = s, .path = path, .nth = n, .without_exchange = 1};
        killed = !run_in_child((ttn_child_limit){0}, save_and_be_killed, &k).exited;
        struct stat about;
        n_restored += lstat(path, &about) != 0;
        ttn_error err = {0};
        assert_ok(ttn_atomic_sweep(place, is_it, NULL, &err), &err);
        description now = describe(path);
        if (strcmp(now.text, after.text) != 0) assert_string_equal(now.text, before.text);
        assert_int_equal(temporaries(place, NULL), 0);
    }
    assert_int_equal(n_restored, 1);
}

/* ---- what is swept without knowing who else writes there ---- */

static void a_killed_file_is_swept_and_a_living_one_is_not(void **state)
{
    (void)state;
    new_place();
    const char *path = in_place("it");
    int killed = 1, n_left = 0;
    for (int n = 1; killed; n++) {
        killing k = {.s = &scenes[1], .path = path, .nth = n};
        put_old(k.s, path);
        killed = !run_in_child((ttn_child_limit){0}, save_and_be_killed, &k).exited;
        n_left += temporaries(place, NULL);
        ttn_error err = {0};
        ttn_atomic *a;
        assert_ok(ttn_atomic_file_create(path, &a, &err), &err);
        ttn_atomic_sweep_dead_of(path, NULL);
        assert_int_equal(temporaries(place, NULL), 1); /* this process's own */
        assert_ok(ttn_atomic_write(a, "new", 3, &err), &err);
        ttn_atomic_sweep_dead_of(path, NULL);
        assert_ok(ttn_atomic_commit(a, &err), &err);
        ttn_atomic_destroy(a);
        assert_text(path, "new");
        assert_int_equal(temporaries(place, NULL), 0);
        assert_int_equal(unlink(path), 0);
    }
    assert_true(n_left >= 5);
}

/* A ttn_shim watch: another process sweeps in the moment between the temporary's close and its rename. */
static int sweep_before_renaming(void *ctx, const shim_call *call)
{
    if (strcmp(call->name, "rename") == 0) ttn_atomic_sweep_dead_of(ctx, NULL);
    return 0;
}

static void a_sweep_between_close_and_rename_takes_nothing(void **state)
{
    (void)state;
    new_place();
    char path[PATH_MAX];
    join(path, place, "it");
    ttn_error err = {0};
    const int before = open_files();
    shim_watch(sweep_before_renaming, path);
    ttn_status status = ttn_atomic_save(path, "new", 3, &err);
    shim_watch(NULL, NULL);
    assert_ok(status, &err);
    assert_text(path, "new");
    assert_int_equal(open_files(), before);
}

static int takes_it(void *ctx, const char *name)
{
    return strcmp(name, ctx) == 0;
}

static void sweeping_the_dead_takes_files_of_that_name_alone(void **state)
{
    (void)state;
    new_place();
    static const char *const others[] = {".other.tmp-1-0", ".it.tmp-1",      ".it.tmp-1-0.old", ".it.trash-1-0",
                                         "it.tmp-1-0",     ".it.tmp-1-0-it", ".its.tmp-4-4",    "it"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        put(in_place(others[i]), "kept");
    make_folder(in_place(".it.tmp-3-0"));
    assert_int_equal(symlink(in_place("it"), in_place(".it.tmp-5-0")), 0);
    put(in_place(".it.tmp-1-0"), "dead");
    put(in_place(".it.tmp-77-12"), "dead");
    char it[] = "it";
    ttn_atomic_sweep_dead(place, takes_it, it, NULL);
    assert_int_not_equal(access(in_place(".it.tmp-1-0"), F_OK), 0);
    assert_int_not_equal(access(in_place(".it.tmp-77-12"), F_OK), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_text(in_place(others[i]), "kept");
    struct stat about;
    assert_int_equal(lstat(in_place(".it.tmp-3-0"), &about), 0);
    assert_int_equal(lstat(in_place(".it.tmp-5-0"), &about), 0);
    ttn_atomic_sweep_dead_of(in_place("nowhere/it"), NULL); /* which is no failure */
}

/* ---- space that is taken in advance ---- */

static void reserved_space_is_what_is_missing_at_the_start(void **state)
{
    (void)state;
    new_place();
    ttn_error err = {0};
    ttn_atomic *a;
    struct stat about;
    put(in_place("it"), "old");
    assert_ok(ttn_atomic_file_create(in_place("it"), &a, &err), &err);
    assert_ok(ttn_atomic_reserve(a, 100000, &err), &err);
    assert_int_equal(stat(ttn_atomic_path(a), &about), 0);
    assert_true(about.st_blocks * 512 >= 100000);
    assert_ok(ttn_atomic_write(a, "shorter", 7, &err), &err);
    assert_ok(ttn_atomic_commit(a, &err), &err);
    ttn_atomic_destroy(a);
    assert_text(in_place("it"), "shorter");
    assert_int_equal(stat(in_place("it"), &about), 0);
    assert_int_equal(about.st_size, 7);

    const int errors[] = {ENOSPC, EFBIG, EINTR, EOPNOTSUPP, EINVAL};
    for (int i = 0; i < 5; i++) {
        err = (ttn_error){0};
        assert_ok(ttn_atomic_file_create(in_place("it"), &a, &err), &err);
        shim_arm(SHIM_SIZE, 1, SHIM_FAIL, errors[i], 0);
        ttn_status status = ttn_atomic_reserve(a, 1500000, &err);
        shim_disarm();
        if (i < 2)
            assert_fails(status, TTN_EIO, &err, "cannot get the space of 1.5 MB");
        else
            assert_ok(status, &err);
        ttn_atomic_destroy(a);
    }
    assert_text(in_place("it"), "shorter");
    assert_int_equal(temporaries(place, NULL), 0);
}

/* ---- full disks and other writers, for real ---- */

static int fill_small_disk(void *arg)
{
    (void)arg;
    if (unshare(CLONE_NEWNS) != 0) return IMPOSSIBLE;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return IMPOSSIBLE;
    if (mount("tmpfs", place, "tmpfs", 0, "size=200k") != 0) return IMPOSSIBLE;
    const scene *s = &scenes[1];
    put_old(s, in_place("it")); /* 40 of 200 kB; the new one has 150 */
    description before = describe(in_place("it")), after = new_of(s);
    put_bytes(place, "something else", 30000, 'x');
    outcome o = save(s, in_place("it"));
    assert_fails(o.status, TTN_EIO, &o.err, "No space left on device; free some space");
    assert_string_equal(describe(in_place("it")).text, before.text);
    assert_int_equal(temporaries(place, NULL), 0);
    assert_int_equal(remove(in_place("something else")), 0);
    assert_int_equal(remove(in_place("it")), 0);
    o = save(s, in_place("it"));
    assert_ok(o.status, &o.err);
    assert_string_equal(describe(in_place("it")).text, after.text);
    return PASSED;
}

static void full_disk_keeps_the_old_and_takes_the_new_once_there_is_room(void **state)
{
    (void)state;
    new_place();
    ttn_child child = run_in_child((ttn_child_limit){0}, fill_small_disk, NULL);
    if (child.exited && child.exit_code == IMPOSSIBLE) skip_because("a small tmpfs cannot be mounted here");
    if (!child.exited || child.exit_code != PASSED) fail_msg("%s", child.output);
}

static int exceed_limit(void *arg)
{
    (void)arg;
    signal(SIGXFSZ, SIG_IGN);
    outcome o = save(&scenes[1], in_place("it"));
    assert_fails(o.status, TTN_EIO, &o.err, "File too large; raise the limit on file sizes (ulimit -f)");
    return PASSED;
}

static void limit_on_file_sizes_keeps_the_old(void **state)
{
    (void)state;
    new_place();
    put_old(&scenes[1], in_place("it"));
    description before = describe(in_place("it"));
    assert_child_passes((ttn_child_limit){.file_size = 100000}, exceed_limit);
    assert_string_equal(describe(in_place("it")).text, before.text);
    assert_int_equal(temporaries(place, NULL), 0);
}

enum { N_FILES = 2, FILE_BYTES = 3000 };

/* One writer's version: every byte of every file is its letter. */
static ttn_status write_letter(int is_folder, const char *path, char letter)
{
    char bytes[FILE_BYTES];
    memset(bytes, letter, sizeof bytes);
    ttn_atomic *a;
    ttn_status status = (is_folder ? ttn_atomic_folder_create : ttn_atomic_file_create)(path, &a, NULL);
    if (status != TTN_OK) return status;
    if (!is_folder) status = ttn_atomic_write(a, bytes, sizeof bytes, NULL);
    for (int i = 0; is_folder && i < N_FILES; i++) {
        char inside[PATH_MAX];
        snprintf(inside, sizeof inside, "%s/%d", ttn_atomic_path(a), i);
        FILE *f = fopen(inside, "w");
        if (!f || fwrite(bytes, 1, sizeof bytes, f) != sizeof bytes) status = TTN_EIO;
        if (f && fclose(f) != 0) status = TTN_EIO;
    }
    if (status == TTN_OK) status = ttn_atomic_commit(a, NULL);
    if (ttn_atomic_leftover(a)) status = TTN_EIO;
    ttn_atomic_destroy(a);
    return status;
}

static int all_the_same(const char *bytes, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (bytes[i] != bytes[0]) return 0;
    return 1;
}

/* 1: read whole; 0: it was replaced while it was read. Fails the test on a mix. */
static int read_letter(int is_folder, const char *path)
{
    char bytes[N_FILES * FILE_BYTES + 1];
    size_t n = 0;
    int at = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | (is_folder ? O_DIRECTORY : 0));
    if (at < 0) fail_msg("%s is not there: %s", path, strerror(errno));
    for (int i = 0; i < (is_folder ? N_FILES : 1); i++) {
        char name[12];
        snprintf(name, sizeof name, "%d", i);
        int fd = is_folder ? openat(at, name, O_RDONLY | O_CLOEXEC) : dup(at);
        if (fd < 0) break; /* of a folder that is being removed */
        for (ssize_t got = 1; got > 0; n += (size_t)got)
            got = read(fd, bytes + n, sizeof bytes - n);
        shim_real_close(fd);
    }
    shim_real_close(at);
    if (is_folder && n < N_FILES * FILE_BYTES) return 0;
    assert_int_equal(n, is_folder ? N_FILES * FILE_BYTES : FILE_BYTES);
    if (!all_the_same(bytes, n)) fail_msg("a mix of two writers' contents");
    return 1;
}

/* Until `stop` is there. */
static int write_letters(int is_folder, const char *path, const char *stop, char letter)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* else nobody would ever say stop */
    ttn_status status = TTN_OK;
    while (status == TTN_OK && access(stop, F_OK) != 0)
        status = write_letter(is_folder, path, letter);
    return status == TTN_OK ? PASSED : 1;
}

static void of_two_writers_the_last_wins_and_readers_see_one_whole(void **state)
{
    (void)state;
    const int n_wanted = (int)ttn_scaled(200, 30);
    for (int is_folder = 0; is_folder < 2; is_folder++) {
        new_place();
        const char *path = in_place("it"), *stop = in_place("stop");
        assert_int_equal(write_letter(is_folder, path, 'a'), TTN_OK);
        pid_t writer[2];
        for (int w = 0; w < 2; w++) {
            writer[w] = fork();
            assert_true(writer[w] >= 0);
            if (writer[w] == 0) _exit(write_letters(is_folder, path, stop, (char)('b' + w)));
        }
        for (int n_read = 0; n_read < n_wanted;)
            n_read += read_letter(is_folder, path);
        put(stop, "");
        for (int w = 0; w < 2; w++) {
            int status;
            assert_int_equal(waitpid(writer[w], &status, 0), writer[w]);
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), PASSED);
        }
        assert_int_equal(read_letter(is_folder, path), 1);
        assert_int_equal(temporaries(place, NULL), 0);
    }
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    /* What is tested does not depend on the disk, but waits for it in thousands of fsync: 20 s against 1 s in memory
     * when others use it too. The long run waits. */
    if (!ttn_test_long() && access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_committed_appears_whole),
        cmocka_unit_test(a_file_is_saved_in_one_call),
        cmocka_unit_test(nothing_appears_without_a_commit),
        cmocka_unit_test(pieces_of_any_size_arrive_in_order),
        cmocka_unit_test(file_may_be_written_by_its_name),
        cmocka_unit_test(after_a_failure_every_call_fails),
        cmocka_unit_test(single_fault_leaves_the_old_or_the_new_and_the_status_says_which),
        cmocka_unit_test(lasting_fault_leaves_the_old_or_the_new),
        cmocka_unit_test(no_memory_is_a_status_and_the_old_stays),
        cmocka_unit_test(killed_at_any_call_leaves_the_old_or_the_new),
        cmocka_unit_test(without_exchange_a_folder_is_replaced_in_two_steps),
        cmocka_unit_test(what_is_kept_gets_another_name_and_a_failure_leaves_it_in_place),
        cmocka_unit_test(without_exchange_a_kill_leaves_old_and_new_whole),
        cmocka_unit_test(folders_need_no_fsync_where_there_is_none_but_files_do),
        cmocka_unit_test(folder_that_came_meanwhile_is_swapped),
        cmocka_unit_test(folder_that_went_meanwhile_is_not_missed),
        cmocka_unit_test(other_answers_to_a_rename_are_failures),
        cmocka_unit_test(file_is_never_swapped),
        cmocka_unit_test(contents_are_on_the_disk_before_the_name_and_the_name_before_success),
        cmocka_unit_test(links_stay_and_what_they_point_to_is_written),
        cmocka_unit_test(own_file_takes_the_place_of_a_link),
        cmocka_unit_test(permissions_are_those_of_what_was_there_or_the_usual),
        cmocka_unit_test(owner_stays_where_it_may),
        cmocka_unit_test(rights_of_a_group_do_not_pass_to_another),
        cmocka_unit_test(what_is_being_written_is_nobody_elses),
        cmocka_unit_test(impossible_names_are_refused_with_a_sentence),
        cmocka_unit_test(folder_that_one_may_not_write_to_is_a_status),
        cmocka_unit_test(names_of_any_length_have_temporaries),
        cmocka_unit_test(long_names_are_cut_between_characters),
        cmocka_unit_test(relative_path_means_what_it_meant_at_the_start),
        cmocka_unit_test(temporaries_are_told_by_their_name),
        cmocka_unit_test(taken_temporary_names_are_passed_over),
        cmocka_unit_test(link_is_replaced_in_one_step),
        cmocka_unit_test(folder_goes_whole),
        cmocka_unit_test(nothing_is_removed_before_the_disk_knows_that_the_name_is_gone),
        cmocka_unit_test(killed_removal_is_finished_by_a_sweep),
        cmocka_unit_test(a_killed_file_is_swept_and_a_living_one_is_not),
        cmocka_unit_test(a_sweep_between_close_and_rename_takes_nothing),
        cmocka_unit_test(sweeping_the_dead_takes_files_of_that_name_alone),
        cmocka_unit_test(sweep_removes_what_is_ours_and_nothing_else),
        cmocka_unit_test(sweep_gives_the_previous_folder_its_name_back),
        cmocka_unit_test(reserved_space_is_what_is_missing_at_the_start),
        cmocka_unit_test(full_disk_keeps_the_old_and_takes_the_new_once_there_is_room),
        cmocka_unit_test(limit_on_file_sizes_keeps_the_old),
        cmocka_unit_test(of_two_writers_the_last_wins_and_readers_see_one_whole),
    };
    return ttn_test_run(tests);
}
