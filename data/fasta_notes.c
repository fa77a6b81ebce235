/* What is counted, with its first places, and what is refused, with a sentence that names the place. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include "core/text.h"
#include "data/fasta_impl.h"

static void note_at(ttn_fasta_note *note, int64_t n, int64_t line, int64_t column)
{
    note->n += n;
    if (note->n_place == TTN_FASTA_PLACES) return;
    note->place[note->n_place] = (ttn_fasta_place){line, column};
    note->n_place++;
}

void ttn_fasta_count(ttn_fasta *f, int code, ttn_fasta_waiting w)
{
    assert(ttn_fasta_rule(code));
    note_at(&f->found.note[code], w.n, w.line, w.column);
}

static const char *stream_of(const ttn_fasta *f)
{
    return f->source->facts.is_gzip ? " of the unpacked stream" : "";
}

ttn_status ttn_fasta_refuse(ttn_fasta *f, int code, int64_t line, int64_t column, const char *format, ...)
{
    char text[TTN_ERROR_TEXT] = "";
    va_list args;
    va_start(args, format);
    ttn_text_append(text, sizeof text, format, args);
    va_end(args);
    f->failed_rule = code;
    return TTN_FAIL_AT(&f->failure, TTN_EFORMAT, f->source->name, line, column, "%s (FA%03d)", text, code);
}

ttn_status ttn_fasta_blame(ttn_fasta *f, int code, ttn_fasta_waiting w, const char *what, const char *hint)
{
    enum { SHOWN = 80 }; /* of the id */
    assert(ttn_fasta_fault(code));
    char residue[40] = "";
    if (f->where != TTN_IN_HEADER) snprintf(residue, sizeof residue, ", residue %" PRId64, f->n + 1);
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
    f->where = TTN_IN_IGNORED;
    return TTN_OK;
}
