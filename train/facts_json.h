/* Facts (train/facts.h) as a JSON value. */
#ifndef TTN_FACTS_JSON_H
#define TTN_FACTS_JSON_H

#include <jansson.h>
#include "train/facts.h"

/* One object of all of them, without the warnings: the caller's (json_decref). NULL: no memory. */
json_t *ttn_facts_json(const ttn_facts *f);

/* The warnings as a list of texts. */
json_t *ttn_facts_json_warnings(const ttn_facts *f);

#endif
