/* Stores: what was packed is what is read, all at once or block by block; what is damaged is refused; nothing appears that is
 * not whole. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/hdf5_write.h"
#include "core/memory.h"
#include "core/rng.h"
#include "data/store.h"
#include "data/store_write.h"
#include "tests/data/forge.h"
#include "tests/harness/files.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

/* ---- stores to be tested ---- */

/* n sequences whose lengths, letters, ids and headers are functions of their number. */
typedef struct {
    int64_t n, longest;
    int has_excluded, compressed, has_clusters;
    int n_source;
} sample;

static int64_t sample_length(const sample *s, int64_t i)
{
    return 1 + (int64_t)ttn_rng_below(3, 1, (uint64_t)i, (uint64_t)s->longest);
}

static uint8_t sample_token(int64_t i, int64_t k)
{
    const ttn_alphabet *a = ttn_alphabet_find("esm");
    return a->residue[(uint64_t)(i * 7919 + k * k + k / 3) % 20];
}

static uint8_t sample_excluded(int64_t i, int64_t k)
{
    return (i + k) % 5 == 0;
}

static void sample_id(int64_t i, char *text, size_t room)
{
    if (i % 11 == 5)
        snprintf(text, room, "%0*d", (int)(i % 300) + 1, (int)i);
    else
        snprintf(text, room, "P%d", (int)i);
}

/* All calls up to the commit. */
static ttn_status add_sample(ttn_store_writer *w, const sample *s, ttn_error *err)
{
    uint8_t *token = malloc((size_t)s->longest), *lower = malloc((size_t)s->longest);
    ttn_status status = token && lower ? TTN_OK : TTN_FAIL(err, TTN_ENOMEM, "no memory for a sequence");
    for (int64_t i = 0; i < s->n && status == TTN_OK; i++) {
        char id[400], header[500];
        sample_id(i, id, sizeof id);
        snprintf(header, sizeof header, "%s of number %d", id, (int)i);
        const int64_t n = sample_length(s, i);
        for (int64_t k = 0; k < n; k++) {
            token[k] = sample_token(i, k);
            lower[k] = sample_excluded(i, k);
        }
        const ttn_fasta_record r = {
            .id = id, .header = i % 4 == 1 ? "" : header, .token = token, .lower = lower, .n = n};
        status = ttn_store_add(w, &r, i % 9 == 2 ? "other" : NULL, err);
        if (status == TTN_OK && (i + 1) % (s->n / s->n_source) == 0 && (i + 1) / (s->n / s->n_source) < s->n_source) {
            const ttn_store_source source = {.name = "a.fa", .link = "", .hash = "00", .bytes = i, .records = i + 1};
            status = ttn_store_end_source(w, &source, err);
        }
    }
    free(token);
    free(lower);
    const ttn_store_source last = {.name = "folder/b.fa.gz", .link = "/data/b.fa.gz", .hash = "11", .skipped = 3};
    if (status == TTN_OK) status = ttn_store_end_source(w, &last, err);
    if (status != TTN_OK || !s->has_clusters) return status;
    int64_t *key = malloc((size_t)s->n * sizeof *key);
    if (!key) return TTN_FAIL(err, TTN_ENOMEM, "no memory for clusters");
    for (int64_t i = 0; i < s->n; i++)
        key[i] = i / 2;
    const ttn_store_clustering how = {.k = 8, .kmers = 20, .seed = 0, .n = (s->n + 1) / 2};
    status = ttn_store_set_clusters(w, &how, key, err);
    free(key);
    return status;
}

static ttn_status write_store(const char *path, const sample *s, ttn_error *err)
{
    ttn_store_writer *w;
    const ttn_store_kind kind = {.alphabet = ttn_alphabet_find("esm"),
                                 .titin_version = "0.0.1",
                                 .has_excluded = s->has_excluded,
                                 .compressed = s->compressed};
    ttn_status status = ttn_store_create(path, &kind, &w, err);
    if (status != TTN_OK) return status;
    status = add_sample(w, s, err);
    if (status == TTN_OK) status = ttn_store_commit(w, err);
    ttn_store_destroy(w);
    return status;
}

static const char *make_store(const char *name, const sample *s)
{
    ttn_error err = {0};
    const char *path = in_folder(name);
    assert_ok(write_store(path, s, &err), &err);
    return path;
}

static ttn_store *open_store(const char *path, int64_t cache)
{
    ttn_store *store;
    ttn_error err = {0};
    assert_ok(ttn_store_open(path, cache, &store, &err), &err);
    return store;
}

/* Sequence i, part of it, is what it should be. */
static void check_sequence(const ttn_sequences *q, const sample *s, int64_t i, uint8_t *room)
{
    ttn_error err = {0};
    const int64_t n = sample_length(s, i), first = i % n, some = n - first;
    assert_int_equal(q->length(q->self, i), n);
    assert_ok(q->tokens(q->self, i, first, some, room, &err), &err);
    for (int64_t k = 0; k < some; k++)
        if (room[k] != sample_token(i, first + k)) fail_msg("sequence %d, residue %d", (int)i, (int)(first + k));
    if (!q->excluded) return;
    assert_ok(q->excluded(q->self, i, first, some, room, &err), &err);
    for (int64_t k = 0; k < some; k++)
        if (room[k] != sample_excluded(i, first + k)) fail_msg("excluded %d, residue %d", (int)i, (int)(first + k));
}

