/* What a step will take (train/forecast.h), as facts. */
#ifndef TTN_FORECAST_FACTS_H
#define TTN_FORECAST_FACTS_H

#include "train/facts.h"
#include "train/forecast.h"

/* most: entries of the long lists, what is alive and what is computed twice, the largest first; what is left out is summed
 * up. 0: all of them. */
void ttn_forecast_tell(const ttn_forecast_facts *p, int most, ttn_facts *f);

#endif
