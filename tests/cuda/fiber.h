/* Stacks to switch between: each thread of an emulated block has one. */
#ifndef TTN_TEST_FIBER_H
#define TTN_TEST_FIBER_H

#include <stddef.h>

struct fiber {
    void *stack_pointer; /* where it left off, when it is not running */
    char *stack;         /* its lowest address; of the caller's own stack, as far as known */
    size_t bytes;
    void *sanitizer; /* what AddressSanitizer keeps for it */
};

/* The first switch to f calls body, which must not return, on this stack. */
void fiber_prepare(fiber *f, char *stack, size_t bytes, void (*body)());

/* Leave `from`, go on with `to`; returns when somebody switches back. ends: nobody will. */
void fiber_switch(fiber *from, fiber *to, bool ends);

/* The first thing a fiber does. `from` is whoever switched to it. */
void fiber_begun(fiber *from);

#endif
