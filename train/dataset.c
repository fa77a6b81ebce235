#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/atomic.h"
#include "core/disk.h"
#include "core/hash.h"
#include "core/memory.h"
#include "core/text.h"
#include "data/files.h"
#include "data/split.h"
#include "train/dataset.h"

struct ttn_dataset {
    char path[PATH_MAX];
    ttn_store *store; /* NULL: not open yet */
    ttn_sequences sequences;
    ttn_subset *train, *valid;
    const char *split;  /* borrowed from the values */
    int64_t valid_file; /* number of the file of data.train that is held out; -1: it is found by the store's names */
};

/* ---- the row ---- */

static const ttn_option options[] = {
    {.name = "data.train",
     .type = TTN_OPTION_PATH,
     .is_list = 1,
     .fallback = "",
     .help = "what to train on: a store made by titin data pack, or files in FASTA (also folders of them, and patterns "
             "as *.fa), which are packed first",
     .since = "0.1"},
};

typedef struct {
    ttn_list train;
} settings;

static const ttn_option_field fields[] = {TTN_FIELD(settings, train, "data.train")};

static ttn_status read_settings(const ttn_values *v, settings *ret, ttn_error *err)
{
    *ret = (settings){0};
    return ttn_values_fill(v, fields, sizeof fields / sizeof *fields, ret, err);
}

static ttn_status read_module(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    settings s;
    return read_settings(v, &s, err);
}

const ttn_config_module ttn_dataset_module = {
    .name = "data set",
    .row = options,
    .n_row = sizeof options / sizeof *options,
    .read = read_module,
};

/* ---- what packing depends on ---- */

enum { PIECE = 1 << 20, SIGNATURE = 8 };

static ttn_status cannot(const char *path, const char *what, int error, ttn_error *err)
{
    return TTN_FAIL(err, ttn_disk_fault(error), "%s: cannot be %s: %s", path, what, strerror(error));
}

/* A pipe that nobody writes to would be waited for, also after a signal that asks to stop. */
static int open_to_read(const char *path)
{
    return ttn_disk_open(path, O_RDONLY | O_NONBLOCK, 0);
}

/* As HDF5 does. */
static int begins_as_store(const unsigned char *head, ssize_t n)
{
    static const unsigned char signature[SIGNATURE] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};
    return n >= SIGNATURE && memcmp(head, signature, SIGNATURE) == 0;
}

int ttn_dataset_is_store(const char *path)
{
    unsigned char head[SIGNATURE];
    struct stat about;
    /* A pipe is none, and is not opened: who writes to it would lose its reader when it is closed. */
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return 0;
    const int fd = open_to_read(path);
    if (fd < 0) return 0;
    const ssize_t n = ttn_disk_read_at(fd, head, sizeof head, 0);
    ttn_disk_close(fd);
    return begins_as_store(head, n);
}

/* Of a file: its checksum, and what it begins as. */
typedef struct {
    ttn_hash128 hash;
    int is_store, is_gzip;
} file_facts;

/* Standard input, or a pipe. */
static ttn_status is_read_once(const char *path, ttn_error *err)
{
    const int is_input = strcmp(path, "-") == 0;
    return TTN_FAIL(err, TTN_EINVAL,
                    "data.train: %s%s can be read once, and a run reads its data many times: pack it first (titin data "
                    "pack %s -o NAME.h5)",
                    is_input ? "standard input" : path, is_input ? "" : " is a pipe, which", path);
}

static ttn_status hash_file(ttn_hash *h, const char *path, unsigned char *room, file_facts *ret, ttn_error *err)
{
    *ret = (file_facts){0};
    if (strcmp(path, "-") == 0) return is_read_once(path, err);
    const int fd = open_to_read(path);
    if (fd < 0) return cannot(path, "opened", errno, err);
    ttn_status status = TTN_OK;
    int64_t at = 0;
    ttn_hash_reset(h);
    while (status == TTN_OK && !ret->is_store) {
        const ssize_t n = ttn_disk_read_at(fd, room, PIECE, at);
        if (n < 0) status = errno == ESPIPE ? is_read_once(path, err) : cannot(path, "read", errno, err);
        if (n <= 0) break;
        if (at == 0) {
            ret->is_store = begins_as_store(room, n);
            ret->is_gzip = n >= 2 && room[0] == 0x1F && room[1] == 0x8B;
        }
        ttn_hash_update(h, room, (size_t)n);
        at += n;
    }
    ttn_disk_close(fd);
    ret->hash = ttn_hash_final(h);
    return status;
}

