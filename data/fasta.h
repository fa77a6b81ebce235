/* Protein sequences from FASTA files as they are found in the world: read as a stream, in memory that one record bounds.
 *
 *     ttn_fasta *f;
 *     ttn_status status = ttn_fasta_open_path("uniref50.fasta.gz", NULL, &f, err);
 *     const ttn_fasta_record *r;
 *     while (status == TTN_OK && (status = ttn_fasta_next(f, &r, err)) == TTN_OK) …
 *     ttn_fasta_close(f);
 *     if (status != TTN_EOF) the file is not to be used: neither what follows nor what was read before
 *
 * Whatever is unusual about a file is accepted, or put right and counted with its first places, or an error that names
 * file, line, column, record and what to do. Each such rule has a number that stays as it is: FA017 is rule 17, and
 * ttn_fasta_rule says what it is about. docs/fasta.md lists them.
 */
#ifndef TTN_FASTA_H
#define TTN_FASTA_H

#include <stdint.h>
#include "core/hash.h"
#include "core/options.h"
#include "core/values.h"
#include "data/alphabet.h"
#include "data/source.h"

/* ---- what to do with what is unusual ---- */

typedef enum { TTN_LOWERCASE_UPPER, TTN_LOWERCASE_EXCLUDE, TTN_LOWERCASE_ERROR } ttn_fasta_lowercase;
typedef enum { TTN_STOP_ERROR, TTN_STOP_SPLIT, TTN_STOP_X } ttn_fasta_stop;
typedef enum { TTN_FORMAT_AUTO, TTN_FORMAT_FASTA, TTN_FORMAT_A3M, TTN_FORMAT_A3M_QUERY } ttn_fasta_format;
typedef enum { TTN_IDS_ANY, TTN_IDS_UNIQUE, TTN_IDS_SUFFIX } ttn_fasta_ids;

/* Zeros are the defaults, but for max_skipped (0.001) and most (200,000,000), where 0 stands for them. */
typedef struct {
    const ttn_alphabet *alphabet; /* NULL: "esm" */
    ttn_fasta_lowercase lowercase;
    ttn_fasta_stop stop;     /* '*' inside a sequence; at its end it is taken off. SPLIT and X: '.' is a stop as well */
    ttn_fasta_format format; /* AUTO: by the name, .a3m and .a2m are alignments */
    int strip_gaps;
    int strip_digits;
    int skip_records;   /* a record with a fault in it is left out and counted; else it ends the reading */
    double max_skipped; /* as a part of all records; beyond it the file is refused; below 0: none may be */
    int allow_nucleotide;
    int allow_no_bgzf_eof;
    const char *id_regex; /* POSIX extended, on the whole header; its first group, or else what it matches, is the id */
    ttn_fasta_ids ids;    /* what is keyed by id needs UNIQUE (a second one is an error) or SUFFIX (it becomes id_2) */
    int64_t most;         /* residues in one record */
} ttn_fasta_rules;

/* What data.train is, where conditions of options ask for it: sequences are read and packed, or a store is opened as it is. */
#define TTN_DATA_IS_FASTA "FASTA"
#define TTN_DATA_IS_STORE "a store"
#define TTN_WHEN_PACKED                                                                \
    {                                                                                  \
        "data.train", .is = TTN_DATA_IS_FASTA, .words = "data.train is files in FASTA" \
    }
extern const ttn_option_condition ttn_when_packed[];

/* The rows of the configuration, and the rules they stand for; texts are borrowed from the values. */
extern const ttn_option ttn_fasta_options[];
extern const int ttn_fasta_n_options;
TTN_MUST_USE ttn_status ttn_fasta_rules_of(const ttn_option_reader *o, ttn_own_alphabet *own, ttn_fasta_rules *ret,
                                           ttn_error *err);

/* ---- reading ---- */

typedef struct {
    const char *id;       /* UTF-8 with a closing 0; of a header without a word "FILE:LINE" */
    const char *header;   /* the whole line behind '>', UTF-8, its first TTN_FASTA_HEADER bytes; closing 0 */
    const uint8_t *token; /* (n) residues as tokens; no specials */
    const uint8_t *lower; /* (n) 1: was lower case; NULL unless lowercase is TTN_LOWERCASE_EXCLUDE */
    int64_t n;            /* at least 1 */
    int64_t line;         /* of the header, from 1 */
    int64_t offset;       /* of the header's '>' in the (unpacked) stream, from 0 */
} ttn_fasta_record;