/* ---- the tests ---- */

static void what_was_packed_is_what_is_read(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        const sample s = {.n = 300, .longest = 700, .has_excluded = way & 1, .compressed = way >> 1, .n_source = 3};
        ttn_store *store = open_store(make_store("whole.h5", &s), 0);
        const ttn_store_facts *f = ttn_store_describe(store);
        assert_int_equal(f->sequences, s.n);
        assert_ptr_equal(f->alphabet, ttn_alphabet_find("esm"));
        assert_string_equal(f->titin_version, "0.0.1");
        assert_int_equal(f->has_excluded, s.has_excluded);
        assert_int_equal(f->has_clusters, 0);
        assert_int_equal(f->n_source, 3);
        assert_string_equal(f->source[1].name, "a.fa");
        assert_string_equal(f->source[2].link, "/data/b.fa.gz");
        assert_int_equal(f->source[0].records, 100);
        assert_int_equal(f->source[2].skipped, 3);
        int64_t residues = 0, longest = 0, shortest = s.longest;
        const ttn_sequences q = ttn_store_sequences(store);
        assert_int_equal(q.n, s.n);
        assert_int_equal(q.n_block, 0);
        assert_true((q.excluded != NULL) == s.has_excluded);
        uint8_t room[700];
        for (int64_t i = 0; i < s.n; i++) {
            char id[400], got[400];
            const char *text;
            int64_t n;
            ttn_error err = {0};
            check_sequence(&q, &s, i, room);
            assert_int_equal(ttn_store_offset(store, i), residues);
            residues += sample_length(&s, i);
            longest = sample_length(&s, i) > longest ? sample_length(&s, i) : longest;
            shortest = sample_length(&s, i) < shortest ? sample_length(&s, i) : shortest;
            sample_id(i, id, sizeof id);
            if (i % 9 == 2) snprintf(id, sizeof id, "other");
            assert_ok(ttn_store_id(store, i, &text, &n, &err), &err);
            assert_int_equal(n, strlen(id));
            assert_memory_equal(text, id, (size_t)n);
            q.name(q.self, i, got, sizeof got);
            assert_string_equal(got, id);
            q.name(q.self, i, got, 3);
            assert_memory_equal(got, id, 2);
            assert_ok(ttn_store_header(store, i, &text, &n, &err), &err);
            assert_int_equal(n == 0, i % 4 == 1);
            assert_int_equal(f->source[i / 100].first, i / 100 * 100);
        }
        assert_int_equal(f->residues, residues);
        assert_int_equal(f->longest, longest);
        assert_int_equal(f->shortest, shortest);
        ttn_store_close(store);
    }
}

/* More ids than are read together, asked for in any order. */
static void ids_are_found_in_any_order(void **state)
{
    (void)state;
    const sample s = {.n = 9000, .longest = 4, .n_source = 1};
    ttn_store *store = open_store(make_store("ids.h5", &s), 0);
    for (int64_t k = 0; k < 200; k++) {
        const int64_t i = k < 3 ? k * 4096 + (k > 0) * 1 - 1 + (k == 0) : k * 8009 % s.n;
        char id[400], got[400];
        const ttn_sequences q = ttn_store_sequences(store);
        sample_id(i, id, sizeof id);
        if (i % 9 == 2) snprintf(id, sizeof id, "other");
        q.name(q.self, i, got, sizeof got);
        assert_string_equal(got, id);
    }
    ttn_store_close(store);
}

static void tokens_are_the_same_however_small_the_cache_is(void **state)
{
    (void)state;
    for (int has_excluded = 0; has_excluded < 2; has_excluded++) {
        /* 1.5 million residues, one sequence of which is longer than a block */
        const sample s = {.n = 60, .longest = 50000, .has_excluded = has_excluded, .n_source = 1};
        const char *path = make_store("blocks.h5", &s);
        static const int64_t caches[] = {1, 200000, 1 << 20, 1 << 24};
        uint8_t *room = malloc((size_t)s.longest);
        assert_non_null(room);
        for (size_t c = 0; c < sizeof caches / sizeof *caches; c++) {
            ttn_store *store = open_store(path, caches[c]);
            const ttn_sequences q = ttn_store_sequences(store);
            if (caches[c] < 1 << 20) assert_true(q.n_block > q.blocks_at_once && q.blocks_at_once >= 1);
            if (q.n_block > 0) {
                assert_int_equal(q.block_first(q.self, 0), 0);
                assert_int_equal(q.block_first(q.self, q.n_block), s.n);
            }
            for (int64_t k = 0; k < 2 * s.n; k++)
                check_sequence(&q, &s, (k * 37 + k / s.n) % s.n, room);
            ttn_store_close(store);
        }
        free(room);
    }
}

