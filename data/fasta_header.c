/* What stands behind '>': its text in UTF-8, and the id in it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/text.h"
#include "data/fasta_impl.h"

void ttn_fasta_begin_record(ttn_fasta *f)
{
    if (f->blanks.n > 0) ttn_fasta_count(f, 24, f->blanks);
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
    f->record_offset = ttn_fasta_offset(f);
    f->stops.n = 0;
    f->blank_lines.n = 0;
    f->has_capital_line = 0;
    f->suspect.n = 0;
    f->where = TTN_IN_HEADER;
    f->at++;
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

/* Not "FILE:LINE" alone, since a file may be called anything: one word that a terminal takes for text. */
static void make_id(ttn_fasta *f)
{
    char name[3 * TTN_TAIL_ROOM + 1];
    ttn_text_clean(f->source->name, strlen(f->source->name), name);
    for (char *c = name; *c; c++)
        if (*c == ' ' || *c == '\t' || *c == 1) *c = '_';
    snprintf(f->id, sizeof f->id, "%s:%" PRId64, name, f->record_line);
}

static int ends_id(char c)
{
    return c == ' ' || c == '\t' || c == 1 || c == 0; /* Ctrl-A joins the headers of NCBI's nr */
}

static ttn_status take_id(ttn_fasta *f)
{
    const ttn_fasta_waiting w = {1, f->record_line, f->record_offset - f->line_offset + 1, f->record_offset};
    if (f->has_regex) {
        regmatch_t match[2];
        if (regexec(&f->regex, f->header, 2, match, 0) != 0)
            return ttn_fasta_blame(f, 33, w, "data.id_regex does not match the header",
                                   "change the expression, or leave it out");
        const regmatch_t m = f->regex.re_nsub > 0 && match[1].rm_so >= 0 ? match[1] : match[0];
        snprintf(f->id, sizeof f->id, "%.*s", (int)(m.rm_eo - m.rm_so), f->header + m.rm_so);
    } else {
        const char *word = f->header;
        while (*word == ' ' || *word == '\t')
            word++;
        size_t n = 0;
        while (!ends_id(word[n]))
            n++;
        if (n > 0 && word > f->header) ttn_fasta_count(f, 23, w);
        memcpy(f->id, word, n);
        f->id[n] = 0;
    }
    if (f->id[0]) return TTN_OK;
    if (f->rules.ids != TTN_IDS_ANY)
        return ttn_fasta_blame(f, 22, w, "the header has no id, and what is made here is found by id",
                               "give every record a name");
    ttn_fasta_count(f, 22, w);
    make_id(f);
    return TTN_OK;
}

/* ---- records that are no proteins ---- */

static int begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static int ends_with(const char *text, const char *ending)
{
    const size_t n = strlen(text), k = strlen(ending);
    return n >= k && strcmp(text + n - k, ending) == 0;
}

/* As HH-suite tells them in A3M: secondary structure, accessibility, confidence, a consensus. */
static int is_annotation(const char *id)
{
    return begins_with(id, "ss_") || begins_with(id, "sa_") || begins_with(id, "aa_") || strcmp(id, "Consensus") == 0 ||
           ends_with(id, "_consensus");
}

/* In files that are not said to be A3M other names could be those of proteins. The last two are of the PDB's ss.txt. */
static int is_sure_annotation(const char *id)
{
    static const char *const names[] = {"ss_pred", "ss_conf", "ss_dssp", "sa_pred", "sa_dssp", "aa_pred", "aa_dssp"};
    for (size_t i = 0; id[0] && id[1] && id[2] == '_' && i < sizeof names / sizeof *names; i++)
        if (strcmp(id, names[i]) == 0) return 1;
    const char *colon = strrchr(id, ':');
    return colon && (strcmp(colon, ":secstr") == 0 || strcmp(colon, ":disorder") == 0);
}

