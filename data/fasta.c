/* The reader is a machine that is fed chunks of a stream and stops where a record is complete. What it is doing is `where`;
 * a line, a record or a gzip member may end anywhere in a chunk. Nearly all bytes are residues and go through one loop of a
 * table look-up a byte (read_run); everything else takes its time. */
#include <assert.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "core/text.h"
#include "data/fasta_impl.h"
#include "data/seen.h"

enum {
    CHUNK = 256 << 10,
    FIRST_ROOM = 4096,      /* residues */
    BYTE_SUBSTITUTE = 0xff, /* beside ttn_byte_class: a capital letter that the vocabulary lacks */
    NUCLEOTIDE_RECORDS = 1000,
    NUCLEOTIDE_LEAST = 12, /* residues; so many of a protein are all A, C, G, T, N once in 10^7 times */
    NUCLEOTIDE_PERCENT = 95,
    EMPTY_ONE_IN = 100,             /* more records without residues: something is wrong with the file */
    OUT = 3 * TTN_FASTA_HEADER + 1, /* a header of bytes that all become U+FFFD */
    ID_ROOM = OUT + 32,             /* "_2" and "/2" behind it */
};

static const double usual_max_skipped = 0.001;
static const int64_t usual_most = 200000000;

typedef enum {
    AT_START, /* of a line; nothing but blanks so far */
    IN_HEADER,
    IN_SEQUENCE,
    IN_IGNORED, /* a comment, or the rest of a faulty record */
} place_in_line;

/* What waits for its meaning: whether a residue follows in the record, or in the line. */
typedef struct {
    int64_t n;
    int64_t line, column; /* of the first */
    int64_t offset;
} waiting;

struct ttn_fasta {
    ttn_source *source;
    ttn_fasta_rules rules;
    uint8_t table[256]; /* the alphabet's map, with BYTE_SUBSTITUTE */
    uint8_t is_nucleotide[TTN_MAX_TOKENS];
    int is_alignment; /* A3M or A2M: gaps are taken out */
    int has_regex;
    regex_t regex;

    /* The stream. */
    uint8_t *chunk; /* (CHUNK): bytes [at, end) are to be read; chunk[0] has offset `base` */
    size_t at, end;
    int64_t base;
    int64_t fused; /* the offset of a '>' that a gzip member begins with, behind an unfinished line; -1: none */
    int has_begun, source_ended;
    ttn_hash *hash;

    /* The line. */
    place_in_line where;
    int64_t line, line_offset;
    waiting cr;     /* a CR that may be the first half of CR LF (n is 0 or 1) */
    waiting ctrl_z; /* that may be the last byte */
    waiting blanks; /* of this line, a residue may follow */
    int64_t lf_lines;

    /* The record. */
    int in_record;
    int is_skipped;  /* it had a fault */
    int has_comment; /* a ';' line came before the first record */
    int is_split;    /* at a "*" inside */
    waiting stops, blank_lines;
    int64_t lower_case;
    int64_t pieces;             /* of it that were given */
    char raw[TTN_FASTA_HEADER]; /* the header as it stands there, n_raw of n_header bytes */
    size_t n_raw;
    int64_t n_header;
    char header[OUT], id[ID_ROOM], piece_id[ID_ROOM + 24];
    uint8_t *token, *lower; /* (room) n used */
    int64_t n, room;
    int64_t record_line, record_offset;
    int64_t n_empty;
    waiting last_empty;
    ttn_fasta_record record;

    ttn_seen *ids;
    int64_t judged, judged_nucleotides; /* residues of the first records */

    ttn_fasta_counts found;
    ttn_error skipped[TTN_FASTA_PLACES];
    ttn_error failure; /* the first one, which stays */
    int failed_rule;
    int n_skipped_text;
    int is_ready; /* `record` is to be given */
    int ended;
};

/* ---- places, notes, faults ---- */

static int64_t offset_now(const ttn_fasta *f)
{
    return f->base + (int64_t)f->at;
}

static waiting here(const ttn_fasta *f, int64_t offset)
{
    return (waiting){1, f->line, offset - f->line_offset + 1, offset};
}

/* One more of what waits. */
static void wait_for(const ttn_fasta *f, waiting *w)
{
    const int64_t n = w->n;
    if (n == 0) *w = here(f, offset_now(f));
    w->n = n + 1;
}

static void note_at(ttn_fasta_note *note, int64_t n, int64_t line, int64_t column)
{
    note->n += n;
    if (note->n_place == TTN_FASTA_PLACES) return;
    note->place[note->n_place] = (ttn_fasta_place){line, column};
    note->n_place++;
}

static void note(ttn_fasta *f, int code, waiting w)
{
    assert(ttn_fasta_rule(code));
    note_at(&f->found.note[code], w.n, w.line, w.column);
}

static const char *stream_of(const ttn_fasta *f)
{
    return f->source->facts.is_gzip ? " of the unpacked stream" : "";
}

/* A fault of the file as a whole. */
static ttn_status refuse(ttn_fasta *f, int code, int64_t line, int64_t column, const char *format, ...)
    TTN_PRINTF(5, 6);
static ttn_status refuse(ttn_fasta *f, int code, int64_t line, int64_t column, const char *format, ...)
{
    char text[TTN_ERROR_TEXT] = "";
    va_list args;
    va_start(args, format);
    ttn_text_append(text, sizeof text, format, args);
    va_end(args);
    f->failed_rule = code;
    return TTN_FAIL_AT(&f->failure, TTN_EFORMAT, f->source->name, line, column, "%s (FA%03d)", text, code);
}

