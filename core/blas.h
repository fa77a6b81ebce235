/* The one door to BLAS. */
#ifndef TTN_BLAS_H
#define TTN_BLAS_H

/* The value that OPENBLAS_CORETYPE must have before the process starts, so that OpenBLAS takes the kernel that fits this
 * processor; NULL: the loaded kernel is fine, or the user has set the variable. */
const char *ttn_blas_wanted_kernel(void);

#endif
