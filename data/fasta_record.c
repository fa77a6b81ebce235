/* What is given, and what the records of a file say together. */
#include <inttypes.h>
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

static ttn_status count_nucleotides(ttn_fasta *f)
{
    if (f->found.given > NUCLEOTIDE_RECORDS) return TTN_OK;
    f->judged += f->n;
    for (int64_t i = 0; i < f->n; i++)
        f->judged_nucleotides += f->is_nucleotide[f->token[i]];
    return judge_nucleotides(f, 0);
}

ttn_status ttn_fasta_complete(ttn_fasta *f)
{
    if (f->rules.format == TTN_FORMAT_A3M_QUERY && f->found.given > 0) {
        f->n = 0;
        return TTN_OK;
    }
    give(f);
    return count_nucleotides(f);
}

ttn_status ttn_fasta_end_record(ttn_fasta *f)
{
    f->in_record = 0;
    if (f->is_skipped) return TTN_OK;
    if (f->stops.n > 0) ttn_fasta_count(f, 41, f->stops);
    if (f->n == 0 && f->pieces == 0) {
        f->n_empty++;
        f->last_empty = (ttn_fasta_waiting){1, f->record_line, 1, f->record_offset};
        ttn_fasta_count(f, f->source_ended ? 28 : 27, f->last_empty);
        return TTN_OK;
    }
    return f->n > 0 ? ttn_fasta_complete(f) : TTN_OK;
}

/* ---- the end of the file ---- */

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
    if (f->n_empty * EMPTY_ONE_IN > f->found.records)
        return ttn_fasta_refuse(f, 27, f->last_empty.line, 1,
                                "%" PRId64 " of %" PRId64
                                " records have no residues, and more than 1 %% are too many to be chance; this "
                                "is the last one; get the file again, or take them out",
                                f->n_empty, f->found.records);
    const double most = f->rules.max_skipped * (double)f->found.records;
    if (f->found.skipped > 0 && (double)f->found.skipped > most) {
        int code = 1;
        while (f->found.fault[code].n == 0)
            code++;
        return ttn_fasta_refuse(f, code, 0, 0,
                                "%" PRId64 " of %" PRId64
                                " records had a fault and were left out, which is more than data.max_skipped "
                                "allows; the first: %.500s",
                                f->found.skipped, f->found.records, f->skipped[0].text);
    }
    return judge_nucleotides(f, 1);
}
