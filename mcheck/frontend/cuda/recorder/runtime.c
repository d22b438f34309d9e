/* The CUDA runtime. Functions that a program calls on the way and that do nothing here succeed. */
#include "recorder.h"
#include <stdlib.h>
#include <string.h>

typedef struct { dim3_t grid, block; size_t shared; void *stream; attribute_t *attributes; unsigned count; } config_t;
typedef struct { void *start; size_t pitch, width, height; } pitched_t;
typedef struct { size_t width, height, depth; } extent_t;

/* --- kernels: known by the address of their stub on the host -------------------------------------------------------- */

API void **__cudaRegisterFatBinary(void *image) { return (void **)add_module(image); }
API void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
API void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
API char __cudaInitModule(void **handle) { (void)handle; return 1; }
API void __cudaRegisterFunction(void **handle, const char *stub, char *function, const char *name) {
  (void)function;
  add_kernel((module_t *)handle, stub, name);
}
API void __cudaRegisterVar(void **handle, char *key, char *address, const char *name, int external, size_t size, int constant, int global) {
  (void)handle, (void)address, (void)external, (void)global;
  variable(key, size, name, constant);
}
API void __cudaRegisterManagedVar(void **handle, void **key, char *address, const char *name, int external, size_t size, int constant, int global) {
  (void)handle, (void)address, (void)external, (void)global;
  *key = variable(key, size, name, constant);
  if (size && *key) allocation_at((uintptr_t)*key)->kind = MANAGED;
}

static struct { dim3_t grid, block; size_t shared; void *stream; } pushed[64];
static unsigned depth;

API unsigned __cudaPushCallConfiguration(dim3_t grid, dim3_t block, size_t shared, void *stream) {
  if (depth == 64) return 1;
  pushed[depth].grid = grid, pushed[depth].block = block, pushed[depth].shared = shared, pushed[depth++].stream = stream;
  return 0;
}
API int __cudaPopCallConfiguration(dim3_t *grid, dim3_t *block, size_t *shared, void **stream) {
  if (!depth) return 1;
  *grid = pushed[--depth].grid, *block = pushed[depth].block, *shared = pushed[depth].shared, *stream = pushed[depth].stream;
  return 0;
}

static int launch(const void *stub, dim3_t grid, dim3_t block, void **arguments, size_t shared, void *stream, int cooperative) {
  const kernel_t *kernel = kernel_of(stub);
  const shape_t shape = {&grid.x, &block.x, NULL, shared, stream, cooperative, 0};
  if (!kernel) return 98; /* cudaErrorInvalidDeviceFunction */
  record(kernel, &shape, arguments, NULL);
  return 0;
}

#define LAUNCH(name, cooperative)                                                                            \
  API int name(const void *stub, dim3_t grid, dim3_t block, void **arguments, size_t shared, void *stream) { \
    return launch(stub, grid, block, arguments, shared, stream, cooperative);                                \
  }
LAUNCH(cudaLaunchKernel, 0) LAUNCH(cudaLaunchKernel_ptsz, 0) LAUNCH(__cudaLaunchKernel, 0) LAUNCH(__cudaLaunchKernel_ptsz, 0)
LAUNCH(cudaLaunchCooperativeKernel, 1) LAUNCH(cudaLaunchCooperativeKernel_ptsz, 1)

API int cudaLaunchKernelExC(const config_t *config, const void *stub, void **arguments) {
  const kernel_t *kernel = kernel_of(stub);
  shape_t shape = {&config->grid.x, &config->block.x, NULL, config->shared, config->stream, 0, 0};
  if (!kernel) return 98;
  read_attributes(&shape, config->attributes, config->count);
  record(kernel, &shape, arguments, NULL);
  return 0;
}
API int cudaLaunchKernelExC_ptsz(const config_t *config, const void *stub, void **arguments) {
  return cudaLaunchKernelExC(config, stub, arguments);
}
API int __cudaGetKernel(void **kernel, const void *stub) { *kernel = kernel_of(stub); return *kernel ? 0 : 98; }
API int cudaGetKernel(void **kernel, const void *stub) { return __cudaGetKernel(kernel, stub); }
API int cudaGetFuncBySymbol(void **kernel, const void *stub) { return __cudaGetKernel(kernel, stub); }
API int cudaFuncGetName(const char **name, const void *stub) {
  const kernel_t *kernel = kernel_of(stub);
  *name = kernel ? kernel->name : NULL;
  return kernel ? 0 : 98;
}

