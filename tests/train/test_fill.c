/* Proteins with places to be filled in: how they are read, and what a model answers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/plan.h"
#include "core/memory.h"
#include "core/start.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/harness/tiny.h"
#include "train/fill.h"

enum { MOST_THREADS = 3, SEED = 11, MOST_LENGTH = 2000 };

/* ---- reading ---- */

/* All sequences of a text, read in pieces of at most `most` bytes, as "NAME:TOKENS" with '_' for masks and ';' behind each. */
static ttn_status read_all(const char *text, size_t most, char *ret, size_t room, ttn_error *err)
{
    const ttn_alphabet *a = ttn_alphabet_find("esm");
    ttn_source *source;
    ttn_masked_reader *r;
    const ttn_masked *s;
    size_t n = 0;
    assert_ok(ttn_source_open_memory("f", text, strlen(text), most, NULL, &source, err), err);
    assert_ok(ttn_masked_open(source, a, &r, err), err);
    ttn_status status;
    while ((status = ttn_masked_next(r, &s, err)) == TTN_OK) {
        n += (size_t)snprintf(ret + n, room - n, "%s:", s->name);
        int64_t masks = 0;
        for (int64_t i = 0; i < s->n; i++) {
            const char letter = ttn_alphabet_letter(a, s->token[i]);
            masks += s->token[i] == a->mask;
            n += (size_t)snprintf(ret + n, room - n, "%c", letter ? letter : '_');
        }
        assert_int_equal(masks, s->n_mask);
        n += (size_t)snprintf(ret + n, room - n, ";");
    }
    ret[n] = 0;
    const ttn_masked *again;
    assert_int_equal(ttn_masked_next(r, &again, NULL), status); /* and so on */
    ttn_masked_close(r);
    return status;
}

static void texts_and_files_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"MK_T", ":MK_T;"},
        {"mk<mask>t", ":MK_T;"},
        {"<MASK>", ":_;"},
        {"_<mask>_", ":___;"},
        {" M K\t_\r\nT \n", ":MK_T;"},
        {"MK*", ":MK;"},
        {"MK* \n", ":MK;"},
        {">a\nMK_\n>b more words\n_\n_\n", "a:MK_;b:__;"},
        {">a\r\nMK_\r\n>b\r\n_\r\n", "a:MK_;b:_;"},
        {"MK_\n>b\n_A", ":MK_;b:_A;"},
        {"\n\n>b\n_A", "b:_A;"},
        {">\nA_", "f:1:A_;"}, /* a name that says where it stands */
        {"\n>\t\nA_\n> \r\nC_", "f:2:A_;f:4:C_;"},
        {">\tx y\nA_", "x:A_;"},
        {">x\001y\nA_", "x:A_;"},
        {">\x1b[31mx\x07\xc2\x9b\xe9\nA_", "\xef\xbf\xbd[31mx\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd:A_;"},
        {"", ""},
        {" \n", ""},
        {"XBZUO", ":XBZUO;"},
        {"J", ":X;"}, /* the vocabulary has no J */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t most = 0; most < 3; most++) {
            char got[200];
            ttn_error err = {0};
            assert_int_equal(read_all(cases[i].text, most, got, sizeof got, &err), TTN_EOF);
            assert_string_equal(got, cases[i].expected);
        }
}

static void what_is_no_residue_is_told_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"MK1_", "f:1:3: position 3: '1' stands for no residue; write letters, and _ or <mask>"},
        {"M-K", "f:1:2: position 2: '-'"},
        {"M\xC3\xA4", "f:1:2: position 2: byte 0xC3"},
        {"M\x01", "f:1:2: position 2: byte 0x01"},
        {"MK<msk>", "f:1:3: position 3: '<' begins no <mask>"},
        {"MK<mas", "f:1:3: position 3: '<' begins no <mask>"},
        {"M*K", "f:1:3: position 2: a '*' ends a protein"},
        {"M**", "f:1:3: position 2: a '*' ends a protein"},
        {">a\nMK\nA_\nC?\n", "f:4:2: position 6: '?'"},
        {">a\nMK\n>b\nA?\n", "f:4:2: position 2: '?'"},
        {">a\n>b\nA\n", "f:2: the sequence 'a' has no residues"},
        {"A>\n", "f:1:2: position 2: '>'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t most = 0; most < 3; most++) {
            char got[200];
            ttn_error err = {0};
            assert_fails(read_all(cases[i].text, most, got, sizeof got, &err), TTN_EFORMAT, &err, cases[i].sentence);
        }
}

