/* run.json: what a run is, and each of its starts.
 *
 *     {
 *       "titin": "0.1.0",
 *       "config_xxh3_128": "…",
 *       "seed": 1,
 *       "data": {"store": "run/data/proteins-….h5", "xxh3_128": "…", "sequences": 500, "residues": 176000, "records": 502,
 *                "left_out": 2, "found": [{"rule": "FA027", …}, …], … (train/findings.h)},
 *       "starts": [
 *         {"date": "2038-01-19T03:14:08Z", "step": 0, "host": "node7", "pid": 4711, "command": ["titin", "train", …],
 *          "titin": "0.1.0", "build": "-O3 …", "real": "f32", "device": "cpu", "blas": "Zen", "threads": 8}
 *       ]
 *     }
 *
 * For people and scripts: titin reads nothing of it but the starts, which it adds to.
 */
#ifndef TTN_RUN_JSON_H
#define TTN_RUN_JSON_H

#include "train/dataset.h"

/* Texts are borrowed. */
typedef struct {
    const char *config; /* its text, for its checksum */
    int64_t seed;
    const ttn_dataset *data;
    const ttn_dataset_overlap *overlap;
    /* of this start */
    int64_t date, step;
    const char *const *command; /* (n_command) */
    int n_command;
    const char *titin, *build, *real, *device, *blas;
    int threads;
} ttn_run_start_facts;

/* The file run/run.json with this start behind those that it has: one that cannot be read begins anew, which log is told.
 * Failures of core/atomic.h, TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_run_json_write(const char *run, const ttn_run_start_facts *start, const ttn_log *log,
                                           ttn_error *err);

#endif
