/* What the kernels of embedding share. */
#ifndef TTN_EMBEDDING_H
#define TTN_EMBEDDING_H

/* Faults in its data, and what `at` counts (autograd/fault.h). */
enum {
    TTN_EMBEDDING_TOKEN, /* row: its token is outside the vocabulary */
    TTN_EMBEDDING_MASKS, /* sequence: it is nothing but masks */
};

#endif
