#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/memory.h"
#include "core/text.h"
#include "data/fasta.h"
#include "train/masked.h"

enum { PIECE = 1 << 16, WORD = 4096, NAME = 3 * WORD + 1, FIRST_ROOM = 512 };

static const char MASK[] = "<mask>";

struct ttn_masked_reader {
    ttn_source *source;
    const ttn_alphabet *alphabet;
    ttn_masked out;

    /* bytes that were read and not looked at */
    unsigned char piece[PIECE];
    size_t at, n;
    int is_at_end;
    int64_t line, column; /* of the next byte, from 1 */

    char word[WORD];  /* of a header */
    char name[NAME];  /* of the sequence that is given out */
    char after[NAME]; /* of the one whose header ended it */
    int has_header;   /* such a header was read */
    uint8_t *token;
    int64_t room;
    ttn_status failed; /* every call fails as the first that did */
    ttn_error error;
};

/* ---- bytes ---- */

/* FASTA, or a <mask>: no other format begins so. Whoever types, or asks through a pipe, gets each answer when it can be given. */
static int is_ours(const ttn_masked_reader *r)
{
    return r->n > 0 && (r->piece[0] == '>' || r->piece[0] == '<');
}

/* The next piece. The first one is as long as what other formats are told by, however few bytes come at a time. */
static ttn_status fill(ttn_masked_reader *r, ttn_error *err)
{
    const int is_first = r->line == 1 && r->column == 1;
    size_t got = 1;
    r->at = 0;
    r->n = 0;
    while (got > 0 && (r->n == 0 || (is_first && r->n < TTN_FASTA_LOOK && !is_ours(r)))) {
        ttn_status status = r->source->read(r->source, r->piece + r->n, sizeof r->piece - r->n, &got, err);
        if (status != TTN_OK) {
            r->n = 0;
            return status;
        }
        r->n += got;
    }
    r->is_at_end = got == 0;
    if (!is_first || r->n == 0 || is_ours(r)) return TTN_OK;
    const ttn_fasta_look look = ttn_fasta_sniff(r->piece, r->n < TTN_FASTA_LOOK ? r->n : TTN_FASTA_LOOK);
    if (!look.code) return TTN_OK;
    return TTN_FAIL_AT(err, TTN_EFORMAT, r->source->name, 1, 1, "%s (FA%03d)", look.what, look.code);
}

/* The next byte, which stays; -1: there is none. */
static ttn_status peek(ttn_masked_reader *r, int *ret, ttn_error *err)
{
    *ret = -1;
    if (r->at == r->n && !r->is_at_end) {
        ttn_status status = fill(r, err);
        if (status != TTN_OK) return status;
    }
    if (r->at < r->n) *ret = r->piece[r->at];
    return TTN_OK;
}

static void take(ttn_masked_reader *r)
{
    r->column++;
    if (r->piece[r->at] == '\n') {
        r->line++;
        r->column = 1;
    }
    r->at++;
}

/* A header behind its '>', to the end of the line; its first word is the name, which goes to tables and screens. */
static ttn_status read_header(ttn_masked_reader *r, ttn_error *err)
{
    size_t n = 0;
    int c, has_ended = 0;
    ttn_status status;
    const int64_t line = r->line;
    while ((status = peek(r, &c, err)) == TTN_OK && c >= 0 && c != '\n') {
        const int is_between = c == ' ' || c == '\t' || c == '\r' || c == 1;
        has_ended = has_ended || (is_between && n > 0);
        if (!is_between && !has_ended && n < sizeof r->word) r->word[n++] = (char)c;
        take(r);
    }
    if (n == 0) n = (size_t)snprintf(r->word, sizeof r->word, "%.400s:%" PRId64, r->source->name, line);
    ttn_text_clean(r->word, n, r->after);
    r->has_header = 1;
    return status;
}

/* ---- residues ---- */

static ttn_status add_token(ttn_masked_reader *r, uint8_t token, ttn_error *err)
{
    if (r->out.n == r->room) {
        const int64_t room = r->room ? 2 * r->room : FIRST_ROOM;
        uint8_t *more = ttn_alloc_or_say(room, 1, "a sequence", err);
        if (!more) return TTN_ENOMEM;
        if (r->token) memcpy(more, r->token, (size_t)r->out.n);
        ttn_free(r->token);
        r->token = more;
        r->room = room;
    }
    r->token[r->out.n] = token;
    r->out.n++;
    r->out.n_mask += token == r->alphabet->mask;
    return TTN_OK;
}

