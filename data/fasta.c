/* The reader is a machine that is fed chunks of a stream and stops where a record is complete. What it is doing is `where`;
 * a line, a record or a gzip member may end anywhere in a chunk. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "data/fasta_impl.h"

static const double usual_max_skipped = 0.001;
static const int64_t usual_most = 200000000;

/* ---- lines ---- */

static ttn_status ignore_line(ttn_fasta *f)
{
    size_t n;
    const int is_end = ttn_fasta_line(f, &n);
    if (ttn_fasta_swallows_fused(f, n)) return ttn_fasta_refuse_fused(f);
    f->at += n;
    if (is_end) ttn_fasta_end_line(f);
    return TTN_OK;
}

/* ColabFold's A3M of a complex begins with the lengths of its chains ("#60,40<tab>1,1"), and each row is all chains side by
 * side: read as they stand they would be one protein. */
static ttn_status check_chains(ttn_fasta *f)
{
    ttn_status status = ttn_fasta_look_ahead(f, TTN_FASTA_LOOK);
    if (status != TTN_OK) return status;
    size_t n, at = 1;
    int commas = 0;
    ttn_fasta_line(f, &n);
    const uint8_t *line = f->chunk + f->at;
    while (at < n && (line[at] == ',' || f->table[line[at]] == TTN_BYTE_DIGIT)) {
        commas += line[at] == ',';
        at++;
    }
    if (commas == 0 || at == n || line[at] != '\t') return TTN_OK;
    return ttn_fasta_refuse(
        f, 46, f->line, 1,
        "each row of this alignment is %d chains side by side, as ColabFold writes complexes: write "
        "the chains as records of their own",
        commas + 1);
}

static ttn_status begin_line(ttn_fasta *f)
{
    const uint8_t c = f->chunk[f->at];
    const uint8_t kind = f->table[c];
    if (kind == TTN_BYTE_SPACE) {
        ttn_fasta_wait(f, &f->blanks);
        f->at++;
        return TTN_OK;
    }
    if (kind == TTN_BYTE_LINE) {
        if (f->in_record) ttn_fasta_wait(f, &f->blank_lines);
        ttn_fasta_end_line(f);
        return TTN_OK;
    }
    if (c == 0 && f->is_alignment) {                      /* servers write one behind each alignment */
        if (f->in_record) return ttn_fasta_end_record(f); /* and then here again */
        ttn_fasta_count(f, 68, ttn_fasta_here(f, ttn_fasta_offset(f)));
        f->has_query = 0;
        f->at++;
        return TTN_OK;
    }
    if (c == '>') {
        if (f->in_record) return ttn_fasta_end_record(f); /* and then here again */
        ttn_fasta_begin_record(f);
        return TTN_OK;
    }
    /* In A3M a NUL may end an alignment, and a comment stand above the next one. */
    const int is_before = f->found.records == 0 || (f->is_alignment && !f->in_record);
    if (c == '#' && is_before && f->is_alignment) {
        ttn_status status = check_chains(f);
        if (status != TTN_OK) return status;
    }
    if (c == ';' || (is_before && (c == '#' || c == '!'))) {
        if (!f->is_skipped) ttn_fasta_count(f, is_before ? 34 : 35, ttn_fasta_here(f, ttn_fasta_offset(f)));
        if (is_before && c == ';') f->has_comment = 1;
        f->where = TTN_IN_IGNORED;
        return TTN_OK;
    }
    if (is_before && c != TTN_BYTE_MARK) return ttn_fasta_refuse_text(f);
    f->where = f->is_skipped ? TTN_IN_IGNORED : TTN_IN_SEQUENCE;
    return TTN_OK;
}

/* ---- the end of the file ---- */

/* The lines and the record that the stream ends in. */
static ttn_status end_stream(ttn_fasta *f)
{
    if (f->cr.n > 0) ttn_fasta_resolve_cr(f, -1);
    if (f->ctrl_z.n > 0) ttn_fasta_count(f, 19, f->ctrl_z);
    f->ctrl_z.n = 0;
    if (f->where == TTN_IN_HEADER) {
        if (f->n_raw > 0 && f->n_header == (int64_t)f->n_raw && f->raw[f->n_raw - 1] == 0x1a) {
            f->n_raw--;
            ttn_fasta_count(f, 19, ttn_fasta_here(f, ttn_fasta_offset(f) - 1));
        }
        ttn_status status = ttn_fasta_end_header(f);
        if (status != TTN_OK) return status;
    }
    if (f->where == TTN_IN_SEQUENCE && f->blanks.n > 0) ttn_fasta_count(f, 16, f->blanks);
    if (f->where == TTN_IN_SEQUENCE) {
        ttn_status status = ttn_fasta_judge_line(f);
        if (status != TTN_OK) return status;
    }
    f->where = TTN_AT_START;
    return f->in_record ? ttn_fasta_end_record(f) : TTN_OK;
}

/* ---- the machine ---- */

