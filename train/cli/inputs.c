#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include "core/text.h"
#include "train/cli/configured.h"
#include "train/cli/inputs.h"

static ttn_status no_memory(ttn_error *err)
{
    return TTN_FAIL(err, TTN_ENOMEM, "no memory for the names of the files");
}

static ttn_status add(ttn_inputs *in, const char *path, ttn_error *err)
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

static ttn_status add_folder(ttn_inputs *in, const char *folder, ttn_error *err);

static ttn_status add_entry(ttn_inputs *in, const char *folder, const char *name, ttn_error *err)
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
static ttn_status add_folder(ttn_inputs *in, const char *folder, ttn_error *err)
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

/* ---- arguments ---- */

static ttn_status add_argument(ttn_inputs *in, const char *path, int is_recursive, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    struct stat about;
    const int before = in->n;
    if (!is_recursive || strcmp(path, "-") == 0 || stat(path, &about) != 0 || !S_ISDIR(about.st_mode))
        return add(in, path, err);
    ttn_status status = add_folder(in, path, err);
    if (status != TTN_OK || in->n > before) return status;
    return TTN_FAIL(err, TTN_EINVAL,
                    "%s: no file in this folder has a name that ends as FASTA does (.fa, .fasta, .faa, .fa.gz, ...); "
                    "name the files (FA066)",
                    ttn_text_tail(path, shown));
}

ttn_status ttn_inputs_find(const ttn_cli_call *call, ttn_inputs *ret, ttn_error *err)
{
    *ret = (ttn_inputs){0};
    ttn_status status = ttn_arena_create(0, &ret->texts, err);
    for (int i = 0; i < call->n_argument && status == TTN_OK; i++)
        if (!ttn_is_setting(call->argument[i]))
            status = add_argument(ret, call->argument[i], ttn_cli_given(call, "recursive"), err);
    if (status == TTN_OK && ret->n == 0) {
        char usage[TTN_USAGE_TEXT];
        status = TTN_FAIL(err, TTN_EINVAL, "no file is named; titin %s", ttn_usage(call->command, usage));
    }
    return status;
}

void ttn_inputs_drop(ttn_inputs *in)
{
    free(in->file);
    ttn_arena_destroy(in->texts);
    *in = (ttn_inputs){0};
}

void ttn_inputs_tell(const ttn_inputs *in, ttn_facts *f)
{
    char shown[TTN_TAIL_ROOM];
    if (in->passed_over > 0)
        ttn_facts_warn(f,
                       "not read, since they are no files whose names end as FASTA does: %d in folders, the first %s",
                       in->passed_over, ttn_text_tail(in->first_passed_over, shown));
}