static void letters_that_the_vocabulary_lacks_are_counted(void **state)
{
    (void)state;
    static const char text[] = ">a\nMK_jVJ*\n>b\nMK_XBZUO\n";
    ttn_error err = {0};
    ttn_source *source;
    ttn_masked_reader *r;
    const ttn_masked *s;
    assert_ok(ttn_source_open_memory("f", text, sizeof text - 1, 0, NULL, &source, &err), &err);
    assert_ok(ttn_masked_open(source, ttn_alphabet_find("esm"), &r, &err), &err);
    assert_ok(ttn_masked_next(r, &s, &err), &err);
    assert_int_equal(s->n_replaced, 2);
    assert_int_equal(s->replaced, 'J');
    assert_int_equal(s->replaced_position, 4);
    assert_ok(ttn_masked_next(r, &s, &err), &err);
    assert_int_equal(s->n_replaced, 0);
    ttn_masked_close(r);
}

/* What is no FASTA is called by its name, and not by its first byte. */
static void files_of_other_kinds_are_named(void **state)
{
    (void)state;
    char got[200];
    for (size_t most = 0; most < 4; most++) { /* also when they come through a slow pipe */
        ttn_error err = {0};
        assert_fails(read_all("PAR1\x15\x04", most, got, sizeof got, &err), TTN_EFORMAT, &err, "f:1:1: is Parquet");
    }
}

static int n_read;
static ttn_status (*read_memory)(ttn_source *s, void *to, size_t room, size_t *ret, ttn_error *err);

static ttn_status count_reads(ttn_source *s, void *to, size_t room, size_t *ret, ttn_error *err)
{
    n_read++;
    return read_memory(s, to, room, ret, err);
}

/* Whoever asks through a pipe waits for an answer before the next question. */
static void a_sequence_is_given_when_the_next_header_was_read(void **state)
{
    (void)state;
    static const char text[] = ">a\nA_\n>b\nC_\n";
    ttn_error err = {0};
    ttn_source *source;
    ttn_masked_reader *r;
    const ttn_masked *s;
    assert_ok(ttn_source_open_memory("f", text, sizeof text - 1, 1, NULL, &source, &err), &err);
    read_memory = source->read;
    source->read = count_reads;
    n_read = 0;
    assert_ok(ttn_masked_open(source, ttn_alphabet_find("esm"), &r, &err), &err);
    assert_ok(ttn_masked_next(r, &s, &err), &err);
    assert_int_equal(s->n, 2);
    assert_in_range(n_read, 1, strlen(">a\nA_\n>b\n"));
    ttn_masked_close(r);
}

/* Long ids differ at their ends. */
static void a_long_name_is_whole(void **state)
{
    (void)state;
    char text[1200], got[1200], expected[1200];
    snprintf(text, sizeof text, ">%0600d\nA_", 7);
    snprintf(expected, sizeof expected, "%0600d:A_;", 7);
    ttn_error err = {0};
    assert_int_equal(read_all(text, 0, got, sizeof got, &err), TTN_EOF);
    assert_string_equal(got, expected);
}

