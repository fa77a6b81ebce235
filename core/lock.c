#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/disk.h"
#include "core/lock.h"
#include "core/memory.h"
#include "core/text.h"

enum { LINE = 512, HOST = 256, BOOT = 64, MAX_TRIES = 8 };

/* Who a line speaks of. */
typedef struct {
    long pid;
    uint64_t start; /* of the process, in the kernel's ticks; 0: not known */
    char boot[BOOT];
    char host[HOST];
    int64_t since, alive; /* dates */
} holder;

struct ttn_lock {
    int fd;
    ttn_clock clock;
    holder me;
    double told; /* when the line was written (ttn_clock_now) */
    char path[PATH_MAX];
};

/* ---- who is who ---- */

/* The bytes of a small file as a text; "" when it cannot be read. */
static void read_small(const char *path, char *text, size_t room)
{
    text[0] = 0;
    int fd = ttn_disk_open(path, O_RDONLY, 0);
    if (fd < 0) return;
    ssize_t n = ttn_disk_read_at(fd, text, room - 1, 0);
    text[n > 0 ? n : 0] = 0;
    (void)ttn_disk_close(fd);
}

/* The start time of a process, the 22nd word of /proc/PID/stat; 0 when there is no such process. The 2nd word is the
 * program's name in parentheses, which may hold anything, also parentheses. */
