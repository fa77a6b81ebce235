#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/atomic.h"
#include "core/clock.h"
#include "core/hash.h"
#include "train/facts_json.h"
#include "train/files/json.h"
#include "train/files/run_folder.h"
#include "train/findings.h"
#include "train/run_json.h"

static int set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

/* A text that may be any bytes: an argument of the command line. */
static json_t *any_text(const char *text)
{
    json_t *value = json_string(text ? text : "");
    return value ? value : json_string("(no UTF-8)");
}

static json_t *hash_text(ttn_hash128 hash)
{
    char text[TTN_HASH_TEXT];
    return json_string(ttn_hash_print(hash, text));
}

static json_t *start_of(const ttn_run_start_facts *f)
{
    char date[TTN_DATE_TEXT], host[HOST_NAME_MAX + 1] = "";
    (void)gethostname(host, sizeof host - 1);
    json_t *command = json_array();
    json_t *start = json_object();
    int failed = 0;
    for (int i = 0; i < f->n_command; i++)
        failed |= json_array_append_new(command, any_text(f->command[i]));
    failed |= set(start, "date", json_string(ttn_date_print(f->date, date)));
    failed |= set(start, "step", json_integer(f->step));
    failed |= set(start, "host", any_text(host));
    failed |= set(start, "pid", json_integer(getpid()));
    failed |= set(start, "command", command);
    failed |= set(start, "titin", any_text(f->titin));
    failed |= set(start, "build", any_text(f->build));
    failed |= set(start, "real", any_text(f->real));
    failed |= set(start, "device", any_text(f->device));
    failed |= set(start, "blas", any_text(f->blas));
    failed |= set(start, "threads", json_integer(f->threads));
    if (!failed) return start;
    json_decref(start);
    return NULL;
}

/* NULL: no memory. */
static json_t *data_of(const ttn_run_start_facts *start)
{
    const ttn_store_facts *facts = ttn_dataset_facts(start->data);
    char text[TTN_HASH_TEXT];
    ttn_facts *f;
    if (ttn_facts_create(&f, NULL) != TTN_OK) return NULL;
    ttn_facts_text(f, "store", "%s", ttn_dataset_path(start->data));
    ttn_facts_text(f, "xxh3_128", "%s", ttn_hash_print(facts->identity, text));
    ttn_facts_integer(f, "sequences", facts->sequences);
    ttn_facts_integer(f, "residues", facts->residues);
    ttn_findings_tell(facts, f);
    ttn_overlap_tell(start->overlap, f);
    json_t *data = ttn_facts_status(f, NULL) == TTN_OK ? ttn_facts_json(f) : NULL;
    ttn_facts_destroy(f);
    return data;
}

/* The starts that the file has; an empty list when there is no file, or none that can be read. */
static json_t *starts_in(const char *path, const ttn_log *log)
{
    ttn_json *j = NULL;
    const json_t *array = NULL;
    ttn_error why = {0};
    if (access(path, F_OK) != 0) return json_array();
    ttn_status status = ttn_json_read(path, NULL, &j, &why);
    if (status == TTN_OK) status = ttn_json_array(j, ttn_json_root(j), "starts", &array, &why);
    if (status != TTN_OK) ttn_log_say(log, TTN_LOG_WARNING, "earlier starts of the run are not known: %s", why.text);
    json_t *copy = status == TTN_OK ? json_deep_copy(array) : json_array();
    ttn_json_close(j);
    return copy;
}

/* A ttn_json_taker. */
static ttn_status take_text(void *ctx, const char *bytes, size_t n, ttn_error *err)
{
    return ttn_atomic_write(ctx, bytes, n, err);
}

static ttn_status write_tree(const char *path, const json_t *root, ttn_error *err)
{
    ttn_atomic *a = NULL;
    ttn_status status = ttn_atomic_file_create_own(path, &a, err);
    if (status == TTN_OK) status = ttn_json_dump(root, take_text, a, err);
    if (status == TTN_OK) status = ttn_atomic_commit(a, err);
    ttn_atomic_destroy(a);
    return status;
}

ttn_status ttn_run_json_write(const char *run, const ttn_run_start_facts *f, const ttn_log *log, ttn_error *err)
{
    char path[PATH_MAX];
    ttn_status status = ttn_run_path(run, TTN_RUN_STARTS, path, err);
    if (status != TTN_OK) return status;
    json_t *root = json_object();
    json_t *starts = starts_in(path, log);
    int failed = json_array_append_new(starts, start_of(f));
    failed |= set(root, "titin", any_text(f->titin));
    failed |= set(root, "config_xxh3_128", hash_text(ttn_hash128_of(f->config, strlen(f->config))));
    failed |= set(root, "seed", json_integer(f->seed));
    failed |= set(root, "data", data_of(f));
    failed |= set(root, "starts", starts);
    status = failed ? TTN_FAIL(err, TTN_ENOMEM, "%s: out of memory", path) : write_tree(path, root, err);
    json_decref(root);
    return status;
}
