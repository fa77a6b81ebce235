#include <assert.h>
#include <math.h>
#include <string.h>
#include "core/memory.h"
#include "train/validation.h"

struct ttn_validation {
    int64_t n;
    ttn_frequencies f;
    ttn_sequence_score *score; /* (n) */
};

static const double PSEUDO = 30;   /* residues of the training set that are added to what is seen of a protein */
static const double UNSEEN = 0.01; /* and to each token's count in the training set */

void ttn_frequencies_of(const ttn_alphabet *a, const int64_t *count, ttn_frequencies *ret)
{
    double sum = 0;
    *ret = (ttn_frequencies){.n = a->n};
    for (int t = 0; t < a->n; t++)
        sum += (double)count[t] + UNSEEN;
    for (int t = 0; t < a->n; t++) {
        ret->f[t] = ((double)count[t] + UNSEEN) / sum;
        ret->is_letter[t] = ttn_alphabet_letter(a, t) != 0;
    }
}

ttn_status ttn_validation_create(int64_t n, const ttn_frequencies *f, ttn_validation **ret, ttn_error *err)
{
    static const char what[] = "the scores of the validation's sequences";
    *ret = NULL;
    ttn_validation *v = ttn_alloc_or_say(1, sizeof *v, what, err);
    if (!v) return TTN_ENOMEM;
    v->n = n;
    v->f = *f;
    v->score = ttn_alloc_or_say(n, sizeof *v->score, what, err);
    if (!v->score) {
        ttn_validation_destroy(v);
        return TTN_ENOMEM;
    }
    *ret = v;
    return TTN_OK;
}

void ttn_validation_destroy(ttn_validation *v)
{
    if (!v) return;
    ttn_free(v->score);
    ttn_free(v);
}

void ttn_validation_clear(ttn_validation *v)
{
    memset(v->score, 0, (size_t)v->n * sizeof *v->score);
}

/* ---- sums ---- */

/* What has been seen of a protein. */
typedef struct {
    int64_t count[TTN_MAX_TOKENS];
    int64_t n;
} composition;

static void see(composition *c, const ttn_frequencies *f, const uint8_t *token, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!f->is_letter[token[i]]) continue;
        c->count[token[i]]++;
        c->n++;
    }
}

static double composition_loss(const composition *c, const ttn_frequencies *f, int t)
{
    return -log(((double)c->count[t] + PSEUDO * f->f[t]) / ((double)c->n + PSEUDO));
}

static void add_target(ttn_score *s, const ttn_predicted *p, int64_t i, const ttn_frequencies *f, const composition *c)
{
    const int t = p->batch->target[i];
    assert(t < f->n);
    s->n++;
    s->right += p->right[i] != 0;
    s->loss += (double)p->loss[i];
    s->frequency -= log(f->f[t]);
    s->composition += composition_loss(c, f, t);
}

/* The targets of the batch's sequence s, the first of which is target `at`. Returns the first one behind them. */
static int64_t add_sequence(ttn_validation *v, const ttn_predicted *p, int64_t s, int64_t at)
{
    const ttn_batch *b = p->batch;
    const ttn_span span = b->span[s];
    const int64_t end = span.first + span.n;
    ttn_sequence_score *score = &v->score[p->sequence[s]];
    composition visible = {0};
    int64_t next = span.first; /* the first row that has not been looked at */
    if (!p->is_causal) {
        see(&visible, &v->f, b->token + span.first, span.n);
        next = end;
    }
    for (; at < b->used.picks && b->index[at] < end; at++) {
        const int64_t row = b->index[at];
        if (row < 0) continue; /* a gap between sequences */
        assert(row >= span.first);
        if (row >= next) {
            see(&visible, &v->f, b->token + next, row + 1 - next);
            next = row + 1;
        }
        add_target(p->is_causal || b->shown[at] ? &score->hidden : &score->seen, p, at, &v->f, &visible);
    }
    return at;
}

void ttn_validation_add(ttn_validation *v, const ttn_predicted *p)
{
    int64_t at = 0;
    for (int64_t s = 0; s < p->batch->used.seqs; s++) {
        assert(p->sequence[s] >= 0 && p->sequence[s] < v->n);
        at = add_sequence(v, p, s, at);
    }
}

static void add_score(ttn_score *to, const ttn_score *from)
{
    to->n += from->n;
    to->right += from->right;
    to->loss += from->loss;
    to->frequency += from->frequency;
    to->composition += from->composition;
}

void ttn_validation_merge(ttn_validation *v, const ttn_validation *other)
{
    assert(v->n == other->n);
    for (int64_t i = 0; i < v->n; i++) {
        add_score(&v->score[i].hidden, &other->score[i].hidden);
        add_score(&v->score[i].seen, &other->score[i].seen);
    }
}

