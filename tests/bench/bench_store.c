/* Packing against `zcat | wc -c` of the same file, opening against reading it, and the way from a store to the first batch
 * against 0.2 s. With TTN_LONG=1 also the memory that `titin data pack` of a file of 1 GB takes. */
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include "data/pack.h"
#include "data/sampler.h"
#include "data/split.h"
#include "data/store.h"
#include "tests/bench/bench.h"

enum { RESIDUES = 360, N_RECORDS = 40000, N_RECORDS_OF_1_GB = 2300000, ROWS = 480 * 34 };
static const char proteins[] = "data/downloaded/proteins-20000.fasta.gz";
static const double most_memory = 512e6; /* bytes, for 1 GB */

typedef struct {
    char folder[64];
    char packed[96], plain[96], store[96];
    ttn_pack_rules rules;
    volatile int64_t sink; /* what is computed only to be timed */
} files;

static void leave(const char *what)
{
    fprintf(stderr, "bench_store: %s\n", what);
    exit(6);
}

/* Record i of 360 residues in six lines, all different. */
static size_t make_record(int64_t i, char *text)
{
    uint64_t x = (uint64_t)i * 0x9E3779B97F4A7C15u + 1;
    size_t n = (size_t)sprintf(text, ">tr|A%07d|A%07d_TEST A protein of OS=Testus maximus GN=x PE=4\n", (int)i, (int)i);
    for (int k = 0; k < RESIDUES; k++) {
        x = x * 6364136223846793005u + 1442695040888963407u; /* D. Knuth's */
        text[n++] = "ACDEFGHIKLMNPQRSTVWYLAGVSE"[(x >> 32) * 26 >> 32];
        if (k % 60 == 59) text[n++] = '\n';
    }
    return n;
}

static void make_gzip(const char *path)
{
    char text[1000];
    gzFile f = gzopen(path, "wb6");
    if (!f) leave("cannot make a file");
    for (int64_t i = 0; i < N_RECORDS; i++) {
        const size_t n = make_record(i, text);
        if (gzwrite(f, text, (unsigned)n) != (int)n) leave("cannot write a file");
    }
    if (gzclose(f) != Z_OK) leave("cannot write a file");
}

static void make_plain(const char *path, int64_t n_record)
{
    char text[1000];
    FILE *f = fopen(path, "w");
    if (!f) leave("cannot make a file");
    for (int64_t i = 0; i < n_record; i++) {
        const size_t n = make_record(i, text);
        if (fwrite(text, 1, n, f) != n) leave("cannot write a file");
    }
    if (fclose(f) != 0) leave("cannot write a file");
}

static void count_bytes(void *arg)
{
    files *f = arg;
    char command[256];
    snprintf(command, sizeof command, "zcat %s | wc -c > /dev/null", f->packed);
    if (system(command) != 0) leave("zcat fails"); /* NOLINT(cert-env33-c): as a user would */
}

static void pack_file(files *f, const char *path, int makes_clusters)
{
    const char *const file[] = {path};
    ttn_pack_rules rules = f->rules;
    ttn_pack_facts facts;
    ttn_error err = {0};
    rules.makes_clusters = makes_clusters;
    if (ttn_pack(file, 1, f->store, &rules, NULL, NULL, &facts, &err) != TTN_OK) leave(err.text);
}

static void pack_only(void *arg)
{
    pack_file(arg, ((files *)arg)->packed, 0);
}

static void pack_with_clusters(void *arg)
{
    pack_file(arg, ((files *)arg)->packed, 1);
}

static void read_file(void *arg)
{
    files *f = arg;
    static unsigned char room[1 << 20];
    FILE *file = fopen(f->store, "r");
    if (!file) leave("the store is not there");
    size_t n;
    while ((n = fread(room, 1, sizeof room, file)) > 0)
        f->sink = room[n - 1];
    fclose(file);
}

static void open_store(void *arg)
{
    files *f = arg;
    ttn_store *s;
    uint8_t token[RESIDUES];
    ttn_error err = {0};
    if (ttn_store_open(f->store, 0, &s, &err) != TTN_OK) leave(err.text);
    const ttn_sequences q = ttn_store_sequences(s);
    if (q.tokens(q.self, q.n / 2, 0, RESIDUES, token, &err) != TTN_OK) leave(err.text);
    f->sink = token[0];
    ttn_store_close(s);
}

/* ---- the way to the first batch ---- */

static void must(ttn_status status, const ttn_error *err)
{
    if (status != TTN_OK) leave(err->text);
}

static void wait_goal(void *arg)
{
    (void)arg;
    nanosleep(&(struct timespec){.tv_nsec = 200 * 1000 * 1000}, NULL);
}