/* A sequence of more pieces than one, and masks across their borders. */
static void long_sequences_are_whole(void **state)
{
    (void)state;
    enum { N = 300000 };
    char *text = malloc(8 * N + 8), *at = text;
    assert_non_null(text);
    for (int i = 0; i < N; i++)
        at += sprintf(at, i % 7 == 3 ? "<mask>" : i % 60 == 5 ? "A\n" : "C");
    ttn_error err = {0};
    ttn_source *source;
    ttn_masked_reader *r;
    const ttn_masked *s;
    const ttn_alphabet *a = ttn_alphabet_find("esm");
    assert_ok(ttn_source_open_memory("f", text, (size_t)(at - text), 0, NULL, &source, &err), &err);
    assert_ok(ttn_masked_open(source, a, &r, &err), &err);
    assert_ok(ttn_masked_next(r, &s, &err), &err);
    assert_int_equal(s->n, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(s->token[i], i % 7 == 3 ? a->mask : a->map[i % 60 == 5 ? 'A' : 'C']);
    ttn_masked_close(r);
    free(text);
}

/* ---- answers ---- */

static ttn_filler *filler_of(const tiny *t, int n_thread)
{
    ttn_error err = {0};
    ttn_filler *f;
    const ttn_filler_options o = {
        .model = t->model, .device = t->device, .memory = (size_t)1 << 30, .n_thread = n_thread};
    assert_ok(ttn_filler_create(&o, &f, &err), &err);
    return f;
}

/* Letters of a made-up protein, every seventh hidden. */
static ttn_masked protein(const ttn_alphabet *a, int64_t n, uint8_t *token)
{
    ttn_masked s = {.name = "", .token = token, .n = n};
    for (int64_t i = 0; i < n; i++) {
        token[i] = i % 7 == 3 ? a->mask : a->residue[(i * i + i / 5) % 20];
        s.n_mask += token[i] == a->mask;
    }
    return s;
}

/* Logits at row `row` of the sequence between its specials, from a plan with room for more. */
static void ask_by_hand(const tiny *t, const ttn_masked *s, int64_t n_picks, const int64_t *pick, real *ret)
{
    ttn_error err = {0};
    const ttn_alphabet *a = t->model->alphabet;
    const ttn_extent capacity = {5 * TTN_GRAPH_TILE, 3, 2 * TTN_GRAPH_TILE};
    ttn_graph *g = ttn_graph_create(capacity);
    ttn_model m;
    ttn_plan *p;
    uint8_t *token = ttn_alloc_array(capacity.rows, 1);
    real *logits = ttn_alloc_array(capacity.picks * a->n, sizeof *logits);
    assert_true(token && logits);
    token[0] = a->cls;
    memcpy(token + 1, s->token, (size_t)s->n);
    token[s->n + 1] = a->eos;
    ttn_model_build(g, t->model->model, TTN_MODEL_LOGITS, &m);
    assert_ok(ttn_plan_create(g, &(ttn_plan_options){.keep = &m.logits, .n_keep = 1, .n_thread = 1}, &p, &err), &err);
    assert_ok(ttn_plan_attach(p, t->model->weights, &err), &err);
    assert_ok(ttn_plan_bind(p, "tokens", token, &err), &err);
    assert_ok(ttn_plan_bind(p, "index", pick, &err), &err);
    const ttn_span span = {0, s->n + 2};
    assert_ok(ttn_plan_run(p, &(ttn_feed){.used = {s->n + 2, 1, n_picks}, .span = &span}, NULL, &err), &err);
    assert_ok(ttn_plan_read(p, m.logits, logits, &err), &err);
    memcpy(ret, logits, (size_t)(n_picks * a->n) * sizeof *ret);
    ttn_free(token);
    ttn_free(logits);
    ttn_plan_destroy(p);
    ttn_graph_destroy(g);
}

static void guesses_are_the_models_probabilities_at_the_hidden_places(void **state)
{
    (void)state;
    static const int64_t lengths[] = {4, 478, 479, 1300};
    tiny t;
    tiny_open(&t, in_folder("guesses"), SEED, NULL);
    const ttn_alphabet *a = t.model->alphabet;
    ttn_filler *f = filler_of(&t, 2);
    uint8_t token[MOST_LENGTH];
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        ttn_error err = {0};
        const ttn_masked s = protein(a, lengths[l], token);
        int64_t pick[MOST_LENGTH], n_picks = 0;
        for (int64_t i = 0; i < s.n; i++)
            if (token[i] == a->mask) pick[n_picks++] = i + 1; /* <cls> stands before it */
        real *logits = ttn_alloc_array(n_picks * a->n, sizeof *logits);
        assert_non_null(logits);
        ask_by_hand(&t, &s, n_picks, pick, logits);
        assert_ok(ttn_filler_run(f, &s, &err), &err);
        for (int64_t k = 0; k < n_picks; k++) {
            ttn_guess guess[30];
            int64_t position;
            double sum = 0, specials = 0, listed = 0;
            const int n = ttn_filler_guesses(f, k, 30, guess, &position);
            assert_int_equal(n, 25); /* the letters of ESM's vocabulary */
            assert_int_equal(position, pick[k]);
            for (int v = 0; v < a->n; v++)
                sum += exp((double)logits[k * a->n + v]);
            for (int v = 0; v < a->n; v++)
                if (!ttn_alphabet_letter(a, v)) specials += exp((double)logits[k * a->n + v]) / sum;
            for (int i = 0; i < n; i++) {
                const double wanted = exp((double)logits[k * a->n + a->map[(int)guess[i].letter]]) / sum;
                assert_at_most(fabs(guess[i].p - wanted), 1e-14, "a probability"); /* of the same bits of logits */
                assert_true(i == 0 || guess[i].p <= guess[i - 1].p);
                listed += guess[i].p;
            }
            assert_at_most(fabs(listed + specials - 1), 1e-12, "the sum of all probabilities");
        }
        ttn_free(logits);
    }
    ttn_filler_destroy(f);
    tiny_close(&t);
}

