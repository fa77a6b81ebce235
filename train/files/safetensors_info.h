/* What `titin info` says of safetensors files, indexes, and folders that hold a model. */
#ifndef TTN_SAFETENSORS_INFO_H
#define TTN_SAFETENSORS_INFO_H

#include "train/info.h"

extern const ttn_info_kind ttn_info_safetensors;

#endif
