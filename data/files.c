#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include "core/text.h"
#include "data/files.h"

static ttn_status no_memory(ttn_error *err)
{
    return TTN_FAIL(err, TTN_ENOMEM, "no memory for the names of the files");
}

static ttn_status add(ttn_files *in, const char *path, ttn_error *err)
{
    if (in->n == in->room) {
        const int room = 2 * in->room + 16;
        const char **longer = realloc(in->file, (size_t)room * sizeof *longer);
        if (!longer) return no_memory(err);
        in->file = longer;
        in->room = room;
    }
    in->file[in->n] = path;
    in->n++;
    return TTN_OK;
}

/* ---- folders ---- */

static int ends_with(const char *name, size_t n, const char *ending)
{
    const size_t k = strlen(ending);
    return n > k && strncasecmp(name + n - k, ending, k) == 0;
}

/* What is packed in a way that is not read is FASTA, too: that it is not read must be said. */
static int ends_as_fasta(const char *name)
{
    static const char *const packed[] = {".gz", ".bgz", ".zst", ".xz", ".bz2", ".lz4"};
    static const char *const endings[] = {".fa", ".fasta", ".faa", ".fas", ".fsa", ".mpfa", ".pep", ".a2m", ".a3m"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (ends_with(name, n, packed[i])) {
            n -= strlen(packed[i]);
            break;
        }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_with(name, n, endings[i])) return 1;
    return 0;
}

static ttn_status add_folder(ttn_files *in, const char *folder, ttn_error *err);

static ttn_status add_entry(ttn_files *in, const char *folder, const char *name, ttn_error *err)
{
    struct stat itself, target;
    if (name[0] == '.') return TTN_OK;
    const char *path = ttn_arena_text(in->texts, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", name);
    if (!path) return no_memory(err);
    if (lstat(path, &itself) != 0) {
        if (errno != ENOENT) return add(in, path, err); /* file or folder: nobody knows, and reading it says why */
    } else if (S_ISDIR(itself.st_mode)) {
        return add_folder(in, path, err);
    }
    const int is_there = stat(path, &target) == 0; /* if not, reading it says why */
    if (ends_as_fasta(name) && (!is_there || S_ISREG(target.st_mode))) return add(in, path, err);
    if (in->passed_over == 0) in->first_passed_over = path;
    in->passed_over++;
    return TTN_OK;
}

/* In the order of names: bytes, whatever the language. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* It is this folder, and not the system, that cannot be read. */
static int is_of_folder(int error)
{
    return error == EACCES || error == EPERM || error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

/* A folder that cannot be read stands for what is in it: reading it fails as that of a file, and is told with theirs. */
static ttn_status add_folder(ttn_files *in, const char *folder, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    struct dirent **entry;
    const int n = scandir(folder, &entry, NULL, by_name);
    if (n < 0 && is_of_folder(errno)) return add(in, folder, err);
    if (n < 0)
        return TTN_FAIL(err, errno == ENOMEM ? TTN_ENOMEM : TTN_EIO, "%s: the folder cannot be read: %s (FA066)",
                        ttn_text_tail(folder, shown), strerror(errno));
    ttn_status status = TTN_OK;
    for (int i = 0; i < n; i++) {
        if (status == TTN_OK) status = add_entry(in, folder, entry[i]->d_name, err);
        free(entry[i]);
    }
    free(entry);
    return status;
}

/* ---- names ---- */

/* A file, or where it is a folder what is in it. */
static ttn_status add_path(ttn_files *in, const char *path, int reads_folders, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    struct stat about;
    const int before = in->n;
    if (!reads_folders || stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) return add(in, path, err);
    ttn_status status = add_folder(in, path, err);
    if (status != TTN_OK || in->n > before) return status;
    return TTN_FAIL(err, TTN_EINVAL,
                    "%s: no file in this folder has a name that ends as FASTA does (.fa, .fasta, .faa, .fa.gz, ...); "
                    "name the files (FA066)",
                    ttn_text_tail(path, shown));
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static ttn_status add_matches(ttn_files *in, const char *pattern, int reads_folders, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    glob_t found = {0};
    const int failed = glob(pattern, GLOB_NOSORT, NULL, &found); /* sorted by us: bytes, whatever the language */
    ttn_status status = TTN_OK;
    if (failed == GLOB_NOSPACE) status = no_memory(err);
    if (failed && status == TTN_OK)
        status = TTN_FAIL(err, TTN_EINVAL, "%s: there is no such file, and none whose name matches (FA066)",
                          ttn_text_tail(pattern, shown));
    if (status == TTN_OK) qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, compare_paths);
    for (size_t i = 0; status == TTN_OK && i < found.gl_pathc; i++) {
        const char *path = ttn_arena_text(in->texts, "%s", found.gl_pathv[i]);
        status = path ? add_path(in, path, reads_folders, err) : no_memory(err);
    }
    globfree(&found);
    return status;
}

ttn_status ttn_files_add(ttn_files *in, const char *name, int reads_folders, ttn_error *err)
{
    struct stat itself;
    ttn_status status = in->texts ? TTN_OK : ttn_arena_create(0, &in->texts, err);
    if (status != TTN_OK) return status;
    if (strcmp(name, "-") == 0) return add(in, name, err);
    const int is_pattern = strpbrk(name, "*?[") && lstat(name, &itself) != 0 && errno == ENOENT;
    return is_pattern ? add_matches(in, name, reads_folders, err) : add_path(in, name, reads_folders, err);
}

void ttn_files_drop(ttn_files *in)
{
    free(in->file);
    ttn_arena_destroy(in->texts);
    *in = (ttn_files){0};
}

int ttn_files_are_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