/* A fault of one record: what is wrong, and what to do. It ends the reading, or the record is left out. */
static ttn_status fault(ttn_fasta *f, int code, waiting w, const char *what, const char *hint)
{
    enum { SHOWN = 80 }; /* of the id */
    char residue[40] = "";
    if (f->where != IN_HEADER) snprintf(residue, sizeof residue, ", residue %" PRId64, f->n + 1);
    ttn_error told = {0};
    (void)TTN_FAIL_AT(&told, TTN_EFORMAT, f->source->name, w.line, w.column,
                      "%s [record %.*s%s; byte %" PRId64 "%s]; %s (FA%03d)", what, SHOWN,
                      f->id[0] ? f->id : "without a name", residue, w.offset, stream_of(f), hint, code);
    if (!f->rules.skip_records) {
        f->failed_rule = code;
        f->failure = told;
        return TTN_EFORMAT;
    }
    note_at(&f->found.fault[code], 1, w.line, w.column);
    if (f->n_skipped_text < TTN_FASTA_PLACES) {
        f->skipped[f->n_skipped_text] = told;
        f->n_skipped_text++;
    }
    f->is_skipped = 1;
    f->found.skipped++;
    f->where = IN_IGNORED;
    return TTN_OK;
}

/* ---- the stream ---- */

static ttn_status fill(ttn_fasta *f)
{
    size_t got;
    ttn_status status = f->source->read(f->source, f->chunk + f->end, CHUNK - f->end, &got, &f->failure);
    if (status != TTN_OK) {
        f->failed_rule = f->source->failed_rule;
        return status;
    }
    if (got == 0) f->source_ended = 1;
    if (f->source->is_fused) f->fused = f->base + (int64_t)f->end;
    ttn_hash_update(f->hash, f->chunk + f->end, got);
    f->end += got;
    f->found.bytes += (int64_t)got;
    return TTN_OK;
}

/* More bytes behind those that were read, or source_ended. */
static ttn_status next_chunk(ttn_fasta *f)
{
    f->base += (int64_t)f->end;
    f->at = 0;
    f->end = 0;
    return fill(f);
}

static const unsigned char byte_order_mark[3] = {0xef, 0xbb, 0xbf};

/* Let the bytes of a byte order mark be at hand, where there are so many left. */
static ttn_status look_ahead(ttn_fasta *f)
{
    memmove(f->chunk, f->chunk + f->at, f->end - f->at);
    f->base += (int64_t)f->at;
    f->end -= f->at;
    f->at = 0;
    ttn_status status = TTN_OK;
    while (status == TTN_OK && f->end < sizeof byte_order_mark && !f->source_ended)
        status = fill(f);
    return status;
}

/* The first bytes, by which it is judged; a byte order mark is passed over. */
static ttn_status begin(ttn_fasta *f)
{
    f->has_begun = 1;
    while (f->end < TTN_FASTA_LOOK && !f->source_ended && f->fused < 0) {
        ttn_status status = fill(f);
        if (status != TTN_OK) return status;
    }
    if (f->end >= sizeof byte_order_mark && memcmp(f->chunk, byte_order_mark, sizeof byte_order_mark) == 0) {
        note(f, 5, here(f, 0));
        f->at = sizeof byte_order_mark;
        f->line_offset = (int64_t)f->at;
    }
    const size_t n = f->end - f->at < TTN_FASTA_LOOK ? f->end - f->at : TTN_FASTA_LOOK;
    const ttn_fasta_look look = ttn_fasta_sniff(f->chunk + f->at, n);
    return look.code ? refuse(f, look.code, 1, 1, "%s", look.what) : TTN_OK;
}

/* Bytes [0, *n) from `at` are of this line; 1: the line end is behind them. */
static int find_line_end(const ttn_fasta *f, size_t *n)
{
    const uint8_t *bytes = f->chunk + f->at;
    const size_t room = f->end - f->at;
    size_t i = 0;
    while (i < room && bytes[i] != '\n' && bytes[i] != '\r')
        i++;
    *n = i;
    return i < room;
}

/* The byte at `at` is LF or CR, and has been dealt with. */
static void end_line(ttn_fasta *f)
{
    if (f->chunk[f->at] == '\r')
        f->cr = here(f, offset_now(f));
    else
        f->lf_lines++;
    f->at++;
    f->line++;
    f->line_offset = offset_now(f);
    f->blanks.n = 0;
    f->where = AT_START;
}

/* The last line ended in CR: is it CR LF? */
static void resolve_cr(ttn_fasta *f, int next_is_lf)
{
    note(f, next_is_lf ? 1 : 2, f->cr);
    f->cr.n = 0;
    if (!next_is_lf) return;
    f->at++;
    f->line_offset++;
}

/* ---- headers ---- */

/* Nearly all headers are. */
static int is_ascii(const char *text, size_t n)
{
    unsigned char all = 0;
    for (size_t i = 0; i < n; i++)
        all |= (unsigned char)text[i];
    return all < 0x80;
}