/* The rows' values, as texts. */
static void hash_rows(ttn_hash *h, const ttn_values *v, const ttn_option *row, int n_row)
{
    char room[TTN_OPTION_VALUE];
    for (int i = 0; i < ttn_values_count(v); i++) {
        const ttn_option *o = ttn_values_row(v, i);
        /* How much memory packing takes changes nothing of what it makes. */
        if (!ttn_option_find(row, n_row, o->name) || strcmp(o->name, "pack.memory") == 0) continue;
        const ttn_option_value *value = ttn_values_at(v, i);
        ttn_hash_update(h, o->name, strlen(o->name) + 1);
        for (int j = 0; j < value->n; j++) {
            const char *text = ttn_option_write(o, value->item[j], room);
            ttn_hash_update(h, text, strlen(text) + 1);
        }
    }
}

/* fact: (file->n). The checksum of all that packing depends on; nothing is to be packed where the only file is a store. */
static ttn_status hash_all(const ttn_values *v, const ttn_files *file, const ttn_pack_rules *rules, file_facts *fact,
                           ttn_hash128 *ret, ttn_error *err)
{
    ttn_hash *h = NULL;
    unsigned char *room = ttn_alloc_or_say(PIECE, 1, "reading data.train", err);
    ttn_status status = room ? ttn_hash_create(&h, err) : TTN_ENOMEM;
    for (int i = 0; i < file->n && status == TTN_OK; i++) {
        status = hash_file(h, file->file[i], room, &fact[i], err);
        if (status == TTN_OK && fact[i].is_store && file->n > 1)
            status = TTN_FAIL(err, TTN_EINVAL,
                              "data.train: %s is a store, and stands beside other files: name it alone, or pack all of "
                              "them from their sequences",
                              file->file[i]);
    }
    if (status == TTN_OK) {
        const int64_t number[] = {TTN_STORE_VERSION, rules->makes_clusters, file->n};
        ttn_hash_reset(h);
        for (int i = 0; i < file->n; i++)
            ttn_hash_update(h, &fact[i].hash, sizeof fact[i].hash);
        ttn_hash_update(h, number, sizeof number);
        hash_rows(h, v, ttn_fasta_options, ttn_fasta_n_options);
        hash_rows(h, v, ttn_pack_options, ttn_pack_n_options);
        hash_rows(h, v, ttn_cluster_options, ttn_cluster_n_options);
        *ret = ttn_hash_final(h);
    }
    ttn_hash_destroy(h);
    ttn_free(room);
    return status;
}

/* ---- packing ---- */

/* "proteins" of "data/proteins.fasta.gz": what the store is called after. */
static void stem_of(const char *path, char *ret, size_t room)
{
    const char *name = path + ttn_disk_folder_length(path);
    snprintf(ret, room, "%.*s", (int)strcspn(name, "."), name);
    if (!ret[0]) snprintf(ret, room, "data");
}

static ttn_status name_store(ttn_dataset *d, const char *folder, const char *first, const char *key, ttn_error *err)
{
    char stem[64];
    stem_of(first, stem, sizeof stem);
    const int n = snprintf(d->path, sizeof d->path, "%s/%s-%.16s.h5", folder, stem, key);
    if (n >= (int)sizeof d->path) return TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long", folder);
    return TTN_OK;
}

static int is_there(const char *path)
{
    const int fd = open_to_read(path);
    if (fd >= 0) ttn_disk_close(fd);
    return fd >= 0;
}

/* A ttn_atomic_sweep_dead's. */
static int is_store_name(void *ctx, const char *name)
{
    (void)ctx;
    const size_t n = strlen(name);
    return n > 3 && strcmp(name + n - 3, ".h5") == 0;
}

