/* A store that is open. Private to data/store*.c. */
#ifndef TTN_STORE_IMPL_H
#define TTN_STORE_IMPL_H

#include <pthread.h>
#include "core/hdf5_read.h"
#include "core/text.h"
#include "data/store.h"

enum { TTN_STORE_PIECE = 16 << 20 }; /* bytes of a pass over a list */
enum { TTN_STORE_TEXTS = 4096 };     /* ids or headers that are read together */

/* Tokens, and what is excluded, of one block. */
typedef struct {
    uint8_t
        *token;   /* (n), and behind them n that tell what is excluded, where the store has that; NULL: not in memory */
    int64_t used; /* when it was asked for last */
} ttn_store_block;

/* A list of texts, of which a run is in memory. */
typedef struct {
    ttn_hdf5_array *bytes, *offset;
    const char *name;
    int64_t first, n;                  /* texts in memory */
    int64_t from[TTN_STORE_TEXTS + 1]; /* (n + 1) offsets in the file */
    char *text;                        /* bytes from[0] to from[n] */
} ttn_store_texts;

struct ttn_store {
    ttn_hdf5_file *file;
    char name[TTN_TAIL_ROOM];
    int is_known; /* it is a store, of this version: what else is wrong with it is damage */
    ttn_store_facts facts;
    ttn_alphabet own_alphabet; /* where it is none of titin's */
    ttn_store_source *source;
    ttn_store_finding *finding;
    ttn_hdf5_array *tokens, *excluded, *hash, *cluster; /* excluded, cluster: NULL where there is none */
    int64_t *offset;                                    /* (sequences + 1) */
    ttn_store_texts id, header;

    uint8_t *all;         /* every token, and behind them what is excluded; NULL: they do not fit the cache */
    pthread_mutex_t lock; /* of the file and of what follows */
    int has_lock;
    ttn_store_block *block; /* (n_block) */
    int64_t *block_first;   /* (n_block + 1) */
    int64_t n_block, blocks_at_once, clock;
    int64_t cache, cached; /* bytes that may be, and are, in blocks */
};

/* TTN_EFORMAT: "NAME: is no whole store: WHAT". */
ttn_status ttn_store_damaged(const ttn_store *s, const char *what, ttn_error *err);

/* What went wrong inside, as the caller of the store gets it: with the name of the file, and what to do where that is
 * damaged. Returns status. */
ttn_status ttn_store_fail(const ttn_store *s, ttn_status status, const ttn_error *why, ttn_error *err);
#define TTN_STORE_COPY_ADVICE \
    "; titin packed it from data.train for its own use: remove it, and the next titin train packs it anew"

/* How many bytes of memory a token takes. */
int64_t ttn_store_bytes_a_token(const ttn_store *s);

/* Is each of n tokens one of the alphabet, and does every text lie in its list? TTN_EFORMAT. */
ttn_status ttn_store_check_tokens(const ttn_store *s, const uint8_t *token, int64_t n, ttn_error *err);
ttn_status ttn_store_check_texts(ttn_store *s, ttn_error *err);

/* Every token to memory; or blocks, of which none is there yet. */
ttn_status ttn_store_keep_all(ttn_store *s, ttn_error *err);
ttn_status ttn_store_plan_blocks(ttn_store *s, ttn_error *err);

#endif