/* Offsets past 2^32, and the rules of ttn_store_blocks, without a store of such a size. */
static void blocks_cover_all_sequences_also_past_four_billion_residues(void **state)
{
    (void)state;
    enum { N = 100000 };
    int64_t *offset = malloc((N + 1) * sizeof *offset);
    assert_non_null(offset);
    for (int way = 0; way < 3; way++) {
        const int64_t bytes = 4 << 20;
        offset[0] = 0;
        for (int64_t i = 0; i < N; i++) {
            const int64_t longest = way == 0 ? 300 : way == 1 ? 200000 : 20000000;
            offset[i + 1] = offset[i] + 1 + (int64_t)ttn_rng_below(1, (uint64_t)way, (uint64_t)i, (uint64_t)longest);
        }
        assert_true(way == 0 || offset[N] > (int64_t)1 << 32);
        int64_t *first, n;
        ttn_error err = {0};
        assert_ok(ttn_store_blocks(offset, N, bytes, &first, &n, &err), &err);
        assert_true(n >= 1 && n <= offset[N] / bytes * 2 + 2);
        assert_int_equal(first[0], 0);
        assert_int_equal(first[n], N);
        for (int64_t b = 0; b < n; b++) {
            const int64_t size = offset[first[b + 1]] - offset[first[b]];
            assert_true(first[b + 1] > first[b]);
            assert_true(size <= bytes || first[b + 1] == first[b] + 1);
            if (b + 1 < n) assert_true(offset[first[b + 1] + 1] - offset[first[b]] > bytes);
        }
        ttn_free(first);
    }
    free(offset);
}

static void same_sequences_are_the_same_bytes(void **state)
{
    (void)state;
    const sample s = {.n = 50, .longest = 100, .n_source = 1};
    size_t n[2];
    char *bytes[2];
    for (int i = 0; i < 2; i++)
        bytes[i] = get_file(make_store("same.h5", &s), &n[i]);
    assert_int_equal(n[0], n[1]);
    assert_same_bits(bytes[0], bytes[1], n[0]);
    free(bytes[0]);
    free(bytes[1]);
}

static void an_empty_store_is_refused_and_leaves_nothing(void **state)
{
    (void)state;
    ttn_store_writer *w;
    ttn_error err = {0};
    const ttn_store_kind kind = {.alphabet = ttn_alphabet_find("esm"), .titin_version = "0"};
    assert_ok(ttn_store_create(in_folder("empty.h5"), &kind, &w, &err), &err);
    assert_fails(ttn_store_commit(w, &err), TTN_EFORMAT, &err, "there is no sequence");
    ttn_store_destroy(w);
    assert_false(is_there(in_folder("empty.h5")));
}

/* ---- stores that are wrong in themselves ---- */

typedef enum {
    RIGHT,
    OTHER_FORMAT,
    NEWER_VERSION,
    OLDER_VERSION,
    NO_SEQUENCES,
    TOO_MANY_SEQUENCES,
    ALL_SEQUENCES_THERE_CAN_BE,
    ALL_RESIDUES_THERE_CAN_BE,
    OFFSET_BACK,
    OFFSET_NEGATIVE,
    OFFSET_NOT_FROM_ZERO,
    OFFSET_SHORT,
    TOKEN_TOO_LARGE,
    NO_SOURCE_NAMES,
    SOURCES_SHORT,
    SOURCES_BACK,
    SOURCES_NEGATIVE,
    COUNT_NEGATIVE,
    OTHER_ALPHABET,
    EMPTY_ALPHABET,
    NO_UNKNOWN,
    FEW_ALPHABET,
    TEXTS_BACK,
    TEXTS_MISSING,
    NO_CHECKSUM_TEXT,
    WRONG_CHECKSUM,
    FINDINGS_SHORT,
    FINDINGS_MANY,
    FINDING_OF_NO_FILE,
    FINDING_OF_NO_RULE,
    FINDING_OF_NOTHING,
    DUPLICATES_MANY,
    N_WRONG,
} wrongness;

static void write_list(ttn_hdf5 *h, const char *name, ttn_dtype type, int64_t n, const void *numbers)
{
    ttn_hdf5_column_add(ttn_hdf5_column_create(h, name, type, 0), n, numbers);
}

/* One finding, with one thing wrong. */
static void write_findings(ttn_hdf5 *h, wrongness what)
{
    const int64_t source = what == FINDING_OF_NO_FILE, rule = what == FINDING_OF_NO_RULE ? 0 : 49, one = 1;
    const int64_t n = what == FINDING_OF_NOTHING ? 0 : 7;
    const int64_t found = what == FINDINGS_SHORT ? 2 : what == FINDINGS_MANY ? INT64_MAX : 1;
    ttn_hdf5_note_integer(h, "/", "found", found);
    ttn_hdf5_note_integer(h, "/", "duplicate_sequences", what == DUPLICATES_MANY ? 2 : 1);
    write_list(h, "found_source", TTN_I64, 1, &source);
    write_list(h, "found_rule", TTN_I64, 1, &rule);
    write_list(h, "found_is_fault", TTN_I64, 1, &one);
    write_list(h, "found_n", TTN_I64, 1, &n);
    write_list(h, "found_line", TTN_I64, 1, &one);
    write_list(h, "found_column", TTN_I64, 1, &one);
}