static ttn_status pack(const ttn_dataset *d, const ttn_files *file, const ttn_pack_rules *rules,
                       const ttn_dataset_options *o, ttn_error *err)
{
    ttn_pack_facts facts;
    int made;
    ttn_status status = TTN_OK;
    if (ttn_disk_make_folders(o->folder, &made) != 0) status = cannot(o->folder, "made", errno, err);
    if (status == TTN_OK) status = ttn_pack(file->file, file->n, d->path, rules, o->listener, NULL, &facts, err);
    if (status != TTN_OK)
        ttn_disk_remove_folders(o->folder, made);
    else
        ttn_log_say(o->log, TTN_LOG_INFO, "packed %d file%s to %s", file->n, ttn_text_plural(file->n), d->path);
    return status;
}

/* Was the store packed from these files, by these rules? Its name says so, but another may have been given the name. A
 * compressed file's checksum is in packed_for alone: the store has that of what it unpacks to. */
static int is_packed_from(const ttn_store *s, int n, const file_facts *fact, const char *key)
{
    const ttn_store_facts *f = ttn_store_describe(s);
    int is = strcmp(f->packed_for, key) == 0 && f->n_source == n;
    for (int i = 0; is && i < n; i++) {
        char hash[TTN_HASH_TEXT];
        is = fact[i].is_gzip || strcmp(f->source[i].hash, ttn_hash_print(fact[i].hash, hash)) == 0;
    }
    return is;
}

/* What is at d->path is not the packed copy: `why`; NULL: it cannot be opened. May it be replaced? */
static ttn_status make_way(const ttn_dataset *d, const char *why, const ttn_dataset_options *o, ttn_error *err)
{
    struct stat about;
    if (lstat(d->path, &about) != 0) return TTN_OK;
    if (S_ISLNK(about.st_mode)) /* packing would write to what it leads to */
        return TTN_FAIL(err, TTN_EINVAL,
                        "%s: is a link that leads %s%s, and the packed sequences are to have this name: remove it",
                        d->path, why ? "to a store that " : "nowhere, or to what cannot be opened", why ? why : "");
    ttn_log_say(o->log, TTN_LOG_WARNING, "%s: %s; data.train is packed anew", d->path, why ? why : "cannot be opened");
    return TTN_OK;
}

/* The packed copy of `file` is at d->path, and open. One that is damaged, or another store, is replaced: it is titin's own,
 * and made from files that are there. */
static ttn_status open_copy(ttn_dataset *d, const ttn_files *file, const file_facts *fact, const ttn_pack_rules *rules,
                            int64_t cache, const ttn_dataset_options *o, ttn_error *err)
{
    const char *why = NULL;
    /* What killed packing left, of other data as well: their name comes never again. */
    ttn_atomic_sweep_dead(o->folder, is_store_name, NULL, o->log);
    if (is_there(d->path)) {
        ttn_error refused = {0};
        const ttn_status status = ttn_store_open(d->path, cache, &d->store, &refused);
        if (status == TTN_OK && is_packed_from(d->store, file->n, fact, rules->packed_for)) return TTN_OK;
        if (status != TTN_OK && status != TTN_EFORMAT) return TTN_FAIL(err, status, "%s", refused.text);
        why = d->store ? "was not packed from the files of data.train" : "is damaged";
        ttn_store_close(d->store);
        d->store = NULL;
    }
    ttn_status status = make_way(d, why, o, err);
    if (status == TTN_OK) status = pack(d, file, rules, o, err);
    return status == TTN_OK ? ttn_store_open(d->path, cache, &d->store, err) : status;
}

static ttn_status set_path(ttn_dataset *d, const char *path, ttn_error *err)
{
    if (snprintf(d->path, sizeof d->path, "%s", path) < (int)sizeof d->path) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "data.train: the path is too long");
}

/* A store, as it is. */
static ttn_status open_store(ttn_dataset *d, const char *path, int64_t cache, ttn_error *err)
{
    const ttn_status status = set_path(d, path, err);
    return status == TTN_OK ? ttn_store_open(d->path, cache, &d->store, err) : status;
}