/* As a training begins: open, split, pack the first window, mask. */
static void make_first_batch(void *arg)
{
    files *f = arg;
    ttn_store *s;
    ttn_subset *held_out, *training;
    ttn_sampler *sampler;
    ttn_batch *batch;
    ttn_error err = {0};
    const ttn_split_rules split = {.kind = TTN_SPLIT_CLUSTER, .valid = 0.05};
    must(ttn_store_open(f->store, 0, &s, &err), &err);
    must(ttn_split_store(s, &split, &held_out, &err), &err);
    must(ttn_subset_create(ttn_store_describe(s)->sequences, &training, &err), &err);
    for (int64_t i = 0; i < ttn_store_describe(s)->sequences; i++)
        if (!ttn_subset_has(held_out, i)) ttn_subset_add(training, i);
    ttn_subset_close(training);
    const ttn_sequences from = ttn_store_sequences(s);
    ttn_sampler_options o = {
        .from = &from,
        .side = training,
        .rules = {.rows = ROWS, .mlm = {.rate = 0.15, .mask = 0.8, .random = 0.1}},
        .seed = 1,
    };
    must(ttn_batch_capacity_of(&o.rules, &from, training, &o.capacity, &err), &err);
    must(ttn_sampler_create(&o, &sampler, &err), &err);
    must(ttn_batch_create(o.capacity.extent, &batch, &err), &err);
    must(ttn_sampler_next(sampler, batch, &err), &err);
    f->sink = batch->targets;
    ttn_batch_destroy(batch);
    ttn_sampler_destroy(sampler);
    ttn_subset_destroy(training);
    ttn_subset_destroy(held_out);
    ttn_store_close(s);
}

static void compare_first_batch(files *f)
{
    if (access(proteins, R_OK) != 0) {
        bench_note("from a store to the first batch: skipped, since %s is not there: make data", proteins);
        return;
    }
    pack_file(f, proteins, 1);
    const bench_row rows[] = {
        {.name = "0.2 s", .run = wait_goal},
        {.name = "open, split, first masked batch", .run = make_first_batch, .arg = f, .goal = 1},
    };
    bench_compare("20,000 proteins, from the store to a batch of 16,320 rows", rows, sizeof rows / sizeof *rows);
}

/* ---- memory ---- */

/* Peak memory of the program, which lies one folder above this one. */
static double memory_of(files *f, const char *split)
{
    struct rusage used;
    int status;
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) leave("/proc/self/exe does not say where this is");
    path[n] = 0;
    char *build = dirname(dirname(path)), titin[sizeof path + 8];
    snprintf(titin, sizeof titin, "%s/titin", build);
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) leave("cannot fork");
    if (child == 0) {
        const int nothing = open("/dev/null", O_RDWR);
        if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0 ||
            dup2(nothing, STDERR_FILENO) < 0)
            _exit(1);
        execl(titin, titin, "data", "pack", f->plain, "--force", "-o", f->store, split, (char *)NULL);
        _exit(1);
    }
    if (wait4(child, &status, 0, &used) != child || status != 0) leave("titin data pack of 1 GB fails");
    return (double)used.ru_maxrss * 1024;
}

static int measure_memory(files *f)
{
    struct stat about;
    int misses = 0;
    make_plain(f->plain, N_RECORDS_OF_1_GB);
    if (stat(f->plain, &about) != 0) leave("the file of 1 GB is not there");
    static const char *const splits[] = {"data.split=sequence", "data.split=cluster"};
    for (int i = 0; i < 2; i++) {
        const double bytes = memory_of(f, splits[i]);
        misses += bytes > most_memory;
        bench_note("titin data pack of %.2f GB of FASTA, %s, takes %.0f MB of memory%s", (double)about.st_size / 1e9,
                   splits[i], bytes / 1e6, bytes > most_memory ? ": more than 512, the goal is missed" : "");
    }
    return misses;
}

int main(int argc, char **argv)
{
    files f = {.rules = {.fasta = {.alphabet = ttn_alphabet_find("esm")},
                         .cluster = {.kmers = 20, .memory = 256 << 20},
                         .titin_version = "bench"}};
    bench_start(argc, argv, "store");
    snprintf(f.folder, sizeof f.folder, "%s/titin-bench-XXXXXX", "/tmp");
    if (!mkdtemp(f.folder)) leave("cannot make a folder");
    snprintf(f.packed, sizeof f.packed, "%s/x.fa.gz", f.folder);
    snprintf(f.plain, sizeof f.plain, "%s/x.fa", f.folder);
    snprintf(f.store, sizeof f.store, "%s/x.h5", f.folder);
    /* First: what this program holds at the time of the fork counts as its child's. */
    const int misses = getenv("TTN_LONG") ? measure_memory(&f) : 0;
    make_gzip(f.packed);
    const double giga = (double)N_RECORDS * (RESIDUES + 6 + 63) / 1e9;
    const bench_row packing[] = {
        {.name = "zcat | wc -c", .run = count_bytes, .arg = &f, .work = giga, .unit = "GB/s"},
        /* 1.3 times its time */
        {.name = "ttn_pack, no clusters", .run = pack_only, .arg = &f, .work = giga, .unit = "GB/s", .goal = 1 / 1.3},
        {.name = "ttn_pack", .run = pack_with_clusters, .arg = &f, .work = giga, .unit = "GB/s"},
    };
    bench_compare("17 MB of FASTA, gzip, to a store on the disk", packing, sizeof packing / sizeof *packing);
    pack_file(&f, f.packed, 1);
    const bench_row opening[] = {
        {.name = "fread of the store", .run = read_file, .arg = &f},
        {.name = "ttn_store_open, one sequence", .run = open_store, .arg = &f},
    };
    bench_compare("opening a store of 40,000 sequences, 14 million residues", opening,
                  sizeof opening / sizeof *opening);
    compare_first_batch(&f);
    remove(f.packed);
    remove(f.plain);
    remove(f.store);
    rmdir(f.folder);
    return bench_end() != 0 || misses > 0;
}
