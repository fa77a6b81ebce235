/* Files into a store and out again: nothing is lost, nothing is added, and whatever fails leaves no store. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rng.h"
#include "data/export.h"
#include "data/pack.h"
#include "data/store.h"
#include "data/store_write.h"
#include "tests/data/make_gzip.h"
#include "tests/harness/files.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

/* ---- files and stores ---- */

/* The path is good for the next 32 files. */
static const char *put_bytes(const char *name, const void *bytes, size_t n)
{
    static char paths[32][5000];
    static int next;
    char *path = paths[next++ % 32];
    snprintf(path, sizeof paths[0], "%s", in_folder(name));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    return path;
}

static const char *put_text(const char *name, const char *text)
{
    return put_bytes(name, text, strlen(text));
}

static const char *put_gzip(const char *name, const char *text)
{
    made_bytes m = made_members(text, strlen(text), strlen(text));
    const char *path = put_bytes(name, m.bytes, m.n);
    free(m.bytes);
    return path;
}

static ttn_pack_rules usual(void)
{
    return (ttn_pack_rules){.fasta = {.alphabet = ttn_alphabet_find("esm")},
                            .makes_clusters = 1,
                            .cluster = {.kmers = 20, .memory = 1 << 20},
                            .titin_version = "0"};
}

static ttn_status pack_some(const char *const *file, int n, const ttn_pack_rules *rules, ttn_pack_facts *facts,
                            ttn_error *err)
{
    ttn_pack_facts unused;
    return ttn_pack(file, n, in_folder("packed.h5"), rules, NULL, NULL, facts ? facts : &unused, err);
}

static ttn_store *open_packed(void)
{
    ttn_store *s;
    ttn_error err = {0};
    assert_ok(ttn_store_open(in_folder("packed.h5"), 0, &s, &err), &err);
    return s;
}

static ttn_store *pack_and_open(const char *const *file, int n, const ttn_pack_rules *rules, ttn_pack_facts *facts)
{
    ttn_error err = {0};
    assert_ok(pack_some(file, n, rules, facts, &err), &err);
    return open_packed();
}

/* Id, header and letters of sequence i; letters without a loss are small. */
static void check_record(ttn_store *s, int64_t i, const char *id, const char *header, const char *letters)
{
    const ttn_sequences q = ttn_store_sequences(s);
    const char *text;
    int64_t n;
    uint8_t token[1000], excluded[1000] = {0};
    char letter[TTN_MAX_TOKENS];
    ttn_error err = {0};
    assert_ok(ttn_store_id(s, i, &text, &n, &err), &err);
    assert_int_equal(n, strlen(id));
    assert_memory_equal(text, id, (size_t)n);
    assert_ok(ttn_store_header(s, i, &text, &n, &err), &err);
    assert_int_equal(n, strlen(header));
    assert_memory_equal(text, header, (size_t)n);
    ttn_alphabet_letters(q.alphabet, letter);
    n = q.length(q.self, i);
    assert_int_equal(n, strlen(letters));
    assert_ok(q.tokens(q.self, i, 0, n, token, &err), &err);
    if (q.excluded) assert_ok(q.excluded(q.self, i, 0, n, excluded, &err), &err);
    for (int64_t k = 0; k < n; k++)
        assert_int_equal(letter[token[k]] + (excluded[k] ? 'a' - 'A' : 0), letters[k]);
}

/* The bytes of an export; the caller's to free. */
static char *export_text(ttn_store *s, size_t *n)
{
    ttn_error err = {0};
    assert_ok(ttn_export_fasta_file(s, in_folder("exported.fa"), NULL, &err), &err);
    return get_file(in_folder("exported.fa"), n);
}

/* ---- the tests ---- */

