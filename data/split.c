#include <assert.h>
#include <string.h>
#include "core/memory.h"
#include "data/files.h"
#include "data/split.h"

enum { AT_ONCE = 1 << 16 }; /* hashes */

/* ---- options ---- */

static const char *const kinds[] = {"cluster", "sequence", "file", NULL}; /* in the order of ttn_split_kind */

enum { SPLIT, VALID, VALID_FILE, SEED, N_OPTIONS };

static const ttn_option_condition draws[] = {{"data.split", .is_not = "file"}, {0}};
static const ttn_option_condition holds_out[] = {{"data.split", .is_not = "file"}, {"data.valid", .is_not = "0"}, {0}};
static const ttn_option_condition by_file[] = {{"data.split", .is = "file"}, {0}};

const ttn_option ttn_split_options[] = {
    [SPLIT] = {.name = "data.split",
               .type = TTN_OPTION_CHOICE,
               .fallback = "cluster",
               .choices = kinds,
               .help = "what is held out together: clusters of related proteins, single sequences, or a file",
               .since = "0.1"},
    [VALID] = {.name = "data.valid",
               .type = TTN_OPTION_REAL,
               .fallback = "0.05",
               .least = 0,
               .most = 0.9,
               .help = "the part of clusters or sequences that is held out for validation",
               .since = "0.1",
               .when = draws},
    [VALID_FILE] = {.name = "data.valid_file",
                    .type = TTN_OPTION_PATH,
                    .fallback = "",
                    .help = "with data.split=file: the file of data.train that is held out",
                    .since = "0.1",
                    .when = by_file,
                    .unread_is_error = 1},
    [SEED] = {.name = "data.split_seed",
              .type = TTN_OPTION_INTEGER,
              .fallback = "0",
              .help = "another number, other clusters or sequences are held out",
              .since = "0.1",
              .when = holds_out},
};
const int ttn_split_n_options = N_OPTIONS;

ttn_status ttn_split_rules_of(const ttn_option_reader *o, ttn_split_rules *ret, ttn_error *err)
{
    ttn_split_rules r = {0};
    const char *kind = kinds[0];
    ttn_status status = o->get_text(o->self, ttn_split_options[SPLIT].name, 0, &kind, err);
    if (status == TTN_OK) status = o->get_real(o->self, ttn_split_options[VALID].name, 0, &r.valid, err);
    if (status == TTN_OK) status = o->get_text(o->self, ttn_split_options[VALID_FILE].name, 0, &r.file, err);
    if (status == TTN_OK) status = o->get_integer(o->self, ttn_split_options[SEED].name, 0, &r.seed, err);
    if (status != TTN_OK) return status;
    int i = 0;
    while (kinds[i] && strcmp(kinds[i], kind) != 0)
        i++;
    assert(kinds[i]); /* values are checked against their rows */
    r.kind = (ttn_split_kind)i;
    *ret = r;
    return TTN_OK;
}

/* ---- the decision ---- */

int ttn_split_holds_out(const ttn_split_rules *r, int64_t hash)
{
    const uint64_t number = ttn_hash64(&hash, sizeof hash, (uint64_t)r->seed);
    return (double)(number >> 11) * 0x1p-53 < r->valid;
}

/* The last part of a path. */
static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int64_t ttn_split_find_name(const char *const *name, int64_t n, const char *wanted, int *ret_n)
{
    int64_t found = -1;
    *ret_n = 1;
    for (int64_t i = 0; i < n; i++)
        if (strcmp(name[i], wanted) == 0) return i;
    for (int64_t i = 0; i < n; i++)
        if (ttn_files_are_same(name[i], wanted)) return i;
    *ret_n = 0;
    for (int64_t i = 0; i < n; i++) {
        if (strcmp(last_part(name[i]), wanted) != 0) continue;
        found = i;
        (*ret_n)++;
    }
    return *ret_n == 1 ? found : -1;
}

