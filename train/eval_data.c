#include <string.h>
#include "core/memory.h"
#include "data/fasta.h"
#include "train/dataset.h"
#include "train/eval_data.h"

struct ttn_eval_data {
    ttn_eval_data_facts facts;
    ttn_dataset *store;      /* NULL: FASTA */
    ttn_sequence_list *list; /* NULL: a store */
    ttn_sequences from;      /* of the list */
    ttn_own_alphabet own;    /* of the list, where data.tokens says it */
};

/* ---- a store ---- */

static ttn_status open_store(ttn_eval_data *d, const char *path, int all, const ttn_values *values, ttn_error *err)
{
    ttn_eval_data_facts *f = &d->facts;
    ttn_status status = ttn_dataset_open_store(path, values, &d->store, err);
    if (status != TTN_OK) return status;
    f->is_store = 1;
    f->from = ttn_dataset_sequences(d->store);
    f->side = all ? NULL : ttn_dataset_valid(d->store);
    if (!all && !f->side)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "%s: nothing of it is held out (data.split=%s): evaluate all of it with --all, knowing that the "
            "model may have been trained on it",
            path, ttn_dataset_split(d->store));
    return ttn_dataset_frequencies(d->store, &f->frequencies, err);
}

/* ---- FASTA ---- */

/* What the reader did to the file. */
static void count_changes(ttn_eval_data_facts *f, const ttn_fasta_counts *found)
{
    f->records += found->records;
    f->left_out += found->skipped;
    for (int code = 1; code < TTN_FASTA_CODES; code++) {
        if (ttn_fasta_kind_of_note(code) == TTN_NOTE_LEFT_OUT) f->left_out += found->note[code].n;
        if (ttn_fasta_kind_of_note(code) == TTN_NOTE_REPAIRED) f->repaired += found->note[code].n;
    }
}

static ttn_status read_file(ttn_eval_data *d, const char *path, const ttn_fasta_rules *rules, int64_t *count,
                            ttn_error *err)
{
    ttn_fasta *f;
    const ttn_fasta_record *r;
    ttn_status status = ttn_fasta_open_path(path, rules, &f, err);
    while (status == TTN_OK) {
        status = ttn_fasta_next(f, &r, err);
        if (status != TTN_OK) break;
        status = ttn_sequence_list_add(d->list, r->id, r->token, r->lower, r->n, err);
        for (int64_t i = 0; i < r->n; i++)
            count[r->token[i]]++;
    }
    if (status == TTN_EOF) count_changes(&d->facts, ttn_fasta_found(f));
    ttn_fasta_close(f);
    return status == TTN_EOF ? TTN_OK : status;
}

static ttn_status read_files(ttn_eval_data *d, const char *const *path, int n, const ttn_values *values, ttn_error *err)
{
    ttn_fasta_rules rules;
    int64_t count[TTN_MAX_TOKENS] = {0};
    const ttn_option_reader reader = ttn_values_reader(values);
    ttn_status status = ttn_fasta_rules_of(&reader, &d->own, &rules, err);
    if (status == TTN_OK) status = ttn_sequence_list_create(rules.alphabet, &d->list, err);
    for (int i = 0; i < n && status == TTN_OK; i++) {
        if (ttn_dataset_is_store(path[i]))
            return TTN_FAIL(err, TTN_EINVAL,
                            "%s: is a store, and stands beside other files: evaluate one store, or files in FASTA",
                            path[i]);
        status = read_file(d, path[i], &rules, count, err);
    }
    if (status != TTN_OK) return status;
    d->from = ttn_sequence_list_view(d->list);
    d->facts.from = &d->from;
    if (d->from.n == 0)
        return TTN_FAIL(err, TTN_EFORMAT, "%s: there is no sequence in %s", path[0],
                        n > 1 ? "these files" : "this file");
    ttn_frequencies_of(rules.alphabet, count, &d->facts.frequencies);
    return TTN_OK;
}

/* ---- all of it ---- */

static void count_sequences(ttn_eval_data *d)
{
    ttn_eval_data_facts *f = &d->facts;
    for (int64_t i = f->side ? ttn_subset_next(f->side, 0) : 0; i >= 0 && i < f->from->n;
         i = f->side ? ttn_subset_next(f->side, i + 1) : i + 1) {
        const int64_t length = f->from->length(f->from->self, i);
        f->sequences++;
        f->residues += length;
        if (length > f->longest) f->longest = length;
    }
}

ttn_status ttn_eval_data_open(const char *const *path, int n, int all, const ttn_values *values, ttn_eval_data **ret,
                              ttn_error *err)
{
    *ret = NULL;
    ttn_eval_data *d = ttn_alloc_or_say(1, sizeof *d, "the data", err);
    if (!d) return TTN_ENOMEM;
    ttn_status status = n == 1 && ttn_dataset_is_store(path[0]) ? open_store(d, path[0], all, values, err)
                                                                : read_files(d, path, n, values, err);
    if (status == TTN_OK) {
        count_sequences(d);
        *ret = d;
    } else {
        ttn_eval_data_close(d);
    }
    return status;
}

void ttn_eval_data_close(ttn_eval_data *d)
{
    if (!d) return;
    ttn_dataset_close(d->store);
    ttn_sequence_list_destroy(d->list);
    ttn_free(d);
}

const ttn_eval_data_facts *ttn_eval_data_of(const ttn_eval_data *d)
{
    return &d->facts;
}
