#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include "core/memory.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

enum { STEP = TTN_BLOCK_STEP };
#define MIB ((size_t)1 << 20)

static void assert_zeroed(const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++)
        if (b[i] != 0) fail_msg("byte %zu of %zu is %02x, not 0", i, n, b[i]);
}

static void assert_aligned(const void *at, size_t align)
{
    assert_non_null(at);
    assert_int_equal((uintptr_t)at % align, 0);
}

/* ---- pieces ---- */

static void pieces_are_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    enum { N = 200 };
    unsigned char *piece[N];
    for (int again = 0; again < 2; again++) { /* the second time from memory that was written to */
        for (size_t n = 0; n < N; n++) {
            piece[n] = ttn_alloc(n);
            assert_aligned(piece[n], TTN_ALIGN);
            assert_zeroed(piece[n], n);
            memset(piece[n], (int)(n + 1), n);
        }
        for (size_t n = 0; n < N; n++) {
            for (size_t i = 0; i < n; i++)
                assert_int_equal(piece[n][i], (unsigned char)(n + 1));
            for (size_t other = 0; other < n; other++)
                assert_ptr_not_equal(piece[n], piece[other]);
        }
        for (size_t n = 0; n < N; n++)
            ttn_free(piece[n]);
    }
    ttn_free(NULL);
}

/* The product of the sizes, the rounding up, and what no machine has. */
static void sizes_that_cannot_be_are_no_memory(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        size_t size;
    } none[] = {
        {-1, 1},           {INT64_MIN, 1}, {INT64_MAX, 2},     {INT64_MAX, 3},    {INT64_C(1) << 32, (size_t)1 << 32},
        {2, SIZE_MAX / 2}, {1, SIZE_MAX},  {1, SIZE_MAX - 62}, {3, SIZE_MAX / 3},
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        ttn_error err = {0};
        assert_null(ttn_alloc_array(none[i].n, none[i].size));
        assert_null(ttn_alloc_or_say(none[i].n, none[i].size, "the residues", &err));
        assert_int_equal(err.status, TTN_ENOMEM);
        assert_contains(err.text, "no memory for the residues");
    }
    assert_null(ttn_alloc(SIZE_MAX));
    assert_null(ttn_alloc(SIZE_MAX - 100));
    void *nothing = ttn_alloc_array(0, 8);
    assert_aligned(nothing, TTN_ALIGN);
    ttn_free(nothing);
    nothing = ttn_alloc_array(INT64_MAX, 0);
    assert_aligned(nothing, TTN_ALIGN);
    ttn_free(nothing);
}

static void failed_piece_says_what_for_and_how_much(void **state)
{
    (void)state;
    ttn_error err = {0};
    shim_arm(SHIM_ALLOC, 1, SHIM_FAIL, ENOMEM, 1);
    void *piece = ttn_alloc_or_say(480, 2048, "the rows of a batch", &err);
    void *without_err = ttn_alloc_or_say(480, 2048, "the rows of a batch", NULL);
    shim_disarm();
    assert_null(piece);
    assert_null(without_err);
    assert_int_equal(err.status, TTN_ENOMEM);
    assert_contains(err.text, "the rows of a batch (480 times 2048 bytes)");
}

/* ---- arena ---- */

static void arena_gives_zeroed_aligned_pieces_that_do_not_overlap(void **state)
{
    (void)state;
    enum { N = 3000 };
    static unsigned char *piece[N];
    static size_t size[N];
    const size_t blocks[] = {0, 1, 64, 4096};
    uint64_t random = ttn_test_seed();
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        ttn_error err = {0};
        ttn_arena *a;
        assert_ok(ttn_arena_create(blocks[b], &a, &err), &err);
        assert_int_equal(ttn_arena_bytes(a), 0);
        for (int round = 0; round < 3; round++) { /* after a reset: dirty memory */
            int n = (int)ttn_scaled(N, 100);
            for (int i = 0; i < n; i++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                size_t align = (size_t)1 << (random >> 33) % 7;
                size[i] = (random >> 40) % (i % 50 == 0 ? 40000 : 60);
                piece[i] = align == 16 ? ttn_arena_alloc(a, size[i]) : ttn_arena_alloc_aligned(a, size[i], align);
                assert_aligned(piece[i], align);
                assert_zeroed(piece[i], size[i]);
                memset(piece[i], i % 255 + 1, size[i]);
            }
            for (int i = 0; i < n; i++)
                for (size_t j = 0; j < size[i]; j++)
                    if (piece[i][j] != i % 255 + 1) fail_msg("piece %d of round %d was written over", i, round);
            ttn_arena_reset(a);
        }
        ttn_arena_destroy(a);
    }
    ttn_arena_destroy(NULL);
}

