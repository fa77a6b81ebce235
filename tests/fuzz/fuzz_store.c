/* Stores that a stranger made: a real one whose lists, attributes and layout were changed through HDF5, so that HDF5's own
 * checksums are right, with titin's checksums made right where the input says so, and then bytes that were changed in the file.
 * Refused with a sentence, in memory that the file bounds; or every sequence can be read and exported to FASTA, which reads back
 * as the same sequences.
 *
 * Input: choices (1 byte), then edits: what (1), which list or attribute (1), a number (8). */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/hash.h"
#include "data/export.h"
#include "data/pack.h"
#include "data/split.h"
#include "tests/fuzz/fuzz.h"
#include "train/store_facts.h"

enum {
    MOST_LISTS = 64,
    NAME = 64,
    MOST_EDITS = 64,
    MOST_ENTRIES = 64 << 10,
    MOST_BYTES = 1 << 20,
    MOST_SEQUENCES = 1000,
    PIECE = 7
};
enum { MENDS_CHECKSUMS = 1, IN_BLOCKS = 2 };

/* The store before anything is changed, and what is in it. */
static uint8_t *template_bytes;
static size_t template_size;
static char list[MOST_LISTS][NAME], attribute[MOST_LISTS][NAME];
static int n_list, n_attribute;

/* ---- the template ---- */

typedef struct {
    hid_t from, to;
} copying;

static herr_t copy_list(hid_t file, const char *name, const H5L_info_t *about, void *ctx)
{
    (void)file;
    (void)about;
    const copying *c = ctx;
    check(n_list < MOST_LISTS && strlen(name) < NAME);
    check(H5Ocopy(c->from, name, c->to, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    snprintf(list[n_list++], NAME, "%s", name);
    return 0;
}

static herr_t copy_attribute(hid_t file, const char *name, const H5A_info_t *about, void *ctx)
{
    (void)file;
    const copying *c = ctx;
    char *value = malloc(about->data_size + 1);
    hid_t old = H5Aopen(c->from, name, H5P_DEFAULT), type = H5Aget_type(old), space = H5Aget_space(old);
    check(n_attribute < MOST_LISTS && strlen(name) < NAME && value && H5Aread(old, type, value) >= 0);
    hid_t new = H5Acreate2(c->to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    check(new >= 0 && H5Awrite(new, type, value) >= 0);
    H5Aclose(new);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(old);
    free(value);
    snprintf(attribute[n_attribute++], NAME, "%s", name);
    return 0;
}

/* The same lists and attributes in a file that keeps no account of free space: HDF5 1.10 frees entries of that twice when
 * much is removed from a file. */
static void copy_store(const char *from, const char *to)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    check(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_LATEST) >= 0);
    check(H5Pset_file_space_strategy(create, H5F_FSPACE_STRATEGY_NONE, 0, 1) >= 0);
    copying c = {H5Fopen(from, H5F_ACC_RDONLY, access), H5Fcreate(to, H5F_ACC_TRUNC, create, access)};
    check(c.from >= 0 && c.to >= 0);
    check(H5Aiterate2(c.from, H5_INDEX_NAME, H5_ITER_INC, NULL, copy_attribute, &c) >= 0);
    check(H5Literate(c.from, H5_INDEX_NAME, H5_ITER_INC, NULL, copy_list, &c) >= 0);
    check(n_list > 10 && n_attribute > 10);
    check(H5Fclose(c.from) >= 0 && H5Fclose(c.to) >= 0);
    H5Pclose(create);
    H5Pclose(access);
}

static void make_template(void)
{
    static const char fasta[] =
        ">a first\nMKTAYIAKQRQISFVKSHFSRQ\n>b\nMSDNGPQNQrnaPRITF\n>c|d e\nMKTAYIAKQRQISFVKSHFSRQA\n>e\nW\n";
    char from[FUZZ_PATH], packed[FUZZ_PATH], to[FUZZ_PATH];
    const char *const files[] = {fuzz_path("it.fa", from)};
    const ttn_pack_rules rules = {
        .fasta = {.alphabet = ttn_alphabet_find("esm"), .lowercase = TTN_LOWERCASE_EXCLUDE},
        .makes_clusters = 1,
        .cluster = {.k = 8, .kmers = 20},
        .titin_version = "0",
    };
    ttn_pack_facts facts;
    ttn_error err = {0};
    fuzz_write("it.fa", fasta, sizeof fasta - 1);
    check(ttn_pack(files, 1, fuzz_path("packed.h5", packed), &rules, NULL, NULL, &facts, &err) == TTN_OK);
    /* HDF5 keeps no freed pieces for later, so that what is freed twice or used when it is freed shows at once. */
    check(H5set_free_list_limits(0, 0, 0, 0, 0, 0) >= 0);
    copy_store(packed, fuzz_path("template.h5", to));
    FILE *f = fopen(to, "rb");
    template_bytes = malloc(MOST_BYTES);
    check(f && template_bytes);
    template_size = fread(template_bytes, 1, MOST_BYTES, f);
    check(template_size > 0 && template_size < MOST_BYTES);
    fclose(f);
}

/* ---- edits; what HDF5 refuses is no edit ---- */

/* A small number, or any. */
static hsize_t extent_of(uint64_t number)
{
    return number & 1 ? number >> 1 : number >> 1 & 63;
}

/* From a small extent: HDF5 looks for every chunk that a large one could have had. */
static void set_extent(hid_t dataset, hsize_t n)
{
    hid_t space = H5Dget_space(dataset);
    const hssize_t before = H5Sget_simple_extent_npoints(space);
    H5Sclose(space);
    if (before >= 0 && before <= MOST_ENTRIES) (void)H5Dset_extent(dataset, &n);
}

static void write_entry(hid_t dataset, uint64_t where, uint64_t number)
{
    hsize_t n = 0, first, one = 1;
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset), memory = H5Screate_simple(1, &one, NULL);
    uint8_t value[64 << 10] = {0};
    memcpy(value, &number, sizeof number);
    if (H5Sget_simple_extent_ndims(space) == 1 && H5Sget_simple_extent_dims(space, &n, NULL) == 1 && n > 0 &&
        H5Tget_size(type) <= sizeof value && H5Tis_variable_str(type) == 0) {
        first = where % n;
        if (H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &one, NULL) >= 0)
            (void)H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, value);
    }
    H5Sclose(memory);
    H5Tclose(type);
    H5Sclose(space);
}

