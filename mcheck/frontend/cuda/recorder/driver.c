/* The CUDA driver. */
#include "recorder.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned grid[3], block[3], shared; void *stream; attribute_t *attributes; unsigned count; } config_t;
typedef uint64_t pointer_t;

/* Something to point to for streams, events and the like, each of its own. */
void *new_handle(void) { return malloc(16); }

/* A function of this library, under a name without the number of its form: `cuMemAlloc` is cuMemAlloc_v2. A program may have
   opened the library for itself, so that its names are not those that everybody sees. */
void *function(const char *name) {
  static const char *const FORMS[] = {"%s_v2", "%s_v4", "%s_v3", "%s"};
  static void *library;
  static int here;
  Dl_info about;
  char form[256];
  void *found = NULL;
  if (!library && dladdr(&here, &about)) library = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  for (int i = 0; i < 4 && !found; ++i) {
    snprintf(form, sizeof form, FORMS[i], name);
    found = library ? dlsym(library, form) : NULL;
    if (!found) found = dlsym(RTLD_DEFAULT, form);
  }
  return found;
}
API int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
  (void)version, (void)flags;
  *out = function(name);
  if (status) *status = *out ? 0 : 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
  return *out ? 0 : 500;              /* CUDA_ERROR_NOT_FOUND */
}
API int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, out, version, flags, NULL);
}
API int cuGetErrorString(int error, const char **text) { *text = error_text(error); return 0; }
API int cuGetErrorName(int error, const char **text) { *text = error ? "CUDA_ERROR_UNKNOWN" : "CUDA_SUCCESS"; return 0; }

/* --- devices and contexts ------------------------------------------------------------------------------------------- */

static int context(void **out) { static int one; *out = &one; return 0; }

API int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
API int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < 0 || ordinal >= device_count() ? 101 : 0; }
API int cuDeviceGetCount(int *count) { *count = device_count(); return 0; }
API int cuDeviceGetAttribute(int *value, int which, int device) { (void)device; *value = device_attribute(which); return 0; }
API int cuDeviceGetName(char *name, int length, int device) { (void)device; snprintf(name, length, "recorder"); return 0; }
API int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)80 << 30; return 0; }
API int cuDeviceComputeCapability(int *major, int *minor, int device) {
  (void)device;
  *major = device_attribute(75), *minor = device_attribute(76);
  return 0;
}
API int cuDeviceGetUuid_v2(char *out, int device) { memset(out, 0, 16), out[15] = (char)(device + 1); return 0; }
API int cuDeviceGetPCIBusId(char *out, int length, int device) { snprintf(out, length, "0000:%02x:00.0", device + 1); return 0; }
API int cuDeviceCanAccessPeer(int *can, int device, int peer) { *can = device != peer; return 0; }
API int cuDevicePrimaryCtxRetain(void **out, int device) { (void)device; return context(out); }
API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { (void)device; *flags = 0, *active = 1; return 0; }
API int cuCtxCreate_v2(void **out) { return context(out); }
API int cuCtxCreate_v3(void **out) { return context(out); }
API int cuCtxCreate_v4(void **out) { return context(out); }
API int cuCtxGetCurrent(void **out) { return context(out); }
API int cuCtxPopCurrent_v2(void **out) { static void *none; return context(out ? out : &none); }
API int cuCtxGetDevice(int *device) { *device = current_device(); return 0; }
API int cuCtxGetApiVersion(void *of, unsigned *version) { (void)of; *version = 13000; return 0; }
API int cuCtxGetLimit(size_t *value, int which) { (void)which; *value = 1 << 23; return 0; }
API int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return 0;
}
NOTHING(cuInit) NOTHING(cuCtxSetCurrent) NOTHING(cuCtxPushCurrent_v2) NOTHING(cuCtxSynchronize) NOTHING(cuCtxDestroy_v2)
NOTHING(cuCtxSetLimit) NOTHING(cuCtxSetCacheConfig) NOTHING(cuCtxEnablePeerAccess) NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuDevicePrimaryCtxSetFlags_v2) NOTHING(cuDevicePrimaryCtxReset_v2) NOTHING(cuProfilerStart) NOTHING(cuProfilerStop)

/* --- modules and kernels -------------------------------------------------------------------------------------------- */

static int load(void **out, const void *image) { *out = add_module(image); return *out ? 0 : 2; }

static char *read_image(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  char *image = calloc(1, size + 16); /* text has to end, and a header to be whole */
  rewind(file);
  if (image && fread(image, 1, size, file) != (size_t)size) image[0] = 0;
  fclose(file);
  return image;
}

/* The program may free its image, so that it is copied: as text, or as long as its head says. */
static const void *kept_image(const void *image) {
  uint32_t magic;
  memcpy(&magic, image, 4);
  if (magic == 0xba55ed50 || magic == 0x466243b1 || magic == 0x464c457f) return image;
  return strdup(image);
}