/* Two sequences, MK and A, with one thing wrong. */
static void write_wrong(const char *path, wrongness what)
{
    ttn_hdf5 *h;
    ttn_error err = {0};
    const ttn_alphabet *a = ttn_alphabet_find("esm");
    const uint8_t token[3] = {a->map['M'], what == TOKEN_TOO_LARGE ? 33 : a->map['K'], a->map['A']};
    const int64_t offset[3] = {what == OFFSET_NOT_FROM_ZERO,
                               what == OFFSET_BACK       ? 3
                               : what == OFFSET_NEGATIVE ? INT64_MIN
                                                         : 2,
                               what == OFFSET_SHORT ? 2 : 3};
    const int64_t text[3] = {0, what == TEXTS_BACK ? INT64_MIN : 1, what == TEXTS_MISSING ? INT64_MAX : 2};
    const int64_t zero = 0, count = what == COUNT_NEGATIVE ? INT64_MIN : 0;
    const int64_t first[2] = {what == SOURCES_BACK       ? 1
                              : what == SOURCES_NEGATIVE ? INT64_MIN
                                                         : 0,
                              what == SOURCES_SHORT ? 1 : 2};
    static const char *const vocabulary[] = {"<cls>", "L", "A", "G", "V", "S", "E", "R", "T", "I", "D",
                                             "P",     "K", "Q", "N", "F", "Y", "M", "H", "W", "C"};
    const int64_t hash[2] = {5, 6};
    const char *const source[] = {"a.fa"}, *const nothing[] = {""};
    assert_ok(ttn_hdf5_create(path, &h, &err), &err);
    ttn_hdf5_note_text(h, "/", "format", what == OTHER_FORMAT ? "titin-maps" : "titin-store");
    ttn_hdf5_note_integer(h, "/", "format_version", what == NEWER_VERSION ? 3 : what == OLDER_VERSION ? 1 : 2);
    ttn_hdf5_note_text(h, "/", "titin_version", "9");
    const int is_own = what == EMPTY_ALPHABET || what == NO_UNKNOWN || what == FEW_ALPHABET;
    ttn_hdf5_note_text(h, "/", "alphabet_name", is_own ? "own" : "esm");
    ttn_hdf5_note_integer(h, "/", "sequences",
                          what == NO_SEQUENCES                 ? 0
                          : what == TOO_MANY_SEQUENCES         ? 3
                          : what == ALL_SEQUENCES_THERE_CAN_BE ? INT64_MAX
                                                               : 2);
    const int is_all = what == ALL_SEQUENCES_THERE_CAN_BE || what == ALL_RESIDUES_THERE_CAN_BE;
    ttn_hdf5_note_integer(h, "/", "residues", is_all ? INT64_MAX : 3);
    char sum[TTN_HASH_TEXT];
    ttn_hash_print(ttn_hash128_of(token, sizeof token), sum);
    if (what == WRONG_CHECKSUM) sum[3] = sum[3] == '0' ? '1' : '0';
    ttn_hdf5_note_text(h, "/", "tokens_xxh128", what == NO_CHECKSUM_TEXT ? "none" : sum);
    static const struct {
        const char *name;
        int n;
    } sums[] = {{"offset_xxh128", 24}, {"id_offset_xxh128", 24}, {"header_offset_xxh128", 24}};
    const void *const summed[] = {offset, text, text};
    for (int i = 0; i < 3; i++)
        ttn_hdf5_note_text(h, "/", sums[i].name, ttn_hash_print(ttn_hash128_of(summed[i], (size_t)sums[i].n), sum));
    ttn_hdf5_note_text(h, "/", "id_xxh128", ttn_hash_print(ttn_hash128_of("ab", 2), sum));
    ttn_hdf5_note_text(h, "/", "header_xxh128", ttn_hash_print(ttn_hash128_of("ab", 2), sum));
    ttn_hdf5_note_text(h, "/", "hash_xxh128", ttn_hash_print(ttn_hash128_of(hash, sizeof hash), sum));
    if (what == NO_UNKNOWN)
        ttn_hdf5_texts(h, "alphabet", vocabulary, sizeof vocabulary / sizeof *vocabulary);
    else
        ttn_hdf5_texts(h, "alphabet", a->token,
                       what == FEW_ALPHABET     ? 5
                       : what == EMPTY_ALPHABET ? 0
                       : what == OTHER_ALPHABET ? a->n - 1
                                                : a->n);
    ttn_hdf5_texts(h, "source", source, what != NO_SOURCE_NAMES);
    ttn_hdf5_texts(h, "source_link", nothing, 1);
    ttn_hdf5_texts(h, "source_xxh128", nothing, 1);
    write_list(h, "source_bytes", TTN_I64, 1, &zero);
    write_list(h, "source_unpacked", TTN_I64, 1, &zero);
    write_list(h, "source_records", TTN_I64, 1, &zero);
    write_list(h, "source_skipped", TTN_I64, 1, &zero);
    write_list(h, "source_dropped", TTN_I64, 1, &count);
    write_list(h, "source_first", TTN_I64, 2, first);
    write_list(h, "tokens", TTN_U8, 3, token);
    write_list(h, "offset", TTN_I64, 3, offset);
    write_list(h, "id", TTN_U8, 2, "ab");
    write_list(h, "id_offset", TTN_I64, 3, text);
    write_list(h, "header", TTN_U8, 2, "ab");
    write_list(h, "header_offset", TTN_I64, 3, text);
    write_list(h, "hash", TTN_I64, 2, hash);
    if (what >= FINDINGS_SHORT) write_findings(h, what);
    assert_ok(ttn_hdf5_commit(h, &err), &err);
    ttn_hdf5_destroy(h);
}

