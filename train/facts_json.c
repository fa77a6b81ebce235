#include "train/facts_json.h"
#include "train/show_fact.h"

static json_t *value_json(const ttn_fact *f)
{
    switch (f->kind) {
    case TTN_FACT_TEXT:
        return json_string(f->text);
    case TTN_FACT_INTEGER:
    case TTN_FACT_BYTES:
        return json_integer(f->integer);
    case TTN_FACT_REAL:
    case TTN_FACT_SECONDS:
        return json_real(f->real);
    case TTN_FACT_FLAG:
        return json_boolean(f->integer);
    case TTN_FACT_NONE:
        return json_null();
    case TTN_FACT_OPEN:
        return json_object();
    case TTN_FACT_OPEN_LIST:
        return json_array();
    case TTN_FACT_CLOSE:
        break;
    }
    return NULL;
}

/* Hangs value, which may be NULL, into a container; then it is the container's. 0: no memory. */
static int hang(json_t *in, const char *key, json_t *value)
{
    return (json_is_array(in) ? json_array_append_new(in, value) : json_object_set_new(in, key ? key : "", value)) == 0;
}

/* The facts [at, end) into a container. */
static int hang_all(json_t *in, const ttn_fact *f, int64_t at, int64_t end)
{
    for (; at < end; at = ttn_show_skip(f, at)) {
        json_t *value = value_json(&f[at]);
        if (!hang(in, f[at].key, value)) return 0;
        if (ttn_show_opens(&f[at]) && !hang_all(value, f, at + 1, ttn_show_skip(f, at) - 1)) return 0;
    }
    return 1;
}

json_t *ttn_facts_json(const ttn_facts *f)
{
    json_t *root = json_object();
    if (root && hang_all(root, ttn_facts_at(f), 0, ttn_facts_count(f))) return root;
    json_decref(root);
    return NULL;
}

json_t *ttn_facts_json_warnings(const ttn_facts *f)
{
    json_t *warnings = json_array();
    for (int64_t i = 0; i < ttn_facts_warning_count(f); i++)
        if (!hang(warnings, NULL, json_string(ttn_facts_warning(f, i)))) {
            json_decref(warnings);
            return NULL;
        }
    return warnings;
}