/* What data.train names, folders and patterns put in order. *ret is to be dropped, also after a failure. */
static ttn_status find_files(const ttn_values *v, const ttn_log *log, ttn_files *ret, ttn_error *err)
{
    settings s;
    ttn_error why = {0};
    *ret = (ttn_files){0};
    ttn_status status = read_settings(v, &s, err);
    if (status != TTN_OK) return status;
    if (s.train.n == 0)
        return TTN_FAIL(err, TTN_EINVAL,
                        "data.train says what to train on, and is not set: data.train=proteins.fasta, or a store");
    for (int i = 0; i < s.train.n && status == TTN_OK; i++)
        status = ttn_files_add(ret, s.train.item[i].text, 1, &why);
    if (status != TTN_OK) return TTN_FAIL(err, status, "data.train: %s", why.text);
    if (ret->passed_over > 0)
        ttn_log_say(
            log, TTN_LOG_WARNING,
            "data.train: not read, since they are no files whose names end as FASTA does: %d in folders, the first %s",
            ret->passed_over, ret->first_passed_over);
    return TTN_OK;
}

ttn_status ttn_dataset_names_store(const ttn_values *v, int *ret, ttn_error *err)
{
    ttn_files files;
    ttn_status status = find_files(v, NULL, &files, err);
    *ret = status == TTN_OK && files.n == 1 && ttn_dataset_is_store(files.file[0]);
    ttn_files_drop(&files);
    return status;
}

/* Before anything is packed: the file that is to be held out is one of those. */
static ttn_status find_valid_file(ttn_dataset *d, const ttn_files *files, const ttn_split_rules *split, ttn_error *err)
{
    const char *wanted = split->file;
    int n = 0;
    assert(files->n > 0 && files->file); /* find_files refuses none */
    if (split->kind != TTN_SPLIT_FILE || ttn_dataset_is_store(files->file[0])) return TTN_OK;
    if (!wanted[0])
        return TTN_FAIL(err, TTN_EINVAL,
                        "data.split is 'file', and data.valid_file does not say which one: data.valid_file=%s",
                        files->file[files->n - 1]);
    d->valid_file = ttn_split_find_name(files->file, files->n, wanted, &n);
    if (d->valid_file >= 0) return TTN_OK;
    if (n > 1)
        return TTN_FAIL(err, TTN_EINVAL,
                        "data.valid_file: %d files of data.train are called '%s'; give it with its folder", n, wanted);
    if (!is_there(wanted))
        return TTN_FAIL(err, ttn_disk_fault(errno), "data.valid_file: '%s' cannot be opened: %s", wanted,
                        strerror(errno));
    return TTN_FAIL(err, TTN_EINVAL,
                    "data.valid_file: '%s' is not in data.train, where what is held out has to stand, too: "
                    "data.train=[%s, %s]",
                    wanted, files->file[0], wanted);
}

/* The store among the files, or the packed copy of all of them, is open. */
static ttn_status open_files(ttn_dataset *d, const ttn_values *v, const ttn_files *files, const ttn_split_rules *split,
                             int64_t cache, const ttn_dataset_options *o, ttn_error *err)
{
    ttn_own_alphabet own;
    ttn_pack_rules rules;
    ttn_hash128 hash;
    char key[TTN_HASH_TEXT];
    assert(files->n > 0 && files->file);
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_status status = find_valid_file(d, files, split, err);
    if (status == TTN_OK) status = ttn_pack_rules_of(&reader, &own, &rules, err);
    if (status != TTN_OK) return status;
    rules.makes_clusters = split->kind == TTN_SPLIT_CLUSTER;
    rules.titin_version = o->titin_version;
    rules.packed_for = key;
    file_facts *fact = ttn_alloc_or_say(files->n, sizeof *fact, "the list data.train", err);
    status = fact ? hash_all(v, files, &rules, fact, &hash, err) : TTN_ENOMEM;
    if (status == TTN_OK && fact[0].is_store) {
        status = open_store(d, files->file[0], cache, err);
    } else if (status == TTN_OK) {
        status = name_store(d, o->folder, files->file[0], ttn_hash_print(hash, key), err);
        if (status == TTN_OK) status = open_copy(d, files, fact, &rules, cache, o, err);
    }
    ttn_free(fact);
    return status;
}

static ttn_status find_store(ttn_dataset *d, const ttn_values *v, const ttn_split_rules *split, int64_t cache,
                             const ttn_dataset_options *o, ttn_error *err)
{
    ttn_files files;
    ttn_status status = find_files(v, o->log, &files, err);
    if (status == TTN_OK) status = open_files(d, v, &files, split, cache, o, err);
    ttn_files_drop(&files);
    return status;
}