/* The header as UTF-8: what is none becomes U+FFFD. Returns how many bytes were replaced; *at: the first of them. */
static int64_t make_text(const char *raw, size_t n, char *text, size_t *at)
{
    static const char replacement[] = "\xef\xbf\xbd";
    if (is_ascii(raw, n)) {
        memcpy(text, raw, n);
        text[n] = 0;
        return 0;
    }
    int64_t replaced = 0;
    for (size_t i = 0; i < n;) {
        const int length = ttn_text_character(raw + i, n - i, NULL);
        if (length > 0) {
            memcpy(text, raw + i, (size_t)length);
            text += length;
            i += (size_t)length;
            continue;
        }
        if (replaced == 0) *at = i;
        memcpy(text, replacement, sizeof replacement - 1);
        text += sizeof replacement - 1;
        replaced++;
        i++;
    }
    *text = 0;
    return replaced;
}

/* Where the first TTN_FASTA_HEADER bytes are all that was kept, the last character may have been cut. */
static void drop_cut_character(ttn_fasta *f)
{
    for (size_t back = 1; back <= 3 && back < f->n_raw; back++) {
        const unsigned char c = (unsigned char)f->raw[f->n_raw - back];
        if (ttn_text_is_continuation((char)c)) continue;
        const size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        if (length > back) f->n_raw -= back;
        return;
    }
}

static int ends_id(char c)
{
    return c == ' ' || c == '\t' || c == 1 || c == 0; /* Ctrl-A joins the headers of NCBI's nr */
}

static ttn_status take_id(ttn_fasta *f)
{
    const waiting w = {1, f->record_line, f->record_offset - f->line_offset + 1, f->record_offset};
    if (f->has_regex) {
        regmatch_t match[2];
        if (regexec(&f->regex, f->header, 2, match, 0) != 0)
            return fault(f, 33, w, "data.id_regex does not match the header", "change the expression, or leave it out");
        const regmatch_t m = f->regex.re_nsub > 0 && match[1].rm_so >= 0 ? match[1] : match[0];
        snprintf(f->id, sizeof f->id, "%.*s", (int)(m.rm_eo - m.rm_so), f->header + m.rm_so);
    } else {
        const char *word = f->header;
        while (*word == ' ' || *word == '\t')
            word++;
        size_t n = 0;
        while (!ends_id(word[n]))
            n++;
        if (n > 0 && word > f->header) note(f, 23, w);
        memcpy(f->id, word, n);
        f->id[n] = 0;
    }
    if (f->id[0]) return TTN_OK;
    if (f->rules.ids != TTN_IDS_ANY)
        return fault(f, 22, w, "the header has no id, and what is made here is found by id",
                     "give every record a name");
    note(f, 22, w);
    snprintf(f->id, sizeof f->id, "%s:%" PRId64, f->source->name, f->record_line);
    return TTN_OK;
}

/* Where records are found by id: no id twice. */
static ttn_status check_id(ttn_fasta *f)
{
    if (f->rules.ids == TTN_IDS_ANY || f->is_skipped) return TTN_OK;
    const waiting w = {1, f->record_line, f->record_offset - f->line_offset + 1, f->record_offset};
    int64_t *number;
    int is_new;
    size_t n = strlen(f->id);
    const ttn_hash128 hash = ttn_hash128_of(f->id, n);
    const int is_unique = f->rules.ids == TTN_IDS_UNIQUE;
    ttn_status status = ttn_seen_add(f->ids, hash, is_unique ? f->record_line : 1, &number, &is_new, &f->failure);
    if (status != TTN_OK || is_new) return status;
    if (is_unique) {
        char what[120];
        snprintf(what, sizeof what, "the id of this record is that of line %" PRId64 ", too", *number);
        return fault(f, 29, w, what, "make them differ, or ask for --dup-ids suffix");
    }
    int64_t k = *number; /* the last one that was given, or a little less */
    while (!is_new && status == TTN_OK) {
        k++;
        snprintf(f->id + n, sizeof f->id - n, "_%" PRId64, k);
        status = ttn_seen_add(f->ids, ttn_hash128_of(f->id, strlen(f->id)), 1, &number, &is_new, &f->failure);
    }
    if (status == TTN_OK) status = ttn_seen_add(f->ids, hash, 1, &number, &is_new, &f->failure);
    if (status == TTN_OK) *number = k;
    return status;
}

static ttn_status end_header(ttn_fasta *f)
{
    if (f->n_header > TTN_FASTA_HEADER) {
        note(f, 13, (waiting){.n = 1, .line = f->record_line, .column = 1});
        drop_cut_character(f);
    }
    while (f->n_raw > 0 && (f->raw[f->n_raw - 1] == ' ' || f->raw[f->n_raw - 1] == '\t'))
        f->n_raw--;
    size_t at = 0;
    const int64_t replaced = make_text(f->raw, f->n_raw, f->header, &at);
    const int64_t begins = f->record_offset - f->line_offset + 2;
    if (replaced > 0) note(f, 32, (waiting){.n = replaced, .line = f->record_line, .column = begins + (int64_t)at});
    const char *mark = is_ascii(f->raw, f->n_raw) ? NULL : strstr(f->header, "\xef\xbb\xbf");
    if (mark)
        return refuse(f, 5, f->record_line, begins + (mark - f->header),
                      "a byte order mark inside the file: files were joined; take it out");
    ttn_status status = take_id(f);
    return status == TTN_OK && !f->is_skipped ? check_id(f) : status;
}

