/* The presets of this program. The build makes presets.inc of configs/NAME.yaml: {"NAME", "its text"}, a line each. */
#include "train/config.h"

const ttn_config_preset ttn_config_presets[] = {
#include "presets.inc"
    {NULL, NULL},
};