static void arena_copies_bytes_and_prints_text(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_arena *a;
    assert_ok(ttn_arena_create(128, &a, &err), &err);
    char name[] = "P69905";
    char *copy = ttn_arena_copy(a, name, sizeof name);
    name[0] = 'Q';
    assert_string_equal(copy, "P69905");
    assert_non_null(ttn_arena_copy(a, NULL, 0));
    char *text = ttn_arena_text(a, "%s:%d", copy, 142);
    assert_string_equal(text, "P69905:142");
    assert_string_equal(ttn_arena_text(a, "%s", ""), "");
    for (int n = 1; n < 300; n++) { /* shorter and longer than a block */
        char *long_text = ttn_arena_text(a, "%*d", n, 7);
        assert_int_equal(strlen(long_text), n);
        assert_int_equal(long_text[n - 1], '7');
    }
    assert_string_equal(text, "P69905:142");
    int64_t *numbers = ttn_arena_array(a, 5, sizeof *numbers);
    assert_zeroed(numbers, 5 * sizeof *numbers);
    ttn_arena_destroy(a);
}

static void arena_reset_keeps_small_blocks_and_frees_large_ones(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_arena *a;
    assert_ok(ttn_arena_create(4096, &a, &err), &err);
    for (int i = 0; i < 100; i++)
        assert_non_null(ttn_arena_alloc(a, 1000));
    size_t small = ttn_arena_bytes(a);
    assert_true(small >= 100 * 1000);
    assert_non_null(ttn_arena_alloc(a, 1 << 20));
    assert_true(ttn_arena_bytes(a) >= small + (1 << 20));
    ttn_arena_reset(a);
    assert_int_equal(ttn_arena_bytes(a), small);
    shim_arm(SHIM_ALLOC, 0, SHIM_FAIL, ENOMEM, 0);
    for (int i = 0; i < 100; i++)
        (void)ttn_arena_alloc(a, 1000);
    assert_int_equal(shim_disarm(), 0);
    assert_int_equal(ttn_arena_bytes(a), small);
    ttn_arena_destroy(a);
}

/* Fill an arena whose nth allocation fails, then go on as if nothing had been. */
static void arena_without_memory_gives_null_and_stays_usable(void **state)
{
    (void)state;
    int64_t n = 1;
    for (int hit = 1; hit; n++) {
        shim_arm(SHIM_ALLOC, n, SHIM_FAIL, ENOMEM, 0);
        ttn_error err = {0};
        ttn_arena *a = NULL;
        ttn_status status = ttn_arena_create(256, &a, &err);
        char *piece[20] = {0};
        int n_null = 0;
        for (int i = 0; i < 20 && a; i++) {
            piece[i] = i % 5 == 4 ? ttn_arena_alloc(a, 300) : ttn_arena_text(a, "piece %d", i);
            n_null += !piece[i];
        }
        shim_disarm();
        hit = shim_was_hit();
        if (!a) {
            assert_int_equal(status, TTN_ENOMEM);
            assert_int_equal(n, 1);
            continue;
        }
        assert_int_equal(n_null, hit);
        for (int i = 0; i < 20; i++) {
            char wanted[32];
            snprintf(wanted, sizeof wanted, "piece %d", i);
            if (piece[i] && i % 5 != 4) assert_string_equal(piece[i], wanted);
        }
        assert_non_null(ttn_arena_alloc(a, 60));
        assert_non_null(ttn_arena_alloc(a, 5000));
        ttn_arena_destroy(a);
    }
    assert_true(n > 5);

    ttn_error err = {0};
    ttn_arena *a;
    assert_ok(ttn_arena_create(0, &a, &err), &err);
    assert_null(ttn_arena_alloc(a, SIZE_MAX));
    assert_null(ttn_arena_alloc(a, SIZE_MAX - 64));
    assert_null(ttn_arena_array(a, -1, 8));
    assert_null(ttn_arena_array(a, INT64_MAX, 8));
    assert_int_equal(ttn_arena_bytes(a), 0);
    assert_string_equal(ttn_arena_text(a, "still here"), "still here");
    ttn_arena_destroy(a);
}

/* ---- block ---- */

