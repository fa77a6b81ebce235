#include <string.h>
#include "data/alphabet.h"

/* ---- bytes: what is the same in every vocabulary stands here once ---- */

#define BAD    TTN_BYTE_ILLEGAL
#define BAD_4  BAD, BAD, BAD, BAD
#define BAD_16 BAD_4, BAD_4, BAD_4, BAD_4
#define BLANK  TTN_BYTE_SPACE
#define LINE   TTN_BYTE_LINE
#define GAP    TTN_BYTE_GAP
#define LOW    TTN_BYTE_LOWER
#define LOW_5  LOW, LOW, LOW, LOW, LOW
#define DIG_5  TTN_BYTE_DIGIT, TTN_BYTE_DIGIT, TTN_BYTE_DIGIT, TTN_BYTE_DIGIT, TTN_BYTE_DIGIT

/* Sixteen bytes a line; the arguments are the tokens of A to Z. */
#define MAP(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V, W, X, Y, Z)                             \
    {                                                                                                                 \
        BAD_4, BAD_4, BAD, BLANK, LINE, BAD, BAD, LINE, BAD, BAD, BAD_16, BLANK, BAD, BAD, BAD, BAD_4, BAD, BAD,      \
            TTN_BYTE_STOP, BAD, BAD, GAP, GAP, BAD, DIG_5, DIG_5, BAD_4, BAD, BAD, BAD, A, B, C, D, E, F, G, H, I, J, \
            K, L, M, N, O, P, Q, R, S, T, U, V, W, X, Y, Z, BAD_4, BAD, BAD, LOW_5, LOW_5, LOW_5, LOW_5, LOW_5, LOW,  \
            BAD, BAD, BAD, GAP, BAD, BAD_16, BAD_16, BAD_16, BAD_16, BAD_16, BAD_16, BAD_16, BAD_16,                  \
    }

static const char residues[] = "ACDEFGHIKLMNPQRSTVWY";

/* ---- the vocabularies: names in the order of tokens, then the tokens of A to Z and of the 20 residues. The test makes
 * the second from the first and compares. ---- */

static const char *const esm_token[] = {
    "<cls>", "<pad>", "<eos>", "<unk>", "L", "A", "G", "V", "S", "E", "R", "T", "I", "D", "P",        "K",      "Q",
    "N",     "F",     "Y",     "M",     "H", "W", "C", "X", "B", "U", "Z", "O", ".", "-", "<null_1>", "<mask>",
};
static const ttn_alphabet esm = {
    .name = "esm",
    .n = sizeof esm_token / sizeof *esm_token,
    .token = esm_token,
    .cls = 0,
    .pad = 1,
    .eos = 2,
    .unk = 3,
    .mask = 32,
    .map = MAP(5, 25, 23, 13, 9, 18, 6, 21, 12, 24, 15, 4, 20, 17, 28, 14, 16, 10, 8, 11, 26, 7, 22, 24, 19, 27),
    .residue = {5, 23, 13, 9, 18, 6, 21, 12, 15, 4, 20, 17, 14, 16, 10, 8, 11, 7, 22, 19},
};

static const char *const bert_token[] = {
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "L", "A", "G", "V", "E", "S", "I", "K", "R", "D",
    "T",     "P",     "N",     "Q",     "F",      "Y", "M", "H", "C", "W", "X", "U", "B", "Z", "O",
};
static const ttn_alphabet bert = {
    .name = "bert",
    .n = sizeof bert_token / sizeof *bert_token,
    .token = bert_token,
    .cls = 2,
    .pad = 0,
    .eos = 3,
    .unk = 1,
    .mask = 4,
    .map = MAP(6, 27, 23, 14, 9, 19, 7, 22, 11, 25, 12, 5, 21, 17, 29, 16, 18, 13, 10, 15, 26, 8, 24, 25, 20, 28),
    .residue = {6, 23, 14, 9, 19, 7, 22, 11, 12, 5, 21, 17, 16, 18, 13, 10, 15, 8, 24, 20},
};

/* It has no X: what it lacks is unknown. */
static const char *const amplify_token[] = {
    "<pad>", "<unk>", "<mask>", "<bos>", "<eos>", "|", "L", "A", "G", "V", "S", "E", "R", "T",
    "I",     "D",     "P",      "K",     "Q",     "N", "F", "Y", "M", "H", "W", "C", "B",
};
static const ttn_alphabet amplify = {
    .name = "amplify",
    .n = sizeof amplify_token / sizeof *amplify_token,
    .token = amplify_token,
    .cls = 3,
    .pad = 0,
    .eos = 4,
    .unk = 1,
    .mask = 2,
    .map = MAP(7, 26, 25, 15, 11, 20, 8, 23, 14, 1, 17, 6, 22, 19, 1, 16, 18, 12, 10, 13, 1, 9, 24, 1, 21, 1),
    .residue = {7, 25, 15, 11, 20, 8, 23, 14, 17, 6, 22, 19, 16, 18, 12, 10, 13, 9, 24, 21},
};

static const ttn_alphabet *const all[] = {&esm, &bert, &amplify};
const char *const ttn_alphabet_names[] = {"esm", "bert", "amplify", NULL};

const ttn_alphabet *ttn_alphabet_find(const char *name)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}

/* ---- a vocabulary from its list ---- */