static void what_contradicts_itself_is_refused(void **state)
{
    (void)state;
    static const char *const told[N_WRONG] = {
        [RIGHT] = "",
        [OTHER_FORMAT] = "is no store of sequences, but 'titin-maps'",
        [NEWER_VERSION] = "is a store of version 3, and this titin reads version 2; use a newer titin",
        [OLDER_VERSION] = "is a store of version 1, and this titin reads version 2; pack it again",
        [NO_SEQUENCES] = "it counts less than one sequence",
        [TOO_MANY_SEQUENCES] = "'id_offset' has 3 entries, and should have 4",
        [ALL_SEQUENCES_THERE_CAN_BE] = "it counts more residues than there can be",
        [ALL_RESIDUES_THERE_CAN_BE] = "it counts more residues than there can be",
        [OFFSET_BACK] = "the offsets do not ascend",
        [OFFSET_NEGATIVE] = "the offsets do not ascend",
        [OFFSET_NOT_FROM_ZERO] = "the offsets do not reach",
        [OFFSET_SHORT] = "the offsets do not reach",
        [TOKEN_TOO_LARGE] = "a token is beyond the alphabet",
        [NO_SOURCE_NAMES] = "'source_link' holds more texts than is possible",
        [SOURCES_SHORT] = "its files do not cover its sequences",
        [SOURCES_BACK] = "its files do not cover its sequences",
        [SOURCES_NEGATIVE] = "its files do not cover its sequences",
        [COUNT_NEGATIVE] = "a count of its files is negative",
        [OTHER_ALPHABET] = "its alphabet is not what titin knows under that name",
        [EMPTY_ALPHABET] = "a vocabulary of 0 tokens",
        [NO_UNKNOWN] = "the vocabulary has neither '<unk>'",
        [TEXTS_BACK] = "the offsets of texts do not ascend",
        [TEXTS_MISSING] = "texts are missing",
        [FEW_ALPHABET] = "the vocabulary has no token",
        [NO_CHECKSUM_TEXT] = "a checksum is none",
        [WRONG_CHECKSUM] = "'tokens' is not what was packed",
        [FINDINGS_SHORT] = "'found_source' has 1 entries, and should have 2",
        [FINDINGS_MANY] = "it counts too much that was found in its files",
        [FINDING_OF_NO_FILE] = "what was found in its files cannot be",
        [FINDING_OF_NO_RULE] = "what was found in its files cannot be",
        [FINDING_OF_NOTHING] = "what was found in its files cannot be",
        [DUPLICATES_MANY] = "it counts more equal sequences than there are",
    };
    /* With all of it read as it is opened; and only by the verification, as `titin info --verify` does. */
    for (int way = 0; way < 2 * N_WRONG; way++) {
        const int what = way / 2, is_read = way % 2;
        ttn_store *store;
        ttn_error err = {0};
        const char *text;
        int64_t n;
        write_wrong(in_folder("wrong.h5"), what);
        ttn_status status = ttn_store_open(in_folder("wrong.h5"), is_read ? 0 : 1, &store, &err);
        if (status == TTN_OK && is_read) status = ttn_store_id(store, 0, &text, &n, &err);
        if (status == TTN_OK && is_read) status = ttn_store_header(store, 0, &text, &n, &err);
        if (status == TTN_OK) status = ttn_store_verify(store, &err);
        if (what == RIGHT) {
            assert_ok(status, &err);
        } else {
            assert_fails(status, TTN_EFORMAT, &err, told[what]);
            assert_contains(err.text, "wrong.h5: ");
            assert_true(what == OTHER_FORMAT || strstr(err.text, "pack it again"));
        }
        ttn_store_close(store);
    }
}

/* ---- damage ---- */