/* The file of the store that is meant. */
static ttn_status find_file(const ttn_store *s, const char *wanted, const ttn_store_source **ret, ttn_error *err)
{
    const ttn_store_facts *f = ttn_store_describe(s);
    int n = 0;
    *ret = NULL;
    if (!wanted[0])
        return TTN_FAIL(err, TTN_EINVAL,
                        "data.split is 'file', and data.valid_file does not say which one; it may be '%.300s'",
                        f->source[f->n_source - 1].name);
    const char **name = ttn_alloc_or_say(f->n_source, sizeof *name, "the names of a store's files", err);
    if (!name) return TTN_ENOMEM;
    for (int64_t k = 0; k < f->n_source; k++)
        name[k] = f->source[k].name;
    const int64_t i = ttn_split_find_name(name, f->n_source, wanted, &n);
    ttn_free(name);
    if (i >= 0) *ret = &f->source[i];
    if (i >= 0) return TTN_OK;
    if (n > 1)
        return TTN_FAIL(err, TTN_EINVAL,
                        "%s: %d of its files are called '%.300s'; give data.valid_file with the folder",
                        ttn_store_name(s), n, wanted);
    return TTN_FAIL(err, TTN_EINVAL,
                    "%s: none of its files is '%.300s' (data.valid_file); the first is '%.300s'. What is held out has "
                    "to be packed with the rest",
                    ttn_store_name(s), wanted, f->source[0].name);
}

static ttn_status add_by_hash(ttn_store *s, const ttn_split_rules *r, ttn_subset *held_out, ttn_error *err)
{
    const int64_t n = ttn_store_describe(s)->sequences;
    int64_t *hash = ttn_alloc_or_say(AT_ONCE, sizeof *hash, "the hashes of sequences", err);
    ttn_status status = hash ? TTN_OK : TTN_ENOMEM;
    for (int64_t first = 0; first < n && status == TTN_OK; first += AT_ONCE) {
        const int64_t now = n - first < AT_ONCE ? n - first : AT_ONCE;
        status = r->kind == TTN_SPLIT_CLUSTER ? ttn_store_clusters(s, first, now, hash, err)
                                              : ttn_store_hashes(s, first, now, hash, err);
        for (int64_t i = 0; status == TTN_OK && i < now; i++)
            if (ttn_split_holds_out(r, hash[i])) ttn_subset_add(held_out, first + i);
    }
    ttn_free(hash);
    return status;
}

static ttn_status add_file(ttn_store *s, const ttn_split_rules *r, ttn_subset *held_out, ttn_error *err)
{
    const ttn_store_source *file = NULL;
    ttn_status status = find_file(s, r->file, &file, err);
    for (int64_t i = 0; status == TTN_OK && file && i < file->n; i++)
        ttn_subset_add(held_out, file->first + i);
    return status;
}

ttn_status ttn_split_store(ttn_store *s, const ttn_split_rules *r, ttn_subset **ret, ttn_error *err)
{
    const ttn_store_facts *f = ttn_store_describe(s);
    *ret = NULL;
    if (r->kind == TTN_SPLIT_CLUSTER && !f->has_clusters)
        return TTN_FAIL(err, TTN_EINVAL,
                        "%s: was packed without clusters, and data.split is 'cluster'; pack it again, or set "
                        "data.split=sequence",
                        ttn_store_name(s));
    ttn_subset *held_out;
    ttn_status status = ttn_subset_create(f->sequences, &held_out, err);
    if (status != TTN_OK) return status;
    status = r->kind == TTN_SPLIT_FILE ? add_file(s, r, held_out, err) : add_by_hash(s, r, held_out, err);
    ttn_subset_close(held_out);
    if (status == TTN_OK && ttn_subset_count(held_out) == f->sequences)
        status = TTN_FAIL(err, TTN_EINVAL,
                          "%s: everything is held out for validation, and nothing is left to train on; change "
                          "data.split, data.valid or data.split_seed",
                          ttn_store_name(s));
    if (status == TTN_OK)
        *ret = held_out;
    else
        ttn_subset_destroy(held_out);
    return status;
}
