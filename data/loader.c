#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include "core/clock.h"
#include "core/memory.h"
#include "data/loader.h"

/* A ring of batches: `n_made` have been made and `n_used` given back, so slots n_used … n_made - 1 (modulo n_slot) are full. The
 * thread writes to slot n_made, which nobody else looks at. */
struct ttn_loader {
    ttn_sampler *sampler;
    int n_slot;
    ttn_batch **slot;

    pthread_t thread;
    int is_running;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    int64_t n_made, n_used;
    int is_stopping;
    ttn_status status; /* of the sampler: once it is not TTN_OK the thread has ended */
    ttn_error err;

    /* The caller's own. */
    int is_lent; /* the batch in slot n_used */
    double waited;
};

/* Room for the next batch: 1; the loader is to stop: 0. */
static int wait_for_room(ttn_loader *l)
{
    pthread_mutex_lock(&l->lock);
    while (!l->is_stopping && l->n_made - l->n_used == l->n_slot)
        pthread_cond_wait(&l->changed, &l->lock);
    const int goes_on = !l->is_stopping;
    pthread_mutex_unlock(&l->lock);
    return goes_on;
}

static void tell(ttn_loader *l, ttn_status status, const ttn_error *err)
{
    pthread_mutex_lock(&l->lock);
    if (status == TTN_OK)
        l->n_made++;
    else
        l->err = *err;
    l->status = status;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static void *run_thread(void *arg)
{
    ttn_loader *l = arg;
    ttn_status status = TTN_OK;
    /* n_made is written by this thread alone. */
    while (status == TTN_OK && wait_for_room(l)) {
        ttn_error err = {0};
        status = ttn_sampler_next(l->sampler, l->slot[l->n_made % l->n_slot], &err);
        tell(l, status, &err);
    }
    return NULL;
}

/* Signals are for the thread that trains. 0 or the error. */
static int start_thread(ttn_loader *l)
{
    sigset_t all, before;
    sigfillset(&all);
    int error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error) return error;
    error = pthread_create(&l->thread, NULL, run_thread, l);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    l->is_running = error == 0;
    return error;
}

ttn_status ttn_loader_create(ttn_sampler *s, int ready, ttn_loader **ret, ttn_error *err)
{
    assert(ready >= 1);
    *ret = NULL;
    ttn_loader *l = ttn_alloc_or_say(1, sizeof *l, "the loader", err);
    if (!l) return TTN_ENOMEM;
    l->sampler = s;
    l->n_slot = ready + 2;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    l->slot = ttn_alloc_or_say(l->n_slot, sizeof *l->slot, "the loader", err);
    ttn_status status = l->slot ? TTN_OK : TTN_ENOMEM;
    for (int i = 0; i < l->n_slot && status == TTN_OK; i++)
        status = ttn_batch_create(ttn_sampler_capacity(s), &l->slot[i], err);
    if (status == TTN_OK) {
        const int error = start_thread(l);
        if (error)
            status = TTN_FAIL(err, TTN_EDEVICE, "the thread that makes batches cannot be started: %s", strerror(error));
    }
    if (status != TTN_OK) {
        ttn_loader_destroy(l);
        return status;
    }
    *ret = l;
    return TTN_OK;
}

void ttn_loader_destroy(ttn_loader *l)
{
    if (!l) return;
    if (l->is_running) {
        pthread_mutex_lock(&l->lock);
        l->is_stopping = 1;
        pthread_cond_signal(&l->changed);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
    }
    for (int i = 0; l->slot && i < l->n_slot; i++)
        ttn_batch_destroy(l->slot[i]);
    ttn_free(l->slot);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    ttn_free(l);
}

ttn_status ttn_loader_next(ttn_loader *l, const ttn_batch **ret, ttn_error *err)
{
    *ret = NULL;
    const double begin = ttn_clock_now(NULL);
    pthread_mutex_lock(&l->lock);
    if (l->is_lent) {
        l->n_used++;
        l->is_lent = 0;
        pthread_cond_signal(&l->changed);
    }
    while (l->n_made == l->n_used && l->status == TTN_OK)
        pthread_cond_wait(&l->changed, &l->lock);
    const int is_there = l->n_made > l->n_used;
    if (is_there) *ret = l->slot[l->n_used % l->n_slot];
    pthread_mutex_unlock(&l->lock);
    l->waited += ttn_clock_now(NULL) - begin;
    l->is_lent = is_there;
    if (is_there) return TTN_OK;
    /* The thread has ended: what it left is this one's. */
    if (err && err->status == TTN_OK) *err = l->err;
    return l->status;
}

double ttn_loader_waited(const ttn_loader *l)
{
    return l->waited;
}