/* Everything that is read from a store, as one number. */
static ttn_status hash_store_in(const char *path, int64_t cache, uint64_t *ret, ttn_error *err)
{
    ttn_store *s;
    uint8_t room[1000];
    ttn_status status = ttn_store_open(path, cache, &s, err);
    if (status != TTN_OK) return status;
    const ttn_store_facts *f = ttn_store_describe(s);
    const ttn_sequences q = ttn_store_sequences(s);
    uint64_t hash = ttn_hash64(f->titin_version, strlen(f->titin_version), (uint64_t)f->sequences);
    hash = ttn_hash64(&f->identity, sizeof f->identity, hash);
    for (int64_t i = 0; i < f->n_source; i++) {
        hash = ttn_hash64(f->source[i].name, strlen(f->source[i].name), hash);
        hash = ttn_hash64(&f->source[i].first, sizeof(ttn_store_source) - offsetof(ttn_store_source, first), hash);
    }
    for (int64_t i = 0; i < q.n && status == TTN_OK; i++) {
        const char *text;
        int64_t n = q.length(q.self, i);
        if (n > (int64_t)sizeof room) n = sizeof room;
        status = q.tokens(q.self, i, 0, n, room, err);
        hash = ttn_hash64(room, (size_t)n, hash);
        if (status == TTN_OK && q.excluded) status = q.excluded(q.self, i, 0, n, room, err);
        hash = ttn_hash64(room, (size_t)n, hash);
        if (status == TTN_OK) status = ttn_store_id(s, i, &text, &n, err);
        if (status == TTN_OK) hash = ttn_hash64(text, (size_t)n, hash);
        if (status == TTN_OK) status = ttn_store_header(s, i, &text, &n, err);
        if (status == TTN_OK) hash = ttn_hash64(text, (size_t)n, hash);
    }
    int64_t *number = ttn_alloc_array(q.n, sizeof *number);
    if (!number) status = TTN_FAIL(err, TTN_ENOMEM, "%s: no memory for hashes", path);
    if (status == TTN_OK) status = ttn_store_hashes(s, 0, q.n, number, err);
    if (number) hash = ttn_hash64(number, (size_t)q.n * sizeof *number, hash);
    if (status == TTN_OK && f->has_clusters) status = ttn_store_clusters(s, 0, q.n, number, err);
    if (number) hash = ttn_hash64(number, (size_t)q.n * sizeof *number, hash);
    ttn_free(number);
    ttn_store_close(s);
    *ret = hash;
    return status;
}

static ttn_status hash_store(const char *path, uint64_t *ret, ttn_error *err)
{
    return hash_store_in(path, 1 << 20, ret, err);
}

/* ---- stores that another program has changed ---- */

