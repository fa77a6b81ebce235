/* cuBLAS over the library's own products (core/blas.h), which are row-major: a column-major matrix is the transpose of a
 * row-major one of the same bytes, and C^T = op(B)^T op(A)^T.
 *
 * Stricter than cuBLAS: matrices must lie in one allocation of the device; and what titin's results rest on is refused
 * where it is missing: a workspace of its own (cublasSetStream takes it away), no atomics, no TF32. */
#include "core/blas.h"
#include "tests/cuda/cublas_v2.h"
#include "tests/cuda/engine.h"

struct cublasContext {
    cudaStream_t stream;
    void *workspace;
    cublasAtomicsMode_t atomics;
    cublasMath_t math;
    cublasPointerMode_t pointers;
};

using namespace emulation;

static cublasStatus_t begin(const char *call)
{
    return enter(call) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

#define ENTER(handle)                                         \
    do {                                                      \
        const cublasStatus_t entered = begin(__func__);       \
        if (entered != CUBLAS_STATUS_SUCCESS) return entered; \
        if (!(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;  \
    } while (0)

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    ENTER(handle);
    *handle =
        new cublasContext{nullptr, nullptr, CUBLAS_ATOMICS_NOT_ALLOWED, CUBLAS_DEFAULT_MATH, CUBLAS_POINTER_MODE_HOST};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version)
{
    ENTER(handle);
    *version = 120803;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    ENTER(handle);
    if (!is_stream(stream)) return CUBLAS_STATUS_INVALID_VALUE;
    handle->stream = stream;
    handle->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    ENTER(handle);
    if (!find_region(workspace, bytes) || reinterpret_cast<uintptr_t>(workspace) % 256 != 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode)
{
    ENTER(handle);
    handle->pointers = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode)
{
    ENTER(handle);
    handle->atomics = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    ENTER(handle);
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
#define EMULATED_STATUS(name, number) \
    case name:                        \
        return #name;
        EMULATED_CUBLAS_STATUSES(EMULATED_STATUS)
#undef EMULATED_STATUS
    }
    return "<unknown>";
}

/* A column-major matrix of rows × cols in the device's memory. */
static bool is_matrix(const void *at, int64_t rows, int64_t cols, int64_t ld, size_t size)
{
    if (ld < 1 || ld < rows) return false;
    if (rows == 0 || cols == 0) return true;
    if (reinterpret_cast<uintptr_t>(at) % size != 0) return false;
    return find_region(at, (size_t)((cols - 1) * ld + rows) * size) != nullptr;
}

template <class T>
static cublasStatus_t gemm(cublasHandle_t h, ttn_dtype type, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                           int k, const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c,
                           int ldc)
{
    if (m < 0 || n < 0 || k < 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (!h->workspace || h->atomics != CUBLAS_ATOMICS_NOT_ALLOWED || h->math != CUBLAS_PEDANTIC_MATH ||
        h->pointers != CUBLAS_POINTER_MODE_HOST)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const bool a_fits = ta == CUBLAS_OP_N ? is_matrix(a, m, k, lda, sizeof(T)) : is_matrix(a, k, m, lda, sizeof(T));
    const bool b_fits = tb == CUBLAS_OP_N ? is_matrix(b, k, n, ldb, sizeof(T)) : is_matrix(b, n, k, ldb, sizeof(T));
    if (!a_fits || !b_fits || !is_matrix(c, m, n, ldc, sizeof(T))) return CUBLAS_STATUS_INVALID_VALUE;
    const double alpha_now = (double)*alpha;
    const double beta_now = (double)*beta;
    push(h->stream, [=] {
        ttn_gemm(tb == CUBLAS_OP_N ? TTN_N : TTN_T, ta == CUBLAS_OP_N ? TTN_N : TTN_T, n, m, k, alpha_now,
                 ttn_in_of(type, b, ldb), ttn_in_of(type, a, lda), beta_now, ttn_out_of(type, c, ldc));
    });
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                           const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta,
                           float *c, int ldc)
{
    ENTER(handle);
    return gemm(handle, TTN_F32, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                           const double *alpha, const double *a, int lda, const double *b, int ldb, const double *beta,
                           double *c, int ldc)
{
    ENTER(handle);
    return gemm(handle, TTN_F64, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
