#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/text.h"
#include "train/files/checkpoint_info.h"
#include "train/files/safetensors_info.h"
#include "train/info.h"
#include "train/info_config.h"
#include "train/info_foreign.h"
#include "train/store_facts.h"

/* Kinds of the modules that have a format of their own. */
const ttn_info_kind *const ttn_info_kinds[] = {
    &ttn_info_checkpoint, &ttn_info_run, &ttn_info_config, &ttn_info_safetensors, &ttn_info_store, NULL,
};

/* The first bytes, as many as there are up to TTN_INFO_HEAD. */
static ttn_status read_head(const char *path, unsigned char *head, size_t *ret_n, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    *ret_n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return TTN_FAIL(err, TTN_EIO, "%s: cannot be opened: %s", ttn_text_tail(path, shown), strerror(errno));
    ttn_status status = TTN_OK;
    while (*ret_n < TTN_INFO_HEAD) {
        ssize_t n = read(fd, head + *ret_n, TTN_INFO_HEAD - *ret_n);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            status = TTN_FAIL(err, TTN_EIO, "%s: cannot be read: %s", ttn_text_tail(path, shown), strerror(errno));
        if (n <= 0) break;
        *ret_n += (size_t)n;
    }
    close(fd);
    return status;
}

static ttn_status look_from_outside(const char *path, unsigned char *head, ttn_info_subject *ret, ttn_error *err)
{
    struct stat st;
    char shown[TTN_TAIL_ROOM];
    *ret = (ttn_info_subject){.path = path, .head = head};
    if (stat(path, &st) != 0) {
        int missing = errno == ENOENT || errno == ENOTDIR;
        return TTN_FAIL(err, missing ? TTN_EINVAL : TTN_EIO, "%s: %s", ttn_text_tail(path, shown),
                        missing ? "there is no such file or folder" : strerror(errno));
    }
    if (S_ISDIR(st.st_mode)) {
        ret->is_folder = 1;
        return TTN_OK;
    }
    if (!S_ISREG(st.st_mode)) /* a pipe would be waited for, and a device has no end */
        return TTN_FAIL(err, TTN_EINVAL, "%s: is neither a file nor a folder, but a device, a pipe or a socket",
                        ttn_text_tail(path, shown));
    ret->bytes = st.st_size;
    return read_head(path, head, &ret->n_head, err);
}

ttn_status ttn_info_describe_by(const ttn_info_kind *const *kinds, const char *path, int verify, ttn_facts *f,
                                ttn_error *err)
{
    unsigned char head[TTN_INFO_HEAD];
    ttn_info_subject s;
    ttn_status status = look_from_outside(path, head, &s, err);
    if (status != TTN_OK) return status;
    const ttn_info_kind *kind = &ttn_info_foreign;
    for (const ttn_info_kind *const *k = kinds; *k && kind == &ttn_info_foreign; k++)
        if ((*k)->recognise(&s)) kind = *k;
    ttn_facts_text(f, "path", "%s", path);
    ttn_facts_text(f, "kind", "%s", kind->name);
    if (!s.is_folder) ttn_facts_bytes(f, "size", s.bytes);
    status = kind->describe(&s, verify, f, err);
    ttn_facts_close_all(f);
    return status;
}

ttn_status ttn_info_describe(const char *path, int verify, ttn_facts *f, ttn_error *err)
{
    return ttn_info_describe_by(ttn_info_kinds, path, verify, f, err);
}
