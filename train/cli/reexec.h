/* Some libraries read the environment once, when they are loaded: a process that needs it different starts again. */
#ifndef TTN_REEXEC_H
#define TTN_REEXEC_H

/* When OpenBLAS has taken a kernel below this processor: set OPENBLAS_CORETYPE and execute the program again, at most
 * once; it then takes back the name that ps shows. Returns when nothing had to be done, or when executing failed (the
 * start-up check of the BLAS then says what is wrong). Call it first: nothing may be open and no thread of ours running.
 * argv is main's, NULL at its end. Returns 1 when this process has been started again, so that OPENBLAS_CORETYPE is not
 * the user's; else 0.
 *
 * It binds no threads (OMP_PROC_BIND, OMP_PLACES): whether a run wants every core is known only after its configuration
 * has been read, and a bound process that does not want them all is bound to the first core, as is the one beside it. */
int ttn_reexec_for_blas(char **argv);

#endif