/* A list of another kind: type, layout, filters, dimensions and extent by the number. */
static void replace_list(hid_t file, const char *name, uint64_t number)
{
    hid_t text = H5Tcopy(H5T_C_S1), any = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, number >> 56);
    H5Tset_size(any, H5T_VARIABLE);
    const hid_t types[] = {H5T_STD_U8LE, H5T_STD_I64LE, H5T_IEEE_F32LE, H5T_STD_I64BE, H5T_STD_I32LE,
                           text,         any,           H5T_STD_U64LE};
    const int n_dim = number >> 3 & 1 ? 2 : number >> 4 & 1 ? 0 : 1, is_chunked = number >> 5 & 1;
    const hsize_t extent[2] = {extent_of(number >> 12), 2};
    const hsize_t chunk[2] = {number >> 11 & 1 && extent[0] > 0 ? extent[0] : 1 + (number >> 20 & 63), 1};
    const hsize_t most[2] = {H5S_UNLIMITED, 2};
    hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    if (is_chunked && n_dim > 0) H5Pset_chunk(layout, n_dim, chunk);
    if (number >> 6 & 1) H5Pset_shuffle(layout);
    if (number >> 7 & 1) H5Pset_deflate(layout, 1);
    if (number >> 8 & 1) H5Pset_fletcher32(layout);
    if (number >> 9 & 1) H5Pset_nbit(layout);
    hid_t space = n_dim == 0 ? H5Screate(number >> 10 & 1 ? H5S_NULL : H5S_SCALAR)
                             : H5Screate_simple(n_dim, extent, is_chunked ? most : NULL);
    H5Ldelete(file, name, H5P_DEFAULT);
    /* What is not in chunks would be as long on the disk. */
    if (space >= 0 && (is_chunked || extent[0] < MOST_BYTES)) {
        hid_t made = H5Dcreate2(file, name, types[number & 7], space, H5P_DEFAULT, layout, H5P_DEFAULT);
        if (made >= 0) H5Dclose(made);
    }
    if (space >= 0) H5Sclose(space);
    H5Pclose(layout);
    H5Tclose(text);
    H5Tclose(any);
}

