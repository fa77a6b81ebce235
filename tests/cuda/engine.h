/* What the parts of the emulation share: the running block (engine.cpp), the looks at memory (shadow.cpp), the runtime
 * (runtime.cpp). All of it on one thread of the host. */
#ifndef TTN_TEST_ENGINE_H
#define TTN_TEST_ENGINE_H

#include <cstdint>
#include <functional>
#include <vector>
#include "tests/cuda/cuda_emulation.h"
#include "tests/cuda/emulation.h"
#include "tests/cuda/fiber.h"

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim
#undef __syncthreads

#if defined(__SANITIZE_ADDRESS__)
#define EMULATION_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATION_ADDRESS_SANITIZER 1
#endif
#endif

namespace emulation
{

enum { WARP = 32, MAX_THREADS = 1024 };

/* ---- failures ---- */

/* Keeps the first sentence. On a fiber it does not return: the kernel is over. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool failed();

/* ---- the running block: engine.cpp ---- */

enum class state { ready, at_barrier, at_warp, done };

struct thread {
    fiber on;
    uint3 index;
    int number, warp, lane; /* in the block; of the block; in the warp */
    enum state state;
    bool in_kernel; /* else: in the engine's own code */
    unsigned phase; /* how often it met others in __syncwarp */

    /* at_barrier */
    const char *file;
    int line, predicate;

    /* at_warp, and what it takes from there */
    emulation_warp_kind kind;
    unsigned mask;
    uint64_t value;
    int from;
};

/* One kernel on its way. */
struct launch {
    const char *name;
    dim3 grid, block;
    size_t dynamic_bytes;
    std::function<void()> body;
};

/* NULL: no kernel runs. */
extern const launch *running_launch;
/* NULL: the scheduler runs, or the host. */
extern thread *running;
extern uint3 running_block;

void run(const launch &l);

/* Takes random numbers of the order's stream: below n. */
unsigned random_below(unsigned n);
emulation_order order();

/* ---- memory: shadow.cpp ---- */

/* What is known of an address that the device may use. Epochs count blocks and barriers, over all launches: an access in an
 * epoch before the launch's first is over; before the block's first, another block's; before now, ordered by a barrier. */
struct cell {
    uint32_t write_epoch, read_epoch;
    uint32_t write_phase, read_phase; /* of the thread: __syncwarp orders the lanes of a warp */
    uint16_t writer, reader;
    uint16_t readers; /* how many, as far as it matters */
};
enum { ONE_READER, READERS_OF_ONE_WARP, READERS_OF_WARPS, READERS_OF_BLOCKS };

struct region {
    char *start;
    size_t bytes;
    cell *words; /* one for 4 bytes */
    cell *units; /* one a byte, for smaller accesses; NULL until there is one */
    /* of a block's shared memory: */
    const char *name; /* NULL: it is the device's */
    int line;
    unsigned char *written; /* one a byte, in this block */
    char *allocated;
};

/* Regions of the device. */
void add_region(void *start, size_t bytes);
void remove_region(void *start);

/* The one that holds all of it; NULL: none. */
const region *find_region(const void *start, size_t bytes);

/* What the scheduler tells. */
void begin_launch();
void begin_block();
void pass_barrier();
void end_launch();

/* The array of this name, line and size in the running block's shared memory. */
char *shared_memory(const char *name, int line, size_t bytes);

/* An access of the running thread. */
enum class access { read, write, atomic, read_only };
void look(const void *at, size_t bytes, access kind);

/* ---- the runtime: runtime.cpp ---- */

/* Counts a call; what it must return when it is the one to fail, or the device has failed. */
cudaError_t enter(const char *call);
cudaError_t set_last_error(cudaError_t e);
void push(cudaStream_t stream, std::function<void()> work);
bool is_stream(cudaStream_t stream);

/* "0x… is byte 12 of an allocation of 400 bytes", "… is memory of the host". */
void describe(const void *at, char *text, size_t room);

/* Whole pages, which the kernel gives when they are touched; past the test harness, which counts and fails the calls of the
 * library. usable: read and write, else no rights. */
char *map_pages(size_t bytes, bool usable);
void unmap_pages(void *start, size_t bytes);
void set_rights(void *start, size_t bytes, bool usable);

} /* namespace emulation */
#endif
