/* A file that ends in .yaml is a configuration, or would be one. */
#ifndef TTN_INFO_CONFIG_H
#define TTN_INFO_CONFIG_H

#include "train/info.h"

/* Facts: valid; when it is: preset, notes (how many), sets (the keys it gives, table of key, value, from); when it is not,
 * TTN_EINVAL, problems (how many) and problem (table of line, column, what). Of presets and this file alone: the
 * environment plays no part. */
extern const ttn_info_kind ttn_info_config;

#endif
