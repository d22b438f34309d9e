/* What programs ask of CUDA's libraries of kernels before they call one: handles, and whether an algorithm was found. All
 * else of these libraries succeeds and does nothing (interposition.c).
 */
#include "recorder.h"

#define CREATES(name) API int name(void **handle) { *handle = new_handle(); return 0; }
#define SAYS(name) API const char *name(int status) { return status ? "an error" : "success"; }

CREATES(cublasCreate_v2) CREATES(cublasLtCreate) CREATES(cudnnCreate) CREATES(cusparseCreate) CREATES(cusolverDnCreate)
CREATES(cublasLtMatmulPreferenceCreate)
SAYS(cublasGetStatusString) SAYS(cublasGetStatusName) SAYS(cublasLtGetStatusString) SAYS(cublasLtGetStatusName)
SAYS(cudnnGetErrorString) SAYS(cusparseGetErrorString) SAYS(ncclGetErrorString)
API int cublasLtMatmulDescCreate(void **handle, int compute, int scale) { (void)compute, (void)scale; *handle = new_handle(); return 0; }
API int cublasLtMatrixLayoutCreate(void **handle, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  (void)type, (void)rows, (void)columns, (void)leading;
  *handle = new_handle();
  return 0;
}
API int cublasLtMatmulAlgoGetHeuristic(
    void *light, void *operation, void *a, void *b, void *c, void *d, void *preference, int wanted, void *results, int *found) {
  (void)light, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference, (void)results;
  *found = wanted > 0;
  return 0;
}
API int curandCreateGenerator(void **handle, int kind) { (void)kind; *handle = new_handle(); return 0; }
API int curandCreateGeneratorHost(void **handle, int kind) { return curandCreateGenerator(handle, kind); }
