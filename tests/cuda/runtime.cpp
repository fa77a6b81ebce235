/* The CUDA runtime without a GPU: memory that the host can not touch, streams that run late, errors that stay.
 *
 * Memory from cudaMalloc is a mapping without any rights while host code runs: a read there is a fault with a sentence.
 * It is opened while queued work runs, all of which happens inside the runtime's own calls: what is queued waits until
 * somebody waits for it (a stream, an event, a synchronous copy), so a host that reads a result too early, or gives back
 * memory that a copy still needs, sees it every time. Work of several streams runs in their order, or mixed at random
 * (TTN_CUDA_ORDER=random), and always so that an event is waited for.
 *
 * Copies must be what they say (kind), and lie in one allocation. From and to pinned memory they are asynchronous; from
 * pageable memory the bytes are taken at once, to pageable memory the call waits, as the manual says. cudaMemcpy does not
 * wait for streams made with cudaStreamNonBlocking: that too is as on a GPU.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tests/cuda/engine.h"

#if defined(EMULATION_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

struct CUevent_st {
    CUstream_st *on;
    int64_t recorded, done; /* how often it was recorded, and which of these the device has passed */
};

struct CUstream_st {
    std::deque<std::function<void()>> queue;
    bool busy; /* its work waits for another stream's */
};

