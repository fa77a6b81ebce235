/* Values of a configuration that the user gave and that the run does not read: rows of options say when they are read
 * (ttn_option.when in core/options.h). */
#ifndef TTN_CONFIG_UNREAD_H
#define TTN_CONFIG_UNREAD_H

#include "core/log.h"
#include "train/config.h"

/* What a run knows of a key, and the configuration alone does not: which kinds of attention its layers have, what
 * data.train is. Conditions of rows (core/options.h) are decided by it. */
typedef struct {
    const char *key;
    const char *value; /* several with ", " between them; NULL: not known yet, and every condition about it holds */
    const char *words; /* "small.h5 is a store", for messages; NULL: the key and its value in the configuration */
} ttn_config_fact;

/* A value that the user gave (in a file, the environment or on the command line; not in a preset or in a file that titin
 * wrote) and that is not read, since a condition of its row does not hold, is told to log as a warning, or is TTN_EINVAL where
 * the row says so. section: those whose keys are looked at, NULL at the end; NULL: all. TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_config_check_unread(const ttn_config *c, const ttn_config_fact *fact, int n_fact,
                                                const char *const *section, const ttn_log *log, ttn_error *err);

#endif
