/* Looks at every access of a kernel to memory.
 *
 * .cu files are compiled with -fsanitize=thread, which puts a call before each load and store; the calls are answered in
 * callbacks.cpp, and not by ThreadSanitizer, which is not linked. What is found, exactly and in whatever order things run:
 *
 *     an address that is neither the device's, nor the block's shared memory, nor the thread's own stack: memory of the
 *         host, the end of an array
 *     shared memory that is read before anything was written there
 *     a race in a block: two threads use an address, one of them writes, and no barrier stands between (__syncthreads,
 *         or __syncwarp in one warp; shuffles order no memory)
 *     two blocks of one launch that use an address of the device and one writes: there is no order between blocks
 *     float4 and the like where they are not aligned, an index that an array does not have (-fsanitize=alignment,bounds,
 *         answered here too); __ldg of what the kernel writes
 *
 * Not looked at: atomics against plain accesses, 1- and 2-byte accesses against larger ones of the same address.
 * AddressSanitizer can not be combined with that; a build under it sees the ends of arrays
 * only (shared arrays come from malloc, and what surrounds the device's memory is poisoned).
 */
#include <cstdio>
#include <cstdlib>
#include "tests/cuda/engine.h"

extern "C" char __executable_start, end; /* the linker's: the program's own code and constants lie between */