static void copy_file(const char *from, const char *to)
{
    size_t n;
    char *bytes = get_file(from, &n);
    FILE *f = fopen(to, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(bytes);
}

/* Each list of a store with these forgeries. */
static int read_forged(const char *good, forgery first, forgery last)
{
    static const char *const told[N_FORGERY] = {
        [FORGE_LONGER] = "says that it has 268435456 entries, more than a file of",
        [FORGE_NOT_WRITTEN] = "has 0 of its 1 chunks in the file",
        [FORGE_LARGE_CHUNK] = "is not stored in chunks with checksums, as titin does",
        [FORGE_SMALL_CHUNKS] = "is not stored in chunks with checksums, as titin does",
        [FORGE_CHANGED] = "is not what was written: the checksum of entries 0 to",
    };
    char *list[FORGE_MAX_LISTS], path[5000];
    snprintf(path, sizeof path, "%s", in_folder("forged.h5"));
    const int n = forge_lists(good, list);
    assert_int_equal(n, 2 * 19); /* 9 lists, 7 of files, 3 of texts, ... and their checksums */
    for (int i = 0; i < n; i++)
        for (int how = first; how <= (int)last; how++) {
            uint64_t hash;
            copy_file(good, path);
            if (!forge(path, list[i], how)) continue;
            for (int64_t cache = 1; cache <= 1 << 20; cache <<= 20) {
                ttn_error err = {0};
                /* A checksum that was changed: of a list that is right. */
                const int is_sum = strstr(list[i], "_xxh64") != NULL;
                assert_fails(hash_store_in(path, cache, &hash, &err), TTN_EFORMAT, &err, told[how]);
                assert_contains(err.text, "forged.h5: ");
                assert_contains(err.text, "pack it again");
                if (how != FORGE_CHANGED || !is_sum) assert_contains(err.text, list[i]);
            }
        }
    for (int i = 0; i < n; i++)
        free(list[i]);
    return 0;
}

/* In children: HDF5 loses memory over some of these files. */
static int read_all_forged(void *arg)
{
    return read_forged(arg, 0, N_FORGERY - 1);
}

static int read_longer(void *arg)
{
    return read_forged(arg, FORGE_LONGER, FORGE_LONGER);
}

static void read_forged_in_child(ttn_child_limit limit, int (*body)(void *arg))
{
    const sample s = {.n = 40, .longest = 200, .has_excluded = 1, .has_clusters = 1, .n_source = 2};
    char path[5000];
    snprintf(path, sizeof path, "%s", make_store("good.h5", &s)); /* the child's folder is another */
    ttn_child child = run_in_child(limit, body, path);
    if (!child.exited || child.exit_code != 0) fail_msg("signal %d: %s", child.signal, child.output);
}

static void what_another_program_has_changed_is_found_as_it_is_read(void **state)
{
    (void)state;
    read_forged_in_child((ttn_child_limit){.seconds = 300}, read_all_forged);
}

static void what_is_not_there_takes_no_memory(void **state)
{
    (void)state;
    read_forged_in_child((ttn_child_limit){.seconds = 300, .address_space = 1500000000}, read_longer);
}

/* Also where memory is short. */
static void every_failure_of_reading_names_the_file(void **state)
{
    (void)state;
    const sample s = {.n = 40, .longest = 200, .has_excluded = 1, .compressed = 1, .has_clusters = 1, .n_source = 2};
    const char *path = make_store("named.h5", &s);
    for (int64_t cache = 1; cache <= 1 << 20; cache <<= 20) {
        int64_t nth = 1;
        for (int hit = 1; hit; nth++) {
            uint64_t hash;
            ttn_error err = {0};
            shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
            const ttn_status status = hash_store_in(path, cache, &hash, &err);
            hit = shim_was_hit();
            shim_disarm();
            if (!hit) assert_ok(status, &err);
            if (status != TTN_OK) assert_fails(status, TTN_ENOMEM, &err, "named.h5: ");
        }
        assert_true(nth > 60);
    }
}

/* Only the part that is read is compared: the first chunk of three is good, a token in the last one is another. */
static void only_what_is_read_is_compared(void **state)
{
    (void)state;
    const sample s = {.n = 100, .longest = 50000, .n_source = 1};
    const char *path = make_store("large.h5", &s);
    forge(path, "tokens", FORGE_CHANGED);
    ttn_store *store = open_store(path, 1); /* it does not fit, so that nothing is read yet */
    const ttn_sequences q = ttn_store_sequences(store);
    uint8_t *room = malloc((size_t)s.longest);
    assert_non_null(room);
    assert_true(ttn_store_describe(store)->residues > 2 << 20);
    check_sequence(&q, &s, 0, room);
    check_sequence(&q, &s, 20, room);
    ttn_error err = {0};
    assert_fails(q.tokens(q.self, s.n - 1, 0, 1, room, &err), TTN_EFORMAT, &err, "'tokens' is not what was written");
    err = (ttn_error){0};
    assert_fails(ttn_store_read(store, 2 << 20, 1, room, &err), TTN_EFORMAT, &err, "large.h5: 'tokens' is not what");
    err = (ttn_error){0};
    assert_fails(ttn_store_verify(store, &err), TTN_EFORMAT, &err, "large.h5: 'tokens' is not what was written");
    check_sequence(&q, &s, 1, room);
    ttn_store_close(store);
    free(room);
}

/* A claim that agrees with itself: 2^62 residues, in a list of that length of which nothing is there. */
static void a_store_cannot_have_more_than_its_file(void **state)
{
    (void)state;
    const sample s = {.n = 40, .longest = 200, .n_source = 1};
    const char *path = make_store("claims.h5", &s);
    const int64_t many = (int64_t)1 << 62;
    hid_t file = forge_open(path);
    forge_list(file, "tokens", H5T_STD_U8LE, (hsize_t)many, 1 << 20, NULL);
    H5Fclose(file);
    forge_integer(path, "residues", many);
    ttn_store *store;
    ttn_error err = {0};
    assert_fails(ttn_store_open(path, 0, &store, &err), TTN_EFORMAT, &err,
                 "claims.h5: 'tokens' says that it has 4611686018427387904 entries, more than a file of ");
}

/* `titin` is given what this makes: tests/data/test_pack.sh, tests/train/test_train.sh. */
static int change_list(int argc, char **argv)
{
    return argc == 2 && forge(argv[0], argv[1], FORGE_CHANGED) ? 0 : 2;
}

/* In a child: HDF5 loses memory over some of these files, and may crash. */
static int read_mutants(void *arg)
{
    size_t n;
    char *bytes = get_file(arg, &n), *mutant = malloc(n);
    uint64_t expected = 0, hash;
    ttn_error err = {0};
    const char *path = in_folder("mutant.h5");
    assert_non_null(mutant);
    assert_ok(hash_store(arg, &expected, &err), &err);
    const int64_t all = ttn_scaled(5000, 100);
    int64_t n_refused = 0;
    for (int64_t i = 0; i < all; i++) {
        memcpy(mutant, bytes, n);
        const uint64_t seed = ttn_test_seed();
        size_t length = n;
        for (uint64_t k = 0; k <= ttn_rng_below(seed, 1, (uint64_t)i, 8); k++) {
            const uint64_t draw = (uint64_t)i * 32 + k * 3;
            const size_t at = ttn_rng_below(seed, 2, draw, n);
            mutant[at] = (char)(mutant[at] ^ (char)(1 + ttn_rng_below(seed, 2, draw + 1, 255)));
        }
        if (i % 50 == 0) length = ttn_rng_below(seed, 3, (uint64_t)i, n);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(mutant, 1, length, f), length);
        fclose(f);
        err = (ttn_error){0};
        const ttn_status status = hash_store(path, &hash, &err);
        if (status == TTN_OK && hash != expected) fail_msg("mutant %d is read as another store", (int)i);
        if (status != TTN_OK && !strstr(err.text, "mutant.h5")) fail_msg("mutant %d: '%s'", (int)i, err.text);
        n_refused += status != TTN_OK;
    }
    printf("%d of %d refused\n", (int)n_refused, (int)all);
    free(bytes);
    free(mutant);
    return n_refused > all / 2 ? 0 : 1;
}