/* --- devices -------------------------------------------------------------------------------------------------------- */

static int number_of(const char *variable, int otherwise) {
  const char *text = getenv(variable);
  return text && atoi(text) > 0 ? atoi(text) : otherwise;
}

int device_count(void) { return number_of("MCHECK_GPUS", 1); }

int device_attribute(int which) {
  int capability = number_of("MCHECK_ARCH", 90);
  switch (which) {
    case 1: case 2: case 3: return which == 3 ? 64 : 1024; /* threads of a block, and its extents */
    case 4: case 29: return 64;
    case 5: return 2147483647;           /* extents of a grid */
    case 6: case 7: return 65535;
    case 8: return 49152;                /* shared memory of a block */
    case 9: return 65536;                /* constant memory */
    case 10: return 32;                  /* threads of a warp */
    case 12: case 82: return 65536;      /* registers of a block and of a multiprocessor */
    case 13: return 1980000;             /* kHz */
    case 16: return 132;                 /* multiprocessors */
    case 17: case 18: case 23: return 0; /* no run time limit, not integrated, no ECC */
    case 36: return 2619000;             /* kHz of the memory */
    case 37: return 5120;                /* bits of its bus */
    case 38: return 50 << 20;            /* level-2 cache */
    case 39: return 2048;                /* threads of a multiprocessor */
    case 75: return capability / 10;     /* compute capability, major */
    case 76: return capability % 10;     /* and minor */
    case 81: return 233472;              /* shared memory of a multiprocessor */
    case 97: return 232448;              /* and of a block that opts in */
    case 106: return 32;                 /* blocks of a multiprocessor */
    case 111: return 1024;               /* shared memory that the system reserves of a block */
    default: return 1;
  }
}

API int cudaGetDevice(int *device) { *device = current_device(); return 0; }
API int cudaSetDevice(int device) {
  if (device < 0 || device >= device_count()) return 101; /* cudaErrorInvalidDevice */
  set_device(device);
  return 0;
}
API int cudaGetDeviceCount(int *count) { *count = device_count(); return 0; }
API int cudaDeviceGetAttribute(int *value, int which, int device) { (void)device; *value = device_attribute(which); return 0; }
API int cudaDeviceCanAccessPeer(int *can, int device, int peer) { *can = device != peer; return 0; }
API int cudaDeviceGetPCIBusId(char *out, int length, int device) { snprintf(out, length, "0000:%02x:00.0", device + 1); return 0; }
API int cudaDeviceGetLimit(size_t *value, int which) { (void)which; *value = 1 << 23; return 0; }
API int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return 0;
}
API int cudaChooseDevice(int *device, const void *wanted) { (void)wanted; *device = 0; return 0; }
API int cudaGetDeviceFlags(unsigned *flags) { *flags = 0; return 0; }
/* cudaDeviceProp: its first 348 bytes are those of all releases since CUDA 10, what comes behind is of CUDA 12 or of CUDA 13,
   whose function has the name of CUDA 11's. */
