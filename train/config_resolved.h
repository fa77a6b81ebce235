/* config.resolved.yaml: how its writer (config_write.c) and its reader agree on where values came from.
 *
 *     # titin configuration: every value, and where it came from
 *     # origins hold while the rest has the hash c7a1…
 *
 *     train:
 *       lr: 0.0003                            # run.yaml:12
 *
 * The second line has the XXH3-128 of all bytes behind it. A file that was changed since is a file like any other: its values
 * come from it.
 */
#ifndef TTN_CONFIG_RESOLVED_H
#define TTN_CONFIG_RESOLVED_H

#include "core/builder.h"
#include "core/values.h"

/* Is this a text that ttn_config_resolved wrote, to the byte? */
int ttn_config_is_resolved(const char *text, size_t n);

/* Does it begin as such a text, whatever was edited below? */
int ttn_config_was_resolved(const char *text, size_t n);

/* Both first lines, then the body. */
void ttn_config_seal(ttn_builder *b, const char *body, size_t n);

/* The kind of an origin from its text in a comment. */
ttn_source_kind ttn_config_origin_kind(const char *text);

#endif
