/* How much of this machine a process may use: cores and memory, as the scheduler, control groups (containers, Slurm) and
 * limits leave them. What `nproc` or /proc/meminfo say is of the whole machine, and more than a container has.
 */
#ifndef TTN_MACHINE_H
#define TTN_MACHINE_H

#include <stdint.h>
#include "core/status.h"

enum { TTN_MACHINE_TEXT = 128 };

typedef struct {
    int present;  /* cores that run in this machine */
    int allowed;  /* of them, those on which this process may run: affinity (taskset, mpirun, cpusets) */
    double quota; /* cores' worth of time that a control group gives it, 1.5; 0: no limit */
    int usable;   /* threads that can compute at once: allowed, or less by quota (rounded down); at least 1 */
} ttn_cores;

typedef struct {
    int64_t present;       /* bytes of the machine; 0: unknown */
    int64_t available;     /* of them, what can be had without swapping */
    int64_t limit;         /* of the control group; 0: none that is below `present` */
    int64_t used;          /* of the limit: by the processes of the group, without what can be dropped */
    int64_t address_space; /* ulimit -v; 0: none */
    int64_t usable;        /* what this process can have now: the least of what is above */
    int overcommit;        /* vm.overcommit_memory: 2 counts reserved memory as used */
} ttn_ram;

typedef struct {
    char processor[TTN_MACHINE_TEXT];  /* "AMD EPYC 7B13"; "" unknown */
    char huge_pages[TTN_MACHINE_TEXT]; /* "always", "madvise", "never"; "" unknown */
    int memory_nodes;                  /* NUMA; at least 1 */
    double load;                       /* processes that wanted to run in the last minute; < 0: unknown */
    ttn_cores cores;
    ttn_ram ram;
} ttn_machine;

/* What can be found out; what cannot stays as said above, and is no failure. root: "" is this machine; another folder stands
 * for it in tests, with proc/ and sys/ under it (affinity and ulimit are this process's all the same). */
void ttn_machine_look(const char *root, ttn_machine *ret);

/* Bytes of memory that this process has in use now; 0: unknown. */
int64_t ttn_machine_resident(void);

#endif
