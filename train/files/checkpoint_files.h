/* The files of a checkpoint. Private to those who write and read one. */
#ifndef TTN_CHECKPOINT_FILES_H
#define TTN_CHECKPOINT_FILES_H

#include "train/files/snapshot.h"

#define TTN_CHECKPOINT_STATE "state.json"

extern const char *const ttn_checkpoint_part_file[TTN_N_PARTS];

#endif