static void what_the_reader_gives_is_what_is_stored(void **state)
{
    (void)state;
    const char *const file[] = {put_text("a.fa", ">a first one\nMKV\nLA*\n>b\n\nGG AA\n"),
                                put_gzip("b.fa.gz", ">c third\r\nWWJ\r\n>\nMK\n")};
    const ttn_pack_rules rules = usual();
    ttn_pack_facts facts;
    ttn_store *s = pack_and_open(file, 2, &rules, &facts);
    const ttn_store_facts *f = ttn_store_describe(s);
    assert_int_equal(f->sequences, 4);
    assert_int_equal(f->residues, 5 + 4 + 3 + 2);
    check_record(s, 0, "a", "a first one", "MKVLA");
    check_record(s, 1, "b", "b", "GGAA");
    check_record(s, 2, "c", "c third", "WWX");
    char id[6000];
    snprintf(id, sizeof id, "%s:3", file[1]);
    check_record(s, 3, id, "", "MK");
    assert_int_equal(f->n_source, 2);
    assert_string_equal(f->source[0].name, file[0]);
    assert_int_equal(f->source[0].n, 2);
    assert_int_equal(f->source[0].bytes, f->source[0].unpacked);
    assert_int_equal(f->source[1].first, 2);
    assert_int_equal(f->source[1].unpacked, strlen(">c third\r\nWWJ\r\n>\nMK\n"));
    char hash[TTN_HASH_TEXT];
    ttn_hash_print(ttn_hash128_of(">c third\r\nWWJ\r\n>\nMK\n", strlen(">c third\r\nWWJ\r\n>\nMK\n")), hash);
    assert_string_equal(f->source[1].hash, hash);
    assert_true(f->has_clusters && f->clusters == 4 && facts.cluster.n == 4 && facts.dropped == 0);
    ttn_store_close(s);
}

/* The sample, packed, exported and packed again: the same store but for the name of its file. */
static void what_was_exported_is_packed_to_the_same(void **state)
{
    (void)state;
    const char *const sample[] = {"data/sample/proteins-500.fasta.gz"};
    const ttn_pack_rules rules = usual();
    ttn_store *s = pack_and_open(sample, 1, &rules, NULL);
    size_t n, n_again;
    char *text = export_text(s, &n);
    const ttn_store_facts first = *ttn_store_describe(s);
    assert_int_equal(first.residues, 245830);
    ttn_store_close(s);
    const char *const again[] = {put_bytes("again.fa", text, n)};
    s = pack_and_open(again, 1, &rules, NULL);
    const ttn_store_facts *second = ttn_store_describe(s);
    assert_true(ttn_hash_same(first.identity, second->identity));
    assert_int_equal(first.clusters, second->clusters);
    char *text_again = export_text(s, &n_again);
    assert_int_equal(n, n_again);
    assert_memory_equal(text, text_again, n);
    ttn_store_close(s);
    free(text);
    free(text_again);
}

static void lower_case_is_kept_as_excluded_where_that_is_asked_for(void **state)
{
    (void)state;
    const char *const file[] = {put_text("lower.fa", ">a\nMKvlaGG\n>b\nwwww\n")};
    ttn_pack_rules rules = usual();
    size_t n;
    for (int excludes = 0; excludes < 2; excludes++) {
        rules.fasta.lowercase = excludes ? TTN_LOWERCASE_EXCLUDE : TTN_LOWERCASE_UPPER;
        ttn_store *s = pack_and_open(file, 1, &rules, NULL);
        assert_int_equal(ttn_store_describe(s)->has_excluded, excludes);
        char *text = export_text(s, &n);
        assert_string_equal(text, excludes ? ">a\nMKvlaGG\n>b\nwwww\n" : ">a\nMKVLAGG\n>b\nWWWW\n");
        free(text);
        ttn_store_close(s);
    }
}

static void an_id_that_is_not_in_the_header_stands_before_it(void **state)
{
    (void)state;
    const char *const file[] = {put_text("ids.fa", ">sp|P1|X of man\nMKV\n>x\nMK\n>P3 y\nMKK\n")};
    ttn_pack_rules rules = usual();
    rules.fasta.id_regex = "P[0-9]|x";
    ttn_store *s = pack_and_open(file, 1, &rules, NULL);
    size_t n;
    char *text = export_text(s, &n);
    assert_string_equal(text, ">P1 sp|P1|X of man\nMKV\n>x\nMK\n>P3 y\nMKK\n");
    free(text);
    ttn_store_close(s);
}

