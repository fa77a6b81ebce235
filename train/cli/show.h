/* Facts (train/facts.h) as text and as JSON. */
#ifndef TTN_SHOW_H
#define TTN_SHOW_H

#include "train/cli/terminal.h"
#include "train/facts.h"
#include "train/show_fact.h"

/* One line a fact, "key  value", keys of an object below it indented; a list of objects is a table. Warnings follow. */
void ttn_show_text(const ttn_terminal *t, const ttn_facts *f);

/* One object; its last key is "warnings", a list of texts, unless the facts have a list of that name of their own.
 * TTN_ENOMEM. */
TTN_MUST_USE ttn_status ttn_show_json(FILE *out, const ttn_facts *f, ttn_error *err);

#endif
