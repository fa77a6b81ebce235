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
    f->where = TTN_IN_HEADER;
    f->at++;
}

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
    snprintf(f->id, sizeof f->id, "%s:%" PRId64, f->source->name, f->record_line);
    return TTN_OK;
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

ttn_status ttn_fasta_end_header(ttn_fasta *f)
{
    if (f->n_header > TTN_FASTA_HEADER) {
        ttn_fasta_count(f, 13, (ttn_fasta_waiting){.n = 1, .line = f->record_line, .column = 1});
        drop_cut_character(f);
    }
    while (f->n_raw > 0 && (f->raw[f->n_raw - 1] == ' ' || f->raw[f->n_raw - 1] == '\t'))
        f->n_raw--;
    size_t at = 0;
    const int64_t replaced = make_text(f->raw, f->n_raw, f->header, &at);
    const int64_t begins = f->record_offset - f->line_offset + 2;
    if (replaced > 0)
        ttn_fasta_count(f, 32,
                        (ttn_fasta_waiting){.n = replaced, .line = f->record_line, .column = begins + (int64_t)at});
    const char *mark = is_ascii(f->raw, f->n_raw) ? NULL : strstr(f->header, "\xef\xbb\xbf");
    if (mark)
        return ttn_fasta_refuse(f, 5, f->record_line, begins + (mark - f->header),
                                "a byte order mark inside the file: files were joined; take it out");
    ttn_status status = take_id(f);
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
