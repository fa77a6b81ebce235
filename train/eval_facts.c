#include <math.h>
#include "train/eval_facts.h"

/* A loss of the model or a baseline, as loss and perplexity. */
static void tell_loss(ttn_facts *f, const ttn_estimate *loss)
{
    ttn_facts_real(f, "loss", loss->mean);
    ttn_facts_real(f, "loss_error", loss->error);
    ttn_facts_real(f, "ppl", exp(loss->mean));
}

static void tell_baseline(ttn_facts *f, const char *key, const ttn_estimate *loss, const ttn_estimate *gain)
{
    ttn_facts_open(f, key);
    tell_loss(f, loss);
    ttn_facts_real(f, "gain", gain->mean);
    ttn_facts_real(f, "gain_error", gain->error);
    ttn_facts_real(f, "ppl_ratio", exp(-gain->mean)); /* the model's perplexity as a part of this one */
    ttn_facts_close(f);
}

static void tell_part(ttn_facts *f, const char *key, const ttn_validation_part *p)
{
    ttn_facts_open(f, key);
    ttn_facts_integer(f, "targets", p->targets);
    ttn_facts_integer(f, "sequences", p->sequences);
    tell_loss(f, &p->loss);
    ttn_facts_real(f, "accuracy", p->accuracy.mean);
    ttn_facts_real(f, "accuracy_error", p->accuracy.error);
    tell_baseline(f, "frequency", &p->frequency, &p->gain_frequency);
    tell_baseline(f, "composition", &p->composition, &p->gain_composition);
    ttn_facts_close(f);
}

void ttn_eval_tell(const ttn_validation_result *v, int is_causal, ttn_facts *f)
{
    tell_part(f, is_causal ? "next" : "masked", &v->hidden);
    if (v->seen.targets > 0) tell_part(f, "seen", &v->seen);
}