static uint64_t start_of(long pid)
{
    enum { WORDS_AFTER_NAME = 20 };
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    read_small(path, text, sizeof text);
    const char *at = strrchr(text, ')');
    for (int word = 0; at && word < WORDS_AFTER_NAME; word++) {
        at = strchr(at, ' ');
        if (at) at++;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

/* Lines are words between spaces. */
static void make_word(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7F) *c = '_';
}

static void describe_me(holder *me, const ttn_clock *clock)
{
    *me = (holder){.pid = (long)getpid(), .since = ttn_clock_date(clock)};
    me->start = start_of(me->pid);
    read_small("/proc/sys/kernel/random/boot_id", me->boot, sizeof me->boot);
    me->boot[strcspn(me->boot, "\n")] = 0;
    if (gethostname(me->host, sizeof me->host - 1) != 0 || me->host[0] == 0)
        snprintf(me->host, sizeof me->host, "unknown");
    if (me->boot[0] == 0) snprintf(me->boot, sizeof me->boot, "unknown");
    make_word(me->host);
    make_word(me->boot);
    me->alive = me->since;
}

/* ---- the line ---- */

/* Numbers of dates, since a program reads them; the date in words follows for people. */
static int print_line(const holder *h, char *line)
{
    char since[TTN_DATE_TEXT];
    return snprintf(line, LINE,
                    "pid %ld start %" PRIu64 " boot %s host %.250s since %" PRId64 " alive %" PRId64 " (%s)\n", h->pid,
                    h->start, h->boot, h->host, h->since, h->alive, ttn_date_print(h->since, since));
}

/* The word behind " KEY " or at the line's start; 1 when it is there and fits. */
static int find_word(const char *line, const char *key, char *word, size_t room)
{
    size_t n_key = strlen(key);
    for (const char *at = line; at; at = strchr(at, ' ')) {
        if (*at == ' ') at++;
        if (strncmp(at, key, n_key) != 0 || at[n_key] != ' ') continue;
        at += n_key + 1;
        size_t n = strcspn(at, " \n");
        if (n == 0 || n >= room) return 0;
        memcpy(word, at, n);
        word[n] = 0;
        return 1;
    }
    return 0;
}

static int find_number(const char *line, const char *key, int64_t *ret)
{
    char word[32], *end;
    if (!find_word(line, key, word, sizeof word)) return 0;
    errno = 0;
    *ret = strtoll(word, &end, 10);
    return errno == 0 && *end == 0 && *ret >= 0;
}

/* 0: nobody's, or half written by somebody who was killed. */
static int parse_line(const char *line, holder *h)
{
    int64_t pid, start;
    *h = (holder){0};
    if (!strchr(line, '\n')) return 0;
    if (!find_number(line, "pid", &pid) || !find_number(line, "start", &start)) return 0;
    if (!find_number(line, "since", &h->since) || !find_number(line, "alive", &h->alive)) return 0;
    h->pid = (long)pid;
    h->start = (uint64_t)start;
    return find_word(line, "boot", h->boot, sizeof h->boot) && find_word(line, "host", h->host, sizeof h->host);
}

static int read_line(int fd, holder *h)
{
    char line[LINE];
    ssize_t n = ttn_disk_read_at(fd, line, sizeof line - 1, 0);
    line[n > 0 ? n : 0] = 0;
    return parse_line(line, h);
}

/* 0 or errno. The line may get shorter: what is behind it goes. */
static int write_line(int fd, const holder *h)
{
    char line[LINE];
    int n = print_line(h, line);
    ssize_t written = TEMP_FAILURE_RETRY(pwrite(fd, line, (size_t)n, 0));
    if (written < 0) return errno;
    if (written != n) return ENOSPC;
    return TEMP_FAILURE_RETRY(ftruncate(fd, n)) == 0 ? 0 : errno;
}

/* ---- taking it ---- */

typedef enum { FREE, STALE, HELD } state;

/* What a line says when flock does not object. */
static state judge(const holder *h, const holder *me)
{
    int same_boot = strcmp(h->boot, me->boot) == 0 && strcmp(me->boot, "unknown") != 0;
    if (same_boot && h->pid == me->pid && h->start == me->start) return STALE; /* this process, and flock is free */
    if (same_boot) return h->start != 0 && start_of(h->pid) == h->start ? HELD : STALE;
    if (strcmp(h->host, me->host) == 0) return STALE;
    return me->since - h->alive < TTN_LOCK_SILENCE ? HELD : STALE;
}

static ttn_status refuse(const ttn_lock *l, const holder *h, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM], since[TTN_DATE_TEXT], alive[TTN_DATE_TEXT];
    ttn_text_tail(l->path, shown);
    if (h->pid == 0) return TTN_FAIL(err, TTN_EINVAL, "%s: another process holds this lock; wait until it ends", shown);
    ttn_date_print(h->since, since);
    if (strcmp(h->host, l->me.host) == 0)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "%s: process %ld of this machine writes here since %s; wait until it ends, or end it (kill %ld)", shown,
            h->pid, since, h->pid);
    const int64_t silent = l->me.since - h->alive;
    if (silent < -TTN_LOCK_SIGN) /* more than clocks differ by; to wait until it is old may take years */
        return TTN_FAIL(err, TTN_EINVAL,
                        "%s: process %ld on host %s writes here; its last sign of life is of %s, %" PRId64
                        " s ahead of the clock of this machine, so one of the two clocks is wrong and its age is not "
                        "known; end it there, or make sure that it has ended and remove this file",
                        shown, h->pid, h->host, ttn_date_print(h->alive, alive), -silent);
    return TTN_FAIL(err, TTN_EINVAL,
                    "%s: process %ld on host %s writes here since %s, last sign of life %" PRId64
                    " s ago; end it there, or when that host is gone wait %d s and try again",
                    shown, h->pid, h->host, since, silent > 0 ? silent : 0, TTN_LOCK_SILENCE);
}

static ttn_status system_says(const ttn_lock *l, const char *doing, int error, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    return TTN_FAIL(err, ttn_disk_fault(error), "%s: the lock cannot be %s: %s%s", ttn_text_tail(l->path, shown), doing,
                    strerror(error), ttn_disk_advice(error));
}

static ttn_status is_no_lock(const ttn_lock *l, const struct stat *about, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    return TTN_FAIL(err, TTN_EINVAL,
                    "%s: is a %s, and the file that says who writes here is to have this name; move it away and try "
                    "again",
                    ttn_text_tail(l->path, shown),
                    S_ISLNK(about->st_mode)   ? "link"
                    : S_ISDIR(about->st_mode) ? "folder"
                    : S_ISREG(about->st_mode) ? "file with several names (hard links)"
                                              : "device, pipe or socket");
}

/* When something other than a file has the name, that is the reason a person can do something about. */
static ttn_status cannot_open(const ttn_lock *l, int error, ttn_error *err)
{
    struct stat about;
    if (lstat(l->path, &about) != 0 || S_ISREG(about.st_mode)) return system_says(l, "opened", error, err);
    return is_no_lock(l, &about, err);
}