static void equal_sequences_are_dropped_and_counted_where_that_is_asked_for(void **state)
{
    (void)state;
    const char *const file[] = {put_text("a.fa", ">a\nMKV\n>b\nmkv\n>c\nMKVV\n"),
                                put_text("b.fa", ">a\nMKV\n>e\nGG\n")};
    ttn_pack_rules rules = usual();
    ttn_pack_facts facts;
    ttn_store *s = pack_and_open(file, 2, &rules, &facts);
    assert_int_equal(ttn_store_describe(s)->sequences, 5);
    assert_int_equal(facts.dropped, 0);
    ttn_store_close(s);
    rules.drops_doubles = 1;
    s = pack_and_open(file, 2, &rules, &facts);
    const ttn_store_facts *f = ttn_store_describe(s);
    assert_int_equal(f->sequences, 3);
    assert_int_equal(facts.dropped, 2);
    assert_true(f->source[0].dropped == 1 && f->source[1].dropped == 1 && f->source[1].n == 1);
    check_record(s, 0, "a", "a", "MKV");
    check_record(s, 1, "c", "c", "MKVV");
    check_record(s, 2, "e", "e", "GG");
    ttn_store_close(s);
}

static void has_finding(const ttn_store_facts *f, ttn_store_finding wanted)
{
    for (int64_t i = 0; i < f->n_finding; i++)
        if (memcmp(&f->finding[i], &wanted, sizeof wanted) == 0) return;
    fail_msg("rule %d of file %d is not among what was found", (int)wanted.rule, (int)wanted.source);
}

/* Also in a file whose records are all as they should be, and in one of which some were left out. */
static void what_was_left_out_and_repaired_is_stored(void **state)
{
    (void)state;
    const char *const file[] = {put_text("a.fa", ">a\nMKV\n>b\nMkv\n>c\nM KVV\nj\n"), put_text("b.fa", ">d\nGG\n"),
                                put_text("c.fa", ">e\n\n>f\nG1G\n>g\nMKVVX\n")};
    ttn_pack_rules rules = usual();
    rules.fasta.skip_records = 1;
    rules.fasta.max_skipped = 1;
    ttn_pack_facts facts;
    ttn_error err = {0};
    char empty[2000] = "";
    for (int i = 0; i < 100; i++) /* so that one of them without residues is within what is accepted */
        snprintf(empty + strlen(empty), sizeof empty - strlen(empty), ">%d\nWWWWW\n", i);
    const char *const more = put_text("d.fa", empty);
    rules.fasta.max_skipped = 0.2;
    assert_fails(pack_some(file, 3, &rules, &facts, &err), TTN_EFORMAT, &err, "has no residues");
    rules.fasta.max_skipped = 1;
    size_t n;
    char *first = get_file(file[2], &n);
    char text[4000];
    snprintf(text, sizeof text, "%.*s%s", (int)n, first, empty);
    free(first);
    const char *const good[] = {file[0], file[1], put_text("e.fa", text), more};
    ttn_store *s = pack_and_open(good, 4, &rules, &facts);
    const ttn_store_facts *f = ttn_store_describe(s);
    assert_true(f->has_findings);
    assert_int_equal(f->n_finding, 5);
    has_finding(f, (ttn_store_finding){0, 17, 0, 1, 6, 2});
    has_finding(f, (ttn_store_finding){0, 39, 0, 1, 7, 1});
    has_finding(f, (ttn_store_finding){0, 40, 0, 3, 4, 2});
    has_finding(f, (ttn_store_finding){2, 27, 0, 1, 1, 1});
    has_finding(f, (ttn_store_finding){2, 49, 1, 1, 4, 2});
    assert_int_equal(f->duplicates, 1 + 199 + 1); /* b, all but one of WWWWW, and MKVVX, as c is read */
    assert_int_equal(f->source[2].skipped, 1);
    ttn_store_close(s);
    rules.drops_doubles = 1;
    s = pack_and_open(good, 4, &rules, &facts);
    assert_int_equal(ttn_store_describe(s)->duplicates, 0);
    assert_int_equal(facts.dropped, 201);
    ttn_store_close(s);
}