static ttn_status refuse_fused(ttn_fasta *f)
{
    return refuse(
        f, 63, f->line, f->fused - f->line_offset + 1,
        "'>' in the middle of a line, where a gzip member begins: files were joined of which one lacked its last "
        "line end; put it there and join them again");
}

/* Is the fused '>' among the next n bytes, in a text where a '>' may stand? Blocks of BGZF are cut anywhere, members of other
 * files are files. */
static int swallows_fused(const ttn_fasta *f, size_t n)
{
    return f->fused >= offset_now(f) && f->fused < offset_now(f) + (int64_t)n && !f->source->facts.is_bgzf;
}

static ttn_status read_header(ttn_fasta *f)
{
    size_t n;
    const int is_end = find_line_end(f, &n);
    const uint8_t *bytes = f->chunk + f->at;
    if (swallows_fused(f, n)) return refuse_fused(f);
    const uint8_t *nul = n > 0 ? memchr(bytes, 0, n) : NULL;
    const size_t room = sizeof f->raw - f->n_raw;
    memcpy(f->raw + f->n_raw, bytes, n < room ? n : room);
    f->n_raw += n < room ? n : room;
    f->n_header += (int64_t)n;
    if (f->n_header > TTN_FASTA_LONGEST_HEADER)
        return refuse(f, 13, f->record_line, 1, "a header of more than %d bytes; is this a FASTA file?",
                      (int)TTN_FASTA_LONGEST_HEADER);
    f->at += n;
    ttn_status status = TTN_OK;
    if (nul)
        status = fault(f, 21, here(f, offset_now(f) - (int64_t)n + (nul - bytes)), "a NUL byte in a header",
                       "the file is damaged, or no text; get it again");
    if (status != TTN_OK || !is_end || f->is_skipped) return status;
    status = end_header(f);
    if (status == TTN_OK) end_line(f);
    return status;
}

static void begin_record(ttn_fasta *f)
{
    if (f->blanks.n > 0) note(f, 24, f->blanks);
    f->found.records++;
    f->in_record = 1;
    f->is_skipped = 0;
    f->lower_case = 0;
    f->is_split = 0;
    f->pieces = 0;
    f->n = 0;
    f->n_raw = 0;
    f->n_header = 0;
    f->id[0] = 0;
    f->record_line = f->line;
    f->record_offset = offset_now(f);
    f->stops.n = 0;
    f->blank_lines.n = 0;
    f->where = IN_HEADER;
    f->at++;
}

/* ---- the end of a record ---- */

static void give(ttn_fasta *f)
{
    f->is_ready = 1;
    f->record = (ttn_fasta_record){
        .id = f->id,
        .header = f->header,
        .token = f->token,
        .lower = f->lower,
        .n = f->n,
        .line = f->record_line,
        .offset = f->record_offset,
    };
    f->pieces++;
    if (f->is_split) {
        snprintf(f->piece_id, sizeof f->piece_id, "%s/%" PRId64, f->id, f->pieces);
        f->record.id = f->piece_id;
    }
    f->found.given++;
    f->found.residues += f->n;
}

/* The residues of the first records: are they nucleotides? At the end of the file, or of these records. */
static ttn_status judge_nucleotides(ttn_fasta *f, int is_end)
{
    if (f->rules.allow_nucleotide || (!is_end && f->found.given != NUCLEOTIDE_RECORDS)) return TTN_OK;
    if (is_end && f->found.given >= NUCLEOTIDE_RECORDS) return TTN_OK; /* it was done */
    if (f->judged < NUCLEOTIDE_LEAST || f->judged_nucleotides * 100 <= f->judged * NUCLEOTIDE_PERCENT) return TTN_OK;
    return refuse(f, 51, 0, 0,
                  "%.1f %% of the %" PRId64 " residues in the first %" PRId64
                  " records are A, C, G, T, U or N: these are nucleotides, not proteins; translate them, or set "
                  "data.allow_nucleotide=yes",
                  100.0 * (double)f->judged_nucleotides / (double)f->judged, f->judged, f->found.given);
}

static ttn_status count_nucleotides(ttn_fasta *f)
{
    if (f->found.given > NUCLEOTIDE_RECORDS) return TTN_OK;
    f->judged += f->n;
    for (int64_t i = 0; i < f->n; i++)
        f->judged_nucleotides += f->is_nucleotide[f->token[i]];
    return judge_nucleotides(f, 0);
}

/* What has been read is a record, or a piece of one. */
static ttn_status complete(ttn_fasta *f)
{
    if (f->rules.format == TTN_FORMAT_A3M_QUERY && f->found.given > 0) {
        f->n = 0;
        return TTN_OK;
    }
    give(f);
    return count_nucleotides(f);
}

static ttn_status end_record(ttn_fasta *f)
{
    f->in_record = 0;
    if (f->is_skipped) return TTN_OK;
    if (f->stops.n > 0) note(f, 41, f->stops);
    if (f->n == 0 && f->pieces == 0) {
        f->n_empty++;
        f->last_empty = (waiting){1, f->record_line, 1, f->record_offset};
        note(f, f->source_ended ? 28 : 27, f->last_empty);
        return TTN_OK;
    }
    return f->n > 0 ? complete(f) : TTN_OK;
}

/* ---- residues ---- */

