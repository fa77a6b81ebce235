#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "core/machine.h"

/* ---- files of the kernel ---- */

enum {
    PATH = 1024,
    SMALL = 4096,       /* one value, or a list of them */
    LARGE = 256 * 1024, /* mountinfo of a machine with thousands of mounts */
};

/* The text of root/path, cut at its room; 0 when there is none. The path may be too long: then there is none either. */
static int read_text(const char *root, const char *path, char *text, size_t room)
{
    char whole[PATH];
    text[0] = 0;
    int length = snprintf(whole, sizeof whole, "%s%s", root, path);
    if (length < 0 || (size_t)length >= sizeof whole) return 0;
    int fd = open(whole, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    size_t used = 0;
    while (used < room - 1) {
        ssize_t n = read(fd, text + used, room - 1 - used);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        used += (size_t)n;
    }
    close(fd);
    text[used] = 0;
    return used > 0;
}

/* The number that begins text; -1: none does ("max"), or it is negative or beyond 63 bits, all of which mean no limit. */
static int64_t number(const char *text)
{
    if (*text < '0' || *text > '9') return -1;
    errno = 0;
    unsigned long long n = strtoull(text, NULL, 10);
    return errno || n > INT64_MAX ? -1 : (int64_t)n;
}

/* The same of root/folder/name. */
static int read_in(const char *root, const char *folder, const char *name, char *text, size_t room)
{
    char path[2 * PATH];
    text[0] = 0;
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && read_text(root, path, text, room);
}

static int64_t read_number(const char *root, const char *folder, const char *name)
{
    char text[SMALL];
    return read_in(root, folder, name, text, sizeof text) ? number(text) : -1;
}

/* The number behind "key" at the beginning of a line of text, blanks between them; -1: there is none. */
static int64_t number_of(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0) return number(line + n + strspn(line + n, " \t"));
    }
    return -1;
}

/* How many numbers a list like "0-3,8" holds; 0: it is none. */
static int list_size(const char *text)
{
    int64_t size = 0;
    for (const char *c = text;;) {
        int64_t first = number(c);
        if (first < 0) return 0;
        c += strspn(c, "0123456789");
        int64_t last = *c == '-' ? number(c + 1) : first;
        if (*c == '-') c += 1 + strspn(c + 1, "0123456789");
        if (last < first) return 0;
        size += last - first + 1;
        if (*c != ',') break;
        c++;
    }
    return size > INT32_MAX ? 0 : (int)size;
}

/* ---- control groups ----
 *
 * Version 1 has a tree for each controller, version 2 one for all. /proc/self/cgroup tells our place in each tree,
 * mountinfo where trees are mounted; a limit holds for everything below it, so all folders from our place up to the mount
 * are looked at. In a container, the place may be told as the host sees it, while only the container's own part of the
 * tree is mounted: then that part's name is cut off, and folders that are not there say nothing. */

typedef struct {
    int is_v2;
    char folder[PATH]; /* our place, under the root */
    size_t mount;      /* bytes of it that are the mount's */
} group;

/* Is word one of a list with commas? */
static int is_listed(const char *list, size_t n, const char *word)
{
    size_t length = strlen(word);
    for (const char *c = list; c < list + n;) {
        size_t item = strcspn(c, ",");
        if (item > (size_t)(list + n - c)) item = (size_t)(list + n - c);
        if (item == length && strncmp(c, word, length) == 0) return 1;
        c += item + 1;
    }
    return 0;
}

