/* What is given, and what the records of a file say together. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "data/fasta_impl.h"

enum {
    NUCLEOTIDE_RECORDS = 1000,
    NUCLEOTIDE_LEAST = 12, /* residues; so many of a protein are all A, C, G, T, N once in 10^7 times */
    NUCLEOTIDE_PERCENT = 95,
    EMPTY_ONE_IN = 100, /* more records without residues: something is wrong with the file */
};

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
    return ttn_fasta_refuse(
        f, 51, 0, 0,
        "%.1f %% of the %" PRId64 " residues in the first %" PRId64
        " records are A, C, G, T, U or N: these are nucleotides, not proteins; translate them, or set "
        "data.allow_nucleotide=yes",
        100.0 * (double)f->judged_nucleotides / (double)f->judged, f->judged, f->found.given);
}

/* One record, wherever it stands: over 95 % of it are nucleotides, and A, C, G and T (or U) are all there, which low
 * complexity of a protein is not. Most records are given up within 32 residues. */
static int is_nucleotide_record(const ttn_fasta *f)
{
    enum { STEP = 16, FOUR = 1 | 2 | 4 | 8 };
    if (f->n < NUCLEOTIDE_LEAST) return 0;
    const int64_t most = (f->n * (100 - NUCLEOTIDE_PERCENT) - 1) / 100;
    int64_t others = 0, at = 0;
    for (; at + STEP <= f->n && others <= most; at += STEP)
        for (int i = 0; i < STEP; i++)
            others += f->nucleotide[f->token[at + i]] == 0;
    if (others > most) return 0;
    for (; at < f->n; at++)
        others += f->nucleotide[f->token[at]] == 0;
    unsigned seen = 0;
    for (int64_t i = 0; i < f->n; i++)
        seen |= f->nucleotide[f->token[i]];
    return others <= most && (seen & FOUR) == FOUR;
}

static ttn_status count_nucleotides(ttn_fasta *f)
{
    if (!f->rules.allow_nucleotide && is_nucleotide_record(f))
        ttn_fasta_count(f, 51, (ttn_fasta_waiting){1, f->record_line, 1, f->record_offset});
    if (f->found.given > NUCLEOTIDE_RECORDS) return TTN_OK;
    f->judged += f->n;
    for (int64_t i = 0; i < f->n; i++)
        f->judged_nucleotides += f->nucleotide[f->token[i]] != 0;
    return judge_nucleotides(f, 0);
}

ttn_status ttn_fasta_complete(ttn_fasta *f)
{
    if (f->rules.format == TTN_FORMAT_A3M_QUERY && f->has_query) {
        f->n = 0;
        return TTN_OK;
    }
    f->has_query = 1;
    give(f);
    return count_nucleotides(f);
}

ttn_status ttn_fasta_end_record(ttn_fasta *f)
{
    if (!f->is_skipped) {
        ttn_status status = ttn_fasta_check_cr(f);
        if (status != TTN_OK) return status;
        f->where = TTN_AT_START; /* also where it was left out: all of it was read */
    }
    f->in_record = 0;
    if (f->is_skipped) f->lone.n = 0; /* it was said, or is left out with what was */
    if (f->is_skipped) return TTN_OK;
    if (f->stops.n > 0) ttn_fasta_count(f, 41, f->stops);
    if (f->n == 0 && f->pieces == 0) {
        const ttn_fasta_waiting w = {1, f->record_line, 1, f->record_offset};
        if (f->n_empty == 0) {
            f->first_empty = w;
            snprintf(f->first_empty_id, sizeof f->first_empty_id, "%.80s", f->id);
        }
        f->n_empty++;
        ttn_fasta_count(f, f->source_ended && f->at == f->end ? 28 : 27, w);
        return TTN_OK;
    }
    return f->n > 0 ? ttn_fasta_complete(f) : TTN_OK;
}

/* ---- the end of the file ---- */

/* By data.max_skipped, which counts with skip-record alone. */
static int may_leave_out(const ttn_fasta *f, int64_t n)
{
    return f->rules.skip_records && (double)n <= f->rules.max_skipped * (double)f->found.records;
}

/* The smallest value of data.max_skipped that lets n records go, in two digits: 1 of 60 is 0.017. */
static double least_max_skipped(const ttn_fasta *f, int64_t n)
{
    const double share = (double)n / (double)f->found.records;
    double unit = 1;
    while (share < 10 * unit)
        unit /= 10;
    double value = ceil(share / unit) * unit;
    while (value * (double)f->found.records < (double)n) /* what was rounded may lack the last bit */
        value += unit;
    return value < 1 ? value : 1;
}

static ttn_status refuse_empty(ttn_fasta *f)
{
    return ttn_fasta_refuse(
        f, 27, f->first_empty.line, 1,
        "%" PRId64 " of %" PRId64
        " records %s no residues, and more than 1 in %d is too many to be chance; the first is "
        "'%s'; get the file again, or leave such records out with data.on_error=skip-record data.max_skipped=%.2g",
        f->n_empty, f->found.records, f->n_empty == 1 ? "has" : "have", EMPTY_ONE_IN, f->first_empty_id,
        least_max_skipped(f, f->n_empty));
}

static ttn_status refuse_skipped(ttn_fasta *f)
{
    int code = 1;
    while (f->found.fault[code].n == 0)
        code++;
    const double most = f->rules.max_skipped < 0 ? 0 : f->rules.max_skipped;
    return ttn_fasta_refuse(f, code, 0, 0,
                            "%" PRId64 " of %" PRId64
                            " records had a fault and were left out, more than data.max_skipped=%g allows; to leave "
                            "them out all the same set data.max_skipped=%.2g; the first: %.500s",
                            f->found.skipped, f->found.records, most, least_max_skipped(f, f->found.skipped),
                            f->skipped[0].text);
}

ttn_status ttn_fasta_judge(ttn_fasta *f)
{
    f->found.hash = ttn_hash_final(f->hash);
    if (f->found.note[1].n > 0 && f->lf_lines > 0)
        ttn_fasta_count(f, 3,
                        (ttn_fasta_waiting){.n = 1,
                                            .line = f->found.note[1].place[0].line,
                                            .column = f->found.note[1].place[0].column});
    if (f->source->facts.zeros > 0) ttn_fasta_count(f, 65, (ttn_fasta_waiting){.n = f->source->facts.zeros});
    if (f->found.records == 0)
        return ttn_fasta_refuse(
            f, 61, 0, 0, f->found.bytes == 0 ? "there is nothing in it; was it written?" : "there is no record in it");
    if (f->n_empty * EMPTY_ONE_IN > f->found.records && !may_leave_out(f, f->n_empty)) return refuse_empty(f);
    if (f->found.skipped > 0 && !may_leave_out(f, f->found.skipped)) return refuse_skipped(f);
    return judge_nucleotides(f, 1);
}
