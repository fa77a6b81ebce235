/* Reading sequences: plain FASTA against a plain search for line ends, gzip against zlib itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "core/rng.h"
#include "data/card.h"
#include "data/fasta.h"
#include "tests/bench/bench.h"

enum { N = 16 << 20 };

typedef struct {
    char *text;
    size_t n;
    unsigned char *packed;
    size_t n_packed;
    unsigned char *room;
    volatile int64_t sink; /* what is computed only to be timed */
} files;

/* Records of six lines of 60, as databases have them. */
static void make_text(files *f)
{
    static const char residues[] = "ACDEFGHIKLMNPQRSTVWY";
    f->text = malloc(N + 1000);
    if (!f->text) exit(6);
    uint64_t i = 0;
    for (int record = 0; f->n < N; record++) {
        f->n += (size_t)sprintf(f->text + f->n, ">tr|A%07d|A%07d_TEST A protein of OS=Testus maximus GN=x PE=4\n",
                                record, record);
        for (int line = 0; line < 6; line++) {
            for (int k = 0; k < 60; k++)
                f->text[f->n++] = residues[ttn_rng_below(1, 1, i++, 20)];
            f->text[f->n++] = '\n';
        }
    }
}

static void pack(files *f)
{
    z_stream z = {0};
    if (deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) != Z_OK) exit(6);
    const size_t room = deflateBound(&z, f->n);
    f->packed = malloc(room);
    f->room = malloc(f->n);
    if (!f->packed || !f->room) exit(6);
    z.next_in = (unsigned char *)f->text;
    z.avail_in = (uInt)f->n;
    z.next_out = f->packed;
    z.avail_out = (uInt)room;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END) exit(6);
    f->n_packed = room - z.avail_out;
    deflateEnd(&z);
}

static void find_lines(void *arg)
{
    files *f = arg;
    int64_t lines = 0;
    const char *end = f->text + f->n;
    for (const char *at = f->text; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        lines++;
    f->sink = lines;
}

static void copy_bytes(void *arg)
{
    files *f = arg;
    memcpy(f->room, f->text, f->n);
    f->sink = f->room[f->n - 1];
}

static void unpack_only(void *arg)
{
    files *f = arg;
    z_stream z = {0};
    if (inflateInit2(&z, 31) != Z_OK) exit(6);
    z.next_in = f->packed;
    z.avail_in = (uInt)f->n_packed;
    int code = Z_OK;
    while (code == Z_OK) { /* as zcat does: into a small buffer */
        z.next_out = f->room;
        z.avail_out = 32768;
        code = inflate(&z, Z_NO_FLUSH);
    }
    if (code != Z_STREAM_END) exit(3);
    f->sink = (int64_t)z.total_out;
    inflateEnd(&z);
}

static void read_records(files *f, const void *bytes, size_t n, int with_card)
{
    ttn_source *source;
    ttn_fasta *fasta;
    ttn_card *card = NULL;
    const ttn_fasta_record *r;
    ttn_error err = {0};
    ttn_status status = ttn_source_open_memory("bench", bytes, n, 0, NULL, &source, &err);
    if (status == TTN_OK) status = ttn_fasta_open(source, NULL, &fasta, &err);
    if (status == TTN_OK && with_card) status = ttn_card_create(ttn_alphabet_find("esm"), &card, &err);
    if (status != TTN_OK) exit(6);
    while ((status = ttn_fasta_next(fasta, &r, &err)) == TTN_OK) {
        f->sink = r->n;
        if (card && ttn_card_add(card, r, &err) != TTN_OK) exit(6);
    }
    if (status != TTN_EOF) exit(3);
    ttn_card_destroy(card);
    ttn_fasta_close(fasta);
}

static void read_plain(void *arg)
{
    files *f = arg;
    read_records(f, f->text, f->n, 0);
}

static void read_with_card(void *arg)
{
    files *f = arg;
    read_records(f, f->text, f->n, 1);
}

static void read_packed(void *arg)
{
    files *f = arg;
    read_records(f, f->packed, f->n_packed, 0);
}

int main(int argc, char **argv)
{
    bench_start(argc, argv, "fasta");
    files f = {0};
    make_text(&f);
    pack(&f);
    const double giga = (double)f.n / 1e9;
    const bench_row plain[] = {
        {.name = "memchr for line ends", .run = find_lines, .arg = &f, .work = giga, .unit = "GB/s"},
        {.name = "memcpy", .run = copy_bytes, .arg = &f, .work = giga, .unit = "GB/s"},
        /* 400 MB/s where line ends are found at 5 GB/s */
        {.name = "ttn_fasta_next", .run = read_plain, .arg = &f, .work = giga, .unit = "GB/s", .goal = 0.08},
        {.name = "and ttn_card_add", .run = read_with_card, .arg = &f, .work = giga, .unit = "GB/s", .goal = 0.06},
    };
    bench_compare("16 MiB of FASTA", plain, sizeof plain / sizeof *plain);
    const bench_row packed[] = {
        {.name = "inflate of zlib, as zcat", .run = unpack_only, .arg = &f, .work = giga, .unit = "GB/s"},
        /* 1.3 times its time */
        {.name = "ttn_fasta_next", .run = read_packed, .arg = &f, .work = giga, .unit = "GB/s", .goal = 1 / 1.3},
    };
    bench_compare("16 MiB of FASTA, gzip", packed, sizeof packed / sizeof *packed);
    free(f.text);
    free(f.packed);
    free(f.room);
    return bench_end();
}
