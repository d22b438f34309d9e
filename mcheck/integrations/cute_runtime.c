/* Stands in for the runtime library of CuTe DSL (CUTE_DSL_LIBS): launches go to a function of the recorder, everything
   else succeeds and does nothing. Device memory is memory of the host. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 801, SHARED_BYTES = 232448, MULTIPROCESSORS = 132, SHARED_PER_BLOCK_OPTIN = 97,
       MULTIPROCESSOR_COUNT = 16 };

typedef int (*Launched)(const void *config, const char *kernel, void **arguments);
static Launched launched;

void mcheck_record(Launched function) { launched = function; }

int _cudaLaunchKernelEx(const void *config, const char *kernel, void **arguments) {
  return launched ? launched(config, kernel, arguments) : NOT_SUPPORTED;
}

/* A kernel is its name. */
int _cudaLibraryGetKernel(void **kernel, void *library, const char *name) {
  (void)library;
  *kernel = strdup(name);
  return SUCCESS;
}
int _cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  return _cudaLibraryGetKernel(kernel, library, name);
}
int _cudaLibraryLoadData(void **library) { return *library = (void *)1, SUCCESS; }
int _cuLibraryLoadData(void **library) { return _cudaLibraryLoadData(library); }

int _cudaDeviceGetAttribute(int *value, int attribute) {
  *value = attribute == SHARED_PER_BLOCK_OPTIN ? SHARED_BYTES : attribute == MULTIPROCESSOR_COUNT ? MULTIPROCESSORS : 0;
  return SUCCESS;
}
int _cuKernelGetAttribute(int *value) { return *value = 0, SUCCESS; }
int _cudaGetDevice(int *device) { return *device = 0, SUCCESS; }
int _cudaGetDeviceCount(int *count) { return *count = 1, SUCCESS; }
int _cuDeviceGet(int *device) { return *device = 0, SUCCESS; }
int _cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks) { return *blocks = 1, SUCCESS; }

int _cudaMalloc(void **memory, size_t bytes) { return *memory = calloc(1, bytes), SUCCESS; }
int _cudaMallocAsync(void **memory, size_t bytes) { return _cudaMalloc(memory, bytes); }
int _cudaMallocHost(void **memory, size_t bytes) { return _cudaMalloc(memory, bytes); }
int _cudaMallocManaged(void **memory, size_t bytes) { return _cudaMalloc(memory, bytes); }
int _cudaFree(void *memory) { return free(memory), SUCCESS; }
int _cudaFreeAsync(void *memory) { return _cudaFree(memory); }
int _cudaFreeHost(void *memory) { return _cudaFree(memory); }

void cuda_dialect_assert_success(int error) { if (error) abort(); }
const char *CuteDSLRT_GetErrorName(int error) { return error == NOT_SUPPORTED ? "cudaErrorNotSupported" : "cudaSuccess"; }
const char *CuteDSLRT_GetErrorString(int error) { return error ? "not recorded by mcheck" : "no error"; }

#define NOTHING(name) int name(void) { return SUCCESS; }
NOTHING(_cuLibraryUnload)
NOTHING(_cudaLibraryUnload)
NOTHING(_cudaFuncSetAttribute)
NOTHING(_cudaKernelSetAttributeForDevice)
NOTHING(_cudaSetDevice)
NOTHING(_cudaDeviceSynchronize)
NOTHING(_cudaStreamSynchronize)
NOTHING(_cudaStreamCreate)
NOTHING(_cudaStreamDestroy)
NOTHING(_cudaStreamWaitEvent)
NOTHING(_cudaEventCreate)
NOTHING(_cudaEventDestroy)
NOTHING(_cudaEventRecord)
NOTHING(_cudaEventElapsedTime)
NOTHING(_cudaMemset)
NOTHING(_cudaMemsetAsync)
NOTHING(_cudaProfilerStart)
NOTHING(_cudaProfilerStop)
NOTHING(CuteDSLRT_TVMFFISetRaisedCudaError)
NOTHING(CuteDSLRT_TVMFFISetRaisedCudaLaunchError)

#define REFUSED(name) int name(void) { return NOT_SUPPORTED; }
REFUSED(_cudaLaunchKernel)
REFUSED(_cudaGraphLaunch)
REFUSED(_cudaGraphInstantiate)
REFUSED(_cudaStreamBeginCapture)
REFUSED(_cudaStreamEndCapture)
REFUSED(_cuTensorMapEncodeTiled)
REFUSED(_cudaMemcpy)
REFUSED(_cudaMemcpyAsync)
REFUSED(_cudaLibraryGetGlobal)
REFUSED(_cuLibraryGetGlobal)