static void ids_that_stand_twice_are_kept_refused_or_made_to_differ(void **state)
{
    (void)state;
    const char *const file[] = {put_text("a.fa", ">x\nMKV\n>x_3\nMK\n>y\nMM\n"),
                                put_text("b.fa", ">x\nGG\n>x of b\nGGG\n>z\nAA\n")};
    ttn_pack_rules rules = usual();
    ttn_store *s = pack_and_open(file, 2, &rules, NULL);
    check_record(s, 3, "x", "x", "GG");
    ttn_store_close(s);
    rules.ids = TTN_IDS_SUFFIX;
    s = pack_and_open(file, 2, &rules, NULL);
    check_record(s, 3, "x_2", "x", "GG");
    check_record(s, 4, "x_4", "x of b", "GGG");
    check_record(s, 5, "z", "z", "AA");
    ttn_store_close(s);
    assert_int_equal(remove(in_folder("packed.h5")), 0);
    rules.ids = TTN_IDS_UNIQUE;
    ttn_error err = {0};
    assert_fails(pack_some(file, 2, &rules, NULL, &err), TTN_EFORMAT, &err,
                 "b.fa:1:1: the id 'x' is that of a record of ");
    assert_contains(err.text, "a.fa, line 1, too");
    assert_false(is_there(in_folder("packed.h5")));
}

/* ---- what fails leaves nothing ---- */

static void a_file_that_fails_anywhere_leaves_no_store(void **state)
{
    (void)state;
    static const char good[] = ">a\nMKV\n>b\nGGG\n";
    made_bytes m = made_members(good, sizeof good - 1, sizeof good - 1);
    made_bytes large = {0};
    char record[200];
    for (int i = 0; i < 20000; i++) { /* more than the reader holds at once */
        snprintf(record, sizeof record, ">r%d\nMKVLAGGMKVLAGGMKVLAGGMKVLAGGMKVLAGGMKVLAGG\n", i);
        made_append(&large, record, strlen(record));
    }
    made_bytes large_packed = made_members(large.bytes, large.n, large.n);
    large_packed.bytes[large_packed.n - 6] ^= 1; /* the checksum at its very end */
    const char *const bad[] = {
        put_text("fault.fa", ">a\nMKV\n>b\nMK5V\n"),
        put_bytes("cut.fa.gz", m.bytes, m.n - 1),
        put_bytes("sum.fa.gz", large_packed.bytes, large_packed.n),
        put_text("empty.fa", ""),
        ttn_test_folder(),
        "/missing.fa",
    };
    const char *const whole = put_text("good.fa", good);
    const ttn_pack_rules rules = usual();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *const file[] = {whole, bad[i]};
        ttn_error err = {0};
        const ttn_status status = pack_some(file, 2, &rules, NULL, &err);
        assert_true(status != TTN_OK && status != TTN_EOF);
        assert_contains(err.text, bad[i]);
        assert_false(is_there(in_folder("packed.h5")));
    }
    free(m.bytes);
    free(large.bytes);
    free(large_packed.bytes);
}

static void only_records_that_were_left_out_make_no_store(void **state)
{
    (void)state;
    const char *const file[] = {put_text("all.fa", ">a\nM5\n>b\nM6\n")};
    ttn_pack_rules rules = usual();
    rules.fasta.skip_records = 1;
    rules.fasta.max_skipped = 1;
    ttn_error err = {0};
    assert_fails(pack_some(file, 1, &rules, NULL, &err), TTN_EFORMAT, &err, "there is no sequence to be stored");
    assert_false(is_there(in_folder("packed.h5")));
}

enum { LARGE = 1000 }; /* sequences that are packed for a listener */

/* What the listener was told, and when it says stop. */
typedef struct {
    int64_t n, stop_at, bytes, sequences;
    ttn_pack_phase phase;
    int goes_on; /* never back */
} listening;