namespace emulation
{

/* Around each shared array: an index that is off by a little lands here and not in the next array. */
enum { RED_ZONE = 256 };

static struct {
    std::vector<region> device; /* ascending */
    std::vector<region> shared; /* of the kernel that runs */
    const region *last;         /* found */
    uint32_t epoch, launch_first, block_first;
} self = {{}, {}, nullptr, 1, 1, 1};

/* ---- regions ---- */

static cell *cells(size_t n)
{
    return reinterpret_cast<cell *>(map_pages(n * sizeof(cell), true));
}

static void free_cells(const region &r)
{
    if (r.words) unmap_pages(r.words, (r.bytes / 4 + 1) * sizeof(cell));
    if (r.units) unmap_pages(r.units, (r.bytes + 1) * sizeof(cell));
}

void add_region(void *start, size_t bytes)
{
    region r = {};
    r.start = static_cast<char *>(start);
    r.bytes = bytes;
    if (emulation_checks()) r.words = cells(bytes / 4 + 1);
    size_t at = 0;
    while (at < self.device.size() && self.device[at].start < r.start)
        at++;
    self.device.insert(self.device.begin() + (std::ptrdiff_t)at, r);
    self.last = nullptr;
}

void remove_region(void *start)
{
    for (size_t i = 0; i < self.device.size(); i++) {
        if (self.device[i].start != start) continue;
        free_cells(self.device[i]);
        self.device.erase(self.device.begin() + (std::ptrdiff_t)i);
        break;
    }
    self.last = nullptr;
}

const region *find_region(const void *start, size_t bytes)
{
    const char *at = static_cast<const char *>(start);
    for (const region &r : self.device)
        if (at >= r.start && at < r.start + r.bytes && bytes <= (size_t)(r.start + r.bytes - at)) return &r;
    return nullptr;
}

void describe(const void *at, char *text, size_t room)
{
    const char *a = static_cast<const char *>(at);
    enum { NEAR = 1 << 20 };
    if (running && a < running->on.stack && running->on.stack - a < NEAR) {
        snprintf(text, room,
                 "what lies below its stack: it needs more than the %zu KiB that the emulation gives a thread",
                 running->on.bytes >> 10);
        return;
    }
    for (const region &r : self.shared) {
        const std::ptrdiff_t offset = a - r.start;
        if (offset >= -RED_ZONE && offset < (std::ptrdiff_t)r.bytes + RED_ZONE) {
            snprintf(text, room, "byte %td of the %zu bytes of the shared array '%s'", offset, r.bytes, r.name);
            return;
        }
    }
    /* the one that holds it, or else one that ends a little before it or begins a little behind it */
    for (std::ptrdiff_t around = 0; around <= NEAR; around += NEAR)
        for (const region &r : self.device) {
            const std::ptrdiff_t offset = a - r.start;
            if (offset < -around || offset >= (std::ptrdiff_t)r.bytes + around) continue;
            snprintf(text, room, "byte %td of an allocation of %zu bytes of device memory", offset, r.bytes);
            return;
        }
    snprintf(text, room, "address %p, which is memory of the host, another thread's own, or nothing", at);
}

/* ---- a block's shared memory ---- */

void begin_launch()
{
    self.launch_first = self.epoch + 1;
}

/* Everything is NaN at first, as far as it is a number. */
static void blank(region &r)
{
    memset(r.start, 0xFF, r.bytes);
    memset(r.written, 0, r.bytes);
}

void begin_block()
{
    if (self.epoch > UINT32_MAX - 1000000) {
        fprintf(stderr, "the emulation has run out of numbers for blocks\n");
        exit(2);
    }
    self.epoch++;
    self.block_first = self.epoch;
    for (region &r : self.shared)
        blank(r);
}

void pass_barrier()
{
    self.epoch++;
}

static region new_shared(const char *name, int line, size_t bytes)
{
    region r = {};
#if defined(EMULATION_ADDRESS_SANITIZER)
    const size_t around = 0; /* it has red zones of its own */
#else
    const size_t around = RED_ZONE;
#endif
    r.allocated = static_cast<char *>(std::malloc(bytes + 2 * around));
    r.written = static_cast<unsigned char *>(std::malloc(bytes));
    if (!r.allocated || !r.written) {
        fprintf(stderr, "the emulation has no memory for a shared array of %zu bytes\n", bytes);
        exit(2);
    }
    r.start = r.allocated + around;
    r.bytes = bytes;
    r.name = name;
    r.line = line;
    if (emulation_checks()) {
        r.words = cells(bytes / 4 + 1);
        r.units = cells(bytes + 1);
    }
    blank(r);
    return r;
}

char *shared_memory(const char *name, int line, size_t bytes)
{
    size_t together = bytes;
    for (const region &r : self.shared) {
        if (r.bytes == bytes && r.line == line && strcmp(r.name, name) == 0) return r.start;
        if (r.line > 0) together += r.bytes;
    }
    enum { MOST = 48 << 10 };
    if (line > 0 && together > MOST)
        fail("the fixed shared arrays have %zu bytes, and %d are possible: '%s' is one too many", together, MOST, name);
    self.shared.push_back(new_shared(name, line, bytes));
    return self.shared.back().start;
}

void end_launch()
{
    for (region &r : self.shared) {
        free_cells(r);
        std::free(r.allocated);
        std::free(r.written);
    }
    self.shared.clear();
}

/* ---- one access ---- */

static const char *verb(access kind)
{
    return kind == access::write ? "writes" : (kind == access::atomic ? "changes" : "reads");
}

static void clash(const void *at, access kind, const char *other, int other_thread)
{
    char place[256];
    describe(at, place, sizeof place);
    if (other_thread < 0)
        fail("%s %s, which another block of this launch %s", verb(kind), place, other);
    else
        fail("%s %s, which thread %d of this block %s, with no barrier between", verb(kind), place, other_thread,
             other);
}

/* Two threads of the block, both now: does __syncwarp stand between them? */
static bool ordered(const thread &me, int other, uint32_t other_phase)
{
    return other == me.number || (other / WARP == me.warp && other_phase < me.phase);
}

static void look_at_write(const void *at, cell &c, access kind, uint32_t first)
{
    if (c.write_epoch < first) return;
    if (c.write_epoch < self.block_first) {
        clash(at, kind, "writes", -1);
    } else if (c.write_epoch == self.epoch && !ordered(*running, c.writer, c.write_phase)) {
        clash(at, kind, "has written", c.writer);
    }
}

static void look_at_reads(const void *at, cell &c, uint32_t first)
{
    if (c.read_epoch < first) return;
    if (c.readers == READERS_OF_BLOCKS || c.read_epoch < self.block_first) {
        clash(at, access::write, "reads", -1);
    } else if (c.read_epoch == self.epoch) {
        const bool others =
            c.readers == READERS_OF_WARPS ||
            (c.readers == READERS_OF_ONE_WARP && (c.reader / WARP != running->warp || c.read_phase >= running->phase));
        if (others || (c.readers == ONE_READER && !ordered(*running, c.reader, c.read_phase)))
            clash(at, access::write, "and maybe others have read", c.reader);
    }
}

static void note_read(cell &c, uint32_t first)
{
    const uint16_t me = (uint16_t)running->number;
    if (c.read_epoch < first) {
        c.readers = ONE_READER;
    } else if (c.read_epoch < self.block_first) {
        c.readers = READERS_OF_BLOCKS;
    } else if (c.readers != READERS_OF_BLOCKS) {
        if (c.read_epoch < self.epoch)
            c.readers = ONE_READER;
        else if (c.reader / WARP != running->warp)
            c.readers = READERS_OF_WARPS;
        else if (c.reader != me && c.readers == ONE_READER)
            c.readers = READERS_OF_ONE_WARP;
    }
    c.read_phase = c.readers == READERS_OF_ONE_WARP ? std::max(c.read_phase, running->phase) : running->phase;
    c.read_epoch = self.epoch;
    c.reader = me;
}

static void look_at_cell(const void *at, cell &c, access kind, uint32_t first)
{
    if (kind == access::read_only && c.write_epoch >= first) fail("__ldg of what this kernel writes");
    look_at_write(at, c, kind, first);
    if (kind == access::write) {
        look_at_reads(at, c, first);
        c.write_epoch = self.epoch;
        c.writer = (uint16_t)running->number;
        c.write_phase = running->phase;
    } else {
        note_read(c, first);
    }
}

static void look_in_region(region &r, const char *at, size_t bytes, access kind)
{
    const size_t offset = (size_t)(at - r.start);
    if (kind == access::atomic) {
        if (r.written) memset(r.written + offset, 1, bytes);
        return;
    }
    if (r.written) {
        if (kind == access::write)
            memset(r.written + offset, 1, bytes);
        else
            for (size_t i = 0; i < bytes; i++)
                if (!r.written[offset + i])
                    fail("reads byte %zu of the %zu bytes of the shared array '%s', where this block has written "
                         "nothing",
                         offset + i, r.bytes, r.name);
    }
    const uint32_t first = r.name ? self.block_first : self.launch_first;
    if (bytes >= 4) {
        for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4; i++)
            look_at_cell(at, r.words[i], kind, first);
        return;
    }
    if (!r.units) r.units = cells(r.bytes + 1);
    for (size_t i = offset; i < offset + bytes; i++)
        look_at_cell(at, r.units[i], kind, first);
}