/* Our path in the controller's tree of version 1, or (controller "") in that of version 2. 0: there is no such tree. */
static int place_of(const char *cgroups, const char *controller, char *ret)
{
    for (const char *line = cgroups; *line;) {
        size_t length = strcspn(line, "\n");
        const char *list = line + strcspn(line, ":\n");
        if (*list == ':') {
            list++;
            const char *path = list + strcspn(list, ":\n");
            size_t n_list = (size_t)(path - list);
            int found = *controller ? is_listed(list, n_list, controller) : n_list == 0;
            if (*path == ':' && found) {
                snprintf(ret, PATH, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
                return 1;
            }
        }
        line += length + (line[length] == '\n');
    }
    return 0;
}

/* A line of mountinfo: "id parent device ROOT POINT options … - TYPE source OPTIONS". */
typedef struct {
    char root[PATH], point[PATH], type[64], options[256];
} mount_line;

static int read_mount(const char *line, mount_line *ret)
{
    /* The longest that a field may be stands in the format: PATH - 1 and so on. */
    if (sscanf(line, "%*s %*s %*s %1023s %1023s", ret->root, ret->point) != 2) return 0;
    const char *rest = strstr(line, " - ");
    const char *end = strchr(line, '\n');
    if (!rest || (end && rest > end)) return 0;
    return sscanf(rest, " - %63s %*s %255s", ret->type, ret->options) == 2;
}

static int find_group(const char *cgroups, const char *mounts, const char *controller, int is_v2, group *ret)
{
    char place[PATH];
    if (!place_of(cgroups, is_v2 ? "" : controller, place)) return 0;
    for (const char *line = mounts; *line;) {
        mount_line m;
        int is_it = read_mount(line, &m) && strcmp(m.type, is_v2 ? "cgroup2" : "cgroup") == 0 &&
                    (is_v2 || is_listed(m.options, strlen(m.options), controller));
        line += strcspn(line, "\n");
        line += *line == '\n';
        if (!is_it) continue;
        const char *below = place;
        size_t n = strlen(m.root);
        if (n > 1 && strncmp(place, m.root, n) == 0 && (place[n] == '/' || !place[n])) below = place + n;
        if (strstr(below, "/..") || strcmp(below, "/") == 0) below = ""; /* "..": outside of what we may see */
        int length = snprintf(ret->folder, sizeof ret->folder, "%s%s", m.point, below);
        if (length < 0 || (size_t)length >= sizeof ret->folder) return 0;
        ret->is_v2 = is_v2;
        ret->mount = strlen(m.point);
        return 1;
    }
    return 0;
}

/* One folder up; 0 above the mount. */
static int go_up(group *g)
{
    char *slash = strrchr(g->folder + g->mount, '/');
    if (!slash) return 0;
    *slash = 0;
    return 1;
}

/* Cores' worth of time; 0: no limit. */
static double quota_here(const char *root, const group *g)
{
    int64_t quota, period;
    if (g->is_v2) {
        char text[SMALL];
        if (!read_in(root, g->folder, "cpu.max", text, sizeof text)) return 0;
        quota = number(text);
        const char *blank = strchr(text, ' ');
        period = blank ? number(blank + 1) : -1;
    } else {
        quota = read_number(root, g->folder, "cpu.cfs_quota_us");
        period = read_number(root, g->folder, "cpu.cfs_period_us");
    }
    return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

/* Smaller of two limits, of which those below 0 are none. */
static int64_t tighter(int64_t a, int64_t b)
{
    if (a < 0) return b;
    return b < 0 || a < b ? a : b;
}

/* Bytes that the group's processes hold, less the files that the kernel would drop for them. */
static int64_t used_here(const char *root, const group *g)
{
    char text[SMALL];
    int64_t used = read_number(root, g->folder, g->is_v2 ? "memory.current" : "memory.usage_in_bytes");
    if (used > 0 && read_in(root, g->folder, "memory.stat", text, sizeof text)) {
        int64_t idle = number_of(text, g->is_v2 ? "inactive_file " : "total_inactive_file ");
        int64_t busy = number_of(text, g->is_v2 ? "active_file " : "total_active_file ");
        used -= (idle > 0 ? idle : 0) + (busy > 0 ? busy : 0);
    }
    return used > 0 ? used : 0;
}

/* Of the tightest group: the limit, and what is used of it. */
static void memory_here(const char *root, const group *g, ttn_ram *ret)
{
    int64_t limit =
        g->is_v2 ? tighter(read_number(root, g->folder, "memory.max"), read_number(root, g->folder, "memory.high"))
                 : read_number(root, g->folder, "memory.limit_in_bytes");
    /* Version 1 writes a number near 2^63 for none. */
    if (limit < 0 || (ret->present > 0 && limit >= ret->present)) return;
    if (ret->limit > 0 && limit >= ret->limit) return;
    ret->limit = limit;
    ret->used = used_here(root, g);
}

static void look_at_tree(const char *root, const char *cgroups, const char *mounts, int is_v2, ttn_machine *ret)
{
    group g;
    if (find_group(cgroups, mounts, "cpu", is_v2, &g))
        for (int more = 1; more; more = go_up(&g)) {
            double quota = quota_here(root, &g);
            if (quota > 0 && (ret->cores.quota == 0 || quota < ret->cores.quota)) ret->cores.quota = quota;
        }
    if (find_group(cgroups, mounts, "memory", is_v2, &g))
        for (int more = 1; more; more = go_up(&g))
            memory_here(root, &g, &ret->ram);
}

static void look_at_groups(const char *root, ttn_machine *ret)
{
    char cgroups[SMALL];
    char *mounts = malloc(LARGE);
    if (mounts && read_text(root, "/proc/self/cgroup", cgroups, sizeof cgroups) &&
        read_text(root, "/proc/self/mountinfo", mounts, LARGE)) {
        look_at_tree(root, cgroups, mounts, 0, ret);
        look_at_tree(root, cgroups, mounts, 1, ret);
    }
    free(mounts);
}

/* ---- cores ---- */

static int count_affinity(void)
{
    unsigned long mask[128] = {0}; /* 8,192 processors, as many as Linux can be built for */
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)(void *)mask) != 0) return 0;
    int n = 0;
    for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
        n += __builtin_popcountl(mask[i]);
    return n;
}