/* Room for `more` residues. */
static ttn_status reserve(ttn_fasta *f, int64_t more)
{
    const int64_t wanted = f->n + more;
    if (wanted <= f->room) return TTN_OK;
    int64_t room = f->room > 0 ? f->room : FIRST_ROOM;
    while (room < wanted)
        room *= 2;
    uint8_t *token = realloc(f->token, (size_t)room);
    if (token) f->token = token;
    uint8_t *lower = token && f->rules.lowercase == TTN_LOWERCASE_EXCLUDE ? realloc(f->lower, (size_t)room) : NULL;
    if (lower) f->lower = lower;
    if (!token || (!lower && f->rules.lowercase == TTN_LOWERCASE_EXCLUDE))
        return TTN_FAIL(&f->failure, TTN_ENOMEM,
                        "%s:%" PRId64 ": out of memory for a record of more than %" PRId64 " residues", f->source->name,
                        f->line, f->n);
    f->room = room;
    return TTN_OK;
}

static ttn_status too_long(ttn_fasta *f)
{
    char what[80];
    snprintf(what, sizeof what, "a record of more than %" PRId64 " residues", f->rules.most);
    return fault(f, 11, here(f, offset_now(f)), what, "set data.max_record to more, if the file is right");
}

/* n residues of the record, whose room was reserved, stand behind the n that it has. */
static void add(ttn_fasta *f, int64_t n, int is_lower)
{
    if (f->lower) memset(f->lower + f->n, is_lower, (size_t)n);
    f->n += n;
}

/* '*' inside a sequence: a residue follows. */
static ttn_status resolve_stops(ttn_fasta *f)
{
    const waiting w = f->stops;
    f->stops.n = 0;
    if (f->rules.stop == TTN_STOP_ERROR)
        return fault(f, 42, w, "'*' (a stop) inside a sequence",
                     "set data.stop=split or data.stop=x, or translate anew");
    note(f, 42, w);
    if (f->rules.stop == TTN_STOP_SPLIT) {
        if (f->n == 0) return TTN_OK; /* at the very beginning */
        f->is_split = 1;
        return complete(f);
    }
    ttn_status status = reserve(f, w.n);
    if (status != TTN_OK) return status;
    memset(f->token + f->n, f->rules.alphabet->map['X'], (size_t)w.n);
    add(f, w.n, 0);
    return TTN_OK;
}

/* A residue follows: what waits was inside. */
static ttn_status resolve_waiting(ttn_fasta *f)
{
    if (f->blanks.n > 0) note(f, 17, f->blanks);
    if (f->blank_lines.n > 0) note(f, 8, f->blank_lines);
    f->blanks.n = 0;
    f->blank_lines.n = 0;
    return f->stops.n > 0 ? resolve_stops(f) : TTN_OK;
}

/* Capital letters, as many as come. */
static ttn_status read_run(ttn_fasta *f)
{
    const uint8_t *bytes = f->chunk + f->at;
    const int64_t n = (int64_t)(f->end - f->at);
    ttn_status status = reserve(f, n);
    if (status != TTN_OK) return status;
    uint8_t *to = f->token + f->n;
    const uint8_t *table = f->table;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint8_t any = 0;
        for (int k = 0; k < 8; k++) {
            to[i + k] = table[bytes[i + k]];
            any |= to[i + k];
        }
        if (any & 0x80) break;
    }
    while (i < n && !(table[bytes[i]] & 0x80)) {
        to[i] = table[bytes[i]];
        i++;
    }
    add(f, i, 0);
    f->at += (size_t)i;
    return f->n > f->rules.most ? too_long(f) : TTN_OK;
}