/* "P1;" and the like. */
static int is_pir(const char *header)
{
    if (!header[0] || !header[1] || header[2] != ';') return 0;
    static const char *const codes[] = {"P1;", "F1;", "DL;", "DC;", "RL;", "RC;", "N1;", "N3;", "XX;"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (begins_with(header, codes[i])) return 1;
    return 0;
}

static ttn_status check_kind(ttn_fasta *f)
{
    const ttn_fasta_waiting w = {1, f->record_line, f->record_offset - f->line_offset + 1, f->record_offset};
    if (is_pir(f->header))
        return ttn_fasta_blame(f, 71, w, "a header of PIR (NBRF)",
                               "the line below it is a description and would be read as residues: convert the file "
                               "to FASTA (seqret does it)");
    if (f->is_alignment && is_annotation(f->id)) {
        ttn_fasta_count(f, 67, w);
        f->is_skipped = 1; /* but it is no fault */
        return TTN_OK;
    }
    if (f->is_alignment || !is_sure_annotation(f->id)) return TTN_OK;
    return ttn_fasta_blame(f, 67, w, "this record is an annotation, such as secondary structure, and no protein",
                           "take it out; if the file is A3M (HH-suite), set data.format=a3m or a3m-query");
}

/* Where records are found by id: no id twice. */
static ttn_status check_id(ttn_fasta *f)
{
    if (f->rules.ids == TTN_IDS_ANY || f->is_skipped) return TTN_OK;
    const ttn_fasta_waiting w = {1, f->record_line, f->record_offset - f->line_offset + 1, f->record_offset};
    if (f->rules.ids == TTN_IDS_SUFFIX) {
        const char *id;
        ttn_status status = ttn_ids_make_differ(f->ids, f->id, &id, &f->failure);
        if (status == TTN_OK && id != f->id) snprintf(f->id, sizeof f->id, "%s", id);
        return status;
    }
    int64_t first;
    ttn_status status = ttn_ids_see(f->ids, f->id, f->record_line, &first, &f->failure);
    if (status != TTN_OK || first < 0) return status;
    char what[120];
    snprintf(what, sizeof what, "the id of this record is that of line %" PRId64 ", too", first);
    return ttn_fasta_blame(f, 29, w, what, "make them differ; titin data pack --dup-ids suffix does it");
}

static void count_replaced(ttn_fasta *f, int code, int64_t n, int64_t column)
{
    if (n > 0) ttn_fasta_count(f, code, (ttn_fasta_waiting){.n = n, .line = f->record_line, .column = column});
}

ttn_status ttn_fasta_end_header(ttn_fasta *f)
{
    if (f->n_header > TTN_FASTA_HEADER) {
        ttn_fasta_count(f, 13, (ttn_fasta_waiting){.n = 1, .line = f->record_line, .column = 1});
        drop_cut_character(f);
    }
    while (f->n_raw > 0 && (f->raw[f->n_raw - 1] == ' ' || f->raw[f->n_raw - 1] == '\t'))
        f->n_raw--;
    const ttn_text_replaced r = ttn_text_clean(f->raw, f->n_raw, f->header);
    const int64_t begins = f->record_offset - f->line_offset + 2;
    count_replaced(f, 32, r.invalid, begins + (int64_t)r.first_invalid);
    count_replaced(f, 69, r.controls, begins + (int64_t)r.first_control);
    const char *mark = memchr(f->header, TTN_BYTE_MARK, strlen(f->header));
    if (mark) mark = strstr(mark, "\xef\xbb\xbf");
    if (mark)
        return ttn_fasta_refuse(f, 5, f->record_line, begins + (mark - f->header),
                                "a byte order mark inside the file: files were joined; take it out");
    ttn_status status = take_id(f);
    if (status == TTN_OK && !f->is_skipped) status = check_kind(f);
    return status == TTN_OK && !f->is_skipped ? check_id(f) : status;
}

ttn_status ttn_fasta_read_header(ttn_fasta *f)
{
    size_t n;
    const int is_end = ttn_fasta_line(f, &n);
    const uint8_t *bytes = f->chunk + f->at;
    if (ttn_fasta_swallows_fused(f, n)) return ttn_fasta_refuse_fused(f);
    const uint8_t *nul = n > 0 ? memchr(bytes, 0, n) : NULL;
    const size_t room = sizeof f->raw - f->n_raw;
    memcpy(f->raw + f->n_raw, bytes, n < room ? n : room);
    f->n_raw += n < room ? n : room;
    f->n_header += (int64_t)n;
    if (f->n_header > TTN_FASTA_LONGEST_HEADER)
        return ttn_fasta_refuse(f, 13, f->record_line, 1, "a header of more than %d bytes; is this a FASTA file?",
                                (int)TTN_FASTA_LONGEST_HEADER);
    f->at += n;
    ttn_status status = TTN_OK;
    if (nul)
        status = ttn_fasta_blame(f, 21, ttn_fasta_here(f, ttn_fasta_offset(f) - (int64_t)n + (nul - bytes)),
                                 "a NUL byte in a header", "the file is damaged, or no text; get it again");
    if (status != TTN_OK || !is_end || f->is_skipped) return status;
    status = ttn_fasta_end_header(f);
    if (status == TTN_OK) ttn_fasta_end_line(f);
    return status;
}