static int at_least_one(int n)
{
    return n > 0 ? n : 1;
}

static void look_at_cores(const char *root, ttn_cores *ret)
{
    char text[SMALL];
    if (read_text(root, "/sys/devices/system/cpu/online", text, sizeof text)) ret->present = list_size(text);
    if (ret->present == 0) ret->present = at_least_one((int)sysconf(_SC_NPROCESSORS_ONLN));
    ret->allowed = count_affinity();
    if (ret->allowed == 0) ret->allowed = ret->present;
}

static int usable_cores(const ttn_cores *c)
{
    if (c->quota <= 0 || c->quota >= c->allowed) return c->allowed;
    return at_least_one((int)c->quota);
}

/* ---- memory ---- */

static int64_t kib_of(const char *text, const char *key)
{
    int64_t n = number_of(text, key);
    return n < 0 || n > INT64_MAX / 1024 ? 0 : n * 1024;
}

static void look_at_memory(const char *root, ttn_ram *ret)
{
    char text[SMALL];
    struct rlimit limit;
    if (read_text(root, "/proc/meminfo", text, sizeof text)) {
        ret->present = kib_of(text, "MemTotal:");
        ret->available = kib_of(text, "MemAvailable:");
    }
    if (read_text(root, "/proc/sys/vm/overcommit_memory", text, sizeof text)) ret->overcommit = (int)number(text);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        ret->address_space = limit.rlim_cur > INT64_MAX ? 0 : (int64_t)limit.rlim_cur;
}

static int64_t usable_memory(const ttn_ram *r)
{
    int64_t usable = r->available;
    if (r->limit > 0) {
        int64_t left = r->limit > r->used ? r->limit - r->used : 0;
        if (left < usable) usable = left;
    }
    if (r->address_space > 0 && r->address_space < usable) usable = r->address_space;
    return usable;
}

/* ---- the rest ---- */

static void copy_word(char *ret, const char *from, size_t n)
{
    snprintf(ret, TTN_MACHINE_TEXT, "%.*s", (int)(n < TTN_MACHINE_TEXT ? n : TTN_MACHINE_TEXT - 1), from);
}

/* "model name\t: AMD EPYC", of the first processor. */
static void look_at_processor(const char *root, char *ret)
{
    char text[SMALL];
    ret[0] = 0;
    if (!read_text(root, "/proc/cpuinfo", text, sizeof text)) return;
    const char *line = strstr(text, "model name");
    if (!line) return;
    size_t colon = strcspn(line, ":\n");
    if (line[colon] != ':') return;
    const char *name = line + colon + 1;
    name += strspn(name, " ");
    copy_word(ret, name, strcspn(name, "\n"));
}

/* "always [madvise] never" */
static void look_at_huge_pages(const char *root, char *ret)
{
    char text[SMALL];
    ret[0] = 0;
    if (!read_text(root, "/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text)) return;
    const char *word = strchr(text, '[');
    if (word) copy_word(ret, word + 1, strcspn(word + 1, "]\n"));
}

void ttn_machine_look(const char *root, ttn_machine *ret)
{
    char text[SMALL];
    *ret = (ttn_machine){.memory_nodes = 1, .load = -1};
    look_at_processor(root, ret->processor);
    look_at_huge_pages(root, ret->huge_pages);
    if (read_text(root, "/sys/devices/system/node/online", text, sizeof text))
        ret->memory_nodes = at_least_one(list_size(text));
    if (read_text(root, "/proc/loadavg", text, sizeof text)) ret->load = strtod(text, NULL);
    look_at_cores(root, &ret->cores);
    look_at_memory(root, &ret->ram);
    look_at_groups(root, ret);
    ret->cores.usable = usable_cores(&ret->cores);
    ret->ram.usable = usable_memory(&ret->ram);
}

int64_t ttn_machine_resident(void)
{
    enum { KILOBYTE = 1024, ROOM = 4096 };
    char text[ROOM];
    if (!read_text("", "/proc/self/status", text, sizeof text)) return 0;
    const int64_t kilobytes = number_of(text, "VmRSS:");
    return kilobytes > 0 ? kilobytes * KILOBYTE : 0;
}