static ttn_status step(ttn_fasta *f)
{
    if (f->cr.n > 0) {
        ttn_fasta_resolve_cr(f, f->chunk[f->at]);
        return TTN_OK;
    }
    if (f->ctrl_z.n > 0) {
        const ttn_fasta_waiting w = f->ctrl_z;
        f->ctrl_z.n = 0;
        return ttn_fasta_blame(f, 19, w, "Ctrl-Z (byte 0x1a) in a sequence",
                               "only the last byte of a file may be one; take it out");
    }
    switch (f->where) {
    case TTN_AT_START:
        return begin_line(f);
    case TTN_IN_HEADER:
        return ttn_fasta_read_header(f);
    case TTN_IN_SEQUENCE:
        return ttn_fasta_read_sequence(f);
    default:
        return ignore_line(f);
    }
}

/* Until a record is ready or the file has ended. */
static ttn_status read_on(ttn_fasta *f)
{
    ttn_status status = f->has_begun ? TTN_OK : ttn_fasta_begin(f);
    f->n = 0; /* what was given before is done with */
    while (status == TTN_OK && !f->is_ready && !f->ended) {
        if (f->at < f->end) {
            status = step(f);
        } else if (!f->source_ended) {
            status = ttn_fasta_next_chunk(f);
        } else if (f->in_record || f->where != TTN_AT_START || f->cr.n > 0) {
            status = end_stream(f);
        } else {
            f->ended = 1;
            status = ttn_fasta_judge(f);
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
        if (!ttn_alphabet_has_letter(a, (char)c)) f->table[c] = TTN_BYTE_SUBSTITUTE;
    static const char letters[] = "ACGTUN";
    static const uint8_t bits[] = {1, 2, 4, 8, 8, 16};
    for (int i = 0; letters[i]; i++)
        if (ttn_alphabet_has_letter(a, letters[i])) f->nucleotide[a->map[(unsigned char)letters[i]]] = bits[i];
}

static void set_format(ttn_fasta *f)
{
    const ttn_fasta_format format = f->rules.format;
    const int by_name = format == TTN_FORMAT_AUTO;
    const int code = by_name && ttn_fasta_is_called(f->source->name, ".a3m")   ? 46
                     : by_name && ttn_fasta_is_called(f->source->name, ".a2m") ? 47
                                                                               : 0;
    if (code) ttn_fasta_count(f, code, (ttn_fasta_waiting){.n = 1, .line = 1, .column = 1});
    f->is_alignment = code != 0 || format == TTN_FORMAT_A3M || format == TTN_FORMAT_A3M_QUERY;
}

/* The C library takes stack for every '(' and memory for every repetition ("((a{255}){255}){255}" 3.5 GB), and a run's
 * configuration may be somebody else's. */
enum { LONGEST_REGEX = 1000, MOST_REPETITIONS = 1000 };

/* How often "{m,n}" repeat, all of an expression multiplied; at most about MOST_REPETITIONS squared. */
static int64_t repetitions(const char *regex)
{
    int64_t times = 1;
    for (const char *at = strchr(regex, '{'); at && times <= MOST_REPETITIONS; at = strchr(at + 1, '{')) {
        int64_t most = 0, now = 0;
        for (const char *c = at + 1; (*c >= '0' && *c <= '9') || *c == ','; c++) {
            now = *c == ',' ? 0 : 10 * now + (*c - '0');
            if (now > MOST_REPETITIONS) now = MOST_REPETITIONS + 1;
            if (now > most) most = now;
        }
        if (most > 1) times *= most;
    }
    return times;
}

static ttn_status compile_regex(ttn_fasta *f, ttn_error *err)
{
    const char *regex = f->rules.id_regex;
    if (strlen(regex) > LONGEST_REGEX)
        return TTN_FAIL(err, TTN_EINVAL, "data.id_regex: has %zu characters, at most %d are allowed", strlen(regex),
                        LONGEST_REGEX);
    if (repetitions(regex) > MOST_REPETITIONS)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "data.id_regex: '%.200s' repeats too much: the counts in {} multiplied are at most %d; use + or *", regex,
            MOST_REPETITIONS);
    const int code = regcomp(&f->regex, regex, REG_EXTENDED);
    if (code == 0) {
        f->has_regex = 1;
        return TTN_OK;
    }
    char why[100];
    regerror(code, &f->regex, why, sizeof why);
    return TTN_FAIL(err, TTN_EINVAL, "data.id_regex: '%s' is no extended regular expression: %s", regex, why);
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
    f->chunk = malloc(TTN_FASTA_CHUNK); /* not zeroed, which would cost as much as reading a small file */
    if (!f->chunk) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for the bytes of %s", f->source->name);
    ttn_status status = ttn_hash_create(&f->hash, err);
    if (status == TTN_OK && f->rules.ids != TTN_IDS_ANY) status = ttn_ids_create(&f->ids, err);
    if (status != TTN_OK || !f->rules.id_regex) return status;
    return compile_regex(f, err);
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
    ttn_ids_destroy(f->ids);
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
