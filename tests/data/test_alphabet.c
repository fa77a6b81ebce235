#include <string.h>
#include "data/alphabet.h"
#include "tests/harness/test.h"

static const char residues[] = "ACDEFGHIKLMNPQRSTVWY";

/* What is written out beside the list of tokens is what the list makes. */
static void maps_and_specials_are_those_of_the_tokens(void **state)
{
    (void)state;
    for (const char *const *name = ttn_alphabet_names; *name; name++) {
        const ttn_alphabet *a = ttn_alphabet_find(*name);
        assert_non_null(a);
        assert_string_equal(a->name, *name);
        ttn_alphabet made;
        ttn_error err = {0};
        assert_ok(ttn_alphabet_make(*name, a->token, a->n, &made, &err), &err);
        assert_same_bits(a->map, made.map, sizeof made.map);
        assert_same_bits(a->residue, made.residue, sizeof made.residue);
        assert_int_equal(a->cls, made.cls);
        assert_int_equal(a->pad, made.pad);
        assert_int_equal(a->eos, made.eos);
        assert_int_equal(a->unk, made.unk);
        assert_int_equal(a->mask, made.mask);
    }
    assert_null(ttn_alphabet_find("ESM"));
}

/* Against numbers from the published models. */
static void tokens_are_the_published_ones(void **state)
{
    (void)state;
    const ttn_alphabet *esm = ttn_alphabet_find("esm");
    assert_int_equal(esm->n, 33);
    static const uint8_t acdef[] = {5, 23, 13, 9, 18};
    for (int i = 0; i < 5; i++)
        assert_int_equal(esm->map[(unsigned char)"ACDEF"[i]], acdef[i]);
    assert_int_equal(esm->cls, 0);
    assert_int_equal(esm->eos, 2);
    assert_int_equal(esm->mask, 32);
    const ttn_alphabet *bert = ttn_alphabet_find("bert");
    assert_int_equal(bert->n, 30);
    assert_int_equal(bert->map['L'], 5);
    assert_int_equal(bert->map['O'], 29);
    assert_int_equal(ttn_alphabet_find("amplify")->n, 27);
}

static int class_of(int c)
{
    if (c >= 'a' && c <= 'z') return TTN_BYTE_LOWER;
    if (c == '\n' || c == '\r') return TTN_BYTE_LINE;
    if (c == ' ' || c == '\t') return TTN_BYTE_SPACE;
    if (c == '-' || c == '.' || c == '~') return TTN_BYTE_GAP;
    if (c == '*') return TTN_BYTE_STOP;
    if (c >= '0' && c <= '9') return TTN_BYTE_DIGIT;
    return TTN_BYTE_ILLEGAL;
}

static void every_byte_is_a_token_or_of_one_class(void **state)
{
    (void)state;
    for (const char *const *name = ttn_alphabet_names; *name; name++) {
        const ttn_alphabet *a = ttn_alphabet_find(*name);
        for (int c = 0; c < 256; c++) {
            if (c >= 'A' && c <= 'Z')
                assert_true(a->map[c] < a->n);
            else
                assert_int_equal(a->map[c], class_of(c));
        }
    }
}

static void letters_that_are_missing_are_x_or_unknown(void **state)
{
    (void)state;
    const ttn_alphabet *esm = ttn_alphabet_find("esm");
    assert_int_equal(esm->map['J'], esm->map['X']);
    assert_false(ttn_alphabet_has_letter(esm, 'J'));
    assert_true(ttn_alphabet_has_letter(esm, 'U'));
    const ttn_alphabet *amplify = ttn_alphabet_find("amplify");
    assert_int_equal(amplify->map['X'], amplify->unk);
    assert_int_equal(amplify->map['J'], amplify->unk);
    assert_false(ttn_alphabet_has_letter(amplify, 'X'));
}

static void residues_are_twenty_in_order(void **state)
{
    (void)state;
    for (const char *const *name = ttn_alphabet_names; *name; name++) {
        const ttn_alphabet *a = ttn_alphabet_find(*name);
        int n = 0;
        for (int t = -1; t <= a->n; t++)
            n += ttn_alphabet_is_residue(a, t);
        assert_int_equal(n, 20);
        for (int i = 0; i < 20; i++) {
            assert_true(ttn_alphabet_is_residue(a, a->residue[i]));
            assert_int_equal(ttn_alphabet_letter(a, a->residue[i]), residues[i]);
        }
        assert_int_equal(ttn_alphabet_letter(a, a->mask), 0);
    }
}