static int is_small_letter(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static ttn_status read_lower(ttn_fasta *f)
{
    waiting w = here(f, offset_now(f));
    if (f->rules.lowercase == TTN_LOWERCASE_ERROR)
        return fault(f, 40, w, "a lower-case residue", "set data.lowercase=upper if this is a soft mask");
    const uint8_t *bytes = f->chunk + f->at;
    const int64_t n = (int64_t)(f->end - f->at);
    ttn_status status = reserve(f, n);
    if (status != TTN_OK) return status;
    int64_t i = 0;
    while (i < n && is_small_letter(bytes[i])) {
        const uint8_t capital = (uint8_t)(bytes[i] - 'a' + 'A');
        f->token[f->n + i] = f->rules.alphabet->map[capital];
        if (f->table[capital] == BYTE_SUBSTITUTE) note(f, 39, here(f, offset_now(f) + i));
        i++;
    }
    w.n = i;
    note(f, 40, w);
    f->lower_case += i;
    add(f, i, 1);
    f->at += (size_t)i;
    return f->n > f->rules.most ? too_long(f) : TTN_OK;
}

static ttn_status read_substitute(ttn_fasta *f)
{
    ttn_status status = reserve(f, 1);
    if (status != TTN_OK) return status;
    note(f, 39, here(f, offset_now(f)));
    f->token[f->n] = f->rules.alphabet->map[f->chunk[f->at]];
    add(f, 1, 0);
    f->at++;
    return f->n > f->rules.most ? too_long(f) : TTN_OK;
}

static ttn_status read_gap(ttn_fasta *f)
{
    const uint8_t c = f->chunk[f->at];
    const waiting w = here(f, offset_now(f));
    const int code = c == '-' ? 43 : c == '.' ? 44 : 45;
    if (f->is_alignment || f->rules.strip_gaps) {
        note(f, code, w);
        f->at++;
        return TTN_OK;
    }
    char what[40];
    snprintf(what, sizeof what, "'%c' (a gap) in a sequence", c);
    if (f->lower_case > 0 && c == '-')
        return fault(f, 46, w, what, "looks like A3M, an alignment: set data.format=a3m or a3m-query");
    if (f->lower_case > 0 && c == '.')
        return fault(f, 47, w, what, "looks like A2M, an alignment: set data.format=a3m");
    return fault(f, code, w, what, "looks like an alignment: set data.gaps=strip to take the gaps out");
}

static ttn_status read_digit(ttn_fasta *f)
{
    const waiting w = here(f, offset_now(f));
    if (f->rules.strip_digits) {
        note(f, 49, w);
        f->at++;
        return TTN_OK;
    }
    char what[60];
    const uint8_t c = f->chunk[f->at];
    snprintf(what, sizeof what, "character '%c' (0x%02x) is not an amino acid", c, (unsigned)c);
    return fault(f, 49, w, what, "looks like GenBank's numbering: set data.strip_digits=yes");
}

/* A line that is no header, before the first one. */
static ttn_status refuse_text(ttn_fasta *f)
{
    size_t n;
    find_line_end(f, &n);
    const uint8_t *bytes = f->chunk + f->at;
    int small = 0, capitals = 0, others = 0, controls = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t kind = f->table[bytes[i]];
        controls += bytes[i] < 9;
        if (kind == TTN_BYTE_LOWER)
            small++;
        else if (kind < 0x80 || kind == BYTE_SUBSTITUTE || kind == TTN_BYTE_STOP)
            capitals++;
        else
            others++;
    }
    const int64_t column = offset_now(f) - f->line_offset + 1;
    if (controls > 0) return refuse(f, 58, f->line, column, "this is no text file, and of no kind that is known");
    if (others == 0 && (small == 0 || capitals == 0)) {
        if (f->has_comment)
            return refuse(
                f, 36, f->line, column,
                "residues before the first '>', and a ';' above them: this is the old format that has ';' for '>'; "
                "replace the first ';' of every record");
        return refuse(f, 57, f->line, column, "residues before the first header: put a line '>NAME' before them");
    }
    const size_t rest = f->end - f->at < TTN_FASTA_LOOK ? f->end - f->at : TTN_FASTA_LOOK;
    for (size_t i = n; i + 1 < rest; i++)
        if ((bytes[i] == '\n' || bytes[i] == '\r') && bytes[i + 1] == '>')
            return refuse(f, 37, f->line, column, "text before the first header; take it out, or put ';' before it");
    return refuse(f, 56, f->line, column, "this is no FASTA file: it begins with text, and not with '>'");
}

/* Is there a byte order mark at `at`? */
static int is_mark(const ttn_fasta *f)
{
    return f->end - f->at >= sizeof byte_order_mark &&
           memcmp(f->chunk + f->at, byte_order_mark, sizeof byte_order_mark) == 0;
}

static ttn_status read_illegal(ttn_fasta *f)
{
    const uint8_t c = f->chunk[f->at];
    if (c == byte_order_mark[0]) {
        ttn_status status = look_ahead(f);
        if (status != TTN_OK) return status;
    }
    const waiting w = here(f, offset_now(f));
    char what[80];
    if (c > ' ' && c < 0x7f)
        snprintf(what, sizeof what, "character '%c' (0x%02x) is not an amino acid", c, (unsigned)c);
    else
        snprintf(what, sizeof what, "byte 0x%02x is not an amino acid", (unsigned)c);
    if (c == '>' && offset_now(f) == f->fused) return refuse_fused(f);
    if (c == '>')
        return fault(f, 26, w, "'>' inside a line of residues", "a line end is missing before it; put it there");
    if (c == ';') return fault(f, 35, w, "';' inside a line of residues", "a comment stands on a line of its own");
    if (c == 0) return fault(f, 20, w, "a NUL byte in a sequence", "the file is damaged, or no text; get it again");
    if (c == 0x1a) { /* the end of a file under DOS; whether it is the last byte shows with the next */
        f->ctrl_z = w;
        f->at++;
        return TTN_OK;
    }
    if (c < ' ' || c == 0x7f) return fault(f, 18, w, what, "it is a control character; take it out");
    if (is_mark(f))
        return refuse(f, 5, w.line, w.column, "a byte order mark inside the file: files were joined; take it out");
    if (f->found.records == 0) return refuse_text(f);
    if (c >= 0x80) return fault(f, 50, w, what, "residues are letters of ASCII; take it out");
    return fault(f, 38, w, what, "residues are letters A to Z; take it out");
}

static ttn_status read_sequence(ttn_fasta *f)
{
    const uint8_t c = f->chunk[f->at];
    const uint8_t kind = f->table[c];
    const int is_residue = kind < 0x80 || kind == BYTE_SUBSTITUTE || kind == TTN_BYTE_LOWER;
    if (is_residue && (f->blanks.n > 0 || f->blank_lines.n > 0 || f->stops.n > 0)) {
        ttn_status status = resolve_waiting(f);
        if (status != TTN_OK || f->is_ready || f->is_skipped) return status;
    }
    if (kind < 0x80) return read_run(f);
    switch (kind) {
    case BYTE_SUBSTITUTE:
        return read_substitute(f);
    case TTN_BYTE_LOWER:
        return read_lower(f);
    case TTN_BYTE_LINE:
        if (f->blanks.n > 0) note(f, 16, f->blanks);
        end_line(f);
        return TTN_OK;
    case TTN_BYTE_SPACE:
        wait_for(f, &f->blanks);
        f->at++;
        return TTN_OK;
    case TTN_BYTE_STOP:
        wait_for(f, &f->stops);
        f->at++;
        return TTN_OK;
    case TTN_BYTE_GAP:
        return read_gap(f);
    case TTN_BYTE_DIGIT:
        return read_digit(f);
    default:
        return read_illegal(f);
    }
}

