/* Values that the user gave and that a command does not read (train/config_unread.h), by what is known of its data and model. */
#ifndef TTN_UNREAD_H
#define TTN_UNREAD_H

#include "train/config_unread.h"
#include "train/model.h"

typedef struct {
    const ttn_model_spec *model; /* NULL: not known yet */
    int is_store;                /* is data.train one? 1, 0; -1: not known */
    const char *const *section;  /* those that are looked at, NULL at the end; NULL: all */
} ttn_unread_about;

/* As ttn_config_check_unread. */
TTN_MUST_USE ttn_status ttn_unread_check(const ttn_config *c, const ttn_unread_about *about, const ttn_log *log,
                                         ttn_error *err);

#endif
