/* Shared by data/fasta*.c: one reader, in rooms.
 *
 *     fasta.c           the machine: which line, record or file begins or ends
 *     fasta_stream.c    chunks of bytes, and lines in them
 *     fasta_header.c    what stands behind '>'
 *     fasta_residues.c  what stands in a sequence
 *     fasta_record.c    what is given, and what the records together say
 *     fasta_notes.c     what is counted, and what is refused
 *     fasta_rules.c     the rules by number, and their options
 *     fasta_sniff.c     what else a file may be
 */
#ifndef TTN_FASTA_IMPL_H
#define TTN_FASTA_IMPL_H

#include <regex.h>
#include <stddef.h>
#include "data/fasta.h"
#include "data/ids.h"

enum {
    TTN_FASTA_CHUNK = 256 << 10,
    TTN_BYTE_SUBSTITUTE = 0xff,                /* beside ttn_byte_class: a capital letter that the vocabulary lacks */
    TTN_FASTA_MARK = 3,                        /* bytes of a byte order mark */
    TTN_BYTE_MARK = 0xef,                      /* that a byte order mark begins with */
    TTN_FASTA_TEXT = 3 * TTN_FASTA_HEADER + 1, /* a header of bytes that all become U+FFFD */
    TTN_FASTA_ID = TTN_FASTA_TEXT + 32,        /* "_2" and "/2" behind it */
};

typedef enum {
    TTN_AT_START, /* of a line; nothing but blanks so far */
    TTN_IN_HEADER,
    TTN_IN_SEQUENCE,
    TTN_IN_IGNORED, /* a comment, or the rest of a faulty record */
} ttn_fasta_state;

/* What waits for its meaning: whether a residue follows in the record, or in the line. */
typedef struct {
    int64_t n;
    int64_t line, column; /* of the first */
    int64_t offset;
} ttn_fasta_waiting;

/* A line of residues that holds small letters or blanks: groups of letters with blanks between them. */
typedef struct {
    int64_t line;    /* that it is of; when it is another, that has nothing but capitals so far */
    int64_t begin;   /* column where the present group begins */
    int64_t width;   /* bytes of the first group */
    int64_t letters; /* bytes in groups that have ended, n_group of them */
    int64_t small;   /* letters */
    int n_group;
    int is_uneven; /* a group has another width than the first */
    int has_rare;  /* an o or a j, which words have and proteins have not */
    int has_digits;
} ttn_fasta_words;

struct ttn_fasta {
    ttn_source *source;
    ttn_fasta_rules rules;
    uint8_t table[256];                 /* the alphabet's map, with TTN_BYTE_SUBSTITUTE */
    uint8_t nucleotide[TTN_MAX_TOKENS]; /* a bit for each of A, C, G, T or U, N; 0: another residue */
    int is_alignment;                   /* A3M or A2M: gaps are taken out */
    int has_regex;
    regex_t regex;

    /* The stream. */
    uint8_t *chunk; /* (TTN_FASTA_CHUNK): bytes [at, end) are to be read; chunk[0] has offset `base` */
    size_t at, end;
    int64_t next_lf, next_cr; /* where the first one from `at` on is, or `end`; before `at`: not known */
    int64_t base;
    int64_t fused; /* the offset of a '>' that a gzip member begins with, behind an unfinished line; -1: none */
    int has_begun, source_ended;
    ttn_hash *hash;

    /* The line. */
    ttn_fasta_state where;
    int64_t line, line_offset;
    ttn_fasta_waiting cr;     /* a CR that may be the first half of CR LF (n is 0 or 1) */
    ttn_fasta_waiting ctrl_z; /* that may be the last byte */
    ttn_fasta_waiting blanks; /* of this line, a residue may follow */
    ttn_fasta_waiting lone;   /* the first CR alone that has text behind it: a fault where lines end in LF */
    ttn_fasta_words words;
    int64_t lf_lines;

    /* The record. */
    int in_record;
    int is_skipped;            /* it had a fault */
    int has_comment;           /* a ';' line came before the first record */
    int is_split;              /* at a "*" inside */
    int has_capital_line;      /* a line that is sure to be residues: capitals, in blocks or without blanks */
    ttn_fasta_waiting suspect; /* a line that looks like words; n: its first residue */
    ttn_fasta_waiting stops, blank_lines;
    int64_t lower_case, lower_end; /* residues; the offset behind the last one */
    int64_t pieces;                /* of it that were given */
    char raw[TTN_FASTA_HEADER];    /* the header as it stands there, n_raw of n_header bytes */
    size_t n_raw;
    int64_t n_header;
    char header[TTN_FASTA_TEXT], id[TTN_FASTA_ID], piece_id[TTN_FASTA_ID + 24];
    uint8_t *token, *lower; /* (room) n used */
    int64_t n, room;
    int64_t record_line, record_offset;
    int64_t n_empty;
    int has_query; /* of an A3M, whose other records are passed over */
    ttn_fasta_waiting first_empty;
    char first_empty_id[81];
    ttn_fasta_record record;