static int is_letter(const char *token)
{
    return token[0] >= 'A' && token[0] <= 'Z' && token[1] == 0;
}

/* The token of one of two names; TTN_NO_TOKEN when there is neither. */
static uint8_t token_of(const ttn_alphabet *a, const char *name, const char *other)
{
    for (int t = 0; t < a->n; t++)
        if (strcmp(a->token[t], name) == 0 || strcmp(a->token[t], other) == 0) return (uint8_t)t;
    return TTN_NO_TOKEN;
}

static ttn_status check_tokens(const ttn_alphabet *a, ttn_error *err)
{
    if (a->n < 1 || a->n > TTN_MAX_TOKENS)
        return TTN_FAIL(err, TTN_EFORMAT, "%s: a vocabulary of %d tokens; 1 to %d are possible", a->name, a->n,
                        (int)TTN_MAX_TOKENS);
    for (int t = 0; t < a->n; t++)
        for (int other = 0; other < t; other++)
            if (a->token[t][0] && strcmp(a->token[t], a->token[other]) == 0)
                return TTN_FAIL(err, TTN_EFORMAT, "%s: tokens %d and %d of the vocabulary are both '%s'", a->name,
                                other, t, a->token[t]);
    return TTN_OK;
}

ttn_status ttn_alphabet_make(const char *name, const char *const *token, int n, ttn_alphabet *ret, ttn_error *err)
{
    ttn_alphabet a = {.name = name, .n = n, .token = token};
    ttn_status status = check_tokens(&a, err);
    if (status != TTN_OK) return status;
    a.cls = token_of(&a, "<cls>", "[CLS]");
    if (a.cls == TTN_NO_TOKEN) a.cls = token_of(&a, "<bos>", "[BOS]");
    a.pad = token_of(&a, "<pad>", "[PAD]");
    a.eos = token_of(&a, "<eos>", "[SEP]");
    a.unk = token_of(&a, "<unk>", "[UNK]");
    a.mask = token_of(&a, "<mask>", "[MASK]");
    if (a.unk == TTN_NO_TOKEN)
        return TTN_FAIL(err, TTN_EFORMAT, "%s: the vocabulary has neither '<unk>' nor '[UNK]'", name);

    memcpy(a.map, esm.map, sizeof a.map);
    const uint8_t x = token_of(&a, "X", "X");
    memset(&a.map['A'], x == TTN_NO_TOKEN ? a.unk : x, 26);
    for (int t = 0; t < n; t++)
        if (is_letter(token[t])) a.map[(unsigned char)token[t][0]] = (uint8_t)t;
    for (int i = 0; residues[i]; i++) {
        a.residue[i] = a.map[(unsigned char)residues[i]];
        if (!ttn_alphabet_has_letter(&a, residues[i]))
            return TTN_FAIL(err, TTN_EFORMAT, "%s: the vocabulary has no token '%c'; the 20 residues must be in it",
                            name, residues[i]);
    }
    *ret = a;
    return TTN_OK;
}

ttn_status ttn_alphabet_read(const char *tokens, ttn_own_alphabet *ret, ttn_error *err)
{
    static const char blanks[] = " \t\n";
    static const char name[] = "data.tokens";
    if (strlen(tokens) >= sizeof ret->text)
        return TTN_FAIL(err, TTN_EFORMAT, "%s: a vocabulary of %zu bytes, at most %zu are possible", name,
                        strlen(tokens), sizeof ret->text - 1);
    memcpy(ret->text, tokens, strlen(tokens) + 1);
    int n = 0;
    for (char *at = ret->text + strspn(ret->text, blanks); *at; n++) {
        char *end = at + strcspn(at, blanks);
        char *next = end + strspn(end, blanks);
        *end = 0;
        if (n < TTN_MAX_TOKENS) ret->token[n] = at;
        at = next;
    }
    ttn_status status = ttn_alphabet_make(name, ret->token, n, &ret->alphabet, err);
    if (status == TTN_OK) ret->alphabet.name = "own";
    return status;
}

/* ---- questions ---- */

int ttn_alphabet_same(const ttn_alphabet *a, const ttn_alphabet *b)
{
    if (a->n != b->n) return 0;
    for (int t = 0; t < a->n; t++)
        if (strcmp(a->token[t], b->token[t]) != 0) return 0;
    return 1;
}

char ttn_alphabet_letter(const ttn_alphabet *a, int token)
{
    if (token < 0 || token >= a->n || !is_letter(a->token[token])) return 0;
    return a->token[token][0];
}

void ttn_alphabet_letters(const ttn_alphabet *a, char letter[TTN_MAX_TOKENS])
{
    for (int t = 0; t < TTN_MAX_TOKENS; t++) {
        letter[t] = ttn_alphabet_letter(a, t);
        if (!letter[t]) letter[t] = 'X';
    }
}

int ttn_alphabet_has_letter(const ttn_alphabet *a, char letter)
{
    if (letter < 'A' || letter > 'Z') return 0;
    return ttn_alphabet_letter(a, a->map[(unsigned char)letter]) == letter;
}

int ttn_alphabet_is_residue(const ttn_alphabet *a, int token)
{
    const char letter = ttn_alphabet_letter(a, token);
    return letter && strchr(residues, letter) != NULL;
}