static ttn_block *block_of(size_t most)
{
    ttn_error err = {0};
    ttn_block *b = NULL;
    assert_ok(ttn_block_create(most, "the values of the plan", &b, &err), &err);
    return b;
}

static void assert_grows(ttn_block *b, size_t bytes)
{
    ttn_error err = {0};
    assert_ok(ttn_block_grow(b, bytes, &err), &err);
    assert_true(ttn_block_committed(b) >= bytes);
    assert_int_equal(ttn_block_committed(b) % STEP, 0);
}

/* Something at the start and at the end of each step of the first n bytes; different in each. */
static void mark(ttn_block *b, size_t n)
{
    char *at = ttn_block_start(b);
    for (size_t i = 0; i < n; i += STEP) {
        at[i] = (char)(i / STEP + 1);
        at[i + STEP - 1] = (char)(i / STEP + 101);
    }
}

static void assert_marked(ttn_block *b, size_t n)
{
    const char *at = ttn_block_start(b);
    for (size_t i = 0; i < n; i += STEP) {
        assert_int_equal(at[i], (char)(i / STEP + 1));
        assert_int_equal(at[i + STEP - 1], (char)(i / STEP + 101));
    }
}

static void block_grows_without_moving_or_losing_contents(void **state)
{
    (void)state;
    const size_t most = (size_t)64 << 30; /* more than fits in 32 bits */
    ttn_block *b = block_of(most);
    char *start = ttn_block_start(b);
    assert_aligned(start, STEP);
    assert_int_equal(ttn_block_committed(b), 0);
    assert_true(ttn_block_reserved(b) >= most);
    size_t before = 0;
    const size_t sizes[] = {0, 1, 100, STEP, STEP + 1, 3 * STEP, STEP, 9 * STEP};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_grows(b, sizes[i]);
        assert_ptr_equal(ttn_block_start(b), start);
        size_t now = ttn_block_committed(b);
        assert_true(now >= before && now < sizes[i] + STEP + before);
        assert_marked(b, before);
        for (size_t j = before; j < now; j += 4096)
            assert_int_equal(start[j], 0);
        mark(b, now);
        before = now;
    }
    assert_int_equal(before, 9 * STEP);
    /* The far end, without the pages between: a step of its own is committed, but that is only bookkeeping. */
    if (ttn_test_long()) {
        assert_grows(b, (size_t)5 << 30);
        start[((size_t)5 << 30) - 1] = 1;
        assert_marked(b, before);
    }
    ttn_block_destroy(b);
    ttn_block_destroy(NULL);
}

static int read_behind(void *arg)
{
    ttn_block *b = arg;
    const volatile char *at = ttn_block_start(b);
    (void)at[ttn_block_committed(b) - 1];
    (void)at[ttn_block_committed(b)];
    return 0;
}

static int write_behind(void *arg)
{
    ttn_block *b = arg;
    volatile char *at = ttn_block_start(b);
    at[ttn_block_committed(b) - 1] = 1;
    at[ttn_block_committed(b)] = 1;
    return 0;
}

static void beyond_what_is_committed_every_access_dies(void **state)
{
    (void)state;
    ttn_block *b = block_of(100 * MIB);
    for (int i = 0; i < 2; i++) {
        assert_grows(b, (i + 1) * 3 * STEP);
        ttn_child reader = run_in_child((ttn_child_limit){0}, read_behind, b);
        ttn_child writer = run_in_child((ttn_child_limit){0}, write_behind, b);
        assert_true(!reader.exited && reader.signal == SIGSEGV);
        assert_true(!writer.exited && writer.signal == SIGSEGV);
    }
    ttn_block_shrink(b, 2 * STEP);
    ttn_child reader = run_in_child((ttn_child_limit){0}, read_behind, b);
    assert_true(!reader.exited && reader.signal == SIGSEGV);
    ttn_block_destroy(b);
}

/* Pages of [at, at + n) that are in memory, of all. */
static size_t resident(const void *at, size_t n, size_t *ret_all)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)at & ~(page - 1);
    *ret_all = ((uintptr_t)at + n - start + page - 1) / page;
    unsigned char *in = calloc(*ret_all, 1);
    assert_non_null(in);
    assert_int_equal(mincore((void *)start, *ret_all * page, in), 0);
    size_t count = 0;
    for (size_t i = 0; i < *ret_all; i++)
        count += in[i] & 1;
    free(in);
    return count;
}

