#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/path.h"
#include "core/text.h"

typedef struct {
    const char *path; /* for messages */
    char *text;       /* (PATH_MAX) n of them in use, and a closing 0 */
    size_t n;
} writer;

static ttn_status append(writer *w, const char *text, size_t n, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    if (n >= PATH_MAX - w->n)
        return TTN_FAIL(err, TTN_EINVAL, "%s: the path is too long", ttn_text_tail(w->path, shown));
    memcpy(w->text + w->n, text, n);
    w->n += n;
    w->text[w->n] = 0;
    return TTN_OK;
}

/* What the list of users says of a name, NULL: of who runs this. */
static ttn_status append_home(writer *w, const char *name, ttn_error *err)
{
    enum { ROOM = 16384 };
    char room[ROOM], shown[TTN_TAIL_ROOM];
    struct passwd user, *found = NULL;
    const int error = name ? getpwnam_r(name, &user, room, sizeof room, &found)
                           : getpwuid_r(getuid(), &user, room, sizeof room, &found);
    if (error == 0 && found && found->pw_dir[0]) return append(w, found->pw_dir, strlen(found->pw_dir), err);
    if (!name)
        return TTN_FAIL(err, TTN_EINVAL, "%s: nobody knows the home folder: set HOME, or write the path without '~'",
                        ttn_text_tail(w->path, shown));
    return TTN_FAIL(err, TTN_EINVAL, "%s: there is no user '%.100s'; a file of this name is ./%s",
                    ttn_text_tail(w->path, shown), name, shown);
}

/* *at stands at the '~', and is moved behind the name. */
static ttn_status expand_user(writer *w, const char **at, ttn_error *err)
{
    char name[PATH_MAX];
    const size_t n = strcspn(*at + 1, "/");
    const char *home = getenv("HOME");
    if (n >= sizeof name) return append(w, *at, PATH_MAX, err); /* too long */
    memcpy(name, *at + 1, n);
    name[n] = 0;
    *at += 1 + n;
    if (n > 0) return append_home(w, name, err);
    return home && *home ? append(w, home, strlen(home), err) : append_home(w, NULL, err);
}

static int is_name_byte(char c, int is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!is_first && c >= '0' && c <= '9');
}

/* *at stands at the '$'; where a name follows it is moved behind that. */
static ttn_status expand_variable(writer *w, const char **at, ttn_error *err)
{
    char name[PATH_MAX], shown[TTN_TAIL_ROOM];
    const int is_braced = (*at)[1] == '{';
    const char *begin = *at + 1 + is_braced;
    size_t n = 0;
    while (n < sizeof name - 1 && is_name_byte(begin[n], n == 0))
        n++;
    if (n == 0 || (is_braced && begin[n] != '}')) { /* no variable: a '$' as any other letter */
        *at += 1;
        return append(w, "$", 1, err);
    }
    memcpy(name, begin, n);
    name[n] = 0;
    const char *value = getenv(name);
    *at = begin + n + is_braced;
    if (value && *value) return append(w, value, strlen(value), err);
    return TTN_FAIL(err, TTN_EINVAL, "%s: the environment has no variable %.100s: set it, or write the folder out",
                    ttn_text_tail(w->path, shown), name);
}

ttn_status ttn_path_expand(const char *path, char *ret, ttn_error *err)
{
    writer w = {.path = path, .text = ret};
    const char *at = path;
    ret[0] = 0;
    ttn_status status = *at == '~' ? expand_user(&w, &at, err) : TTN_OK;
    while (*at && status == TTN_OK) {
        const int is_start = at == path || at[-1] == '/';
        if (is_start && *at == '$') {
            status = expand_variable(&w, &at, err);
            continue;
        }
        status = append(&w, at, 1, err);
        at++;
    }
    return status;
}
