/* The texts that a configuration comes from. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/hash.h"
#include "core/text.h"
#include "train/config_impl.h"
#include "train/config_resolved.h"

ttn_status ttn_config_source_add(ttn_config *c, ttn_source_kind kind, int group, const char *name, const char *text,
                                 size_t n, ttn_config_source **ret, ttn_error *err)
{
    ttn_config_source *s = ttn_arena_alloc(c->memory, sizeof *s);
    if (!s) return ttn_config_no_memory(err);
    char tail[TTN_TAIL_ROOM];
    char *shown = ttn_arena_text(c->memory, "%s", ttn_text_tail(name, tail));
    char *copy = text ? ttn_arena_alloc(c->memory, n + 1) : NULL;
    if (!shown || (text && !copy)) return ttn_config_no_memory(err);
    ttn_config_make_plain(shown);
    if (text && n > 0) memcpy(copy, text, n);
    *s = (ttn_config_source){
        .kind = kind,
        .order = c->n_source,
        .group = group,
        .name = shown,
        .text = copy,
        .n = n,
        .has_lines = kind == TTN_FROM_FILE || kind == TTN_FROM_PRESET,
    };
    c->n_source++;
    s->was_resolved = kind == TTN_FROM_FILE && text && ttn_config_was_resolved(s->text, n);
    s->is_resolved = s->was_resolved && ttn_config_is_resolved(s->text, n);
    *ret = s;
    return TTN_OK;
}

/* ---- files ---- */

/* Up to one byte more than `most`: *ret_n says how many came. errno when it fails. */
static int read_all(int fd, char *text, size_t most, size_t *ret_n)
{
    size_t n = 0;
    while (n < most + 1) {
        ssize_t got = read(fd, text + n, most + 1 - n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) break;
        n += (size_t)got;
    }
    *ret_n = n;
    return 0;
}

static ttn_status blame_whole(ttn_config *c, int group, const char *path, ttn_error *err, const char *why)
{
    ttn_config_source *s = NULL;
    ttn_status status = ttn_config_source_add(c, TTN_FROM_FILE, group, path, NULL, 0, &s, err);
    if (status != TTN_OK) return status;
    return ttn_config_blame(c, (ttn_config_place){.source = s}, err, "%s", why);
}

static const char *why_not(int error)
{
    if (error == ENOENT) return "there is no such file";
    if (error == EISDIR)
        return "this is a folder, and a configuration file is expected; the run in a folder goes on with "
               "`titin train FOLDER --resume`";
    return strerror(error);
}

/* text: TTN_CONFIG_BYTES + 1 bytes. */
static ttn_status read_file(ttn_config *c, const char *path, int group, char *text, size_t *ret_n, int *ret_ok,
                            ttn_error *err)
{
    *ret_ok = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && ttn_option_find(c->table->row, c->table->n_row, path))
        return blame_whole(c, group, path, err, "there is no such file; a key is set by KEY=VALUE, without blanks");
    if (fd < 0) return blame_whole(c, group, path, err, why_not(errno));
    const int error = read_all(fd, text, TTN_CONFIG_BYTES, ret_n);
    close(fd); /* nothing was written: nothing can be lost */
    if (error == EIO) return TTN_FAIL_AT(err, TTN_EIO, path, 0, 0, "reading it failed: %s", strerror(error));
    if (error) return blame_whole(c, group, path, err, why_not(error));
    *ret_ok = 1;
    return TTN_OK;
}

static ttn_status add_text(ttn_config *c, int group, const char *path, const char *text, size_t n,
                           ttn_config_source **ret, ttn_error *err)
{
    if (n > TTN_CONFIG_BYTES)
        return blame_whole(c, group, path, err,
                           "this has more than 1 MiB, the most that a configuration may have: is it the right file?");
    return ttn_config_source_add(c, TTN_FROM_FILE, group, path, text, n, ret, err);
}

ttn_status ttn_config_file_open(ttn_config *c, const ttn_config_file *file, ttn_config_source **ret, ttn_error *err)
{
    *ret = NULL;
    const int group = c->n_group;
    c->n_group++;
    if (file->text) return add_text(c, group, file->path, file->text, file->n, ret, err);
    char *text = malloc(TTN_CONFIG_BYTES + 1);
    if (!text) return ttn_config_no_memory(err);
    size_t n = 0;
    int is_read = 0;
    ttn_status status = read_file(c, file->path, group, text, &n, &is_read, err);
    if (status == TTN_OK && is_read) status = add_text(c, group, file->path, text, n, ret, err);
    free(text);
    return status;
}

ttn_status ttn_config_words_of_file(ttn_config *c, const char *path, const char **ret, ttn_error *err)
{
    enum { MOST = 4096 };
    char *text = ttn_arena_alloc(c->memory, MOST + 1);
    if (!text) return ttn_config_no_memory(err);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    const int error = fd < 0 ? errno : read_all(fd, text, MOST, &n);
    if (fd >= 0) close(fd);
    if (error) return TTN_FAIL(err, TTN_EINVAL, "%s: %s", path, strerror(error));
    if (n > MOST)
        return TTN_FAIL(err, TTN_EINVAL, "%s: this has more than %d bytes: is it the right file?", path, (int)MOST);
    text[n] = 0;
    if (strlen(text) != n) return TTN_FAIL(err, TTN_EINVAL, "%s: it has a NUL byte: is it the right file?", path);
    if (n == 0) return TTN_FAIL(err, TTN_EINVAL, "%s: it is empty", path);
    static const char blanks[] = " \t\r";
    int line = 1;
    for (char *at = text; *at; line++) {
        at += strspn(at, blanks);
        char *end = at + strcspn(at, " \t\r\n");
        char *rest = end + strspn(end, blanks);
        if (end == at || (*rest && *rest != '\n'))
            return TTN_FAIL(err, TTN_EINVAL, "%s:%d: %s; one word a line is expected", path, line,
                            end == at ? "an empty line" : "several words");
        at = *rest ? rest + 1 : rest;
        memset(end, *at ? ' ' : 0, (size_t)(at - end));
    }
    *ret = text;
    return TTN_OK;
}