/* ---- lines ---- */

static ttn_status ignore_line(ttn_fasta *f)
{
    size_t n;
    const int is_end = find_line_end(f, &n);
    if (swallows_fused(f, n)) return refuse_fused(f);
    f->at += n;
    if (is_end) end_line(f);
    return TTN_OK;
}

static ttn_status begin_line(ttn_fasta *f)
{
    const uint8_t c = f->chunk[f->at];
    const uint8_t kind = f->table[c];
    if (kind == TTN_BYTE_SPACE) {
        wait_for(f, &f->blanks);
        f->at++;
        return TTN_OK;
    }
    if (kind == TTN_BYTE_LINE) {
        if (f->in_record) wait_for(f, &f->blank_lines);
        end_line(f);
        return TTN_OK;
    }
    if (c == '>') {
        if (f->in_record) return end_record(f); /* and then here again */
        begin_record(f);
        return TTN_OK;
    }
    const int is_before = f->found.records == 0;
    if (c == ';' || (is_before && (c == '#' || c == '!'))) {
        if (!f->is_skipped) note(f, is_before ? 34 : 35, here(f, offset_now(f)));
        if (is_before && c == ';') f->has_comment = 1;
        f->where = IN_IGNORED;
        return TTN_OK;
    }
    if (is_before && c != byte_order_mark[0]) return refuse_text(f);
    f->where = f->is_skipped ? IN_IGNORED : IN_SEQUENCE;
    return TTN_OK;
}

/* ---- the end of the file ---- */

/* The lines and the record that the stream ends in. */
static ttn_status end_stream(ttn_fasta *f)
{
    if (f->cr.n > 0) resolve_cr(f, 0);
    if (f->ctrl_z.n > 0) note(f, 19, f->ctrl_z);
    f->ctrl_z.n = 0;
    if (f->where == IN_HEADER) {
        if (f->n_raw > 0 && f->n_header == (int64_t)f->n_raw && f->raw[f->n_raw - 1] == 0x1a) {
            f->n_raw--;
            note(f, 19, here(f, offset_now(f) - 1));
        }
        ttn_status status = end_header(f);
        if (status != TTN_OK) return status;
    }
    if (f->where == IN_SEQUENCE && f->blanks.n > 0) note(f, 16, f->blanks);
    f->where = AT_START;
    return f->in_record ? end_record(f) : TTN_OK;
}

/* What can be said when all was read. */
static ttn_status judge(ttn_fasta *f)
{
    f->found.hash = ttn_hash_final(f->hash);
    if (f->found.note[1].n > 0 && f->lf_lines > 0)
        note(f, 3,
             (waiting){.n = 1, .line = f->found.note[1].place[0].line, .column = f->found.note[1].place[0].column});
    if (f->source->facts.zeros > 0) note(f, 65, (waiting){.n = f->source->facts.zeros});
    if (f->found.records == 0)
        return refuse(f, 61, 0, 0,
                      f->found.bytes == 0 ? "there is nothing in it; was it written?" : "there is no record in it");
    if (f->n_empty * EMPTY_ONE_IN > f->found.records)
        return refuse(f, 27, f->last_empty.line, 1,
                      "%" PRId64 " of %" PRId64
                      " records have no residues, and more than 1 %% are too many to be chance; this "
                      "is the last one; get the file again, or take them out",
                      f->n_empty, f->found.records);
    const double most = f->rules.max_skipped * (double)f->found.records;
    if (f->found.skipped > 0 && (double)f->found.skipped > most) {
        int code = 1;
        while (f->found.fault[code].n == 0)
            code++;
        return refuse(f, code, 0, 0,
                      "%" PRId64 " of %" PRId64
                      " records had a fault and were left out, which is more than data.max_skipped "
                      "allows; the first: %.500s",
                      f->found.skipped, f->found.records, f->skipped[0].text);
    }
    return judge_nucleotides(f, 1);
}

/* ---- the machine ---- */

static ttn_status step(ttn_fasta *f)
{
    if (f->cr.n > 0) {
        resolve_cr(f, f->chunk[f->at] == '\n');
        return TTN_OK;
    }
    if (f->ctrl_z.n > 0) {
        const waiting w = f->ctrl_z;
        f->ctrl_z.n = 0;
        return fault(f, 19, w, "Ctrl-Z (byte 0x1a) in a sequence",
                     "only the last byte of a file may be one; take it out");
    }
    switch (f->where) {
    case AT_START:
        return begin_line(f);
    case IN_HEADER:
        return read_header(f);
    case IN_SEQUENCE:
        return read_sequence(f);
    default:
        return ignore_line(f);
    }
}