static void fewer_guesses_are_the_first_ones(void **state)
{
    (void)state;
    tiny t;
    ttn_error err = {0};
    tiny_open(&t, in_folder("fewer"), SEED, NULL);
    ttn_filler *f = filler_of(&t, 1);
    uint8_t token[20];
    const ttn_masked s = protein(t.model->alphabet, 20, token);
    ttn_guess all[30], few[3];
    int64_t position;
    assert_ok(ttn_filler_run(f, &s, &err), &err);
    ttn_filler_guesses(f, 1, 30, all, &position);
    assert_int_equal(position, 11);
    assert_int_equal(ttn_filler_guesses(f, 1, 3, few, &position), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(few[i].letter, all[i].letter);
        assert_true(few[i].p == all[i].p);
    }
    ttn_filler_destroy(f);
    tiny_close(&t);
}

/* A sequence has one answer, whatever was asked before it and by how many threads. */
static void answers_depend_on_the_sequence_alone(void **state)
{
    (void)state;
    static const int64_t lengths[] = {700, 30, 1200, 30, 700};
    tiny t;
    tiny_open(&t, in_folder("alone"), SEED, NULL);
    ttn_filler *one = filler_of(&t, 1), *three = filler_of(&t, 3);
    uint8_t token[MOST_LENGTH];
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        ttn_error err = {0};
        const ttn_masked s = protein(t.model->alphabet, lengths[l], token);
        ttn_filler *fresh = filler_of(&t, 2);
        assert_ok(ttn_filler_run(one, &s, &err), &err);
        assert_ok(ttn_filler_run(three, &s, &err), &err);
        assert_ok(ttn_filler_run(fresh, &s, &err), &err);
        for (int64_t k = 0; k < s.n_mask; k++) {
            ttn_guess a[5], b[5], c[5];
            int64_t at[3];
            ttn_filler_guesses(one, k, 5, a, &at[0]);
            ttn_filler_guesses(three, k, 5, b, &at[1]);
            ttn_filler_guesses(fresh, k, 5, c, &at[2]);
            for (int i = 0; i < 5; i++) {
                assert_true(a[i].p == b[i].p && a[i].p == c[i].p);
                assert_true(a[i].letter == b[i].letter && a[i].letter == c[i].letter);
            }
        }
        ttn_filler_destroy(fresh);
    }
    ttn_filler_destroy(one);
    ttn_filler_destroy(three);
    tiny_close(&t);
}

