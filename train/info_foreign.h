/* Files that titin has no use for: what they look like, and what to do with them. */
#ifndef TTN_INFO_FOREIGN_H
#define TTN_INFO_FOREIGN_H

#include "train/info.h"

/* Stands behind the table: recognises everything. describe adds "looks_like" and returns TTN_ECHECKPOINT with a
 * sentence that says what to do. */
extern const ttn_info_kind ttn_info_foreign;

/* One row of its table of first bytes, for tests: "gzip", and what to do with it; NULL, NULL: nothing that is known. */
void ttn_info_looks_like(const ttn_info_subject *s, const char **ret_name, const char **ret_advice);

#endif
