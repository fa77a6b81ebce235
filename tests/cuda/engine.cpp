/* Runs kernels: one block after the other, a block's threads as fibers, a warp as far as it gets before the next one. */
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include "tests/cuda/engine.h"

namespace emulation
{

const launch *running_launch;
thread *running;
uint3 running_block;

/* Frames are larger under AddressSanitizer. */
#if defined(EMULATION_ADDRESS_SANITIZER)
enum { STACK_BYTES = 256 << 10 };
#else
enum { STACK_BYTES = 64 << 10 };
#endif

/* Below each stack, without rights: one that is too small ends there, and not in its neighbour. */
enum { GUARD_BYTES = 16 << 10 };

static struct {
    char sentence[1024];
    emulation_order order;
    uint64_t seed;
    bool order_known;
    uint64_t random;
    int64_t blocks_run;
    int most_blocks; /* 0: as many as on a GPU */
    char *stacks;
    fiber scheduler;
    std::vector<thread> threads;
} self;

/* ---- failures ---- */

bool failed()
{
    return self.sentence[0] != 0;
}

static void leave_for_good()
{
    thread *me = running;
    running = nullptr;
    fiber_switch(&me->on, &self.scheduler, true);
    std::abort();
}

void fail(const char *format, ...)
{
    if (!failed()) {
        size_t at = 0;
        if (running_launch)
            at = (size_t)snprintf(self.sentence, sizeof self.sentence, "kernel '%s', block (%u, %u, %u)",
                                  running_launch->name, running_block.x, running_block.y, running_block.z);
        if (running)
            at += (size_t)snprintf(self.sentence + at, sizeof self.sentence - at, ", thread (%u, %u, %u)",
                                   running->index.x, running->index.y, running->index.z);
        if (running_launch) at += (size_t)snprintf(self.sentence + at, sizeof self.sentence - at, ": ");
        va_list values;
        va_start(values, format);
        vsnprintf(self.sentence + at, sizeof self.sentence - at, format, values);
        va_end(values);
    }
    if (running) leave_for_good();
}

/* ---- the order of things ---- */

static void know_order()
{
    if (self.order_known) return;
    self.order_known = true;
    const char *order = getenv("TTN_CUDA_ORDER");
    const char *seed = getenv("TTN_CUDA_SEED");
    self.order = EMULATION_FORWARD;
    if (order && strcmp(order, "reverse") == 0) {
        self.order = EMULATION_REVERSE;
    } else if (order && strcmp(order, "random") == 0) {
        self.order = EMULATION_RANDOM;
    } else if (order && *order && strcmp(order, "forward") != 0) {
        fprintf(stderr, "TTN_CUDA_ORDER is '%s', expected forward, reverse or random\n", order);
        exit(2);
    }
    self.seed = seed ? strtoull(seed, nullptr, 0) : 1;
    self.random = self.seed;
}

emulation_order order()
{
    know_order();
    return self.order;
}

/* splitmix64 (Steele, Lea, Flood 2014) */
unsigned random_below(unsigned n)
{
    self.random += 0x9E3779B97F4A7C15;
    uint64_t z = self.random;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (unsigned)((z ^ z >> 31) % n);
}

/* 0 … n - 1 in the order that is asked for. */
static void arrange(int n, std::vector<int> &sequence)
{
    sequence.resize((size_t)n);
    for (int i = 0; i < n; i++)
        sequence[(size_t)i] = self.order == EMULATION_REVERSE ? n - 1 - i : i;
    if (self.order != EMULATION_RANDOM) return;
    for (int i = n - 1; i > 0; i--)
        std::swap(sequence[(size_t)i], sequence[random_below((unsigned)i + 1)]);
}

/* ---- inside a fiber ---- */

static void wait(state why)
{
    thread *me = running;
    me->state = why;
    running = nullptr;
    fiber_switch(&me->on, &self.scheduler, why == state::done);
    running = me;
}

static void thread_main()
{
    fiber_begun(&self.scheduler);
    running_launch->body();
    wait(state::done);
    std::abort(); /* nobody resumes it */
}

/* ---- the scheduler ---- */

static char *stack_of(int i)
{
    return self.stacks + (size_t)i * (GUARD_BYTES + STACK_BYTES) + GUARD_BYTES;
}

static void make_stacks()
{
    self.stacks = map_pages((size_t)MAX_THREADS * (GUARD_BYTES + STACK_BYTES), true);
    for (int i = 0; i < MAX_THREADS; i++)
        set_rights(stack_of(i) - GUARD_BYTES, GUARD_BYTES, false);
}

static void start_threads()
{
    const dim3 b = running_launch->block;
    for (int i = 0; i < (int)self.threads.size(); i++) {
        thread &t = self.threads[(size_t)i];
        t = thread{};
        t.index = uint3{(unsigned)i % b.x, (unsigned)i / b.x % b.y, (unsigned)i / (b.x * b.y)};
        t.number = i;
        t.warp = i / WARP;
        t.lane = i % WARP;
        fiber_prepare(&t.on, stack_of(i), STACK_BYTES, thread_main);
    }
}

static void resume(thread &t)
{
    running = &t;
    fiber_switch(&self.scheduler, &t.on, false);
    running = nullptr;
}

/* One warp's lanes. */
struct lanes {
    thread *of;
    int n;
};

static lanes lanes_of(int warp)
{
    const int first = warp * WARP;
    const int n = (int)self.threads.size() - first;
    return lanes{&self.threads[(size_t)first], n < WARP ? n : WARP};
}

static unsigned lanes_in(const lanes &w, state s)
{
    unsigned set = 0;
    for (int i = 0; i < w.n; i++)
        if (w.of[i].state == s) set |= 1u << i;
    return set;
}

static const char *name_of(emulation_warp_kind kind)
{
    switch (kind) {
    case EMULATION_SYNC:
        return "__syncwarp";
    case EMULATION_SHUFFLE:
        return "shuffle";
    case EMULATION_BALLOT:
        return "vote";
    default:
        return "reduction";
    }
}

/* What the lanes of `who` make together. */
static uint64_t reduced(const lanes &w, unsigned who, emulation_warp_kind kind)
{
    unsigned result = 0;
    bool first = true;
    for (int i = 0; i < w.n; i++) {
        if (!(who & 1u << i)) continue;
        const unsigned x = (unsigned)w.of[i].value;
        if (kind == EMULATION_BALLOT) {
            result |= x << i;
        } else if (first) {
            result = x;
        } else if (kind == EMULATION_REDUCE_ADD) {
            result += x;
        } else if (kind == EMULATION_REDUCE_MIN) {
            result = std::min(result, x);
        } else if (kind == EMULATION_REDUCE_MAX) {
            result = std::max(result, x);
        } else if (kind == EMULATION_REDUCE_MIN_SIGNED) {
            result = (unsigned)std::min((int)result, (int)x);
        } else if (kind == EMULATION_REDUCE_MAX_SIGNED) {
            result = (unsigned)std::max((int)result, (int)x);
        } else if (kind == EMULATION_REDUCE_AND) {
            result &= x;
        } else if (kind == EMULATION_REDUCE_OR) {
            result |= x;
        } else {
            result ^= x;
        }
        first = false;
    }
    return result;
}

/* The lanes of `who` are all there: each takes what it came for. */
static void meet(const lanes &w, unsigned who)
{
    const emulation_warp_kind kind = w.of[__builtin_ctz(who)].kind;
    uint64_t brought[WARP] = {};
    unsigned phase = 0;
    for (int i = 0; i < w.n; i++) {
        brought[i] = w.of[i].value;
        if (who & 1u << i) phase = std::max(phase, w.of[i].phase);
    }
    const uint64_t together = kind > EMULATION_SHUFFLE ? reduced(w, who, kind) : 0;
    for (int i = 0; i < w.n; i++) {
        thread &t = w.of[i];
        if (!(who & 1u << i)) continue;
        t.state = state::ready;
        if (kind == EMULATION_SYNC) {
            t.phase = phase + 1;
        } else if (kind != EMULATION_SHUFFLE) {
            t.value = together;
        } else if (t.from >= 0 && t.from < w.n && who & 1u << t.from) {
            t.value = brought[t.from];
        } else {
            running = &t; /* for the sentence, which is not to end this fiber: it is over */
            const int from = t.from;
            running = nullptr;
            fail("a shuffle: lane %d of warp %d reads lane %d, which %s", i, t.warp, from,
                 from >= 0 && from < w.n && t.mask & 1u << from ? "has returned" : "is not in its mask");
            return;
        }
    }
}

/* Lets lanes go on that wait for each other and are all there. */
static bool release_warp(const lanes &w)
{
    const unsigned gone = lanes_in(w, state::done);
    const unsigned there = w.n == WARP ? 0xFFFFFFFFu : (1u << w.n) - 1;
    bool any = false;
    for (int i = 0; i < w.n && !failed(); i++) {
        const thread &t = w.of[i];
        if (t.state != state::at_warp) continue;
        unsigned same = 0;
        for (int j = 0; j < w.n; j++)
            if (w.of[j].state == state::at_warp && w.of[j].mask == t.mask && w.of[j].kind == t.kind) same |= 1u << j;
        if (same != (t.mask & there & ~gone)) continue;
        meet(w, same);
        any = true;
    }
    return any;
}

/* Lanes wait for lanes that will not come. */
static void explain_stuck_warp(const lanes &w)
{
    const unsigned gone = lanes_in(w, state::done);
    const unsigned waiting = lanes_in(w, state::at_warp);
    const thread &t = w.of[__builtin_ctz(waiting)];
    unsigned same = 0;
    for (int j = 0; j < w.n; j++)
        if (w.of[j].state == state::at_warp && w.of[j].mask == t.mask && w.of[j].kind == t.kind) same |= 1u << j;
    fail("a %s of warp %d names the lanes %08X in its mask, but only %08X come to it (%08X wait at __syncthreads, %08X "
         "elsewhere in the warp, %08X have returned)",
         name_of(t.kind), t.warp, t.mask, same, lanes_in(w, state::at_barrier), waiting & ~same, gone);
}

/* One warp until all its lanes wait at the block's barrier or have returned. */
static void run_warp(int warp)
{
    static std::vector<int> sequence;
    const lanes w = lanes_of(warp);
    for (;;) {
        arrange(w.n, sequence);
        for (int k = 0; k < w.n; k++) {
            thread &t = w.of[sequence[(size_t)k]];
            if (t.state == state::ready) resume(t);
            if (failed()) return;
        }
        if (lanes_in(w, state::at_warp) == 0) return;
        if (!release_warp(w)) {
            if (!failed()) explain_stuck_warp(w);
            return;
        }
        if (failed()) return;
    }
}

/* All threads of the block wait at a barrier, and at the same one. */
static void release_barrier()
{
    const thread *first = nullptr;
    int waiting = 0;
    int true_ones = 0;
    for (const thread &t : self.threads) {
        if (t.state != state::at_barrier) continue;
        waiting++;
        true_ones += t.predicate != 0;
        if (!first) first = &t;
        if (strcmp(t.file, first->file) != 0 || t.line != first->line) {
            fail("threads wait at different __syncthreads: thread %d in %s:%d, thread %d in %s:%d", first->number,
                 first->file, first->line, t.number, t.file, t.line);
            return;
        }
    }
    const int all = (int)self.threads.size();
    if (waiting < all) {
        fail("__syncthreads in %s:%d is reached by %d of the block's %d threads; the others have returned", first->file,
             first->line, waiting, all);
        return;
    }
    for (thread &t : self.threads) {
        t.state = state::ready;
        t.predicate = true_ones;
        t.phase = 0;
    }
    pass_barrier();
}

static bool all_done()
{
    for (const thread &t : self.threads)
        if (t.state != state::done) return false;
    return true;
}

static void run_block()
{
    static std::vector<int> sequence;
    const int warps = ((int)self.threads.size() + WARP - 1) / WARP;
    begin_block();
    start_threads();
    for (;;) { /* from barrier to barrier */
        arrange(warps, sequence);
        const std::vector<int> turns = sequence;
        for (int warp : turns) {
            run_warp(warp);
            if (failed()) return;
        }
        if (all_done()) break;
        release_barrier();
        if (failed()) return;
    }
    self.blocks_run++;
}

void run(const launch &l)
{
    know_order();
    if (!self.stacks) make_stacks();
    running_launch = &l;
    self.threads.resize((size_t)l.block.x * l.block.y * l.block.z);
    begin_launch();
    std::vector<int> sequence;
    const int64_t n = (int64_t)l.grid.x * l.grid.y * l.grid.z;
    arrange((int)n, sequence);
    for (int64_t k = 0; k < n && !failed(); k++) {
        const unsigned i = (unsigned)sequence[(size_t)k];
        running_block = uint3{i % l.grid.x, i / l.grid.x % l.grid.y, i / l.grid.x / l.grid.y};
        run_block();
    }
    end_launch();
    running_launch = nullptr;
    running_block = uint3{};
}

} /* namespace emulation */

