/* Bytes come in chunks, and lines may end anywhere in them. */
#include <string.h>
#include "data/fasta_impl.h"

/* Bytes have come or were moved: where lines end is not known any more. */
static void forget_lines(ttn_fasta *f)
{
    f->next_lf = -1;
    f->next_cr = -1;
}

static ttn_status fill(ttn_fasta *f)
{
    size_t got;
    ttn_status status = f->source->read(f->source, f->chunk + f->end, TTN_FASTA_CHUNK - f->end, &got, &f->failure);
    if (status != TTN_OK) {
        f->failed_rule = f->source->failed_rule;
        return status;
    }
    if (got == 0) f->source_ended = 1;
    if (f->source->is_fused) f->fused = f->base + (int64_t)f->end;
    ttn_hash_update(f->hash, f->chunk + f->end, got);
    f->end += got;
    forget_lines(f);
    f->found.bytes += (int64_t)got;
    return TTN_OK;
}

ttn_status ttn_fasta_next_chunk(ttn_fasta *f)
{
    f->base += (int64_t)f->end;
    f->at = 0;
    f->end = 0;
    return fill(f);
}

static const unsigned char byte_order_mark[TTN_FASTA_MARK] = {TTN_BYTE_MARK, 0xbb, 0xbf};

ttn_status ttn_fasta_look_ahead(ttn_fasta *f, size_t n)
{
    if (f->end - f->at >= n) return TTN_OK;
    memmove(f->chunk, f->chunk + f->at, f->end - f->at);
    f->base += (int64_t)f->at;
    f->end -= f->at;
    f->at = 0;
    forget_lines(f);
    ttn_status status = TTN_OK;
    while (status == TTN_OK && f->end < n && !f->source_ended)
        status = fill(f);
    return status;
}

int ttn_fasta_is_mark(const ttn_fasta *f)
{
    return f->end - f->at >= sizeof byte_order_mark &&
           memcmp(f->chunk + f->at, byte_order_mark, sizeof byte_order_mark) == 0;
}

ttn_status ttn_fasta_begin(ttn_fasta *f)
{
    f->has_begun = 1;
    while (f->end < TTN_FASTA_LOOK && !f->source_ended && f->fused < 0) {
        ttn_status status = fill(f);
        if (status != TTN_OK) return status;
    }
    if (ttn_fasta_is_mark(f)) {
        ttn_fasta_count(f, 5, ttn_fasta_here(f, 0));
        f->at = sizeof byte_order_mark;
        f->line_offset = (int64_t)f->at;
    }
    const size_t n = f->end - f->at < TTN_FASTA_LOOK ? f->end - f->at : TTN_FASTA_LOOK;
    const ttn_fasta_look look = ttn_fasta_sniff(f->chunk + f->at, n);
    return look.code ? ttn_fasta_refuse(f, look.code, 1, 1, "%s", look.what) : TTN_OK;
}

/* ---- lines ---- */

/* The first c from `at` on, or the end. It is looked for once, however often somebody asks: in a file whose lines end
 * in LF there is no CR up to the end of each chunk. */
static size_t find(const ttn_fasta *f, int c, int64_t *known)
{
    if (*known < (int64_t)f->at) {
        const uint8_t *byte = memchr(f->chunk + f->at, c, f->end - f->at);
        *known = byte ? byte - f->chunk : (int64_t)f->end;
    }
    return (size_t)*known;
}

int ttn_fasta_line(ttn_fasta *f, size_t *n)
{
    const size_t lf = find(f, '\n', &f->next_lf), cr = find(f, '\r', &f->next_cr);
    const size_t end = lf < cr ? lf : cr;
    *n = end - f->at;
    return end < f->end;
}

void ttn_fasta_end_line(ttn_fasta *f)
{
    if (f->chunk[f->at] == '\r')
        f->cr = ttn_fasta_here(f, ttn_fasta_offset(f));
    else
        f->lf_lines++;
    f->at++;
    f->line++;
    f->line_offset = ttn_fasta_offset(f);
    f->blanks.n = 0;
    f->where = TTN_AT_START;
}

void ttn_fasta_resolve_cr(ttn_fasta *f, int next)
{
    ttn_fasta_count(f, next == '\n' ? 1 : 2, f->cr);
    /* What is doubled (CR CR LF) ends lines all the same. */
    if (next != '\n' && next != '\r' && next >= 0 && f->lone.n == 0) f->lone = f->cr;
    f->cr.n = 0;
    if (next != '\n') return;
    f->at++;
    f->line_offset++;
}

ttn_status ttn_fasta_check_cr(ttn_fasta *f)
{
    const ttn_fasta_waiting w = f->lone;
    if (w.n == 0 || (f->lf_lines == 0 && f->found.note[1].n == 0)) return TTN_OK;
    f->lone.n = 0;
    return ttn_fasta_blame(f, 2, w, "a CR alone, in a file whose lines end in LF",
                           "it cuts a line in two: take it out, or put LF in its place where a line is to end");
}

ttn_status ttn_fasta_refuse_fused(ttn_fasta *f)
{
    return ttn_fasta_refuse(
        f, 63, f->line, f->fused - f->line_offset + 1,
        "'>' in the middle of a line, where a gzip member begins: files were joined of which one lacked its last "
        "line end; put it there and join them again");
}

int ttn_fasta_swallows_fused(const ttn_fasta *f, size_t n)
{
    return f->fused >= ttn_fasta_offset(f) && f->fused < ttn_fasta_offset(f) + (int64_t)n && !f->source->facts.is_bgzf;
}