static void replace_by_link(hid_t file, const char *name, uint64_t number)
{
    H5Ldelete(file, name, H5P_DEFAULT);
    const char *other = list[(number >> 8) % (uint64_t)n_list];
    if (number % 4 == 0) H5Lcreate_soft(other, file, name, H5P_DEFAULT, H5P_DEFAULT);
    if (number % 4 == 1) H5Lcreate_external("template.h5", other, file, name, H5P_DEFAULT, H5P_DEFAULT);
    if (number % 4 == 2) H5Lcreate_hard(file, other, file, name, H5P_DEFAULT, H5P_DEFAULT);
    if (number % 4 == 3) H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

static void write_attribute(hid_t file, const char *name, hid_t type, hid_t space, const void *value)
{
    H5Adelete(file, name);
    hid_t made = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (made >= 0) {
        (void)H5Awrite(made, type, value);
        H5Aclose(made);
    }
}

static void edit_attribute(hid_t file, const char *name, int is_text, uint64_t number)
{
    hid_t scalar = H5Screate(H5S_SCALAR), text = H5Tcopy(H5T_C_S1);
    char value[16] = {0};
    memcpy(value, &number, sizeof number);
    H5Tset_size(text, 1 + (number & 15));
    write_attribute(file, name, is_text ? text : H5T_STD_I64LE, scalar, value);
    H5Tclose(text);
    H5Sclose(scalar);
}

/* The list NAME_xxh64 beside a list of n entries of `size` bytes: a checksum for each of its chunks. */
static void mend_sums(hid_t file, const char *name, hid_t dataset, const uint8_t *bytes, hsize_t n, size_t size)
{
    static int64_t sum[MOST_ENTRIES];
    char key[NAME + 8];
    hsize_t chunk = 0;
    hid_t layout = H5Dget_create_plist(dataset);
    snprintf(key, sizeof key, "%s_xxh64", name);
    hid_t sums = H5Pget_layout(layout) == H5D_CHUNKED && H5Pget_chunk(layout, 1, &chunk) == 1 && chunk > 0 &&
                         H5Lexists(file, key, H5P_DEFAULT) > 0
                     ? H5Dopen2(file, key, H5P_DEFAULT)
                     : -1;
    H5Pclose(layout);
    if (sums < 0) return;
    hsize_t n_sum = 0;
    for (hsize_t at = 0; at < n; at += chunk) {
        const hsize_t now = n - at < chunk ? n - at : chunk;
        sum[n_sum] = (int64_t)ttn_hash64(bytes + at * size, now * size, 0);
        n_sum++;
    }
    set_extent(sums, n_sum);
    hid_t space = H5Dget_space(sums);
    if (H5Sget_simple_extent_npoints(space) == (hssize_t)n_sum && n_sum > 0)
        (void)H5Dwrite(sums, H5T_STD_I64LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, sum);
    H5Sclose(space);
    H5Dclose(sums);
}

/* Both checksums of a list, if it is as small as those of the template: NAME_xxh128 and NAME_xxh64. */
static void mend_list(hid_t file, const char *name)
{
    static uint8_t bytes[MOST_ENTRIES];
    char key[NAME + 8], digits[TTN_HASH_TEXT];
    hid_t dataset = H5Lexists(file, name, H5P_DEFAULT) > 0 ? H5Dopen2(file, name, H5P_DEFAULT) : -1;
    if (dataset < 0) return;
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    const size_t size = H5Tget_size(type);
    if (H5Sget_simple_extent_ndims(space) == 1 && n >= 0 && size > 0 && n <= (hssize_t)(sizeof bytes / size) &&
        H5Tis_variable_str(type) == 0 &&
        (n == 0 || H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0)) {
        mend_sums(file, name, dataset, bytes, (hsize_t)n, size);
        snprintf(key, sizeof key, "%s_xxh128", name);
        hid_t scalar = H5Screate(H5S_SCALAR), text = H5Tcopy(H5T_C_S1);
        H5Tset_size(text, TTN_HASH_TEXT - 1);
        ttn_hash_print(ttn_hash128_of(bytes, (size_t)n * size), digits);
        if (H5Aexists(file, key) > 0) write_attribute(file, key, text, scalar, digits);
        H5Tclose(text);
        H5Sclose(scalar);
    }
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(dataset);
}

enum { ENTRY, EXTENT, REPLACE, LINK, NO_LIST, INTEGER, TEXT, NO_ATTRIBUTE, BYTE, N_EDITS };

static void edit(hid_t file, int what, uint64_t which, uint64_t number)
{
    const char *name = list[which % (uint64_t)n_list], *key = attribute[which % (uint64_t)n_attribute];
    hid_t dataset = what == ENTRY || what == EXTENT ? H5Dopen2(file, name, H5P_DEFAULT) : -1;
    if (dataset >= 0 && what == ENTRY) write_entry(dataset, number >> 48, number << 16 >> 16);
    if (dataset >= 0 && what == EXTENT) set_extent(dataset, extent_of(number));
    if (dataset >= 0) H5Dclose(dataset);
    if (what == REPLACE) replace_list(file, name, number);
    if (what == LINK) replace_by_link(file, name, number);
    if (what == NO_LIST) H5Ldelete(file, name, H5P_DEFAULT);
    if (what == INTEGER || what == TEXT) edit_attribute(file, key, what == TEXT, number);
    if (what == NO_ATTRIBUTE) H5Adelete(file, key);
}

static void forge(fuzz_input in, int choices, const char *path)
{
    fuzz_write("it.h5", template_bytes, template_size);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    check(file >= 0);
    fuzz_input bytes = in;
    for (int i = 0; i < MOST_EDITS && in.n > 0; i++) {
        const int what = (int)(fuzz_number(&in, 1) % N_EDITS);
        const uint64_t which = fuzz_number(&in, 1);
        edit(file, what, which, fuzz_number(&in, 8));
    }
    for (int i = 0; choices & MENDS_CHECKSUMS && i < n_list; i++)
        mend_list(file, list[i]);
    check(H5Fclose(file) >= 0);
    FILE *f = fopen(path, "r+b");
    check(f && fseek(f, 0, SEEK_END) == 0);
    const long size = ftell(f);
    for (int i = 0; i < MOST_EDITS && bytes.n > 0; i++) {
        const int what = (int)(fuzz_number(&bytes, 1) % N_EDITS);
        (void)fuzz_number(&bytes, 1);
        const uint64_t number = fuzz_number(&bytes, 8);
        if (what != BYTE) continue;
        check(fseek(f, (long)((number >> 8) % (uint64_t)size), SEEK_SET) == 0);
        fputc((int)(number & 255), f);
    }
    check(fclose(f) == 0);
}

/* ---- what titin makes of it ---- */

typedef struct {
    char *bytes;
    size_t n, room;
} text;

static ttn_status take(void *ctx, const void *bytes, size_t n, ttn_error *err)
{
    (void)err;
    text *t = ctx;
    check(t->n + n <= t->room);
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    return TTN_OK;
}

/* What was exported is FASTA with the same sequences, letter for letter. */
static void check_export(const text *t, ttn_store *s)
{
    const ttn_sequences q = ttn_store_sequences(s);
    const ttn_fasta_rules rules = {.alphabet = q.alphabet, .allow_nucleotide = 1};
    char letter[TTN_MAX_TOKENS];
    ttn_source *source;
    ttn_fasta *f;
    const ttn_fasta_record *r;
    ttn_error err = {0};
    ttn_alphabet_letters(q.alphabet, letter);
    check(ttn_source_open_memory("it", t->bytes, t->n, 0, NULL, &source, &err) == TTN_OK);
    check(ttn_fasta_open(source, &rules, &f, &err) == TTN_OK);
    for (int64_t i = 0; i < q.n; i++) {
        check(ttn_fasta_next(f, &r, &err) == TTN_OK && r->n == q.length(q.self, i));
        for (int64_t k = 0; k < r->n; k++) {
            uint8_t token;
            check(q.tokens(q.self, i, k, 1, &token, &err) == TTN_OK);
            check(letter[r->token[k]] == letter[token]);
        }
    }
    check(ttn_fasta_next(f, &r, &err) == TTN_EOF);
    ttn_fasta_close(f);
}

/* Calls that may find damage, and say so. */
static int goes_on(ttn_status status, const ttn_error *err)
{
    check(status == TTN_OK || (status == TTN_EFORMAT && strstr(err->text, "it.h5")));
    return status == TTN_OK;
}

static int read_sequence(ttn_store *s, const ttn_sequences *q, int64_t i, ttn_error *err)
{
    uint8_t token[PIECE], excluded[PIECE];
    char name[16];
    const char *text;
    int64_t n = q->length(q->self, i);
    check(n >= 1);
    for (int64_t at = 0; at < n && at < MOST_BYTES; at += PIECE) {
        const int64_t now = n - at < PIECE ? n - at : PIECE;
        if (!goes_on(q->tokens(q->self, i, at, now, token, err), err)) return 0;
        for (int64_t k = 0; k < now; k++)
            check(token[k] < q->alphabet->n);
        if (q->excluded && !goes_on(q->excluded(q->self, i, at, now, excluded, err), err)) return 0;
        for (int64_t k = 0; q->excluded && k < now; k++)
            check(excluded[k] <= 1);
    }
    q->name(q->self, i, name, sizeof name);
    check(memchr(name, 0, sizeof name) != NULL);
    if (!goes_on(ttn_store_id(s, i, &text, &n, err), err)) return 0;
    check(n >= 0);
    if (!goes_on(ttn_store_header(s, i, &text, &n, err), err)) return 0;
    check(n >= 0);
    return 1;
}

/* 1: all of it could be read. */
static int read_store(ttn_store *s)
{
    const ttn_sequences q = ttn_store_sequences(s);
    const ttn_store_facts *facts = ttn_store_describe(s);
    ttn_error err = {0};
    check(q.n >= 1 && facts->residues >= q.n && facts->shortest >= 1 && facts->longest <= facts->residues);
    for (int64_t i = 0; i < q.n && i < MOST_SEQUENCES; i++) {
        int64_t hash;
        if (!read_sequence(s, &q, i, &err) || !goes_on(ttn_store_hashes(s, i, 1, &hash, &err), &err)) return 0;
        if (facts->has_clusters && !goes_on(ttn_store_clusters(s, i, 1, &hash, &err), &err)) return 0;
    }
    for (ttn_split_kind kind = TTN_SPLIT_CLUSTER; kind <= TTN_SPLIT_FILE; kind++) {
        const ttn_split_rules rules = {.kind = kind, .valid = 0.5, .file = "it.fa"};
        ttn_subset *held_out;
        ttn_error why = {0};
        const ttn_status status = ttn_split_store(s, &rules, &held_out, &why);
        check(status == TTN_OK || ((status == TTN_EINVAL || status == TTN_EFORMAT) && why.text[0]));
        ttn_subset_destroy(held_out);
    }
    if (facts->residues > MOST_BYTES || q.n > MOST_SEQUENCES) return 1;
    text t = {.room = 4 * MOST_BYTES};
    t.bytes = malloc(t.room);
    check(t.bytes != NULL);
    if (goes_on(ttn_export_fasta(s, take, &t, &err), &err)) check_export(&t, s);
    free(t.bytes);
    return 1;
}

/* What `titin info --verify` makes of it, which is told to be a store: the copy is too unlike one in its first bytes. */
static int is_one(const ttn_info_subject *subject)
{
    (void)subject;
    return 1;
}

static ttn_status verify(const char *path)
{
    ttn_info_kind kind = ttn_info_store;
    kind.recognise = is_one;
    const ttn_info_kind *const kinds[] = {&kind, NULL};
    ttn_facts *f;
    ttn_error err = {0};
    check(ttn_facts_create(&f, &err) == TTN_OK);
    const ttn_status status = ttn_info_describe_by(kinds, path, 1, f, &err);
    (void)goes_on(status, &err);
    ttn_facts_destroy(f);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    char path[FUZZ_PATH];
    if (!template_bytes) make_template();
    const int choices = (int)fuzz_number(&in, 1);
    forge(in, choices, fuzz_path("it.h5", path));
    ttn_store *s;
    ttn_error err = {0};
    const ttn_status status = ttn_store_open(path, choices & IN_BLOCKS ? 1 : 0, &s, &err);
    check((status == TTN_OK) == (s != NULL));
    check(status == TTN_OK || (status == TTN_EFORMAT && strstr(err.text, "it.h5")));
    const int is_whole = s && read_store(s);
    ttn_store_close(s);
    /* What is whole can be read; where blocks are read when they are needed, opening alone says less. */
    check(verify(path) != TTN_OK || (status == TTN_OK && is_whole));
    return 0;
}