/* Until a record is ready or the file has ended. */
static ttn_status read_on(ttn_fasta *f)
{
    ttn_status status = f->has_begun ? TTN_OK : begin(f);
    f->n = 0; /* what was given before is done with */
    while (status == TTN_OK && !f->is_ready && !f->ended) {
        if (f->at < f->end) {
            status = step(f);
        } else if (!f->source_ended) {
            status = next_chunk(f);
        } else if (f->in_record || f->where != AT_START || f->cr.n > 0) {
            status = end_stream(f);
        } else {
            f->ended = 1;
            status = judge(f);
        }
    }
    return status;
}

ttn_status ttn_fasta_next(ttn_fasta *f, const ttn_fasta_record **ret, ttn_error *err)
{
    *ret = NULL;
    f->is_ready = 0;
    if (f->failure.status == TTN_OK && !f->ended) {
        ttn_status status = read_on(f);
        assert(status == f->failure.status);
        (void)status;
    }
    if (f->failure.status != TTN_OK) {
        if (err && err->status == TTN_OK) *err = f->failure;
        return f->failure.status;
    }
    if (!f->is_ready) return TTN_EOF;
    *ret = &f->record;
    return TTN_OK;
}

/* ---- open, close ---- */

static void make_tables(ttn_fasta *f)
{
    const ttn_alphabet *a = f->rules.alphabet;
    memcpy(f->table, a->map, sizeof f->table);
    for (int c = 'A'; c <= 'Z'; c++)
        if (!ttn_alphabet_has_letter(a, (char)c)) f->table[c] = BYTE_SUBSTITUTE;
    for (const char *c = "ACGTUN"; *c; c++)
        if (ttn_alphabet_has_letter(a, *c)) f->is_nucleotide[a->map[(unsigned char)*c]] = 1;
}

static void set_format(ttn_fasta *f)
{
    const ttn_fasta_format format = f->rules.format;
    const int by_name = format == TTN_FORMAT_AUTO;
    const int code = by_name && ttn_fasta_is_called(f->source->name, ".a3m")   ? 46
                     : by_name && ttn_fasta_is_called(f->source->name, ".a2m") ? 47
                                                                               : 0;
    if (code) note(f, code, (waiting){.n = 1, .line = 1, .column = 1});
    f->is_alignment = code != 0 || format == TTN_FORMAT_A3M || format == TTN_FORMAT_A3M_QUERY;
}

static ttn_status set_up(ttn_fasta *f, ttn_error *err)
{
    if (!f->rules.alphabet) f->rules.alphabet = ttn_alphabet_find("esm");
    if (f->rules.max_skipped == 0) f->rules.max_skipped = usual_max_skipped;
    if (f->rules.most == 0) f->rules.most = usual_most;
    f->fused = -1;
    f->line = 1;
    make_tables(f);
    set_format(f);
    f->chunk = malloc(CHUNK); /* not zeroed, which would cost as much as reading a small file */
    if (!f->chunk) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for the bytes of %s", f->source->name);
    ttn_status status = ttn_hash_create(&f->hash, err);
    if (status == TTN_OK && f->rules.ids != TTN_IDS_ANY) status = ttn_seen_create("the ids of a file", &f->ids, err);
    if (status != TTN_OK || !f->rules.id_regex) return status;
    const int code = regcomp(&f->regex, f->rules.id_regex, REG_EXTENDED);
    if (code == 0) {
        f->has_regex = 1;
        return TTN_OK;
    }
    char why[100];
    regerror(code, &f->regex, why, sizeof why);
    return TTN_FAIL(err, TTN_EINVAL, "data.id_regex: '%s' is no extended regular expression: %s", f->rules.id_regex,
                    why);
}

ttn_status ttn_fasta_open(ttn_source *source, const ttn_fasta_rules *rules, ttn_fasta **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_fasta *f = ttn_alloc_or_say(1, sizeof *f, "a reader of FASTA", err);
    if (!f) {
        ttn_source_close(source);
        return TTN_ENOMEM;
    }
    f->source = source;
    if (rules) f->rules = *rules;
    ttn_status status = set_up(f, err);
    if (status == TTN_OK)
        *ret = f;
    else
        ttn_fasta_close(f);
    return status;
}

ttn_status ttn_fasta_open_path(const char *path, const ttn_fasta_rules *rules, ttn_fasta **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_source *source;
    const ttn_source_rules source_rules = {.allow_no_bgzf_eof = rules && rules->allow_no_bgzf_eof};
    ttn_status status = ttn_source_open(path, &source_rules, &source, err);
    return status == TTN_OK ? ttn_fasta_open(source, rules, ret, err) : status;
}

void ttn_fasta_close(ttn_fasta *f)
{
    if (!f) return;
    if (f->has_regex) regfree(&f->regex);
    ttn_source_close(f->source);
    ttn_hash_destroy(f->hash);
    ttn_seen_destroy(f->ids);
    free(f->chunk);
    free(f->token);
    free(f->lower);
    ttn_free(f);
}

/* ---- what was found ---- */

const ttn_fasta_counts *ttn_fasta_found(const ttn_fasta *f)
{
    return &f->found;
}

const ttn_source_facts *ttn_fasta_source(const ttn_fasta *f)
{
    return &f->source->facts;
}

const char *ttn_fasta_name(const ttn_fasta *f)
{
    return f->source->name;
}

const char *ttn_fasta_skipped(const ttn_fasta *f, int i)
{
    return i >= 0 && i < f->n_skipped_text ? f->skipped[i].text : NULL;
}

int ttn_fasta_failed_rule(const ttn_fasta *f)
{
    return f->failed_rule;
}