namespace emulation
{

void forget_failure();

enum { PAGE = 4096, ALIGNMENT = 256 };

struct allocation {
    char *map;
    size_t map_bytes;
    char *start;
    size_t bytes;
};

static struct {
    std::vector<allocation> memory;
    std::vector<allocation> pinned;
    std::vector<CUstream_st *> streams;
    std::vector<CUevent_st *> events;
    std::vector<const void *> large_shared; /* kernels that may have as much dynamic shared memory as … */
    std::vector<size_t> large_shared_bytes; /* … this */
    CUstream_st default_stream;
    size_t allocated, most = (size_t)2 << 30;
    cudaError_t last;
    int64_t calls, fail_at;
    cudaError_t fail_with;
    bool hit;
    bool open; /* the device works: its memory may be used */
    struct sigaction before;
} self;

/* ---- the host's fault ---- */

/* Does not return when a kernel made it. */
static void explain_fault(const void *at)
{
    const char *a = static_cast<const char *>(at);
    if (running) {
        char place[256];
        describe(at, place, sizeof place);
        fail("touches %s", place);
    }
    for (const allocation &m : self.memory) {
        if (a < m.map || a >= m.map + m.map_bytes) continue;
        fprintf(stderr, "# host code touches device memory: byte %td of an allocation of %zu bytes\n", a - m.start,
                m.bytes);
        return;
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    explain_fault(info->si_addr);
    /* and now what would have happened without us: the test's own handler, or the end */
    if (self.before.sa_flags & SA_SIGINFO && self.before.sa_sigaction) {
        self.before.sa_sigaction(number, info, context);
        return;
    }
    if (self.before.sa_handler != SIG_DFL && self.before.sa_handler != SIG_IGN) {
        self.before.sa_handler(number);
        return;
    }
    sigaction(SIGSEGV, &self.before, nullptr); /* the access is made again */
}

/* The test's framework puts its own handler in place before every test: ours goes on top of it. */
static void watch_faults()
{
    struct sigaction now;
    sigaction(SIGSEGV, nullptr, &now);
    if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault) return;
    self.before = now;
    struct sigaction ours = {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK; /* it may not return; there may be no stack left */
    static char stack[64 << 10];
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    sigaction(SIGSEGV, &ours, nullptr);
}

/* ---- calls and errors ---- */

cudaError_t set_last_error(cudaError_t e)
{
    if (e != cudaSuccess) self.last = e;
    return e;
}

cudaError_t enter(const char *call)
{
    (void)call;
    watch_faults();
    if (failed()) return set_last_error(cudaErrorLaunchFailure);
    self.calls++;
    if (self.calls != self.fail_at) return cudaSuccess;
    self.hit = true;
    return set_last_error(self.fail_with);
}

/* ---- rights ---- */

static void give_up(const char *what)
{
    perror(what);
    exit(2);
}

char *map_pages(size_t bytes, bool usable)
{
    void *at = reinterpret_cast<void *>(syscall(SYS_mmap, nullptr, bytes, usable ? PROT_READ | PROT_WRITE : PROT_NONE,
                                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, (long)0));
    if (at == MAP_FAILED) give_up("the emulation: mmap");
    return static_cast<char *>(at);
}

void unmap_pages(void *start, size_t bytes)
{
    munmap(start, bytes);
}

void set_rights(void *start, size_t bytes, bool usable)
{
    const size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    if (syscall(SYS_mprotect, start, whole, usable ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        give_up("the emulation: mprotect");
}

static void open_memory()
{
    watch_faults();
    self.open = true;
    for (const allocation &m : self.memory)
        set_rights(m.start, m.bytes, true);
}

static void close_memory()
{
    for (const allocation &m : self.memory)
        set_rights(m.start, m.bytes, false);
    self.open = false;
}

/* ---- streams ---- */

bool is_stream(cudaStream_t stream)
{
    if (!stream) return true;
    for (const CUstream_st *s : self.streams)
        if (s == stream) return true;
    return false;
}

static CUstream_st *stream_of(cudaStream_t stream)
{
    return stream ? stream : &self.default_stream;
}

void push(cudaStream_t stream, std::function<void()> work)
{
    stream_of(stream)->queue.push_back(std::move(work));
}

static void run_one(CUstream_st *s)
{
    const std::function<void()> work = std::move(s->queue.front());
    s->queue.pop_front();
    s->busy = true;
    work();
    s->busy = false;
}

static void drop_queues()
{
    for (CUstream_st *s : self.streams)
        s->queue.clear();
    self.default_stream.queue.clear();
}

/* Run until this holds, or this stream is empty. Other streams may move as well. */
template <class Done> static void run_until(CUstream_st *s, Done done)
{
    const bool was_open = self.open;
    if (s->queue.empty() || done()) return;
    if (!was_open) open_memory();
    while (!failed() && !s->queue.empty() && !done()) {
        if (order() == EMULATION_RANDOM && !self.streams.empty()) {
            CUstream_st *other = self.streams[random_below((unsigned)self.streams.size())];
            if (!other->busy && !other->queue.empty() && random_below(2) == 0) {
                run_one(other);
                continue;
            }
        }
        run_one(s);
    }
    if (failed()) drop_queues();
    if (!was_open) close_memory();
}

static void drain(CUstream_st *s)
{
    run_until(s, [] { return false; });
}

static void drain_all()
{
    drain(&self.default_stream);
    for (size_t i = 0; i < self.streams.size(); i++)
        drain(self.streams[order() == EMULATION_REVERSE ? self.streams.size() - 1 - i : i]);
}

static cudaError_t after_waiting()
{
    return failed() ? set_last_error(cudaErrorLaunchFailure) : cudaSuccess;
}

/* ---- memory ---- */

static const allocation *find(const std::vector<allocation> &list, const void *start)
{
    for (const allocation &m : list)
        if (m.start == start) return &m;
    return nullptr;
}

static bool in_pinned(const void *start, size_t bytes)
{
    const char *at = static_cast<const char *>(start);
    for (const allocation &m : self.pinned)
        if (at >= m.start && at < m.start + m.bytes && bytes <= (size_t)(m.start + m.bytes - at)) return true;
    return false;
}

static bool touches_device(const void *start)
{
    const char *at = static_cast<const char *>(start);
    for (const allocation &m : self.memory)
        if (at >= m.map && at < m.map + m.map_bytes) return true;
    return false;
}

/* Pages without rights on both sides. */
static allocation map(size_t bytes)
{
    allocation m = {};
    const size_t inside = (bytes + PAGE - 1) / PAGE * PAGE;
    m.map_bytes = inside + 2 * PAGE;
    m.map = map_pages(m.map_bytes, false);
    m.start = m.map + PAGE;
    m.bytes = bytes;
    return m;
}

/* The bytes between the end and the next page belong to nobody. */
static void poison_rest(const allocation &m)
{
#if defined(EMULATION_ADDRESS_SANITIZER)
    const size_t inside = (m.bytes + PAGE - 1) / PAGE * PAGE;
    __asan_poison_memory_region(m.start + m.bytes, inside - m.bytes);
#else
    (void)m;
#endif
}

static void unpoison(const allocation &m)
{
#if defined(EMULATION_ADDRESS_SANITIZER)
    __asan_unpoison_memory_region(m.map, m.map_bytes);
#else
    (void)m;
#endif
}

enum copy_side { HOST, DEVICE };

/* Both sides are what `kind` says, and whole. */
static bool copy_fits(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    const copy_side to_side = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ? DEVICE : HOST;
    const copy_side from_side = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ? DEVICE : HOST;
    if (kind == cudaMemcpyDefault || kind == cudaMemcpyHostToHost) return false; /* titin says what it means */
    if (to_side == DEVICE ? !find_region(to, bytes) : touches_device(to)) return false;
    return from_side == DEVICE ? find_region(from, bytes) != nullptr : !touches_device(from);
}

} /* namespace emulation */

using namespace emulation;

#define ENTER()                                      \
    do {                                             \
        const cudaError_t entered = enter(__func__); \
        if (entered != cudaSuccess) return entered;  \
    } while (0)

/* ---- errors ---- */

cudaError_t cudaGetLastError(void)
{
    const cudaError_t e = failed() ? cudaErrorLaunchFailure : self.last;
    self.last = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError(void)
{
    return failed() ? cudaErrorLaunchFailure : self.last;
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define EMULATED_ERROR(name, number) \
    case name:                       \
        return #name;
        EMULATED_CUDA_ERRORS(EMULATED_ERROR)
#undef EMULATED_ERROR
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    if (error == cudaErrorLaunchFailure && failed()) return emulation_failure();
    return "said by the emulation";
}

/* ---- the device ---- */

cudaError_t cudaDriverGetVersion(int *version)
{
    ENTER();
    *version = 12080;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    ENTER();
    *version = 12080;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    ENTER();
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    ENTER();
    return device == 0 ? cudaSuccess : set_last_error(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    ENTER();
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    ENTER();
    if (device != 0) return set_last_error(cudaErrorInvalidDevice);
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "emulated");
    prop->totalGlobalMem = self.most;
    prop->major = 8;
    prop->minor = 0;
    prop->multiProcessorCount = 4;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    ENTER();
    drain_all();
    return after_waiting();
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    ENTER();
    *total = self.most;
    *free_bytes = self.most - self.allocated;
    return cudaSuccess;
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    ENTER();
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (bytes > self.most - self.allocated) return set_last_error(cudaErrorMemoryAllocation);
    const allocation m = map(bytes);
    set_rights(m.start, m.bytes, true);
    memset(m.start, 0xFF, bytes); /* NaN, as far as it is numbers */
    if (!self.open) set_rights(m.start, m.bytes, false);
    poison_rest(m);
    watch_faults();
    self.memory.push_back(m);
    self.allocated += bytes;
    add_region(m.start, bytes);
    *pointer = m.start;
    return cudaSuccess;
}

/* Memory is given back whatever the answer, and not before what is queued is done. */
static cudaError_t begin_free()
{
    const cudaError_t entered = enter("free");
    if (failed())
        drop_queues();
    else
        drain_all();
    return entered;
}

cudaError_t cudaFree(void *pointer)
{
    const cudaError_t entered = begin_free();
    if (!pointer) return entered;
    const allocation *m = find(self.memory, pointer);
    if (!m) return set_last_error(cudaErrorInvalidValue);
    unpoison(*m);
    remove_region(pointer);
    self.allocated -= m->bytes;
    unmap_pages(m->map, m->map_bytes);
    self.memory.erase(self.memory.begin() + (m - self.memory.data()));
    return entered != cudaSuccess ? entered : after_waiting();
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    ENTER();
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    allocation m = {};
    m.start = new (std::nothrow) char[bytes];
    m.bytes = bytes;
    if (!m.start) return set_last_error(cudaErrorMemoryAllocation);
    memset(m.start, 0xFF, bytes);
    self.pinned.push_back(m);
    *pointer = m.start;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *pointer)
{
    const cudaError_t entered = begin_free();
    if (!pointer) return entered;
    const allocation *m = find(self.pinned, pointer);
    if (!m) return set_last_error(cudaErrorInvalidValue);
    delete[] m->start;
    self.pinned.erase(self.pinned.begin() + (m - self.pinned.data()));
    return entered != cudaSuccess ? entered : after_waiting();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    ENTER();
    if (!is_stream(stream)) return set_last_error(cudaErrorInvalidResourceHandle);
    if (bytes == 0) return cudaSuccess;
    if (!copy_fits(to, from, bytes, kind)) return set_last_error(cudaErrorInvalidValue);
    if (kind == cudaMemcpyHostToDevice && !in_pinned(from, bytes)) {
        const std::shared_ptr<std::vector<char>> taken = std::make_shared<std::vector<char>>(bytes);
        memcpy(taken->data(), from, bytes);
        push(stream, [=] { memcpy(to, taken->data(), bytes); });
        return cudaSuccess;
    }
    push(stream, [=] { memmove(to, from, bytes); });
    if (kind != cudaMemcpyDeviceToHost || in_pinned(to, bytes)) return cudaSuccess;
    drain(stream_of(stream));
    return after_waiting();
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    const cudaError_t e = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    if (e != cudaSuccess) return e;
    drain(&self.default_stream);
    return after_waiting();
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    ENTER();
    if (!is_stream(stream)) return set_last_error(cudaErrorInvalidResourceHandle);
    if (bytes == 0) return cudaSuccess;
    if (!find_region(to, bytes)) return set_last_error(cudaErrorInvalidValue);
    push(stream, [=] { memset(to, value, bytes); });
    return cudaSuccess;
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    ENTER();
    (void)flags;
    *stream = new CUstream_st{};
    self.streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!stream || !is_stream(stream)) return set_last_error(cudaErrorInvalidResourceHandle);
    if (!failed()) drain(stream);
    self.streams.erase(std::find(self.streams.begin(), self.streams.end(), stream));
    delete stream;
    return after_waiting();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    ENTER();
    if (!is_stream(stream)) return set_last_error(cudaErrorInvalidResourceHandle);
    drain(stream_of(stream));
    return after_waiting();
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    ENTER();
    if (!is_stream(stream)) return set_last_error(cudaErrorInvalidResourceHandle);
    CUstream_st *s = stream_of(stream);
    const size_t before = s->queue.size();
    run_until(s, [=] { return s->queue.size() < before; });
    if (failed()) return after_waiting();
    return s->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    ENTER();
    (void)flags;
    *event = new CUevent_st{};
    self.events.push_back(*event);
    return cudaSuccess;
}

static bool is_event(cudaEvent_t event)
{
    return std::find(self.events.begin(), self.events.end(), event) != self.events.end();
}

/* What is queued may still name it: it is freed with the last stream's work. */
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (!is_event(event)) return set_last_error(cudaErrorInvalidResourceHandle);
    if (!failed()) drain_all();
    self.events.erase(std::find(self.events.begin(), self.events.end(), event));
    delete event;
    return after_waiting();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    ENTER();
    if (!is_stream(stream) || !is_event(event)) return set_last_error(cudaErrorInvalidResourceHandle);
    event->on = stream_of(stream);
    const int64_t number = ++event->recorded;
    push(stream, [=] { event->done = std::max(event->done, number); });
    return cudaSuccess;
}

/* An event outlives its stream, whose work was done, or dropped after a failure, when it was destroyed. */
static void run_until_event(CUstream_st *on, CUevent_st *event, int64_t number)
{
    const bool lives =
        on == &self.default_stream || std::find(self.streams.begin(), self.streams.end(), on) != self.streams.end();
    if (number > event->done && lives) run_until(on, [=] { return event->done >= number; });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    ENTER();
    (void)flags;
    if (!is_stream(stream) || !is_event(event)) return set_last_error(cudaErrorInvalidResourceHandle);
    CUstream_st *on = event->on;
    const int64_t number = event->recorded;
    push(stream, [=] { run_until_event(on, event, number); });
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    ENTER();
    if (!is_event(event)) return set_last_error(cudaErrorInvalidResourceHandle);
    run_until_event(event->on, event, event->recorded);
    return after_waiting();
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    ENTER();
    if (!is_event(event)) return set_last_error(cudaErrorInvalidResourceHandle);
    if (event->done >= event->recorded) return cudaSuccess;
    CUstream_st *s = event->on;
    const size_t before = s->queue.size();
    run_until(s, [=] { return s->queue.size() < before; });
    if (failed()) return after_waiting();
    return event->done >= event->recorded ? cudaSuccess : cudaErrorNotReady;
}

/* ---- launches ---- */

enum { ORDINARY_SHARED = 48 << 10, MOST_SHARED = 227 << 10 };

static size_t dynamic_allowed(const void *kernel)
{
    for (size_t i = 0; i < self.large_shared.size(); i++)
        if (self.large_shared[i] == kernel) return self.large_shared_bytes[i];
    return ORDINARY_SHARED;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    ENTER();
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > MOST_SHARED)
        return set_last_error(cudaErrorInvalidValue);
    self.large_shared.insert(self.large_shared.begin(), kernel);
    self.large_shared_bytes.insert(self.large_shared_bytes.begin(), (size_t)value);
    return cudaSuccess;
}

cudaError_t emulation_enqueue(const char *name, const void *kernel, dim3 grid, dim3 block, size_t dynamic_bytes,
                              cudaStream_t stream, std::function<void()> body)
{
    ENTER();
    if (!is_stream(stream)) return set_last_error(cudaErrorInvalidResourceHandle);
    const bool grid_fits =
        grid.x >= 1 && grid.x <= INT32_MAX && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535;
    const bool block_fits = block.x >= 1 && block.y >= 1 && block.z >= 1 && block.z <= 64 && block.x <= MAX_THREADS &&
                            block.y <= MAX_THREADS && (uint64_t)block.x * block.y * block.z <= MAX_THREADS;
    if (!grid_fits || !block_fits) return set_last_error(cudaErrorInvalidConfiguration);
    if (dynamic_bytes > dynamic_allowed(kernel)) return set_last_error(cudaErrorInvalidValue);
    const launch l = {name, grid, block, dynamic_bytes, std::move(body)};
    push(stream, [=] { run(l); });
    return cudaSuccess;
}

/* ---- what tests call ---- */

void emulation_reset(void)
{
    drop_queues();
    forget_failure();
    watch_faults();
    self.last = cudaSuccess;
    self.fail_at = 0;
    self.hit = false;
    if (self.open) close_memory();
}

void emulation_fail_call(int64_t nth, int error)
{
    self.calls = 0;
    self.fail_at = nth;
    self.fail_with = (cudaError_t)error;
    self.hit = false;
}

int64_t emulation_calls(void)
{
    return self.calls;
}

int emulation_was_hit(void)
{
    return self.hit;
}

size_t emulation_allocated(void)
{
    return self.allocated;
}

void emulation_set_memory(size_t bytes)
{
    self.most = bytes;
}
