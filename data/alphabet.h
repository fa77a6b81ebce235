/* The vocabulary of a model, and the one place that turns the bytes of sequence files into its tokens.
 *
 *     const ttn_alphabet *a = ttn_alphabet_find("esm");
 *     uint8_t t = a->map[byte];            a token, or a class of bytes that stand for none
 */
#ifndef TTN_ALPHABET_H
#define TTN_ALPHABET_H

#include <stdint.h>
#include "core/status.h"

/* Tokens are numbers below TTN_MAX_TOKENS, so that one bit of a map's entry tells a token from a class. */
enum { TTN_MAX_TOKENS = 128, TTN_NO_TOKEN = 255 };

/* What map[] says of a byte that is no token; all have bit 7 set. */
typedef enum {
    TTN_BYTE_LOWER = 0x80, /* a to z, which stand for the token of their capital */
    TTN_BYTE_LINE,         /* LF, CR */
    TTN_BYTE_SPACE,        /* space, tab */
    TTN_BYTE_GAP,  /* - . ~ (also where the vocabulary has tokens of that name: alignments are not trained on) */
    TTN_BYTE_STOP, /* * */
    TTN_BYTE_DIGIT,
    TTN_BYTE_ILLEGAL, /* everything else */
} ttn_byte_class;

typedef struct {
    const char *name;         /* "esm" */
    int n;                    /* tokens */
    const char *const *token; /* (n) "<cls>", "L": what a vocabulary file calls them; "": a number without a use */
    /* Tokens with a meaning of their own; TTN_NO_TOKEN: the vocabulary has none. cls begins a protein, eos ends it. */
    uint8_t cls, pad, eos, unk, mask;
    /* Capital letters are tokens: a letter that the vocabulary lacks is X, where it lacks X, unk. */
    uint8_t map[256];
    uint8_t residue[20]; /* the tokens of ACDEFGHIKLMNPQRSTVWY, in this order */
} ttn_alphabet;

/* ESM-1b and ESM-2 ("esm", 33 tokens, the default), ProtBert ("bert", 30), AMPLIFY ("amplify", 27). NULL: no such name. */
const ttn_alphabet *ttn_alphabet_find(const char *name);

/* The names of all of them, NULL at the end: the choices of an option. */
extern const char *const ttn_alphabet_names[];

/* A vocabulary that an imported model brings: n texts in the order of their tokens, borrowed like name as long as *ret
 * is used. Single capital letters are residues; <cls> <bos> [CLS], <pad> [PAD], <eos> [SEP], <unk> [UNK], <mask> [MASK]
 * have the meanings above. TTN_EFORMAT with the name: more than TTN_MAX_TOKENS, a token twice, or one of the 20
 * residues or the unknown token missing. */
TTN_MUST_USE ttn_status ttn_alphabet_make(const char *name, const char *const *token, int n, ttn_alphabet *ret,
                                          ttn_error *err);

/* A vocabulary of the user's own, with the texts that it is made of: it stays where it was made. */
enum { TTN_OWN_TEXT = 4096 };
typedef struct {
    ttn_alphabet alphabet;
    const char *token[TTN_MAX_TOKENS];
    char text[TTN_OWN_TEXT];
} ttn_own_alphabet;

/* From a text, tokens with blanks between them; its name is "own". TTN_EFORMAT as above, or a text that is too long. */
TTN_MUST_USE ttn_status ttn_alphabet_read(const char *tokens, ttn_own_alphabet *ret, ttn_error *err);

/* The same tokens in the same order. */
int ttn_alphabet_same(const ttn_alphabet *a, const ttn_alphabet *b);

/* Does the token stand for exactly one of the 20 standard residues? */
int ttn_alphabet_is_residue(const ttn_alphabet *a, int token);

/* Is there a token of its own for this capital letter? (Else map[] has a substitute.) */
int ttn_alphabet_has_letter(const ttn_alphabet *a, char letter);

/* The capital letter a token is written as in a FASTA file; 0: it is no letter (a special, a gap). */
char ttn_alphabet_letter(const ttn_alphabet *a, int token);

/* letter[token] is how a sequence with this token is written: its letter, or 'X' where the token is none (unknown). */
void ttn_alphabet_letters(const ttn_alphabet *a, char letter[TTN_MAX_TOKENS]);

#endif