enum { PROPERTIES_12 = 1032, PROPERTIES_13 = 1008 };
static void put(char *out, size_t at, int value) { memcpy(out + at, &value, sizeof value); }
static int properties(char *out, int release) {
  const size_t memory = (size_t)80 << 30, shared = device_attribute(8), optin = device_attribute(97), whole = device_attribute(81);
  const int dims[] = {1024, 1024, 64, 2147483647, 65535, 65535}; /* of a block, and of a grid */
  memset(out, 0, release == 12 ? PROPERTIES_12 : PROPERTIES_13);
  strcpy(out, "recorder");
  memcpy(out + 288, &memory, sizeof memory), memcpy(out + 296, &shared, sizeof shared);
  put(out, 304, 65536), put(out, 308, 32), put(out, 320, device_attribute(1)), memcpy(out + 324, dims, sizeof dims);
  put(out, 360, device_attribute(75)), put(out, 364, device_attribute(76));
  put(out, release == 12 ? 388 : 384, device_attribute(16));
  put(out, release == 12 ? 624 : 604, device_attribute(39));
  memcpy(out + (release == 12 ? 640 : 624), &whole, sizeof whole);
  put(out, release == 12 ? 648 : 632, 65536), put(out, release == 12 ? 652 : 636, 1); /* registers; managed memory */
  put(out, release == 12 ? 688 : 668, 1);                                             /* cooperative launches */
  memcpy(out + (release == 12 ? 696 : 672), &optin, sizeof optin);
  put(out, release == 12 ? 772 : 748, device_attribute(75) >= 9); /* clusters */
  return 0;
}
API int cudaGetDeviceProperties(void *out, int device) { (void)device; return properties(out, 13); }
API int cudaGetDeviceProperties_v2(void *out, int device) { (void)device; return properties(out, 12); }
/* cudaFuncAttributes: sizes of shared, constant and local memory, then these integers. */
API int cudaFuncGetAttributes(char *out, const void *stub) {
  const int capability = device_attribute(75) * 10 + device_attribute(76);
  const int of[] = {1024, 32, capability, capability, 0, device_attribute(97), 0};
  (void)stub;
  memset(out, 0, 24), memcpy(out + 24, of, sizeof of); /* threads of a block, registers, versions, cache, shared, carve-out */
  return 0;
}
API int cudaDriverGetVersion(int *version) { *version = 13000; return 0; }
API int cudaRuntimeGetVersion(int *version) { *version = 13000; return 0; }
API int cudaMemGetInfo(size_t *available, size_t *total) { *available = *total = (size_t)80 << 30; return 0; }

NOTHING(cudaDeviceSynchronize) NOTHING(cudaDeviceReset) NOTHING(cudaGetLastError) NOTHING(cudaPeekAtLastError)
NOTHING(cudaDeviceSetLimit) NOTHING(cudaDeviceSetCacheConfig) NOTHING(cudaDeviceSetSharedMemConfig) NOTHING(cudaInitDevice)
NOTHING(cudaSetDeviceFlags) NOTHING(cudaSetValidDevices) NOTHING(cudaThreadSynchronize) NOTHING(cudaThreadExit)
NOTHING(cudaDeviceEnablePeerAccess) NOTHING(cudaDeviceDisablePeerAccess) NOTHING(cudaProfilerStart) NOTHING(cudaProfilerStop)
NOTHING(cudaFuncSetAttribute) NOTHING(cudaFuncSetCacheConfig) NOTHING(cudaFuncSetSharedMemConfig)
NOTHING(cudaCtxResetPersistingL2Cache)

/* --- how many blocks fit -------------------------------------------------------------------------------------------- */

API int cudaOccupancyMaxActiveClusters(int *clusters, const void *f, const void *config) { (void)f, (void)config; *clusters = 1; return 0; }
API int cudaOccupancyMaxPotentialClusterSize(int *size, const void *f, const void *config) { (void)f, (void)config; *size = 8; return 0; }
API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *f, int block, size_t shared) {
  (void)f, (void)block, (void)shared;
  *blocks = 1;
  return 0;
}
API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *f, int block, size_t shared, unsigned flags) {
  (void)flags;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, block, shared);
}
API int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *size, const void *f, int blocks, int threads) {
  (void)f, (void)blocks, (void)threads;
  *size = device_attribute(97);
  return 0;
}

/* --- streams, events, graphs: everything happens when it is called -------------------------------------------------- */

