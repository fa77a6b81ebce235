/* Any bytes: our scanner and jansson take the same documents, but for what is ours alone to refuse (depth, keys that stand
 * twice) and reals beyond double; and a tree that was read is the same after it was written. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "tests/fuzz/fuzz.h"
#include "train/files/json.h"
#include "train/files/json_scan.h"

typedef struct {
    char *bytes;
    size_t n;
} text;

static ttn_status take(void *ctx, const char *bytes, size_t n, ttn_error *err)
{
    (void)err;
    text *t = ctx;
    char *longer = realloc(t->bytes, t->n + n + 1);
    check(longer != NULL);
    memcpy(longer + t->n, bytes, n);
    t->bytes = longer;
    t->n += n;
    return TTN_OK;
}

static void check_written(const json_t *root)
{
    if (!json_is_object(root) && !json_is_array(root)) return;
    text t = {0};
    ttn_json *again;
    ttn_error err = {0};
    check(ttn_json_dump(root, take, &t, &err) == TTN_OK);
    check(ttn_json_parse("again", t.bytes, t.n, &(ttn_json_rules){.most_depth = TTN_JSON_MAX_DEPTH}, &again, &err) ==
          TTN_OK);
    check(json_equal(root, ttn_json_root(again)));
    ttn_json_close(again);
    free(t.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ttn_json_rules rules = {.most_depth = TTN_JSON_MAX_DEPTH};
    ttn_json *j;
    ttn_error err = {0};
    ttn_status status = ttn_json_parse("it", data, bytes, &rules, &j, &err);
    json_error_t error;
    json_t *theirs = json_loadb((const char *)data, bytes, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (status == TTN_OK) {
        check(theirs && json_equal(theirs, ttn_json_root(j)));
        check_written(ttn_json_root(j));
    } else {
        check(status == TTN_EFORMAT && err.status == status && err.text[0] && !j);
        /* A NUL byte between values is the end for jansson, whatever follows. */
        check(!theirs || memchr(data, 0, bytes) || strstr(err.text, "deep in each other"));
    }
    json_decref(theirs);
    ttn_json_close(j);
    return 0;
}