static int listen(void *ctx, const ttn_pack_progress *p)
{
    listening *l = ctx;
    l->n++;
    if (p->phase < l->phase || p->bytes < l->bytes || p->sequences < l->sequences) l->goes_on = 0;
    if (p->phase != TTN_PACK_READS && p->sequences != LARGE) l->goes_on = 0; /* all are stored */
    l->phase = p->phase;
    l->bytes = p->bytes;
    l->sequences = p->sequences;
    return l->n == l->stop_at;
}

static void progress_goes_on_and_can_be_stopped_at_every_step(void **state)
{
    (void)state;
    made_bytes large = {0};
    char record[5000];
    for (int i = 0; i < LARGE; i++) {
        int n = snprintf(record, sizeof record, ">r%d\n", i);
        for (int k = 0; k < 4000; k++)
            record[n++] = "ACDEFGHIKLMNPQRSTVWY"[ttn_rng_below(1, (uint64_t)i, (uint64_t)k, 20)];
        record[n++] = '\n';
        made_append(&large, record, (size_t)n);
    }
    const char *const file[] = {put_bytes("large.fa", large.bytes, large.n)};
    const ttn_pack_rules rules = usual();
    int64_t n = 0;
    for (int64_t stop_at = 0; stop_at <= n; stop_at++) {
        listening l = {.stop_at = stop_at, .goes_on = 1};
        const ttn_pack_listener listener = {listen, &l};
        ttn_pack_facts facts;
        ttn_error err = {0};
        const ttn_status status = ttn_pack(file, 1, in_folder("packed.h5"), &rules, &listener, NULL, &facts, &err);
        assert_true(l.goes_on);
        if (stop_at == 0) {
            assert_ok(status, &err);
            assert_true(l.n >= 5 && l.phase == TTN_PACK_CHECKS && l.sequences == LARGE);
            assert_int_equal(l.bytes, large.n);
            assert_int_equal(remove(in_folder("packed.h5")), 0);
            n = l.n;
        } else {
            assert_fails(status, TTN_ESTOPPED, &err, "nothing was written");
            assert_false(is_there(in_folder("packed.h5")));
        }
    }
    free(large.bytes);
}

static int fail_nth(int64_t nth, unsigned calls, int error)
{
    const char *const file[] = {in_folder("a.fa"), in_folder("b.fa.gz")};
    ttn_pack_rules rules = usual();
    rules.drops_doubles = 1;
    rules.ids = TTN_IDS_SUFFIX;
    rules.fasta.lowercase = TTN_LOWERCASE_EXCLUDE;
    ttn_error err = {0};
    shim_arm(calls, nth, SHIM_FAIL, error, 0);
    ttn_status status = pack_some(file, 2, &rules, NULL, &err);
    const int hit = shim_was_hit();
    shim_disarm();
    if (status != TTN_OK) assert_true(strlen(err.text) > 10);
    if (status != TTN_OK) assert_true(status == TTN_EIO || status == TTN_ENOMEM);
    return hit;
}

static void every_call_that_fails_leaves_the_previous_store(void **state)
{
    (void)state;
    put_text("a.fa", ">x\nMKV\n>y\nMKVLAGGMKVLAGG\n>x\nGG\n");
    put_gzip("b.fa.gz", ">c third\nWWJ\n>d\nMKV\n");
    assert_int_equal(fail_nth(1000000, SHIM_ALLOC, ENOMEM), 0);
    static const struct {
        unsigned calls;
        int error;
    } cases[] = {{SHIM_FILES, ENOSPC}, {SHIM_STREAM, EIO}, {SHIM_ALLOC, ENOMEM}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t nth = 1;
        while (fail_nth(nth, cases[i].calls, cases[i].error)) {
            ttn_store *s = open_packed();
            assert_int_equal(ttn_store_describe(s)->sequences, 4);
            ttn_store_close(s);
            nth++;
        }
        assert_true(nth > 3);
    }
}

/* ---- what an export refuses ---- */

static int stop_at_once(void)
{
    return 1;
}