API int cudaStreamCreate(void **stream) { *stream = new_handle(); return 0; }
API int cudaStreamCreateWithFlags(void **stream, unsigned flags) { (void)flags; return cudaStreamCreate(stream); }
API int cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority) { (void)flags, (void)priority; return cudaStreamCreate(stream); }
API int cudaStreamGetPriority(void *stream, int *priority) { (void)stream; *priority = 0; return 0; }
API int cudaStreamGetFlags(void *stream, unsigned *flags) { (void)stream; *flags = 0; return 0; }
API int cudaStreamIsCapturing(void *stream, int *status) { (void)stream; *status = 0; return 0; }
/* What is captured runs later, and again: no contents of now hold then, and what it fills then is not filled now. */
API int cudaStreamBeginCapture(void *stream, int mode) { (void)stream, (void)mode; return forget_contents(); }
API int cudaStreamEndCapture(void *stream, void **graph) { (void)stream; *graph = new_handle(); return forget_contents(); }
API int cudaEventCreate(void **event) { *event = new_handle(); return 0; }
API int cudaEventCreateWithFlags(void **event, unsigned flags) { (void)flags; return cudaEventCreate(event); }
API int cudaEventElapsedTime(float *ms, void *a, void *b) { (void)a, (void)b; *ms = 1; return 0; }
API int cudaEventElapsedTime_v2(float *ms, void *a, void *b) { return cudaEventElapsedTime(ms, a, b); }
API int cudaGraphCreate(void **graph, unsigned flags) { (void)flags; *graph = new_handle(); return 0; }
API int cudaGraphInstantiate(void **made, void *graph) { (void)graph; *made = new_handle(); return 0; }
/* Its kernels were recorded as they were captured. */
API int cudaGraphLaunch(void *made, void *stream) { (void)made, (void)stream; return forget_contents(); }
API int cudaGraphLaunch_ptsz(void *made, void *stream) { return cudaGraphLaunch(made, stream); }
/* Those of nodes are recorded as they are added; nodes before them may change the contents of memory. */
typedef struct { const void *stub; dim3_t grid, block; unsigned shared; void **arguments, **extra; } kernel_node_t;
API int cudaGraphAddKernelNode(void **node, void *graph, void *const *before, size_t count, const kernel_node_t *about) {
  const kernel_t *kernel = kernel_of(about->stub);
  const shape_t shape = {&about->grid.x, &about->block.x, NULL, about->shared, NULL, 0, 0};
  (void)graph, (void)before, (void)count;
  *node = new_handle();
  if (!kernel) return 98;
  forget_contents();
  record(kernel, &shape, about->arguments, about->extra);
  return 0;
}
typedef struct { char pool[88]; const void *access; size_t count, size; void *start; } memory_node_t;
API int cudaGraphAddMemAllocNode(void **node, void *graph, void *const *before, size_t count, memory_node_t *about) {
  (void)graph, (void)before, (void)count;
  *node = new_handle();
  return allocate_for_graph(&about->start, about->size);
}
#define NODE(name) API int name(void **node) { *node = new_handle(); return 0; }
NODE(cudaGraphAddMemFreeNode) NODE(cudaGraphAddMemsetNode) NODE(cudaGraphAddHostNode) NODE(cudaGraphAddEmptyNode)
NODE(cudaGraphAddChildGraphNode) NODE(cudaGraphAddEventRecordNode) NODE(cudaGraphAddEventWaitNode)
#define COPY_NODE(name) API int name(void **node) { distrust_program(); *node = new_handle(); return 0; }
COPY_NODE(cudaGraphAddMemcpyNode) COPY_NODE(cudaGraphAddMemcpyNode1D) COPY_NODE(cudaGraphAddMemcpyNodeToSymbol)
COPY_NODE(cudaGraphAddMemcpyNodeFromSymbol)
NOTHING(cudaGraphAddDependencies)
API int cudaGraphInstantiateWithFlags(void **made, void *graph) { return cudaGraphInstantiate(made, graph); }
API int cudaLaunchHostFunc(void *stream, void (*call)(void *), void *data) { (void)stream; call(data); return 0; }
API int cudaStreamAddCallback(void *stream, void (*call)(void *, int, void *), void *data, unsigned flags) {
  (void)flags;
  call(stream, 0, data);
  return 0;
}
NOTHING(cudaStreamDestroy) NOTHING(cudaStreamSynchronize) NOTHING(cudaStreamSynchronize_ptsz) NOTHING(cudaStreamQuery)
NOTHING(cudaStreamWaitEvent) NOTHING(cudaStreamWaitEvent_ptsz) NOTHING(cudaStreamSetAttribute)
NOTHING(cudaStreamAttachMemAsync) NOTHING(cudaEventDestroy) NOTHING(cudaEventRecord) NOTHING(cudaEventRecord_ptsz)
NOTHING(cudaEventRecordWithFlags) NOTHING(cudaEventSynchronize) NOTHING(cudaEventQuery) 
NOTHING(cudaGraphUpload) NOTHING(cudaGraphDestroy) NOTHING(cudaGraphExecDestroy)