static bool inside(const region &r, const char *at, size_t bytes)
{
    return at >= r.start && bytes <= r.bytes && (size_t)(at - r.start) <= r.bytes - bytes;
}

void look(const void *address, size_t bytes, access kind)
{
    thread *me = running;
    if (!me || !me->in_kernel || bytes == 0) return;
    const char *at = static_cast<const char *>(address);
    if (at >= me->on.stack && at < me->on.stack + me->on.bytes) return;
    me->in_kernel = false;
    for (region &r : self.shared) {
        if (!inside(r, at, bytes)) continue;
        look_in_region(r, at, bytes, kind);
        me->in_kernel = true;
        return;
    }
    static region *last;
    if (!self.last || !inside(*last, at, bytes)) {
        self.last = find_region(at, bytes);
        last = const_cast<region *>(self.last);
    }
    if (self.last) {
        look_in_region(*last, at, bytes, kind);
    } else if (at >= &__executable_start && at + bytes <= &end && kind == access::read) {
        /* a constant of the kernel's file */
    } else {
        char place[256];
        describe(at, place, sizeof place);
        fail("%s %s", verb(kind), place);
    }
    me->in_kernel = true;
}

} /* namespace emulation */

using namespace emulation;

int emulation_checks(void)
{
#if defined(EMULATION_ADDRESS_SANITIZER)
    return 0;
#else
    return 1;
#endif
}

void emulation_read_only(const void *at, size_t bytes)
{
    look(at, bytes, access::read_only);
}

/* ---- atomics ---- */

#define EMULATED_ATOMIC(type, name, parameters, result) \
    type name parameters                                \
    {                                                   \
        look(at, sizeof *at, access::atomic);           \
        const type before = *at;                        \
        *at = result;                                   \
        return before;                                  \
    }
#define EMULATED_ATOMICS(type)                                                                          \
    EMULATED_ATOMIC(type, atomicMin, (type * at, type value), std::min(before, value))                  \
    EMULATED_ATOMIC(type, atomicMax, (type * at, type value), std::max(before, value))                  \
    EMULATED_ATOMIC(type, atomicExch, (type * at, type value), value)                                   \
    EMULATED_ATOMIC(type, atomicCAS, (type * at, type old, type value), before == old ? value : before) \
    EMULATED_ATOMIC(type, atomicAnd, (type * at, type value), before &value)                            \
    EMULATED_ATOMIC(type, atomicOr, (type * at, type value), before | value)                            \
    EMULATED_ATOMIC(type, atomicXor, (type * at, type value), before ^ value)                           \
    EMULATED_ATOMIC(type, atomicAdd, (type * at, type value),                                           \
                    (type)((unsigned long long)before + (unsigned long long)value))
EMULATED_ATOMICS(int)
EMULATED_ATOMICS(unsigned)
EMULATED_ATOMICS(unsigned long long)
EMULATED_ATOMIC(long long, atomicMin, (long long *at, long long value), std::min(before, value))
EMULATED_ATOMIC(long long, atomicMax, (long long *at, long long value), std::max(before, value))