static void assert_resident(const void *at, size_t n)
{
    size_t all;
    size_t in = resident(at, n, &all);
    assert_int_equal(in, all);
}

static void assert_absent(const void *at, size_t n)
{
    size_t all;
    assert_int_equal(resident(at, n, &all), 0);
}

static void shrinking_gives_pages_back_and_growing_again_gives_zeros(void **state)
{
    (void)state;
    ttn_block *b = block_of(64 * MIB);
    assert_grows(b, 4 * STEP);
    char *start = ttn_block_start(b);
    memset(start, 7, 4 * STEP);
    mark(b, 4 * STEP);
    assert_resident(start, 4 * STEP);
    ttn_block_shrink(b, STEP + 1);
    assert_int_equal(ttn_block_committed(b), 2 * STEP);
    assert_absent(start + 2 * STEP, 2 * STEP);
    ttn_block_shrink(b, 3 * STEP); /* never larger */
    assert_int_equal(ttn_block_committed(b), 2 * STEP);
    assert_marked(b, 2 * STEP);
    assert_grows(b, 4 * STEP);
    assert_zeroed(start + 2 * STEP, 2 * STEP);
    assert_marked(b, 2 * STEP);
    ttn_block_shrink(b, 0);
    assert_int_equal(ttn_block_committed(b), 0);
    assert_grows(b, 1);
    assert_zeroed(start, STEP);
    ttn_block_destroy(b);
}

/* The flags of the mapping that holds `at` contain `flag` ("hg"). */
static int has_flag(const void *at, const char *flag)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    if (!f) return 0;
    char line[4096], spaced[16];
    snprintf(spaced, sizeof spaced, " %s", flag);
    int inside = 0, found = 0;
    while (fgets(line, sizeof line, f)) {
        unsigned long long from, to;
        if (sscanf(line, "%llx-%llx ", &from, &to) == 2) inside = (uintptr_t)at >= from && (uintptr_t)at < to;
        if (inside && strncmp(line, "VmFlags:", 8) == 0) found = strstr(line, spaced) != NULL;
    }
    fclose(f);
    return found;
}

static void block_asks_for_huge_pages_in_all_it_reserves(void **state)
{
    (void)state;
    void *probe = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(probe != MAP_FAILED);
    int can = madvise(probe, STEP, MADV_HUGEPAGE) == 0 && has_flag(probe, "hg");
    munmap(probe, STEP);
    if (!can) skip_because("this kernel has no huge pages, or does not say for which memory they were asked");
    ttn_block *b = block_of(8 * STEP);
    assert_grows(b, 3 * STEP);
    char *start = ttn_block_start(b);
    assert_true(has_flag(start, "hg"));
    assert_true(has_flag(start + 3 * STEP - 1, "hg"));
    assert_true(has_flag(start + 8 * STEP - 1, "hg")); /* so that growing need not ask again */
    ttn_block_destroy(b);
}

static void impossible_blocks_are_refused_with_a_sentence(void **state)
{
    (void)state;
    ttn_block *b = NULL;
    ttn_error none = {0}, huge = {0}, map = {0}, more = {0};
    assert_fails(ttn_block_create(0, "the slabs", &b, &none), TTN_EINVAL, &none, "the slabs: a block of at most 0");
    assert_fails(ttn_block_create(SIZE_MAX - 5, "the slabs", &b, &huge), TTN_ENOMEM, &huge, "18446744073709551610");
    assert_fails(ttn_block_create((size_t)1 << 62, "the slabs", &b, &map), TTN_ENOMEM, &map, "4611686018427387904");
    assert_contains(map.text, "ask for something smaller");
    assert_null(b);

    b = block_of(3 * STEP);
    assert_grows(b, 3 * STEP);
    mark(b, 3 * STEP);
    assert_fails(ttn_block_grow(b, 3 * STEP + 1, &more), TTN_EINVAL, &more, "6291457 bytes are wanted, 6291456 were");
    ttn_error most = {0};
    assert_fails(ttn_block_grow(b, SIZE_MAX, &most), TTN_EINVAL, &most, "the values of the plan");
    assert_int_equal(ttn_block_committed(b), 3 * STEP);
    assert_marked(b, 3 * STEP);
    ttn_block_destroy(b);
}