static void a_vocabulary_that_cannot_be_one_is_refused(void **state)
{
    (void)state;
    const char *token[] = {"<cls>", "<pad>", "<eos>", "<unk>", "<mask>", "A", "C", "D", "E", "F", "G", "H", "I",
                           "K",     "L",     "M",     "N",     "P",      "Q", "R", "S", "T", "V", "W", "Y", "B"};
    const int n = sizeof token / sizeof *token;
    ttn_alphabet a;
    ttn_error err = {0};
    assert_ok(ttn_alphabet_make("it", token, n, &a, &err), &err);
    assert_fails(ttn_alphabet_make("it", token, n - 2, &a, &err), TTN_EFORMAT, &err, "no token 'Y'");
    token[n - 1] = "A";
    err = (ttn_error){0};
    assert_fails(ttn_alphabet_make("it", token, n, &a, &err), TTN_EFORMAT, &err, "tokens 5 and 25");
    token[n - 1] = "B";
    token[3] = "what";
    err = (ttn_error){0};
    assert_fails(ttn_alphabet_make("it", token, n, &a, &err), TTN_EFORMAT, &err, "neither '<unk>'");
    err = (ttn_error){0};
    assert_fails(ttn_alphabet_make("it", token, TTN_MAX_TOKENS + 1, &a, &err), TTN_EFORMAT, &err, "1 to 128");
}

static void a_vocabulary_is_read_from_a_text(void **state)
{
    (void)state;
    static ttn_own_alphabet own;
    ttn_error err = {0};
    assert_ok(ttn_alphabet_read(" [PAD] [UNK]\n[CLS] [SEP]\t[MASK] L A G V E S I K R D T P N Q F Y M H C W X U B Z O ",
                                &own, &err),
              &err);
    assert_string_equal(own.alphabet.name, "own");
    assert_true(ttn_alphabet_same(&own.alphabet, ttn_alphabet_find("bert")));
    assert_false(ttn_alphabet_same(&own.alphabet, ttn_alphabet_find("esm")));
    assert_same_bits(own.alphabet.map, ttn_alphabet_find("bert")->map, sizeof own.alphabet.map);
    assert_ok(ttn_alphabet_read("[PAD] [UNK] A L G V E S I K R D T P N Q F Y M H C W", &own, &err), &err);
    assert_true(own.alphabet.map['A'] == 2 && own.alphabet.n == 22 && own.alphabet.mask == TTN_NO_TOKEN);

    char many[4 * TTN_MAX_TOKENS + 8] = "";
    for (int t = 0; t <= TTN_MAX_TOKENS; t++)
        strcat(many, "x ");
    assert_fails(ttn_alphabet_read(many, &own, &err), TTN_EFORMAT, &err, "data.tokens: a vocabulary of 129 tokens");
    err = (ttn_error){0};
    assert_fails(ttn_alphabet_read("", &own, &err), TTN_EFORMAT, &err, "a vocabulary of 0 tokens");
    err = (ttn_error){0};
    assert_fails(ttn_alphabet_read("<unk> A A", &own, &err), TTN_EFORMAT, &err,
                 "tokens 1 and 2 of the vocabulary are both 'A'");
    static char large[TTN_OWN_TEXT + 1];
    memset(large, 'x', TTN_OWN_TEXT);
    err = (ttn_error){0};
    assert_fails(ttn_alphabet_read(large, &own, &err), TTN_EFORMAT, &err, "4096 bytes, at most 4095");
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_and_specials_are_those_of_the_tokens),
        cmocka_unit_test(tokens_are_the_published_ones),
        cmocka_unit_test(every_byte_is_a_token_or_of_one_class),
        cmocka_unit_test(letters_that_are_missing_are_x_or_unknown),
        cmocka_unit_test(residues_are_twenty_in_order),
        cmocka_unit_test(a_vocabulary_that_cannot_be_one_is_refused),
        cmocka_unit_test(a_vocabulary_is_read_from_a_text),
    };
    return ttn_test_run(tests);
}