/* ---- opening ---- */

/* "data.alphabet=esm", or of a vocabulary of somebody's own: data.tokens with how many there are. */
enum { SETTING_TEXT = 64 };
static const char *setting_of(const ttn_alphabet *a, char *text)
{
    const ttn_alphabet *known = ttn_alphabet_find(a->name);
    if (known && ttn_alphabet_same(known, a))
        snprintf(text, SETTING_TEXT, "data.alphabet=%s", a->name);
    else
        snprintf(text, SETTING_TEXT, "data.tokens=… (%d of them)", a->n);
    return text;
}

/* named: the configuration is a model's that is there already, and not one that could be changed. */
static ttn_status check_alphabet(const ttn_dataset *d, const ttn_option_reader *reader, int named, ttn_error *err)
{
    ttn_own_alphabet own;
    ttn_fasta_rules rules;
    char setting[SETTING_TEXT];
    ttn_status status = ttn_fasta_rules_of(reader, &own, &rules, err);
    if (status != TTN_OK) return status;
    const ttn_alphabet *store = ttn_store_describe(d->store)->alphabet;
    const ttn_alphabet *wanted = rules.alphabet;
    if (ttn_alphabet_same(store, wanted)) return TTN_OK;
    int first = 0; /* the first token that differs */
    while (first < store->n && first < wanted->n && strcmp(store->token[first], wanted->token[first]) == 0)
        first++;
    const char *there = first < store->n ? store->token[first] : "none";
    const char *here = first < wanted->n ? wanted->token[first] : "none";
    if (named)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "%s: was packed for the alphabet '%s', and the model knows '%s' (token %d is %s there, and %s in "
            "the model): pack the sequences for it (%s)",
            d->path, store->name, wanted->name, first, there, here, setting_of(wanted, setting));
    return TTN_FAIL(
        err, TTN_EINVAL,
        "%s: was packed for the alphabet '%s', and the configuration says '%s' (token %d is %s there, and %s "
        "here): pack the sequences again, or set %s",
        d->path, store->name, wanted->name, first, there, here, setting_of(store, setting));
}

/* The training side is what is not held out. */
static ttn_status make_sides(ttn_dataset *d, const ttn_split_rules *split, ttn_error *err)
{
    ttn_split_rules rules = *split;
    if (d->valid_file >= 0 && d->valid_file < ttn_store_describe(d->store)->n_source)
        rules.file = ttn_store_describe(d->store)->source[d->valid_file].name;
    ttn_status status = ttn_split_store(d->store, &rules, &d->valid, err);
    if (status == TTN_OK) status = ttn_subset_create(d->sequences.n, &d->train, err);
    if (status != TTN_OK) return status;
    for (int64_t i = 0; i < d->sequences.n; i++)
        if (!ttn_subset_has(d->valid, i)) ttn_subset_add(d->train, i);
    ttn_subset_close(d->train);
    return TTN_OK;
}

/* store: its path; NULL: what data.train says. */
static ttn_status open_dataset(const ttn_values *values, const char *store, const ttn_dataset_options *o,
                               ttn_dataset **ret, ttn_error *err)
{
    assert(store || o);
    *ret = NULL;
    ttn_dataset *d = ttn_alloc_or_say(1, sizeof *d, "the data set", err);
    if (!d) return TTN_ENOMEM;
    d->valid_file = -1;
    ttn_split_rules split;
    int64_t cache = 0;
    const ttn_option_reader reader = ttn_values_reader(values);
    ttn_status status = ttn_split_rules_of(&reader, &split, err);
    if (status == TTN_OK) status = ttn_store_cache_of(&reader, &cache, err);
    if (status == TTN_OK) status = reader.get_text(reader.self, "data.split", 0, &d->split, err);
    if (status == TTN_OK)
        status = store ? open_store(d, store, cache, err) : find_store(d, values, &split, cache, o, err);
    if (status == TTN_OK) status = check_alphabet(d, &reader, store != NULL, err);
    if (status == TTN_OK) {
        d->sequences = ttn_store_sequences(d->store);
        status = make_sides(d, &split, err);
    }
    if (status == TTN_OK)
        *ret = d;
    else
        ttn_dataset_close(d);
    return status;
}