/* --- memory --------------------------------------------------------------------------------------------------------- */

API int cudaMalloc(void **out, size_t size) { return allocate(out, size, DEVICE); }
API int cudaMallocAsync(void **out, size_t size, void *stream) { (void)stream; return allocate(out, size, DEVICE); }
API int cudaMallocAsync_ptsz(void **out, size_t size, void *stream) { return cudaMallocAsync(out, size, stream); }
API int cudaMallocFromPoolAsync(void **out, size_t size, void *pool, void *stream) { (void)pool; return cudaMallocAsync(out, size, stream); }
API int cudaMallocManaged(void **out, size_t size, unsigned flags) { (void)flags; return allocate(out, size, MANAGED); }
API int cudaMallocHost(void **out, size_t size) { return allocate(out, size, HOST); }
API int cudaHostAlloc(void **out, size_t size, unsigned flags) { (void)flags; return allocate(out, size, HOST); }
API int cudaHostRegister(void *memory, size_t size, unsigned flags) { (void)flags; return adopt(memory, size, HOST); }
API int cudaHostUnregister(void *memory) { return release(memory); }
API int cudaHostGetDevicePointer(void **out, void *memory, unsigned flags) { (void)flags; *out = memory; return 0; }
API int cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return allocate(out, *pitch * height, DEVICE);
}
API int cudaMalloc3D(pitched_t *out, extent_t extent) {
  out->width = extent.width, out->height = extent.height;
  return cudaMallocPitch(&out->start, &out->pitch, extent.width, extent.height * extent.depth);
}
API int cudaFree(void *memory) { return release(memory); }
API int cudaFreeAsync(void *memory, void *stream) { (void)stream; return release(memory); }
API int cudaFreeAsync_ptsz(void *memory, void *stream) { return cudaFreeAsync(memory, stream); }
API int cudaFreeHost(void *memory) { return release(memory); }
API int cudaMemcpy(void *to, const void *from, size_t size, int kind) { (void)kind; copy(to, from, size); return 0; }
API int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
  (void)stream;
  return cudaMemcpy(to, from, size, kind);
}
API int cudaMemcpy_ptds(void *to, const void *from, size_t size, int kind) { return cudaMemcpy(to, from, size, kind); }
API int cudaMemcpyAsync_ptsz(void *to, const void *from, size_t size, int kind, void *stream) {
  return cudaMemcpyAsync(to, from, size, kind, stream);
}
API int cudaMemcpyPeer(void *to, int there, const void *from, int here, size_t size) { (void)there; return cudaMemcpy(to, from, size, here); }
API int cudaMemcpyPeerAsync(void *to, int there, const void *from, int here, size_t size) { return cudaMemcpyPeer(to, there, from, here, size); }
API int cudaMemcpy2D(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t height, int kind) {
  (void)kind;
  for (size_t row = 0; row < height; ++row) copy(to + row * to_pitch, from + row * from_pitch, width);
  return 0;
}
API int cudaMemcpy2DAsync(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t height, int kind, void *stream) {
  (void)stream;
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
API int cudaMemset(void *to, int value, size_t size) { memset(touch(to, size), value, size); return 0; }
API int cudaMemsetAsync(void *to, int value, size_t size, void *stream) { (void)stream; return cudaMemset(to, value, size); }
API int cudaMemset_ptds(void *to, int value, size_t size) { return cudaMemset(to, value, size); }
API int cudaMemsetAsync_ptsz(void *to, int value, size_t size, void *stream) { return cudaMemsetAsync(to, value, size, stream); }
API int cudaMemset2D(char *to, size_t pitch, int value, size_t width, size_t height) {
  for (size_t row = 0; row < height; ++row) memset(touch(to + row * pitch, width), value, width);
  return 0;
}
API int cudaGetSymbolAddress(void **out, const void *key) { *out = variable(key, 0, NULL, 0); return *out ? 0 : 13; /* cudaErrorInvalidSymbol */ }
API int cudaGetSymbolSize(size_t *size, const void *key) { *size = variable_size(key); return *size ? 0 : 13; }
API int cudaMemcpyToSymbol(const void *key, const void *from, size_t size, size_t offset, int kind) {
  char *to = variable(key, 0, NULL, 0);
  (void)kind;
  if (!to || offset + size > variable_size(key)) return 13;
  copy(to + offset, from, size);
  return 0;
}
API int cudaMemcpyToSymbolAsync(const void *key, const void *from, size_t size, size_t offset, int kind, void *stream) {
  (void)stream;
  return cudaMemcpyToSymbol(key, from, size, offset, kind);
}
API int cudaMemcpyFromSymbol(void *to, const void *key, size_t size, size_t offset, int kind) {
  const char *from = variable(key, 0, NULL, 0);
  (void)kind;
  if (!from || offset + size > variable_size(key)) return 13;
  copy(to, from + offset, size);
  return 0;
}
API int cudaMemcpyFromSymbolAsync(void *to, const void *key, size_t size, size_t offset, int kind, void *stream) {
  (void)stream;
  return cudaMemcpyFromSymbol(to, key, size, offset, kind);
}
API int cudaDeviceGetDefaultMemPool(void **pool, int device) { (void)device; *pool = new_handle(); return 0; }
API int cudaDeviceGetMemPool(void **pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
API int cudaMemPoolCreate(void **pool, const void *how) { (void)how; *pool = new_handle(); return 0; }
NOTHING(cudaMemPoolSetAttribute) NOTHING(cudaMemPoolTrimTo) NOTHING(cudaMemPoolDestroy) NOTHING(cudaMemPoolSetAccess)
NOTHING(cudaDeviceSetMemPool) NOTHING(cudaMemPrefetchAsync) NOTHING(cudaMemPrefetchAsync_v2) NOTHING(cudaMemAdvise)
NOTHING(cudaMemAdvise_v2)
/* cudaPointerAttributes: a type, a device and two pointers; what CUDA 13 has reserved behind them is left alone. */
API int cudaPointerGetAttributes(char *out, const void *pointer) {
  const allocation_t *at = allocation_at((uint64_t)(uintptr_t)pointer);
  const void *device = at ? pointer : NULL, *host = at && at->kind == DEVICE ? NULL : pointer;
  put(out, 0, at ? at->kind : 0), put(out, 4, at ? 0 : -2 /* cudaInvalidDeviceId */);
  memcpy(out + 8, &device, sizeof device), memcpy(out + 16, &host, sizeof host);
  return 0;
}

/* --- errors, and functions by name ---------------------------------------------------------------------------------- */

const char *error_text(int error) {
  return error == 0 ? "no error" : error == 1 ? "invalid argument" : error == 2 ? "out of memory"
       : error == 13 ? "invalid device symbol" : error == 98 ? "invalid device function"
       : error == 101 ? "invalid device ordinal" : "unknown error";
}
API const char *cudaGetErrorString(int error) { return error_text(error); }
API const char *cudaGetErrorName(int error) { return error ? "cudaErrorUnknown" : "cudaSuccess"; }
API int cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags, int *status) {
  (void)version, (void)flags;
  *out = function(name);
  if (status) *status = *out ? 0 : 1;
  return *out ? 0 : 1;
}
API int cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *status) {
  return cudaGetDriverEntryPointByVersion(name, out, 0, flags, status);
}
API int cudaGetDriverEntryPoint_ptsz(const char *name, void **out, unsigned long long flags, int *status) {
  return cudaGetDriverEntryPoint(name, out, flags, status);
}
API int cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **out, unsigned version, unsigned long long flags, int *status) {
  return cudaGetDriverEntryPointByVersion(name, out, version, flags, status);
}