static void positions_are_counted_without_specials(void **state)
{
    (void)state;
    static const char *const frames[] = {"data.frame=ends", "data.frame=none", "data.frame=always"};
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        const char *setting[] = {frames[i], NULL};
        tiny t;
        ttn_error err = {0};
        tiny_open(&t, in_folder("frames"), SEED, setting);
        ttn_filler *f = filler_of(&t, 1);
        const ttn_alphabet *a = t.model->alphabet;
        const uint8_t token[] = {a->mask, a->map['A'], a->map['C'], a->mask};
        ttn_guess guess[2];
        int64_t position;
        assert_ok(ttn_filler_run(f, &(ttn_masked){.name = "", .token = token, .n = 4, .n_mask = 2}, &err), &err);
        ttn_filler_guesses(f, 0, 2, guess, &position);
        assert_int_equal(position, 1);
        ttn_filler_guesses(f, 1, 2, guess, &position);
        assert_int_equal(position, 4);
        ttn_filler_destroy(f);
        tiny_close(&t);
    }
}

/* ---- what cannot be asked ---- */

static void what_cannot_be_filled_in_is_refused(void **state)
{
    (void)state;
    tiny t;
    ttn_error err = {0};
    static const char *const learned[] = {"model.positions=learned", "model.max_positions=20", NULL};
    tiny_open(&t, in_folder("refused"), SEED, learned);
    ttn_filler *f = filler_of(&t, 1);
    uint8_t token[MOST_LENGTH];
    ttn_masked s = protein(t.model->alphabet, 18, token);
    assert_ok(ttn_filler_run(f, &s, &err), &err); /* 20 rows with its specials */
    s = protein(t.model->alphabet, 19, token);
    assert_fails(ttn_filler_run(f, &s, &err), TTN_EINVAL, &err,
                 "table of positions (model.max_positions) has 20 of them, and a sequence reaches position 20");
    err = (ttn_error){0};
    token[0] = t.model->alphabet->residue[0];
    assert_fails(ttn_filler_run(f, &(ttn_masked){.name = "", .token = token, .n = 1}, &err), TTN_EINVAL, &err,
                 "there is nothing to fill in: write _ or <mask>");
    ttn_filler_destroy(f);
    tiny_close(&t);

    static const char *const causal[] = {"train.objective=clm", "model.token_dropout=no", NULL};
    err = (ttn_error){0};
    tiny_open(&t, in_folder("causal"), SEED, causal);
    const ttn_filler_options o = {.model = t.model, .device = t.device, .memory = 1 << 20, .n_thread = 1};
    assert_fails(ttn_filler_create(&o, &f, &err), TTN_EINVAL, &err, "predicts the next residue from those before it");
    assert_null(f);
    tiny_close(&t);
}

static void too_little_memory_is_told(void **state)
{
    (void)state;
    tiny t;
    ttn_error err = {0};
    tiny_open(&t, in_folder("memory"), SEED, NULL);
    const ttn_filler_options o = {.model = t.model, .device = t.device, .memory = 100000, .n_thread = 1};
    ttn_filler *f;
    uint8_t token[MOST_LENGTH];
    const ttn_masked s = protein(t.model->alphabet, MOST_LENGTH, token);
    assert_ok(ttn_filler_create(&o, &f, &err), &err);
    assert_fails(ttn_filler_run(f, &s, &err), TTN_ENOMEM, &err, "a sequence of 2000 residues does not fit into memory");
    ttn_filler_destroy(f);
    tiny_close(&t);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    ttn_test_threads(MOST_THREADS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_and_files_are_read_as_people_write_them),
        cmocka_unit_test(what_is_no_residue_is_told_with_its_place),
        cmocka_unit_test(letters_that_the_vocabulary_lacks_are_counted),
        cmocka_unit_test(files_of_other_kinds_are_named),
        cmocka_unit_test(a_sequence_is_given_when_the_next_header_was_read),
        cmocka_unit_test(a_long_name_is_whole),
        cmocka_unit_test(long_sequences_are_whole),
        cmocka_unit_test(guesses_are_the_models_probabilities_at_the_hidden_places),
        cmocka_unit_test(fewer_guesses_are_the_first_ones),
        cmocka_unit_test(answers_depend_on_the_sequence_alone),
        cmocka_unit_test(positions_are_counted_without_specials),
        cmocka_unit_test(what_cannot_be_filled_in_is_refused),
        cmocka_unit_test(too_little_memory_is_told),
    };
    return ttn_test_run(tests);
}
