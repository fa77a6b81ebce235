#include <assert.h>
#include <string.h>
#include "core/memory.h"
#include "data/split.h"

enum { AT_ONCE = 1 << 16 }; /* hashes */

/* ---- options ---- */

static const char *const kinds[] = {"cluster", "sequence", "file", NULL}; /* in the order of ttn_split_kind */

enum { SPLIT, VALID, VALID_FILE, SEED, N_OPTIONS };

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
               .since = "0.1"},
    [VALID_FILE] = {.name = "data.valid_file",
                    .type = TTN_OPTION_TEXT,
                    .fallback = "",
                    .help = "with data.split=file: the file that is held out, as it was named when it was packed",
                    .since = "0.1"},
    [SEED] = {.name = "data.split_seed",
              .type = TTN_OPTION_INTEGER,
              .fallback = "0",
              .help = "another number, other clusters or sequences are held out",
              .since = "0.1"},
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

/* The file that is meant: the one of this name, else the only one whose last part is that. */
static ttn_status find_file(const ttn_store *s, const char *name, const ttn_store_source **ret, ttn_error *err)
{
    const ttn_store_facts *f = ttn_store_describe(s);
    const ttn_store_source *found = NULL;
    int n = 0;
    if (!name[0])
        return TTN_FAIL(err, TTN_EINVAL,
                        "data.split is 'file', and data.valid_file does not say which one; it may be '%.300s'",
                        f->source[f->n_source - 1].name);
    for (int64_t i = 0; i < f->n_source; i++) {
        if (strcmp(f->source[i].name, name) == 0) {
            *ret = &f->source[i];
            return TTN_OK;
        }
        if (strcmp(last_part(f->source[i].name), name) != 0) continue;
        found = &f->source[i];
        n++;
    }
    *ret = found;
    if (n == 1) return TTN_OK;
    if (n > 1)
        return TTN_FAIL(err, TTN_EINVAL,
                        "%s: %d of its files are called '%.300s'; give data.valid_file with the folder",
                        ttn_store_name(s), n, name);
    return TTN_FAIL(err, TTN_EINVAL, "%s: none of its files is '%.300s' (data.valid_file); the first is '%.300s'",
                    ttn_store_name(s), name, f->source[0].name);
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