    ttn_ids *ids;
    int64_t judged, judged_nucleotides; /* residues of the first records */

    ttn_fasta_counts found;
    ttn_error skipped[TTN_FASTA_PLACES];
    ttn_error failure; /* the first one, which stays */
    int failed_rule;
    int n_skipped_text;
    int is_ready; /* `record` is to be given */
    int ended;
};

/* ---- places ---- */

/* Of the byte at `at`. */
static inline int64_t ttn_fasta_offset(const ttn_fasta *f)
{
    return f->base + (int64_t)f->at;
}

static inline ttn_fasta_waiting ttn_fasta_here(const ttn_fasta *f, int64_t offset)
{
    return (ttn_fasta_waiting){1, f->line, offset - f->line_offset + 1, offset};
}

/* One more of what waits. */
static inline void ttn_fasta_wait(const ttn_fasta *f, ttn_fasta_waiting *w)
{
    const int64_t n = w->n;
    if (n == 0) *w = ttn_fasta_here(f, ttn_fasta_offset(f));
    w->n = n + 1;
}

/* ---- fasta_notes.c ---- */

/* w.n more under a rule that counts. */
void ttn_fasta_count(ttn_fasta *f, int code, ttn_fasta_waiting w);

/* A fault of the file as a whole: TTN_EFORMAT, kept as the reader's failure. */
ttn_status ttn_fasta_refuse(ttn_fasta *f, int code, int64_t line, int64_t column, const char *format, ...)
    TTN_PRINTF(5, 6);

/* A fault of one record: what is wrong, and what to do. It ends the reading (TTN_EFORMAT), or the record is left out. */
ttn_status ttn_fasta_blame(ttn_fasta *f, int code, ttn_fasta_waiting w, const char *what, const char *hint);

/* ---- fasta_stream.c ---- */

/* The first bytes, by which a file is judged; a byte order mark is passed over. */
ttn_status ttn_fasta_begin(ttn_fasta *f);

/* More bytes behind those that were read, or source_ended. */
ttn_status ttn_fasta_next_chunk(ttn_fasta *f);

/* Let n bytes from `at` be at hand, where there are so many left. */
ttn_status ttn_fasta_look_ahead(ttn_fasta *f, size_t n);

/* Is there a byte order mark at `at`? */
int ttn_fasta_is_mark(const ttn_fasta *f);

/* Bytes [0, *n) from `at` are of this line; 1: the line end is behind them. */
int ttn_fasta_line(ttn_fasta *f, size_t *n);

/* The byte at `at` is LF or CR, and has been dealt with. */
void ttn_fasta_end_line(ttn_fasta *f);

/* The last line ended in CR: is it CR LF? next: the byte behind it; -1: there is none. */
void ttn_fasta_resolve_cr(ttn_fasta *f, int next);

/* A CR alone, and LF at other ends of lines: a header or a sequence that goes on behind the CR is not one line, but was
 * meant to be. A fault of this record, of which the last line was read. */
ttn_status ttn_fasta_check_cr(ttn_fasta *f);

/* Is the '>' that a gzip member begins with among the next n bytes, in a text where a '>' may stand? Blocks of BGZF are cut
 * anywhere, members of other files are files. */
int ttn_fasta_swallows_fused(const ttn_fasta *f, size_t n);
ttn_status ttn_fasta_refuse_fused(ttn_fasta *f);

/* ---- fasta_header.c ---- */

/* At '>'. */
void ttn_fasta_begin_record(ttn_fasta *f);

/* As much of the header as is at hand. */
ttn_status ttn_fasta_read_header(ttn_fasta *f);

/* All of it has come. */
ttn_status ttn_fasta_end_header(ttn_fasta *f);

/* ---- fasta_residues.c ---- */

/* Something of a line that is no header and no comment. */
ttn_status ttn_fasta_read_sequence(ttn_fasta *f);

/* A line of residues that may be words of a header or of a text, or that shows that an earlier one was: then the record
 * has a fault. */
ttn_status ttn_fasta_judge_words(ttn_fasta *f);

/* The line of residues has ended. */
static inline ttn_status ttn_fasta_judge_line(ttn_fasta *f)
{
    if (f->words.line == f->line || f->suspect.n > 0) return ttn_fasta_judge_words(f);
    f->has_capital_line = 1;
    return TTN_OK;
}

/* A line that is no header, before the first one. */
ttn_status ttn_fasta_refuse_text(ttn_fasta *f);

/* ---- fasta_record.c ---- */

/* What has been read is a record, or a piece of one. */
ttn_status ttn_fasta_complete(ttn_fasta *f);

/* Another record, or the end of the file, follows. */
ttn_status ttn_fasta_end_record(ttn_fasta *f);

/* What can be said when all was read. */
ttn_status ttn_fasta_judge(ttn_fasta *f);

/* ---- fasta_sniff.c ---- */

/* By its name a file of this kind: ".a3m" or ".a2m", with or without ".gz" behind it. */
int ttn_fasta_is_called(const char *name, const char *extension);

#endif
