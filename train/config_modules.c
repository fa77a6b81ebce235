/* The modules whose options make up the configuration of this program. */
#include <stdlib.h>
#include "autograd/attention.h"
#include "autograd/op.h"
#include "data/batch_rules.h"
#include "data/cluster.h"
#include "data/fasta.h"
#include "data/mlm.h"
#include "data/pack.h"
#include "data/split.h"
#include "data/store.h"
#include "train/config_impl.h"
#include "train/dataset.h"
#include "train/model.h"
#include "train/optim.h"
#include "train/schedule.h"
#include "train/train_spec.h"

/* ---- kinds of attention: whatever the registry has ---- */

static ttn_status read_attention(const void *self, const ttn_values *v, ttn_error *err)
{
    const ttn_op *op = self;
    void *attr = calloc(1, op->attr_bytes + 1);
    if (!attr) return ttn_config_no_memory(err);
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_status status = op->attention->attr(&reader, 0, attr, err);
    free(attr);
    return status;
}

static ttn_config_module attention_module(const ttn_op *op)
{
    return (ttn_config_module){
        .name = op->name,
        .row = op->attention->options,
        .n_row = op->attention->n_options,
        .read = read_attention,
        .self = op,
    };
}

/* ---- data: it knows options, and nothing of configurations ---- */

static ttn_status read_fasta_rules(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_own_alphabet own;
    ttn_fasta_rules rules;
    return ttn_fasta_rules_of(&reader, &own, &rules, err);
}

static ttn_status read_batch_rules(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_batch_rules rules;
    return ttn_batch_rules_of(&reader, &rules, err);
}

static ttn_status read_mlm_rules(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_mlm_rules rules;
    return ttn_mlm_rules_of(&reader, &rules, err);
}

static ttn_status read_store_cache(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    const ttn_option_reader reader = ttn_values_reader(v);
    int64_t cache;
    return ttn_store_cache_of(&reader, &cache, err);
}

static ttn_status read_split_rules(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_split_rules rules;
    return ttn_split_rules_of(&reader, &rules, err);
}

static ttn_status read_cluster_rules(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_cluster_rules rules;
    return ttn_cluster_rules_of(&reader, &rules, err);
}

static ttn_status read_pack_rules(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    const ttn_option_reader reader = ttn_values_reader(v);
    ttn_own_alphabet own;
    ttn_pack_rules rules;
    return ttn_pack_rules_of(&reader, &own, &rules, err);
}

static const struct {
    const char *name;
    const ttn_option *row;
    const int *n_row; /* the length of its table is no constant of another file */
    ttn_status (*read)(const void *self, const ttn_values *v, ttn_error *err);
} modules_of_data[] = {
    {"reading of sequences", ttn_fasta_options, &ttn_fasta_n_options, read_fasta_rules},
    {"stores", ttn_store_options, &ttn_store_n_options, read_store_cache},
    {"splits", ttn_split_options, &ttn_split_n_options, read_split_rules},
    {"clusters", ttn_cluster_options, &ttn_cluster_n_options, read_cluster_rules},
    {"packing", ttn_pack_options, &ttn_pack_n_options, read_pack_rules},
    {"batches", ttn_batch_options, &ttn_batch_n_options, read_batch_rules},
    {"masking", ttn_mlm_options, &ttn_mlm_n_options, read_mlm_rules},
};

/* ---- train ---- */

static const ttn_config_module *const modules_of_train[] = {
    &ttn_dataset_module, &ttn_model_module, &ttn_optim_module, &ttn_schedule_module, &ttn_train_module,
};

enum {
    N_OF_DATA = sizeof modules_of_data / sizeof *modules_of_data,
    N_OF_TRAIN = sizeof modules_of_train / sizeof *modules_of_train,
};

ttn_status ttn_config_table_of_titin(ttn_config_table **ret, ttn_error *err)
{
    *ret = NULL;
    int n_op = 0;
    while (ttn_ops[n_op])
        n_op++;
    ttn_config_module *module = calloc((size_t)n_op + N_OF_DATA + N_OF_TRAIN, sizeof *module);
    if (!module) return ttn_config_no_memory(err);
    int n = 0;
    for (int i = 0; i < n_op; i++) {
        if (!ttn_ops[i]->attention) continue;
        module[n] = attention_module(ttn_ops[i]);
        n++;
    }
    for (int i = 0; i < N_OF_DATA; i++) {
        module[n] = (ttn_config_module){
            .name = modules_of_data[i].name,
            .row = modules_of_data[i].row,
            .n_row = *modules_of_data[i].n_row,
            .read = modules_of_data[i].read,
        };
        n++;
    }
    for (int i = 0; i < N_OF_TRAIN; i++) {
        module[n] = *modules_of_train[i];
        n++;
    }
    ttn_config_table *t = NULL;
    ttn_status status = ttn_config_table_create(module, n, &t, err);
    if (t)
        t->own_module = module;
    else
        free(module);
    *ret = t;
    return status;
}