const ttn_sequence_score *ttn_validation_scores(const ttn_validation *v)
{
    return v->score;
}

/* ---- results ---- */

typedef double (*quantity)(const ttn_score *s); /* x of a sequence */

static double loss_of(const ttn_score *s)
{
    return s->loss;
}

static double frequency_of(const ttn_score *s)
{
    return s->frequency;
}

static double composition_of(const ttn_score *s)
{
    return s->composition;
}

static double gain_frequency_of(const ttn_score *s)
{
    return s->frequency - s->loss;
}

static double gain_composition_of(const ttn_score *s)
{
    return s->composition - s->loss;
}

static double right_of(const ttn_score *s)
{
    return (double)s->right;
}

static const ttn_score *score_of(const ttn_validation *v, int64_t i, int is_hidden)
{
    return is_hidden ? &v->score[i].hidden : &v->score[i].seen;
}

static ttn_estimate estimate(const ttn_validation *v, int is_hidden, quantity x)
{
    double sum = 0, squares = 0;
    int64_t targets = 0, sequences = 0;
    for (int64_t i = 0; i < v->n; i++) {
        const ttn_score *s = score_of(v, i, is_hidden);
        sum += x(s);
        targets += s->n;
        sequences += s->n > 0;
    }
    if (targets == 0) return (ttn_estimate){(double)NAN, (double)NAN};
    const double mean = sum / (double)targets;
    if (sequences < 2) return (ttn_estimate){mean, (double)NAN};
    for (int64_t i = 0; i < v->n; i++) {
        const ttn_score *s = score_of(v, i, is_hidden);
        const double off = x(s) - mean * (double)s->n;
        squares += off * off;
    }
    const double variance = (double)sequences / (double)(sequences - 1) * squares;
    return (ttn_estimate){mean, sqrt(variance) / (double)targets};
}

static void part_of(const ttn_validation *v, int is_hidden, ttn_validation_part *ret)
{
    *ret = (ttn_validation_part){
        .loss = estimate(v, is_hidden, loss_of),
        .frequency = estimate(v, is_hidden, frequency_of),
        .composition = estimate(v, is_hidden, composition_of),
        .gain_frequency = estimate(v, is_hidden, gain_frequency_of),
        .gain_composition = estimate(v, is_hidden, gain_composition_of),
        .accuracy = estimate(v, is_hidden, right_of),
    };
    for (int64_t i = 0; i < v->n; i++) {
        const ttn_score *s = score_of(v, i, is_hidden);
        ret->targets += s->n;
        ret->sequences += s->n > 0;
    }
}

void ttn_validation_result_of(const ttn_validation *v, ttn_validation_result *ret)
{
    part_of(v, 1, &ret->hidden);
    part_of(v, 0, &ret->seen);
}

void ttn_validation_record(const ttn_validation_result *v, ttn_metrics *r)
{
    const ttn_validation_part *h = &v->hidden, *s = &v->seen;
    ttn_metrics_add(r, ttn_metric_val_loss, h->loss.mean);
    ttn_metrics_add(r, ttn_metric_val_loss_error, h->loss.error);
    ttn_metrics_add(r, ttn_metric_val_ppl, exp(h->loss.mean));
    ttn_metrics_add(r, ttn_metric_val_accuracy, h->accuracy.mean);
    ttn_metrics_add(r, ttn_metric_val_accuracy_error, h->accuracy.error);
    ttn_metrics_add(r, ttn_metric_val_targets, (double)h->targets);
    ttn_metrics_add(r, ttn_metric_val_sequences, (double)h->sequences);
    ttn_metrics_add(r, ttn_metric_val_loss_frequency, h->frequency.mean);
    ttn_metrics_add(r, ttn_metric_val_ppl_frequency, exp(h->frequency.mean));
    ttn_metrics_add(r, ttn_metric_val_gain_frequency, h->gain_frequency.mean);
    ttn_metrics_add(r, ttn_metric_val_gain_frequency_error, h->gain_frequency.error);
    ttn_metrics_add(r, ttn_metric_val_loss_composition, h->composition.mean);
    ttn_metrics_add(r, ttn_metric_val_ppl_composition, exp(h->composition.mean));
    ttn_metrics_add(r, ttn_metric_val_gain_composition, h->gain_composition.mean);
    ttn_metrics_add(r, ttn_metric_val_gain_composition_error, h->gain_composition.error);
    if (s->targets == 0) return;
    ttn_metrics_add(r, ttn_metric_val_loss_seen, s->loss.mean);
    ttn_metrics_add(r, ttn_metric_val_ppl_seen, exp(s->loss.mean));
    ttn_metrics_add(r, ttn_metric_val_accuracy_seen, s->accuracy.mean);
}
