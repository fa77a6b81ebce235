#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/text.h"
#include "data/fasta.h"
#include "train/card_facts.h"
#include "train/findings.h"
#include "train/show_fact.h"

/* ---- one ---- */

static ttn_fasta_note_kind kind_of(const ttn_store_finding *f)
{
    return f->is_fault ? TTN_NOTE_LEFT_OUT : ttn_fasta_kind_of_note((int)f->rule);
}

const char *ttn_finding_what(const ttn_store_finding *f)
{
    const char *what = kind_of(f) == TTN_NOTE_LEFT_OUT ? ttn_fasta_fault((int)f->rule) : ttn_fasta_rule((int)f->rule);
    return what ? what : "something that a newer titin counts";
}

const char *ttn_finding_outcome(const ttn_store_finding *f)
{
    static const char *const outcomes[] = {
        [TTN_NOTE_ACCEPTED] = "accepted",
        [TTN_NOTE_REPAIRED] = "repaired",
        [TTN_NOTE_LEFT_OUT] = "left out",
    };
    return outcomes[kind_of(f)];
}

/* ---- sums ---- */

/* NULL: it is in none of the texts. */
static char *text_for(const ttn_store_finding *f, ttn_findings *ret)
{
    switch (kind_of(f)) {
    case TTN_NOTE_LEFT_OUT:
        return ret->left_out_for;
    case TTN_NOTE_REPAIRED:
        return ret->repaired;
    case TTN_NOTE_ACCEPTED:
        break;
    }
    return ttn_card_warns_of((int)f->rule) ? ret->unusual : NULL;
}

static void append(char *text, const char *format, ...) TTN_PRINTF(2, 3);
static void append(char *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ttn_text_append(text, TTN_FINDINGS_TEXT, format, args);
    va_end(args);
}

/* Numbers of a file: whatever stands there, a sum is one. */
static int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void ttn_findings_of(const ttn_store_facts *s, ttn_findings *ret)
{
    char number[TTN_SHOW_NUMBER];
    *ret = (ttn_findings){.is_known = s->has_findings, .duplicates = s->duplicates};
    for (int64_t i = 0; i < s->n_source; i++) {
        ret->records = sum_of(ret->records, s->source[i].records);
        ret->left_out = sum_of(ret->left_out, s->source[i].skipped);
        ret->dropped = sum_of(ret->dropped, s->source[i].dropped);
    }
    int64_t n[2][TTN_STORE_MOST_RULE + 1] = {{0}};
    for (int64_t i = 0; i < s->n_finding; i++) {
        const ttn_store_finding *f = &s->finding[i];
        n[f->is_fault][f->rule] = sum_of(n[f->is_fault][f->rule], f->n);
        if (!f->is_fault && kind_of(f) == TTN_NOTE_LEFT_OUT) ret->left_out = sum_of(ret->left_out, f->n);
        if (!ret->source && text_for(f, ret)) ret->source = &s->source[f->source];
    }
    for (int64_t i = 0; i < s->n_finding; i++) { /* in the order in which they come first */
        const ttn_store_finding *f = &s->finding[i];
        int64_t *sum = &n[f->is_fault][f->rule];
        char *text = text_for(f, ret);
        if (text && *sum > 0)
            append(text, "%s%s: %s (FA%03d)", text[0] ? ", " : "", ttn_finding_what(f), ttn_show_count(*sum, number),
                   (int)f->rule);
        *sum = 0;
    }
}

/* ---- as facts ---- */

static void tell_list(const ttn_store_facts *s, ttn_facts *f)
{
    ttn_facts_open_list(f, "found");
    for (int64_t i = 0; i < s->n_finding; i++) {
        const ttn_store_finding *found = &s->finding[i];
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "rule", "FA%03d", (int)found->rule);
        ttn_facts_integer(f, "n", found->n);
        ttn_facts_text(f, "outcome", "%s", ttn_finding_outcome(found));
        ttn_facts_text(f, "what", "%s", ttn_finding_what(found));
        ttn_facts_text(f, "file", "%s", s->source[found->source].name);
        if (found->line > 0)
            ttn_facts_text(f, "first", "%" PRId64 ":%" PRId64, found->line, found->column);
        else
            ttn_facts_text(f, "first", "%s", "");
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

void ttn_findings_tell(const ttn_store_facts *s, ttn_facts *f)
{
    ttn_findings found;
    ttn_findings_of(s, &found);
    ttn_facts_integer(f, "records", found.records);
    if (!found.is_known) {
        ttn_facts_none(f, "left_out");
        ttn_facts_none(f, "duplicate_sequences");
        ttn_facts_warn(f,
                       "packed by an early titin (%s), which did not keep what it left out and repaired; pack it again",
                       s->titin_version);
        return;
    }
    ttn_facts_integer(f, "left_out", found.left_out);
    ttn_facts_integer(f, "duplicate_sequences", found.duplicates);
    tell_list(s, f);
}

void ttn_overlap_tell(const ttn_dataset_overlap *o, ttn_facts *f)
{
    if (!o->is_counted) {
        ttn_facts_none(f, "overlap");
        return;
    }
    ttn_facts_open(f, "overlap");
    ttn_facts_integer(f, "equal_to_training", o->equal);
    ttn_facts_real(f, "percent_equal_to_training", 100.0 * (double)o->equal / (double)o->held_out);
    if (o->equal > 0)
        ttn_facts_warn(f,
                       "%" PRId64 " of %" PRId64
                       " held-out proteins are also in the training set, with the same sequence: there validation "
                       "measures memorisation",
                       o->equal, o->held_out);
    ttn_facts_integer(f, "compared_with_training", o->near.looked_at);
    if (o->is_near_counted && o->near.looked_at > 0) {
        ttn_facts_real(f, "percent_over_a_tenth_seen", 100.0 * (double)o->near.over_10 / (double)o->near.looked_at);
        ttn_facts_real(f, "percent_over_half_seen", 100.0 * (double)o->near.over_50 / (double)o->near.looked_at);
    }
    ttn_facts_close(f);
}