static void an_export_that_is_stopped_leaves_no_file(void **state)
{
    (void)state;
    const char *const file[] = {put_text("a.fa", ">a\nMKV\n")};
    const ttn_pack_rules rules = usual();
    ttn_error err = {0};
    ttn_store *s = pack_and_open(file, 1, &rules, NULL);
    assert_fails(ttn_export_fasta_file(s, in_folder("stopped.fa"), stop_at_once, &err), TTN_ESTOPPED, &err, "stopped");
    ttn_store_close(s);
    DIR *d = opendir(ttn_test_folder());
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        assert_null(strstr(e->d_name, "stopped.fa"));
    closedir(d);
}

/* A store that somebody else wrote, whose only record has this id and header. */
static ttn_status export_forged(const char *id, const char *header, ttn_error *err)
{
    ttn_store_writer *w;
    ttn_store *s;
    const ttn_alphabet *a = ttn_alphabet_find("esm");
    const ttn_fasta_record r = {.id = id, .header = header, .token = a->residue, .n = 5};
    const ttn_store_source source = {.name = "a.fa", .link = "", .hash = "00"};
    assert_ok(ttn_store_create(in_folder("forged.h5"), &(ttn_store_kind){.alphabet = a, .titin_version = "0"}, &w, err),
              err);
    assert_ok(ttn_store_add(w, &r, NULL, err), err);
    assert_ok(ttn_store_end_source(w, &source, err), err);
    assert_ok(ttn_store_commit(w, err), err);
    ttn_store_destroy(w);
    assert_ok(ttn_store_open(in_folder("forged.h5"), 0, &s, err), err);
    char name[64];
    const ttn_sequences q = ttn_store_sequences(s);
    q.name(q.self, 0, name, sizeof name);
    for (const char *c = name; *c; c++)
        assert_true((unsigned char)*c >= ' ');
    ttn_status status = ttn_export_fasta_file(s, in_folder("forged.fa"), NULL, err);
    ttn_store_close(s);
    return status;
}

static void what_would_break_the_fasta_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *id, *header, *words;
    } forged[] = {
        {"a", "a x\n>b\nMKV", "the header of sequence 1 holds byte 0x0a"},
        {"a\n>b\nMKV", "x", "the id of sequence 1 holds byte 0x0a"},
        {"a\rb", "a\rb", "0x0d"},
        {"\x1b[31ma", "a", "the id of sequence 1 holds byte 0x1b"},
        {"a", "a \x7f", "0x7f"},
        {"a",
         "a \xc2\x9b"
         "31m",
         "0x9b"},
    };
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        ttn_error err = {0};
        assert_fails(export_forged(forged[i].id, forged[i].header, &err), TTN_EFORMAT, &err, forged[i].words);
        assert_contains(err.text, "forged.h5: ");
    }
    ttn_error err = {0};
    assert_ok(export_forged("a", "a\tx\001b > y \xc3\xa9\xc2\xa0", &err), &err);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_reader_gives_is_what_is_stored),
        cmocka_unit_test(what_was_exported_is_packed_to_the_same),
        cmocka_unit_test(lower_case_is_kept_as_excluded_where_that_is_asked_for),
        cmocka_unit_test(an_id_that_is_not_in_the_header_stands_before_it),
        cmocka_unit_test(what_was_left_out_and_repaired_is_stored),
        cmocka_unit_test(equal_sequences_are_dropped_and_counted_where_that_is_asked_for),
        cmocka_unit_test(ids_that_stand_twice_are_kept_refused_or_made_to_differ),
        cmocka_unit_test(a_file_that_fails_anywhere_leaves_no_store),
        cmocka_unit_test(only_records_that_were_left_out_make_no_store),
        cmocka_unit_test(progress_goes_on_and_can_be_stopped_at_every_step),
        cmocka_unit_test(every_call_that_fails_leaves_the_previous_store),
        cmocka_unit_test(an_export_that_is_stopped_leaves_no_file),
        cmocka_unit_test(what_would_break_the_fasta_is_refused),
    };
    return ttn_test_run(tests);
}