using namespace emulation;

/* ---- what kernels call ---- */

uint3 emulation_thread_index()
{
    return running->index;
}
uint3 emulation_block_index()
{
    return running_block;
}
dim3 emulation_block_size()
{
    return running_launch->block;
}
dim3 emulation_grid_size()
{
    return running_launch->grid;
}

int emulation_most_blocks()
{
    return self.most_blocks > 0 ? self.most_blocks : 65535;
}

void emulation_begin_kernel()
{
    running->in_kernel = true;
}
void emulation_end_kernel()
{
    running->in_kernel = false;
}

void *emulation_shared(const char *name, int line, size_t bytes)
{
    return shared_memory(name, line, bytes);
}

void *emulation_shared_dynamic(const char *name)
{
    if (running_launch->dynamic_bytes == 0) fail("'%s' is dynamic shared memory, but the launch asks for none", name);
    return shared_memory("dynamic", -1, running_launch->dynamic_bytes);
}

int emulation_barrier(const char *file, int line, int predicate)
{
    thread *me = running;
    me->file = file;
    me->line = line;
    me->predicate = predicate != 0;
    wait(state::at_barrier);
    return me->predicate;
}

uint64_t emulation_warp(emulation_warp_kind kind, unsigned mask, uint64_t value, int from)
{
    thread *me = running;
    if (!(mask & 1u << me->lane))
        fail("a %s with the mask %08X is executed by lane %d, which is not in it", name_of(kind), mask, me->lane);
    me->kind = kind;
    me->mask = mask;
    me->value = value;
    me->from = from;
    wait(state::at_warp);
    return me->value;
}

/* ---- what tests call ---- */

void emulation_set_order(emulation_order order, uint64_t seed)
{
    self.order_known = true;
    self.order = order;
    self.seed = seed;
    self.random = seed;
}

void emulation_get_order(emulation_order *order, uint64_t *seed)
{
    know_order();
    *order = self.order;
    *seed = self.seed;
}

void emulation_set_most_blocks(int blocks)
{
    self.most_blocks = blocks;
}

const char *emulation_failure(void)
{
    return self.sentence;
}

int64_t emulation_blocks_run(void)
{
    return self.blocks_run;
}

namespace emulation
{
void forget_failure()
{
    self.sentence[0] = 0;
    running = nullptr;
    running_launch = nullptr;
}
} // namespace emulation
