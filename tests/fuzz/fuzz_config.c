/* Any bytes as a configuration file, as an argument and as an environment variable: no crash, no hang, and
 *   - what is refused has a report, and its places lie in the text;
 *   - what is taken is written, read back and written again to the same bytes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "tests/train/config_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ttn_config_table *table(void)
{
    static ttn_config_table *t;
    ttn_error err = {0};
    if (!t) assert(ttn_config_table_create(test_modules, TEST_N_MODULE, &t, &err) == TTN_OK);
    return t;
}

static void check_problems(const ttn_config *c, const ttn_error *err)
{
    int n = 0;
    int64_t more = 0;
    const ttn_config_problem *p = ttn_config_problems(c, &n, &more);
    assert(n > 0 && err->text[0] && *ttn_config_report(c));
    for (int i = 0; i < n; i++) {
        assert(*p[i].sentence && *p[i].source);
        if (!p[i].text) continue;
        assert(p[i].caret >= 0 && p[i].n_caret > 0);
        assert((size_t)p[i].caret <= strlen(p[i].text));
    }
    const char *report = ttn_config_report(c);
    for (const char *b = report; *b; b++)
        assert((unsigned char)*b >= ' ' || *b == '\n');
}

static void check_round_trip(const ttn_config *c)
{
    char *first = NULL, *second = NULL, *difference = NULL;
    ttn_config *back = NULL;
    ttn_error err = {0};
    assert(ttn_config_resolved(c, &first, &err) == TTN_OK);
    const ttn_config_file file = {.path = "config.resolved.yaml", .text = first, .n = strlen(first)};
    assert(ttn_config_load(table(), &(ttn_config_request){.file = &file, .n_file = 1}, &back, &err) == TTN_OK);
    assert(ttn_config_resolved(back, &second, &err) == TTN_OK);
    assert(strcmp(first, second) == 0);
    assert(ttn_config_diff(c, back, &difference, &err) == TTN_OK);
    assert(*difference == 0);
    free(difference);
    free(second);
    free(first);
    ttn_config_destroy(back);
}

static void try_request(const ttn_config_request *r)
{
    ttn_config *c = NULL;
    ttn_error err = {0};
    ttn_status status = ttn_config_load(table(), r, &c, &err);
    assert(status == TTN_OK || status == TTN_EINVAL);
    assert(c);
    if (status == TTN_OK)
        check_round_trip(c);
    else
        check_problems(c, &err);
    ttn_config_destroy(c);
}

/* A text of the bytes, in a block of its own: AddressSanitizer sees one byte too many. */
static char *text_of(const char *before, const uint8_t *data, size_t size)
{
    const size_t n = strlen(before);
    char *text = malloc(n + size + 1);
    assert(text);
    memcpy(text, before, n);
    memcpy(text + n, data, size);
    text[n + size] = 0;
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const uint8_t mode = data[0];
    data++;
    size--;
    if (mode % 4 == 0) {
        char *text = text_of(mode & 4 ? "TITIN__TRAIN__" : "train.betas=", data, size);
        const char *const one[] = {text, NULL};
        if (mode & 4)
            try_request(&(ttn_config_request){.presets = test_presets, .environment = one});
        else
            try_request(&(ttn_config_request){.presets = test_presets, .argument = one, .n_argument = 1});
        free(text);
        return 0;
    }
    char *text = malloc(size ? size : 1);
    assert(text);
    memcpy(text, data, size);
    const ttn_config_file file = {.path = "run.yaml", .text = text, .n = size};
    try_request(&(ttn_config_request){.presets = test_presets, .file = &file, .n_file = 1});
    free(text);
    return 0;
}