ttn_status ttn_dataset_open(const ttn_values *values, const ttn_dataset_options *o, ttn_dataset **ret, ttn_error *err)
{
    return open_dataset(values, NULL, o, ret, err);
}

ttn_status ttn_dataset_open_store(const char *path, const ttn_values *values, ttn_dataset **ret, ttn_error *err)
{
    return open_dataset(values, path, NULL, ret, err);
}

void ttn_dataset_close(ttn_dataset *d)
{
    if (!d) return;
    ttn_subset_destroy(d->train);
    ttn_subset_destroy(d->valid);
    ttn_store_close(d->store);
    ttn_free(d);
}

/* ---- what is in it ---- */

const ttn_sequences *ttn_dataset_sequences(const ttn_dataset *d)
{
    return &d->sequences;
}

const ttn_subset *ttn_dataset_train(const ttn_dataset *d)
{
    return d->train;
}

const ttn_subset *ttn_dataset_valid(const ttn_dataset *d)
{
    return ttn_subset_count(d->valid) > 0 ? d->valid : NULL;
}

const ttn_store_facts *ttn_dataset_facts(const ttn_dataset *d)
{
    return ttn_store_describe(d->store);
}

const char *ttn_dataset_split(const ttn_dataset *d)
{
    return d->split;
}

const char *ttn_dataset_path(const ttn_dataset *d)
{
    return d->path;
}

ttn_status ttn_dataset_overlap_of(const ttn_dataset *d, ttn_sweep_tell tell, void *ctx, ttn_dataset_overlap *ret,
                                  ttn_error *err)
{
    const ttn_sweep_source source = ttn_sweep_of_store(d->store);
    const int64_t n = ttn_subset_count(d->valid);
    int64_t *hash = NULL;
    *ret = (ttn_dataset_overlap){.held_out = n};
    if (n == 0 || strcmp(d->split, "cluster") == 0) return TTN_OK;
    ttn_status status = ttn_overlap_hashes(&source, d->valid, &hash, err);
    if (status == TTN_OK) status = ttn_overlap_equal(&source, d->valid, hash, n, &ret->equal, err);
    ttn_free(hash);
    ret->is_near_counted = ttn_store_describe(d->store)->residues <= TTN_DATASET_LOOKED_AT;
    if (status == TTN_OK && ret->is_near_counted)
        status = ttn_overlap_count(&source, d->valid, tell, ctx, &ret->near, err);
    ret->is_counted = status == TTN_OK;
    return status;
}

ttn_status ttn_dataset_frequencies(const ttn_dataset *d, ttn_frequencies *ret, ttn_error *err)
{
    const ttn_sequences *s = &d->sequences;
    const ttn_store_facts *facts = ttn_store_describe(d->store);
    const int64_t n = ttn_subset_count(d->train);
    const int64_t stride = facts->residues / TTN_DATASET_LOOKED_AT + 1;
    int64_t count[TTN_MAX_TOKENS] = {0};
    uint8_t *token = ttn_alloc_or_say(facts->longest, 1, "the longest sequence", err);
    ttn_status status = token ? TTN_OK : TTN_ENOMEM;
    for (int64_t k = 0; k < n && status == TTN_OK; k += stride) {
        const int64_t i = ttn_subset_at(d->train, k);
        const int64_t length = s->length(s->self, i);
        status = s->tokens(s->self, i, 0, length, token, err);
        for (int64_t j = 0; j < length && status == TTN_OK; j++)
            count[token[j]]++;
    }
    ttn_free(token);
    if (status == TTN_OK) ttn_frequencies_of(s->alphabet, count, ret);
    return status;
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t ttn_dataset_median(const ttn_dataset *d)
{
    enum { LOOKED_AT = 100000 };
    const ttn_sequences *s = &d->sequences;
    const int64_t n = s->n < LOOKED_AT ? s->n : LOOKED_AT;
    int64_t *length = ttn_alloc_array(n, sizeof *length);
    if (!length) return 0;
    for (int64_t i = 0; i < n; i++)
        length[i] = s->length(s->self, (int64_t)((double)i * (double)s->n / (double)n));
    qsort(length, (size_t)n, sizeof *length, compare);
    const int64_t median = length[n / 2];
    ttn_free(length);
    return median;
}