static void a_damaged_store_is_refused_or_the_same(void **state)
{
    (void)state;
    const sample s = {.n = 40, .longest = 200, .has_excluded = 1, .has_clusters = 1, .n_source = 2};
    char path[5000];
    snprintf(path, sizeof path, "%s", make_store("mutated.h5", &s)); /* the child's folder is another */
    ttn_child child = run_in_child((ttn_child_limit){.seconds = 300}, read_mutants, path);
    if (!child.exited || child.exit_code != 0) fail_msg("signal %d: %s", child.signal, child.output);
}

/* ---- failures while writing ---- */

static const sample failing = {.n = 30, .longest = 300, .has_excluded = 1, .n_source = 2};

static int is_whole(const char *path)
{
    uint64_t hash;
    return hash_store(path, &hash, NULL) == TTN_OK;
}

static int fail_nth(int64_t nth, unsigned calls, int error)
{
    ttn_error err = {0};
    shim_arm(calls, nth, SHIM_FAIL, error, 0);
    ttn_status status = write_store(in_folder("failed.h5"), &failing, &err);
    const int hit = shim_was_hit();
    shim_disarm();
    if (status != TTN_OK) assert_true(strlen(err.text) > 10);
    return hit;
}

static void a_pack_that_fails_leaves_the_previous_store(void **state)
{
    (void)state;
    make_store("failed.h5", &failing);
    static const struct {
        unsigned calls;
        int error;
    } cases[] = {{SHIM_FILES, ENOSPC}, {SHIM_ALLOC, ENOMEM}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t nth = 1;
        while (fail_nth(nth, cases[i].calls, cases[i].error)) {
            assert_true(is_whole(in_folder("failed.h5")));
            nth++;
        }
        assert_true(nth > 5);
    }
}

static int write_into_a_limit(void *arg)
{
    const sample *s = arg;
    signal(SIGXFSZ, SIG_IGN);
    ttn_error err = {0};
    const ttn_status status = write_store(in_folder("limit.h5"), s, &err);
    if (status != TTN_EIO || is_there(in_folder("limit.h5"))) return 1;
    printf("%s\n", err.text);
    exit(0); /* not _exit: HDF5 closes what it thinks is open */
}

/* A limit on the file's size is a full disk that HDF5's own writes meet: in the middle of a column, and at the end. */
static void a_full_disk_is_a_sentence_and_no_store(void **state)
{
    (void)state;
    static const sample large = {.n = 60, .longest = 100000, .n_source = 1};
    static const int64_t limits[] = {1000, 200000, 1500000, 2500000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        ttn_child child =
            run_in_child((ttn_child_limit){.file_size = limits[i]}, write_into_a_limit, (void *)(uintptr_t)&large);
        if (!child.exited || child.exit_code != 0) fail_msg("%s", child.output);
        assert_contains(child.output, "limit.h5: cannot be written: File too large; ");
        assert_contains(child.output, "nothing was put in its place");
    }
}

int main(int argc, char **argv)
{
    ttn_test_child("change", change_list);
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_is_what_is_read),
        cmocka_unit_test(ids_are_found_in_any_order),
        cmocka_unit_test(tokens_are_the_same_however_small_the_cache_is),
        cmocka_unit_test(blocks_cover_all_sequences_also_past_four_billion_residues),
        cmocka_unit_test(same_sequences_are_the_same_bytes),
        cmocka_unit_test(an_empty_store_is_refused_and_leaves_nothing),
        cmocka_unit_test(what_contradicts_itself_is_refused),
        cmocka_unit_test(what_another_program_has_changed_is_found_as_it_is_read),
        cmocka_unit_test(what_is_not_there_takes_no_memory),
        cmocka_unit_test(every_failure_of_reading_names_the_file),
        cmocka_unit_test(only_what_is_read_is_compared),
        cmocka_unit_test(a_store_cannot_have_more_than_its_file),
        cmocka_unit_test(a_damaged_store_is_refused_or_the_same),
        cmocka_unit_test(a_pack_that_fails_leaves_the_previous_store),
        cmocka_unit_test(a_full_disk_is_a_sentence_and_no_store),
    };
    return ttn_test_run(tests);
}