API int cuModuleLoad(void **out, const char *path) {
  char *image = read_image(path);
  return image ? load(out, image) : 301; /* CUDA_ERROR_FILE_NOT_FOUND */
}
API int cuModuleLoadData(void **out, const void *image) { return load(out, kept_image(image)); }
API int cuModuleLoadDataEx(void **out, const void *image) { return load(out, kept_image(image)); }
API int cuModuleLoadFatBinary(void **out, const void *image) { return load(out, image); }
API int cuLibraryLoadData(void **out, const void *image) { return load(out, kept_image(image)); }
API int cuLibraryLoadFromFile(void **out, const char *path) { return cuModuleLoad(out, path); }
API int cuLibraryGetModule(void **out, void *library) { *out = library; return 0; }
API int cuModuleGetFunction(void **out, void *module, const char *name) { *out = add_kernel(module, NULL, name); return *out ? 0 : 500; }
API int cuLibraryGetKernel(void **out, void *library, const char *name) { return cuModuleGetFunction(out, library, name); }
API int cuKernelGetFunction(void **out, void *kernel) { *out = kernel; return 0; }
API int cuKernelGetName(const char **name, kernel_t *kernel) { *name = kernel->name; return 0; }
API int cuFuncGetName(const char **name, kernel_t *kernel) { *name = kernel->name; return 0; }
API int cuFuncGetModule(void **out, kernel_t *kernel) { *out = kernel->module; return 0; }
API int cuModuleGetGlobal_v2(void **out, size_t *size, void *module, const char *name) {
  (void)module;
  *out = variable_named(name, size);
  return *out ? 0 : 500;
}
API int cuLibraryGetGlobal(void **out, size_t *size, void *library, const char *name) { return cuModuleGetGlobal_v2(out, size, library, name); }
API int cuModuleGetLoadingMode(int *mode) { *mode = 2; return 0; }
static int function_attribute(int which) { return which == 0 ? 1024 : which == 4 ? 32 : which == 5 || which == 6 ? device_attribute(75) * 10 : 0; }
API int cuFuncGetAttribute(int *value, int which, void *f) { (void)f; *value = function_attribute(which); return 0; }
API int cuKernelGetAttribute(int *value, int which, void *k, int device) { (void)k, (void)device; *value = function_attribute(which); return 0; }
NOTHING(cuModuleUnload) NOTHING(cuLibraryUnload) NOTHING(cuFuncSetAttribute) NOTHING(cuKernelSetAttribute) NOTHING(cuFuncSetCacheConfig)
NOTHING(cuFuncSetSharedMemConfig) NOTHING(cuFuncLoad)

API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *f, int block, size_t shared) { (void)f, (void)block, (void)shared; *blocks = 1; return 0; }
API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *f, int block, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, block, shared);
}
API int cuOccupancyMaxActiveClusters(int *clusters, void *f, const void *config) { (void)f, (void)config; *clusters = 1; return 0; }
API int cuOccupancyMaxPotentialClusterSize(int *size, void *f, const void *config) { (void)f, (void)config; *size = 8; return 0; }
API int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *f) { (void)f; *grid = device_attribute(16), *block = 256; return 0; }

static int launch(const kernel_t *kernel, const shape_t *shape, void **arguments, void **extra) {
  if (!kernel) return 400; /* CUDA_ERROR_INVALID_HANDLE */
  record(kernel, shape, arguments, extra);
  return 0;
}

#define LAUNCH(name, ...)                                                                                                    \
  API int name(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
               void *stream, void **arguments __VA_ARGS__)
