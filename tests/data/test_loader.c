#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include "core/clock.h"
#include "core/hash.h"
#include "data/loader.h"
#include "tests/data/proteins.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

/* ---- a sampler that can be held up in the middle of a batch ---- */

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t held_from; /* reads before this one pass; INT64_MAX: all do */
    int64_t n_read;
} gate;

static void begin_gate(gate *g, int64_t held_from)
{
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    g->held_from = held_from;
    g->n_read = 0;
}

static void end_gate(gate *g)
{
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
}

static void pass(void *ctx, int64_t i)
{
    (void)i;
    gate *g = ctx;
    pthread_mutex_lock(&g->lock);
    g->n_read++;
    pthread_cond_broadcast(&g->changed);
    while (g->n_read > g->held_from)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void open_gate(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->held_from = INT64_MAX;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void wait_for_reads(gate *g, int64_t n)
{
    pthread_mutex_lock(&g->lock);
    while (g->n_read < n)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static int64_t reads_of(gate *g)
{
    pthread_mutex_lock(&g->lock);
    const int64_t n = g->n_read;
    pthread_mutex_unlock(&g->lock);
    return n;
}

typedef struct {
    proteins p;
    ttn_sequences s;
    ttn_sampler_options o;
    ttn_sampler *sampler;
    gate g;
} setting;

/* What the loader's thread uses outlives a test that fails. */
static setting now;

static void begin(setting *t, int64_t epochs, int64_t held_from)
{
    ttn_error err = {0};
    *t = (setting){.p = {.alphabet = ttn_alphabet_find("esm"), .n = 40, .every = 100}};
    begin_gate(&t->g, held_from);
    t->p.on_read = pass;
    t->p.ctx = &t->g;
    t->s = proteins_view(&t->p);
    t->o = (ttn_sampler_options){.from = &t->s, .seed = 3, .epochs = epochs};
    t->o.rules = (ttn_batch_rules){.rows = 480, .mlm = {.rate = 0.15, .mask = 0.8, .random = 0.1}};
    assert_ok(ttn_batch_capacity_of(&t->o.rules, &t->s, NULL, &t->o.capacity, &err), &err);
    assert_ok(ttn_sampler_create(&t->o, &t->sampler, &err), &err);
}

static void end(setting *t)
{
    ttn_sampler_destroy(t->sampler);
    end_gate(&t->g);
}

/* Of 480 rows four sequences of 102 fit. */
enum { SEQUENCES = 4, BATCHES = 10 };

static uint64_t hash_of(const ttn_batch *b)
{
    uint64_t h = ttn_hash64(b->token, (size_t)b->capacity.rows, (uint64_t)b->used.rows);
    h = ttn_hash64(b->index, (size_t)b->capacity.picks * sizeof *b->index, h);
    return ttn_hash64(&b->at, sizeof b->at, h);
}

/* The batches of two epochs, from a sampler alone. */
static void by_hand(uint64_t hash[2 * BATCHES])
{
    begin(&now, 0, INT64_MAX);
    ttn_error err = {0};
    ttn_batch *b;
    assert_ok(ttn_batch_create(now.o.capacity.extent, &b, &err), &err);
    for (int i = 0; i < 2 * BATCHES; i++) {
        assert_ok(ttn_sampler_next(now.sampler, b, &err), &err);
        assert_int_equal(b->used.seqs, SEQUENCES);
        hash[i] = hash_of(b);
    }
    ttn_batch_destroy(b);
    end(&now);
}

static ttn_loader *loader_of(setting *t, int ready)
{
    ttn_error err = {0};
    ttn_loader *l;
    assert_ok(ttn_loader_create(t->sampler, ready, &l, &err), &err);
    return l;
}

/* ---- properties ---- */

static void batches_are_the_samplers_in_its_order(void **state)
{
    (void)state;
    uint64_t wanted[2 * BATCHES];
    by_hand(wanted);
    for (int ready = 1; ready <= 5; ready++) {
        begin(&now, 2, INT64_MAX);
        ttn_loader *l = loader_of(&now, ready);
        ttn_error err = {0};
        const ttn_batch *b, *before = NULL;
        for (int i = 0; i < 2 * BATCHES; i++) {
            assert_ok(ttn_loader_next(l, &b, &err), &err);
            assert_true(b != before); /* the one before was in use until now */
            assert_true(hash_of(b) == wanted[i]);
            before = b;
        }
        for (int i = 0; i < 3; i++) {
            assert_int_equal(ttn_loader_next(l, &b, &err), TTN_EOF);
            assert_null(b);
        }
        ttn_loader_destroy(l);
        end(&now);
    }
}

/* It stays what it was while those behind it are made. */
static void a_batch_is_left_alone_until_the_next_is_asked_for(void **state)
{
    (void)state;
    enum { READY = 2 };
    begin(&now, 0, INT64_MAX);
    ttn_loader *l = loader_of(&now, READY);
    ttn_error err = {0};
    const ttn_batch *b;
    for (int i = 0; i < 30; i++) {
        assert_ok(ttn_loader_next(l, &b, &err), &err);
        const uint64_t hash = hash_of(b);
        /* All that the loader makes ahead has been begun: READY and the one that then waits for room. */
        wait_for_reads(&now.g, (i + 2 + READY) * SEQUENCES);
        assert_true(hash_of(b) == hash);
    }
    /* And it makes no more than that. */
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_true(reads_of(&now.g) <= (30 + READY + 1) * SEQUENCES);
    ttn_loader_destroy(l);
    end(&now);
}

static void a_failure_comes_after_the_batches_before_it_and_stays(void **state)
{
    (void)state;
    uint64_t wanted[2 * BATCHES];
    by_hand(wanted);
    for (int good = 0; good < 8; good++) {
        begin(&now, 0, INT64_MAX);
        atomic_store(&now.p.fails, good * SEQUENCES + 3);
        ttn_loader *l = loader_of(&now, 3);
        const ttn_batch *b;
        for (int i = 0; i < good; i++) {
            ttn_error err = {0};
            assert_ok(ttn_loader_next(l, &b, &err), &err);
            assert_true(hash_of(b) == wanted[i]);
        }
        for (int i = 0; i < 2; i++) {
            ttn_error err = {0};
            assert_fails(ttn_loader_next(l, &b, &err), TTN_EIO, &err, "cannot be read");
            assert_null(b);
        }
        assert_int_equal(ttn_loader_next(l, &b, NULL), TTN_EIO);
        ttn_loader_destroy(l);
        end(&now);
    }
}

static void *open_soon(void *arg)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    open_gate(arg);
    return NULL;
}

/* After any number of batches: at once; while the queue is full; and while the sampler is held up in reading. Then the
 * sampler is at a whole batch, and goes on from the last one used. */
static void it_stops_at_any_moment(void **state)
{
    (void)state;
    uint64_t wanted[2 * BATCHES];
    by_hand(wanted);
    int n_exact = 0;
    for (int used = 0; used < 8; used++) {
        for (int moment = 0; moment < 3; moment++) {
            const int ready = 1 + used % 3;
            begin(&now, 0, moment == 2 ? used * SEQUENCES + 2 : INT64_MAX);
            ttn_loader *l = loader_of(&now, ready);
            ttn_error err = {0};
            const ttn_batch *b = NULL;
            ttn_cursor at = {0};
            for (int i = 0; i < used; i++) {
                assert_ok(ttn_loader_next(l, &b, &err), &err);
                assert_true(hash_of(b) == wanted[i]);
                at = b->next;
            }
            pthread_t opener;
            if (moment == 1) wait_for_reads(&now.g, (used + ready + 1) * SEQUENCES);
            if (moment == 2) {
                wait_for_reads(&now.g, used * SEQUENCES + 3);
                assert_int_equal(pthread_create(&opener, NULL, open_soon, &now.g), 0);
            }
            ttn_loader_destroy(l);
            if (moment == 2) pthread_join(opener, NULL);
            /* The batch that was being made is finished, and none is begun behind it. */
            assert_true(reads_of(&now.g) <= (used + ready + 2) * SEQUENCES);
            n_exact += moment == 2 && reads_of(&now.g) == (used + 1) * SEQUENCES;
            assert_ok(ttn_sampler_seek(now.sampler, at, &err), &err);
            l = loader_of(&now, ready);
            for (int i = used; i < used + 3; i++) {
                assert_ok(ttn_loader_next(l, &b, &err), &err);
                assert_true(hash_of(b) == wanted[i]);
            }
            ttn_loader_destroy(l);
            end(&now);
        }
    }
    /* Where the gate opened when the loader had been told to stop, which only a busy machine prevents. */
    assert_true(n_exact > 0);
    ttn_loader_destroy(NULL);
}

/* What is told when the third batch is held up in reading for 5 ms. */
static double waited_for_third(void)
{
    begin(&now, 0, 2 * SEQUENCES);
    ttn_loader *l = loader_of(&now, 3);
    ttn_error err = {0};
    const ttn_batch *b;
    wait_for_reads(&now.g, 2 * SEQUENCES + 1); /* two are ready */
    const double begin_ready = ttn_clock_now(NULL);
    assert_ok(ttn_loader_next(l, &b, &err), &err);
    assert_ok(ttn_loader_next(l, &b, &err), &err);
    const double before = ttn_loader_waited(l), begin_held = ttn_clock_now(NULL);
    assert_true(before <= begin_held - begin_ready);
    pthread_t opener;
    assert_int_equal(pthread_create(&opener, NULL, open_soon, &now.g), 0);
    assert_ok(ttn_loader_next(l, &b, &err), &err);
    const double waited = ttn_loader_waited(l) - before;
    assert_true(waited <= ttn_clock_now(NULL) - begin_held);
    pthread_join(opener, NULL);
    ttn_loader_destroy(l);
    end(&now);
    return waited;
}

/* A busy machine may open the gate before anybody waits: then it is tried again. */
static void time_lost_with_waiting_is_told(void **state)
{
    (void)state;
    double waited = 0;
    for (int try = 0; try < 50 && waited < 0.003; try++)
        waited = waited_for_third();
    assert_true(waited >= 0.003);
}

/* In the loader's thread: which signals it would take. */
static void look_at_signals(void *ctx, int64_t i)
{
    (void)i;
    atomic_int *takes = ctx;
    sigset_t blocked;
    sigemptyset(&blocked);
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    static const int of_interest[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD};
    for (size_t k = 0; k < sizeof of_interest / sizeof *of_interest; k++)
        if (!sigismember(&blocked, of_interest[k])) atomic_fetch_add(takes, 1);
}

static void signals_are_for_the_thread_that_trains(void **state)
{
    (void)state;
    atomic_int takes = 0;
    begin(&now, 1, INT64_MAX);
    look_at_signals(&takes, 0);
    assert_true(atomic_load(&takes) > 0); /* this thread takes them, before and after */
    atomic_store(&takes, 0);
    now.p.on_read = look_at_signals;
    now.p.ctx = &takes;
    ttn_loader *l = loader_of(&now, 2);
    ttn_error err = {0};
    const ttn_batch *b;
    while (ttn_loader_next(l, &b, &err) == TTN_OK)
        assert_int_equal(atomic_load(&takes), 0);
    assert_int_equal(atomic_load(&takes), 0);
    look_at_signals(&takes, 0);
    assert_true(atomic_load(&takes) > 0);
    ttn_loader_destroy(l);
    end(&now);
}

static void without_memory_there_is_no_loader(void **state)
{
    (void)state;
    int64_t nth = 1;
    begin(&now, 0, INT64_MAX);
    for (int hit = 1; hit && nth < 100; nth++) {
        ttn_error err = {0};
        ttn_loader *l = NULL;
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        const ttn_status status = ttn_loader_create(now.sampler, 1, &l, &err);
        hit = shim_was_hit();
        ttn_loader_destroy(l);
        shim_disarm();
        assert_int_equal(status, hit ? TTN_ENOMEM : TTN_OK);
    }
    assert_true(nth > 20);
    end(&now);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_the_samplers_in_its_order),
        cmocka_unit_test(a_batch_is_left_alone_until_the_next_is_asked_for),
        cmocka_unit_test(a_failure_comes_after_the_batches_before_it_and_stays),
        cmocka_unit_test(it_stops_at_any_moment),
        cmocka_unit_test(time_lost_with_waiting_is_told),
        cmocka_unit_test(signals_are_for_the_thread_that_trains),
        cmocka_unit_test(without_memory_there_is_no_loader),
    };
    return ttn_test_run(tests);
}
