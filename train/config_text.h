/* A value as text, as files and messages show it. */
#ifndef TTN_CONFIG_TEXT_H
#define TTN_CONFIG_TEXT_H

#include "core/builder.h"
#include "core/values.h"

/* As YAML on one line: "0.0003", "[a.fa, \"b c.fa\"]". o NULL: texts. */
void ttn_config_build_value(ttn_builder *b, const ttn_option *o, const ttn_option_value *v, int is_list);

#endif