/* Every mmap, mprotect and malloc in turn; what was there stays, and the next attempt succeeds. */
static void failing_calls_leave_the_block_as_it_was(void **state)
{
    (void)state;
    int64_t n = 1;
    for (int hit = 1; hit; n++) {
        ttn_error err = {0};
        ttn_block *b = NULL;
        shim_arm(SHIM_MAP | SHIM_ALLOC, n, SHIM_FAIL, ENOMEM, 0);
        ttn_status status = ttn_block_create(64 * MIB, "the values of the plan", &b, &err);
        int failed = status != TTN_OK;
        for (size_t i = 1; i <= 4 && b; i++) {
            size_t before = ttn_block_committed(b);
            status = ttn_block_grow(b, i * STEP, &err);
            if (status != TTN_OK) {
                assert_int_equal(ttn_block_committed(b), before);
                assert_contains(err.text, "no memory for 2097152 bytes more");
                assert_marked(b, before);
                assert_grows(b, i * STEP);
                failed++;
            }
            mark(b, i * STEP);
        }
        shim_disarm();
        hit = shim_was_hit();
        assert_int_equal(failed, hit);
        if (hit) {
            assert_int_equal(err.status, TTN_ENOMEM);
            assert_contains(err.text, "the values of the plan");
        }
        if (b) assert_marked(b, 4 * STEP);
        ttn_block_destroy(b);
    }
    assert_int_equal(n, 1 + 1 + 1 + 4 + 1); /* malloc, mmap, four mprotect; and the clean run */
}

static void growth_beyond_the_machine_is_refused_rather_than_killed(void **state)
{
    (void)state;
    FILE *setting = fopen("/proc/sys/vm/overcommit_memory", "r");
    int mode = setting ? fgetc(setting) : '1';
    if (setting) fclose(setting);
    if (mode == '1') skip_because("this kernel promises any memory (vm.overcommit_memory = 1)");
    struct sysinfo machine;
    assert_int_equal(sysinfo(&machine), 0);
    size_t all = (machine.totalram + machine.totalswap) * machine.mem_unit;
    ttn_block *b = block_of(2 * all);
    assert_grows(b, STEP);
    mark(b, STEP);
    ttn_error err = {0};
    assert_fails(ttn_block_grow(b, all + all / 4, &err), TTN_ENOMEM, &err, "end other programs");
    assert_int_equal(ttn_block_committed(b), STEP);
    assert_marked(b, STEP);
    assert_grows(b, 2 * STEP);
    ttn_block_destroy(b);
}

static int reserve_too_much(void *arg)
{
    (void)arg;
    ttn_error err = {0};
    ttn_block *b;
    assert_fails(ttn_block_create((size_t)1 << 40, "the slabs", &b, &err), TTN_ENOMEM, &err, "1099511627776 bytes");
    assert_contains(err.text, "ulimit -v");
    b = block_of(16 * MIB);
    assert_grows(b, 16 * MIB);
    mark(b, 16 * MIB);
    ttn_block_destroy(b);
    assert_null(ttn_alloc((size_t)1 << 40));
    return 17;
}

static void limit_on_addresses_is_a_status(void **state)
{
    (void)state;
    ttn_child child = run_in_child((ttn_child_limit){.address_space = (int64_t)4 << 30}, reserve_too_much, NULL);
    if (!child.exited || child.exit_code != 17) fail_msg("%s", child.output);
}

static int commit_too_much(void *arg)
{
    (void)arg;
    ttn_block *b = block_of(1024 * MIB);
    assert_grows(b, 2 * STEP);
    mark(b, 2 * STEP);
    struct rlimit limit = {.rlim_cur = 256 * MIB, .rlim_max = 256 * MIB};
    assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
    ttn_error err = {0};
    assert_fails(ttn_block_grow(b, 512 * MIB, &err), TTN_ENOMEM, &err, "532676608 bytes more (it has 4194304)");
    assert_int_equal(ttn_block_committed(b), 2 * STEP);
    assert_marked(b, 2 * STEP);
    return 17;
}

static void limit_on_memory_is_a_status_and_the_old_part_stays(void **state)
{
    (void)state;
    if (ttn_test_sanitized()) skip_because("the shadow of AddressSanitizer counts as data");
    ttn_child child = run_in_child((ttn_child_limit){0}, commit_too_much, NULL);
    if (!child.exited || child.exit_code != 17) fail_msg("%s", child.output);
}

/* ---- first touch ---- */

