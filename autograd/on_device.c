#include "autograd/on_device.h"

enum { ALIGN = 16 };

/* Room for n elements behind what is there; where it begins. */
static size_t append(ttn_feed_layout *l, int64_t n, size_t size)
{
    const size_t first = (l->bytes + ALIGN - 1) / ALIGN * ALIGN;
    l->bytes = first + (size_t)n * size;
    return first;
}

ttn_feed_layout ttn_feed_lay_out(ttn_extent capacity)
{
    const int64_t seqs = capacity.seqs > 0 ? capacity.seqs : 1; /* without sequences one, of all rows */
    ttn_feed_layout l = {.rows = capacity.rows};
    l.span = append(&l, seqs, sizeof(ttn_span));
    l.start = append(&l, seqs, sizeof(int64_t));
    l.sample = append(&l, seqs, sizeof(uint64_t));
    l.seq_of_row = append(&l, capacity.rows, sizeof(int64_t));
    return l;
}

static void *at(const void *base, size_t offset)
{
    return (char *)(uintptr_t)base + offset;
}

void ttn_feed_write(const ttn_feed_layout *l, const ttn_feed *f, void *host)
{
    ttn_span *span = at(host, l->span);
    int64_t *start = at(host, l->start);
    uint64_t *sample = at(host, l->sample);
    int64_t *seq_of_row = at(host, l->seq_of_row);
    span[0] = (ttn_span){.first = 0, .n = f->used.rows};
    start[0] = 0;
    sample[0] = 0;
    for (int64_t t = 0; t < l->rows; t++)
        seq_of_row[t] = f->used.seqs == 0 && t < f->used.rows ? 0 : -1;
    for (int64_t s = 0; s < f->used.seqs; s++) {
        span[s] = f->span[s];
        start[s] = f->start ? f->start[s] : 0;
        sample[s] = f->sample ? f->sample[s] : (uint64_t)s;
        for (int64_t t = span[s].first; t < span[s].first + span[s].n; t++)
            seq_of_row[t] = s;
    }
}

ttn_on_device ttn_feed_at(const ttn_feed_layout *l, void *base)
{
    return (ttn_on_device){
        .span = at(base, l->span),
        .start = at(base, l->start),
        .sample = at(base, l->sample),
        .seq_of_row = at(base, l->seq_of_row),
    };
}
