/* What `titin info` says of a checkpoint, and of the folder of a run. */
#ifndef TTN_CHECKPOINT_INFO_H
#define TTN_CHECKPOINT_INFO_H

#include "train/info.h"

/* A folder with a manifest, or with the name of a checkpoint. Without verify: the manifest, the lengths of the files and
 * the state; with it: everything that loading checks. */
extern const ttn_info_kind ttn_info_checkpoint;

/* A folder with checkpoints in ckpt/. With verify TTN_ECHECKPOINT when one of them is not whole (the list says which), or
 * when there is none. What made way for a checkpoint or is unfinished is listed, and verified by nobody. */
extern const ttn_info_kind ttn_info_run;

#endif