static void touched_rows_are_in_memory_and_others_are_not(void **state)
{
    (void)state;
    static const struct {
        size_t offset, row_bytes;
        int64_t n_row;
    } cases[] = {{0, 4096, 512}, {0, 4, 1 << 19}, {100, 2048, 1000}, {4095, 12000, 150}, {64, 1 << 20, 1}, {0, 64, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int n_thread = 1; n_thread <= 5; n_thread++) {
            ttn_block *b = block_of(16 * MIB);
            assert_grows(b, 8 * MIB);
            (void)madvise(ttn_block_start(b), 8 * MIB, MADV_NOHUGEPAGE); /* else one touch fills 2 MiB */
            char *start = (char *)ttn_block_start(b) + STEP + cases[c].offset;
            size_t n = cases[c].row_bytes * (size_t)cases[c].n_row;
            start[n / 2] = 5; /* what is there stays there */
            ttn_touch_rows(start, cases[c].n_row, cases[c].row_bytes, n_thread);
            assert_int_equal(start[n / 2], 5);
            if (n > 0) assert_resident(start, n);
            assert_absent(ttn_block_start(b), STEP);
            assert_absent((char *)ttn_block_start(b) + 3 * STEP, STEP);
            ttn_block_destroy(b);
        }
}

static int64_t bytes_in_memory(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    long long all, in;
    assert_int_equal(fscanf(f, "%lld %lld", &all, &in), 2);
    fclose(f);
    return in * sysconf(_SC_PAGESIZE);
}

/* A page that was only read is the kernel's one page of zeros, and gets its place at some later write. */
static void touching_gives_pages_of_their_own(void **state)
{
    (void)state;
    ttn_block *b = block_of(32 * MIB);
    assert_grows(b, 32 * MIB);
    int64_t before = bytes_in_memory();
    ttn_touch_rows(ttn_block_start(b), 1024, 32 * MIB / 1024, 2);
    int64_t more = bytes_in_memory() - before;
    assert_true(more > (int64_t)(24 * MIB)); /* the kernel counts in batches */
    ttn_block_destroy(b);
}

static void shares_are_those_of_openmp(void **state)
{
    (void)state;
    static int owner[2000];
    for (int n_thread = 1; n_thread <= 9; n_thread++)
        for (int64_t n = 0; n < 2000; n = n * 2 + 1) {
            int got = 0;
#pragma omp parallel num_threads(n_thread)
            {
#pragma omp single
                got = omp_get_num_threads();
#pragma omp for schedule(static)
                for (int64_t i = 0; i < n; i++)
                    owner[i] = omp_get_thread_num();
            }
            int64_t next = 0;
            for (int t = 0; t < got; t++) {
                int64_t first, end;
                ttn_share(n, t, got, &first, &end);
                assert_int_equal(first, next);
                for (int64_t i = first; i < end; i++)
                    assert_int_equal(owner[i], t);
                next = end;
            }
            assert_int_equal(next, n);
        }
    int64_t first, end;
    ttn_share(INT64_MAX, 6, 7, &first, &end);
    assert_int_equal(end, INT64_MAX);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
        cmocka_unit_test(sizes_that_cannot_be_are_no_memory),
        cmocka_unit_test(failed_piece_says_what_for_and_how_much),
        cmocka_unit_test(arena_gives_zeroed_aligned_pieces_that_do_not_overlap),
        cmocka_unit_test(arena_copies_bytes_and_prints_text),
        cmocka_unit_test(arena_reset_keeps_small_blocks_and_frees_large_ones),
        cmocka_unit_test(arena_without_memory_gives_null_and_stays_usable),
        cmocka_unit_test(block_grows_without_moving_or_losing_contents),
        cmocka_unit_test(beyond_what_is_committed_every_access_dies),
        cmocka_unit_test(shrinking_gives_pages_back_and_growing_again_gives_zeros),
        cmocka_unit_test(block_asks_for_huge_pages_in_all_it_reserves),
        cmocka_unit_test(impossible_blocks_are_refused_with_a_sentence),
        cmocka_unit_test(failing_calls_leave_the_block_as_it_was),
        cmocka_unit_test(growth_beyond_the_machine_is_refused_rather_than_killed),
        cmocka_unit_test(limit_on_addresses_is_a_status),
        cmocka_unit_test(limit_on_memory_is_a_status_and_the_old_part_stays),
        cmocka_unit_test(touched_rows_are_in_memory_and_others_are_not),
        cmocka_unit_test(touching_gives_pages_of_their_own),
        cmocka_unit_test(shares_are_those_of_openmp),
    };
    return ttn_test_run(tests);
}