enum { TTN_FASTA_HEADER = 4096, TTN_FASTA_LONGEST_HEADER = 1 << 20 };

typedef struct ttn_fasta ttn_fasta;

/* source is taken over, and closed also on failure. rules: NULL: the defaults; copied, texts and alphabet borrowed. *ret
 * is the caller's. TTN_EINVAL: id_regex is none; TTN_ENOMEM. Faults of the file come with the first record. */
TTN_MUST_USE ttn_status ttn_fasta_open(ttn_source *source, const ttn_fasta_rules *rules, ttn_fasta **ret,
                                       ttn_error *err);
TTN_MUST_USE ttn_status ttn_fasta_open_path(const char *path, const ttn_fasta_rules *rules, ttn_fasta **ret,
                                            ttn_error *err);

/* *ret is borrowed until the next call. TTN_EOF behind the last record of a file that is whole. TTN_EFORMAT: with
 * "FILE:LINE:COLUMN: …" and the rule's code at the end; TTN_EIO, TTN_ENOMEM. After a failure or the end: the same again. */
TTN_MUST_USE ttn_status ttn_fasta_next(ttn_fasta *f, const ttn_fasta_record **ret, ttn_error *err);

void ttn_fasta_close(ttn_fasta *f); /* NULL is fine */

/* ---- what was found ---- */

enum { TTN_FASTA_CODES = 72, TTN_FASTA_PLACES = 5 };

typedef struct {
    int64_t line, column; /* from 1; column in bytes */
} ttn_fasta_place;

typedef struct {
    int64_t n;
    int n_place;
    ttn_fasta_place place[TTN_FASTA_PLACES]; /* (n_place) the first ones; of neighbouring bytes the first */
} ttn_fasta_note;

typedef struct {
    int64_t records;                       /* headers */
    int64_t given;                         /* records that ttn_fasta_next gave */
    int64_t residues;                      /* in them */
    int64_t skipped;                       /* records left out because of a fault (skip_records) */
    int64_t bytes;                         /* of the stream, unpacked */
    ttn_hash128 hash;                      /* of these bytes */
    ttn_fasta_note note[TTN_FASTA_CODES];  /* [rule]: put right or worth knowing; entry 0 is unused */
    ttn_fasta_note fault[TTN_FASTA_CODES]; /* [rule]: faults that records were left out for */
} ttn_fasta_counts;

/* Borrowed until close, and up to date; whole after TTN_EOF. */
const ttn_fasta_counts *ttn_fasta_found(const ttn_fasta *f);
const ttn_source_facts *ttn_fasta_source(const ttn_fasta *f);
const char *ttn_fasta_name(const ttn_fasta *f);

/* What the first records that were left out were left out for, i < TTN_FASTA_PLACES: a sentence with its place, NULL: there
 * were fewer. */
const char *ttn_fasta_skipped(const ttn_fasta *f, int i);

/* The rule behind the last failure; 0: there was none, or it has no number (no memory). */
int ttn_fasta_failed_rule(const ttn_fasta *f);

/* What a rule's note counts ("lines end in CR LF"); NULL where nothing is counted under this number. */
const char *ttn_fasta_rule(int code);

/* What a note means for the data: it is as it was, something in it was changed, or records were left out. */
typedef enum { TTN_NOTE_ACCEPTED, TTN_NOTE_REPAIRED, TTN_NOTE_LEFT_OUT } ttn_fasta_note_kind;
ttn_fasta_note_kind ttn_fasta_kind_of_note(int code);

/* What is wrong with records that are left out under this number ("digits"); NULL where no record is. */
const char *ttn_fasta_fault(int code);

/* ---- files that are none ---- */

/* What the first bytes of a file that is no FASTA look like. */
typedef struct {
    int code;         /* of the rule; 0: nothing is known against it */
    const char *what; /* "looks like FASTQ", and what to do */
} ttn_fasta_look;

enum { TTN_FASTA_LOOK = 512 };

/* n bytes, TTN_FASTA_LOOK of them where the file has so many. */
ttn_fasta_look ttn_fasta_sniff(const unsigned char *bytes, size_t n);

#endif
