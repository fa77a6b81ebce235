/* Shared by data/fasta*.c. */
#ifndef TTN_FASTA_IMPL_H
#define TTN_FASTA_IMPL_H

#include <stddef.h>
#include "data/fasta.h"

/* What the first bytes of a file that is no FASTA look like. */
typedef struct {
    int code;         /* of the rule; 0: nothing is known against it */
    const char *what; /* "looks like FASTQ", and what to do */
} ttn_fasta_look;

enum { TTN_FASTA_LOOK = 512 };

/* n bytes, TTN_FASTA_LOOK of them where the file has so many. */
ttn_fasta_look ttn_fasta_sniff(const unsigned char *bytes, size_t n);

/* By its name a file of this kind: ".a3m" or ".a2m", with or without ".gz" behind it. */
int ttn_fasta_is_called(const char *name, const char *extension);

#endif