static ttn_status illegal(const ttn_masked_reader *r, int64_t column, const char *what, const char *why, ttn_error *err)
{
    return TTN_FAIL_AT(err, TTN_EFORMAT, r->source->name, r->line, column, "position %" PRId64 ": %s %s", r->out.n + 1,
                       what, why);
}

static ttn_status illegal_byte(const ttn_masked_reader *r, int c, ttn_error *err)
{
    char what[16];
    snprintf(what, sizeof what, c > ' ' && c < 127 ? "'%c'" : "byte 0x%02X", (unsigned)c);
    return illegal(r, r->column, what,
                   "stands for no residue; write letters, and _ or <mask> for what is to be filled in", err);
}

static int small(int c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* "<mask>", in capitals as well. */
static ttn_status read_mask(ttn_masked_reader *r, ttn_error *err)
{
    const int64_t column = r->column;
    for (const char *m = MASK; *m; m++) {
        int c;
        ttn_status status = peek(r, &c, err);
        if (status != TTN_OK) return status;
        if (small(c) != *m) return illegal(r, column, "'<'", "begins no <mask>", err);
        take(r);
    }
    return add_token(r, r->alphabet->mask, err);
}

static ttn_status read_byte(ttn_masked_reader *r, int c, int *has_stopped, ttn_error *err)
{
    uint8_t token = r->alphabet->map[c];
    if (c == '_') token = r->alphabet->mask;
    if (token == TTN_BYTE_LOWER) token = r->alphabet->map[c - 'a' + 'A'];
    if (token == TTN_BYTE_LINE || token == TTN_BYTE_SPACE) {
        take(r);
        return TTN_OK;
    }
    if (*has_stopped) return illegal(r, r->column, "a '*'", "ends a protein, and this one goes on behind it", err);
    if (c == '<') return read_mask(r, err);
    if (token >= TTN_MAX_TOKENS && token != TTN_BYTE_STOP) return illegal_byte(r, c, err);
    *has_stopped = token == TTN_BYTE_STOP;
    const char letter = (char)small(c);
    if (!*has_stopped && c != '_' && !ttn_alphabet_has_letter(r->alphabet, (char)(letter - 'a' + 'A'))) {
        if (r->out.n_replaced == 0) {
            r->out.replaced = (char)(letter - 'a' + 'A');
            r->out.replaced_position = r->out.n + 1;
        }
        r->out.n_replaced++;
    }
    ttn_status status = *has_stopped ? TTN_OK : add_token(r, token, err);
    take(r);
    return status;
}

/* ---- sequences ---- */

static ttn_status read_sequence(ttn_masked_reader *r, ttn_error *err)
{
    int c, has_stopped = 0;
    const int has_header = r->has_header;
    memcpy(r->name, r->after, sizeof r->name);
    r->out = (ttn_masked){.name = r->name};
    r->has_header = 0;
    r->after[0] = 0;
    ttn_status status;
    while ((status = peek(r, &c, err)) == TTN_OK && c >= 0) {
        if (c == '>' && r->column == 1) {
            take(r);
            status = read_header(r, err);
            break;
        }
        status = read_byte(r, c, &has_stopped, err);
        if (status != TTN_OK) break;
    }
    if (status != TTN_OK) return status;
    r->out.token = r->token;
    if (r->out.n > 0) return TTN_OK;
    if (has_header)
        return TTN_FAIL_AT(err, TTN_EFORMAT, r->source->name, r->line, 0, "the sequence '%s' has no residues", r->name);
    return r->has_header ? read_sequence(r, err) : TTN_EOF; /* nothing stands before the first header */
}

ttn_status ttn_masked_next(ttn_masked_reader *r, const ttn_masked **ret, ttn_error *err)
{
    if (r->failed == TTN_OK) r->failed = read_sequence(r, &r->error);
    if (r->failed == TTN_OK)
        *ret = &r->out;
    else if (r->failed != TTN_EOF && err)
        *err = r->error;
    return r->failed;
}

ttn_status ttn_masked_open(ttn_source *source, const ttn_alphabet *alphabet, ttn_masked_reader **ret, ttn_error *err)
{
    *ret = ttn_alloc_or_say(1, sizeof **ret, "a reader of sequences", err);
    if (!*ret) {
        ttn_source_close(source);
        return TTN_ENOMEM;
    }
    (*ret)->source = source;
    (*ret)->alphabet = alphabet;
    (*ret)->line = (*ret)->column = 1;
    return TTN_OK;
}

void ttn_masked_close(ttn_masked_reader *r)
{
    if (!r) return;
    ttn_source_close(r->source);
    ttn_free(r->token);
    ttn_free(r);
}