LAUNCH(cuLaunchKernel, , void **extra) {
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  const shape_t shape = {grid, block, NULL, shared, stream, 0, 0};
  return launch(kernel_of(kernel), &shape, arguments, extra);
}
LAUNCH(cuLaunchCooperativeKernel) {
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  const shape_t shape = {grid, block, NULL, shared, stream, 1, 0};
  return launch(kernel_of(kernel), &shape, arguments, NULL);
}
API int cuLaunchKernelEx(const config_t *config, void *kernel, void **arguments, void **extra) {
  shape_t shape = {config->grid, config->block, NULL, config->shared, config->stream, 0, 0};
  read_attributes(&shape, config->attributes, config->count);
  return launch(kernel_of(kernel), &shape, arguments, extra);
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

API int cuMemAlloc_v2(void **out, size_t size) { return allocate(out, size, DEVICE); }
API int cuMemAllocAsync(void **out, size_t size, void *stream) { (void)stream; return allocate(out, size, DEVICE); }
API int cuMemAllocFromPoolAsync(void **out, size_t size, void *pool, void *stream) { (void)pool; return cuMemAllocAsync(out, size, stream); }
API int cuMemAllocManaged(void **out, size_t size, unsigned flags) { (void)flags; return allocate(out, size, MANAGED); }
API int cuMemAllocHost_v2(void **out, size_t size) { return allocate(out, size, HOST); }
API int cuMemHostAlloc(void **out, size_t size, unsigned flags) { (void)flags; return allocate(out, size, HOST); }
API int cuMemHostRegister_v2(void *memory, size_t size, unsigned flags) { (void)flags; return adopt(memory, size, HOST); }
API int cuMemHostUnregister(void *memory) { return release(memory); }
API int cuMemHostGetDevicePointer_v2(void **out, void *memory, unsigned flags) { (void)flags; *out = memory; return 0; }
API int cuMemAllocPitch_v2(void **out, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return allocate(out, *pitch * height, DEVICE);
}
API int cuMemFree_v2(void *memory) { return release(memory); }
API int cuMemFreeAsync(void *memory, void *stream) { (void)stream; return release(memory); }
API int cuMemFreeHost(void *memory) { return release(memory); }
#define COPY(name) API int name(void *to, const void *from, size_t size) { copy(to, from, size); return 0; }
COPY(cuMemcpy) COPY(cuMemcpyAsync) COPY(cuMemcpyHtoD_v2) COPY(cuMemcpyDtoH_v2) COPY(cuMemcpyDtoD_v2)
COPY(cuMemcpyHtoDAsync_v2) COPY(cuMemcpyDtoHAsync_v2) COPY(cuMemcpyDtoDAsync_v2)
static int fill(char *to, const void *value, size_t wide, size_t count) {
  touch(to, wide * count);
  for (size_t i = 0; i < count; ++i) memcpy(to + i * wide, value, wide);
  return 0;
}
#define FILL(name, type) API int name(void *to, type value, size_t count) { return fill(to, &value, sizeof value, count); }
FILL(cuMemsetD8_v2, unsigned char) FILL(cuMemsetD16_v2, unsigned short) FILL(cuMemsetD32_v2, unsigned)
FILL(cuMemsetD8Async, unsigned char) FILL(cuMemsetD16Async, unsigned short) FILL(cuMemsetD32Async, unsigned)
API int cuMemGetInfo_v2(size_t *available, size_t *total) { *available = *total = (size_t)80 << 30; return 0; }
API int cuMemGetAddressRange_v2(void **start, size_t *size, pointer_t pointer) {
  const allocation_t *at = allocation_at(pointer);
  if (!at) return 1;
  if (start) *start = at->start;
  if (size) *size = at->size;
  return 0;
}
NOTHING(cuMemPrefetchAsync) NOTHING(cuMemAdvise) NOTHING(cuMemPoolSetAttribute)
API int cuDeviceGetDefaultMemPool(void **pool, int device) { (void)device; *pool = new_handle(); return 0; }
/* The attributes that programs ask a pointer for, by their numbers in CUpointer_attribute. */
API int cuPointerGetAttribute(void *out, int which, pointer_t pointer) {
  const allocation_t *at = allocation_at(pointer);
  if (!at) return 1;
  switch (which) {
    case 2: *(unsigned *)out = at->kind == HOST ? 1 : 2; return 0;
    case 3: case 4: *(uint64_t *)out = pointer; return 0;
    case 8: *(unsigned char *)out = at->kind == MANAGED; return 0;
    case 9: *(int *)out = 0; return 0;
    case 11: *(uint64_t *)out = (uint64_t)(uintptr_t)at->start; return 0;
    case 12: *(size_t *)out = at->size; return 0;
    default: return 1;
  }
}

/* --- streams and events --------------------------------------------------------------------------------------------- */

API int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = new_handle(); return 0; }
API int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) { (void)priority; return cuStreamCreate(stream, flags); }
API int cuStreamIsCapturing(void *stream, int *status) { (void)stream; *status = 0; return 0; }
API int cuStreamGetCtx(void *stream, void **out) { (void)stream; return context(out); }
API int cuEventCreate(void **event, unsigned flags) { (void)flags; *event = new_handle(); return 0; }
API int cuEventElapsedTime(float *ms, void *a, void *b) { (void)a, (void)b; *ms = 1; return 0; }
API int cuLaunchHostFunc(void *stream, void (*call)(void *), void *data) { (void)stream; call(data); return 0; }
NOTHING(cuStreamSynchronize) NOTHING(cuStreamDestroy_v2) NOTHING(cuStreamQuery) NOTHING(cuStreamWaitEvent) NOTHING(cuEventRecord)
NOTHING(cuEventDestroy_v2) NOTHING(cuEventSynchronize) NOTHING(cuEventQuery)