/* Is the file that is open still the one of that name? */
static int is_in_place(const ttn_lock *l)
{
    struct stat opened, named;
    return fstat(l->fd, &opened) == 0 && stat(l->path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

/* TTN_OK with l->fd locked and in place; *held: somebody else has it. */
static ttn_status lock_file(ttn_lock *l, int *held, ttn_error *err)
{
    for (int tries = 0; tries < MAX_TRIES; tries++) {
        l->fd = ttn_disk_open(l->path, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
        if (l->fd < 0) return cannot_open(l, errno, err);
        int locked = TEMP_FAILURE_RETRY(flock(l->fd, LOCK_EX | LOCK_NB)) == 0;
        int error = errno;
        *held = !locked && error == EWOULDBLOCK;
        struct stat about;
        if (!*held && fstat(l->fd, &about) == 0 && (!S_ISREG(about.st_mode) || about.st_nlink > 1))
            return is_no_lock(l, &about, err); /* a line written to it would be written elsewhere, too */
        int has_none = error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
        if (!locked && !*held && !has_none) return system_says(l, "taken", error, err);
        if (is_in_place(l)) return TTN_OK;
        (void)ttn_disk_close(l->fd);
        l->fd = -1;
    }
    return TTN_FAIL(err, TTN_EIO, "%s: somebody removes this lock again and again", l->path);
}

static ttn_status take(ttn_lock *l, const ttn_log *log, ttn_error *err)
{
    int held = 0;
    ttn_status status = lock_file(l, &held, err);
    if (status != TTN_OK) return status;
    holder other;
    int told = read_line(l->fd, &other);
    if (held) return refuse(l, told ? &other : &(holder){0}, err);
    if (told) {
        if (judge(&other, &l->me) == HELD) return refuse(l, &other, err);
        char since[TTN_DATE_TEXT];
        ttn_log_say(log, TTN_LOG_INFO, "%s: was left by process %ld on host %s (since %s), which is gone", l->path,
                    other.pid, other.host, ttn_date_print(other.since, since));
    }
    int error = write_line(l->fd, &l->me);
    if (error) return system_says(l, "written", error, err);
    l->told = ttn_clock_now(&l->clock);
    return TTN_OK;
}

ttn_status ttn_lock_take(const char *path, const ttn_clock *clock, const ttn_log *log, ttn_lock **ret, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    *ret = NULL;
    ttn_lock *l = ttn_alloc_or_say(1, sizeof *l, ttn_text_tail(path, shown), err);
    if (!l) return TTN_ENOMEM;
    l->fd = -1;
    if (clock) l->clock = *clock;
    size_t n = strlen(path);
    ttn_status status = TTN_OK;
    if (n >= sizeof l->path)
        status = TTN_FAIL(err, TTN_EINVAL, "%s: the name is too long for a lock", shown);
    else
        memcpy(l->path, path, n + 1);
    if (status == TTN_OK) {
        describe_me(&l->me, clock);
        status = take(l, log, err);
    }
    if (status == TTN_OK) {
        *ret = l;
        return TTN_OK;
    }
    if (l->fd >= 0) (void)ttn_disk_close(l->fd); /* the line is somebody else's */
    ttn_free(l);
    return status;
}

/* ---- holding it ---- */

ttn_status ttn_lock_alive(ttn_lock *l, ttn_error *err)
{
    double now = ttn_clock_now(&l->clock);
    if (now - l->told < TTN_LOCK_SIGN) return TTN_OK;
    char shown[TTN_TAIL_ROOM];
    if (!is_in_place(l))
        return TTN_FAIL(
            err, TTN_EINVAL,
            "%s: somebody removed or replaced this lock, and another process may write here; stop one of them",
            ttn_text_tail(l->path, shown));
    l->me.alive = ttn_clock_date(&l->clock);
    int error = write_line(l->fd, &l->me);
    if (error) return system_says(l, "written", error, err);
    l->told = now;
    return TTN_OK;
}

void ttn_lock_release(ttn_lock *l)
{
    if (!l) return;
    /* A line that stays is told from a living holder by the process's number and start. */
    if (l->me.pid == (long)getpid()) (void)TEMP_FAILURE_RETRY(ftruncate(l->fd, 0));
    (void)ttn_disk_close(l->fd);
    ttn_free(l);
}
