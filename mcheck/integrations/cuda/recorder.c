/* Writes a launch file for every kernel that a CUDA program launches; no GPU, no driver and no CUDA headers are needed.
 *
 *     cc -shared -fPIC -O1 -o recorder.so recorder.c
 *     nvcc -ptx -arch=sm_90a kernels.cu -o kernels.ptx
 *     nvcc -cudart none -arch=sm_90a kernels.cu host.cu recorder.so -o program
 *     MCHECK_PTX=kernels.ptx LD_LIBRARY_PATH=. ./program
 *     mcheck check kernels.ptx --launch kernel-1.json
 *
 * A program that is linked with a shared runtime (-cudart shared, which needs a toolkit: PyPI's packages have no libcudart.so)
 * runs with LD_PRELOAD=./recorder.so. One that opens the driver's library by itself, as cuda.bindings does, finds the recorder under its name,
 * libcuda.so.1, in a folder of LD_LIBRARY_PATH.
 *
 * It stands in for the calls of the CUDA runtime and driver that set up and launch kernels. Device memory is memory of the
 * host that copies really fill; kernels do not run, so results are what the memory held before. MCHECK_PTX names the
 * modules (separated by ':'), for the sizes of parameters; MCHECK_LAUNCHES the folder that files are written to;
 * MCHECK_ARCH the compute capability that the program is told (90). Calls not defined here are forwarded to the real library, if
 * there is one, which says that there is no device.
 *
 * A parameter that points into an allocation is written as a buffer from there to the allocation's end, a tensor map that
 * was encoded here by its fields, everything else by its bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct { unsigned x, y, z; } dim3_t;
/* cudaLaunchAttribute and CUlaunchAttribute: an identifier, and a union of 64 bytes aligned to 8. */
typedef struct { int id; int pad; union { char bytes[64]; dim3_t cluster; uint64_t align; } value; } attribute_t;
typedef struct { dim3_t grid, block; size_t shared; void *stream; attribute_t *attributes; unsigned count; } runtime_config_t;
typedef struct { unsigned grid[3], block[3], shared; void *stream; attribute_t *attributes; unsigned count; } driver_config_t;
enum { CLUSTER_DIMENSION = 4 };

/* --- device memory ------------------------------------------------------------------------------------------------ */

enum { HOST = 1, DEVICE = 2, MANAGED = 3 }; /* cudaMemoryType */
typedef struct { char *start; size_t size; int kind; } allocation_t;
static allocation_t allocations[1 << 16];
static unsigned allocated;

static int allocate(void **out, size_t size, int kind) {
  if (allocated == sizeof allocations / sizeof *allocations) return 2;
  void *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 2; /* cudaErrorMemoryAllocation */
  allocations[allocated++] = (allocation_t){memory, size, kind};
  *out = memory;
  return 0;
}

static int release(void *memory) {
  for (unsigned i = 0; i < allocated; ++i)
    if (allocations[i].start == memory && memory) {
      munmap(memory, allocations[i].size ? allocations[i].size : 1);
      allocations[i] = allocations[--allocated];
      break;
    }
  return 0;
}

/* The allocation that a pointer leads into. */
static const allocation_t *allocation_at(uint64_t pointer) {
  for (unsigned i = 0; i < allocated; ++i) {
    uint64_t start = (uint64_t)(uintptr_t)allocations[i].start;
    if (start <= pointer && pointer < start + allocations[i].size) return &allocations[i];
  }
  return NULL;
}

/* Bytes from `pointer` to the end of its allocation; -1 if it points into none. */
static long long rest(uint64_t pointer) {
  const allocation_t *at = allocation_at(pointer);
  return at ? (long long)((uint64_t)(uintptr_t)at->start + at->size - pointer) : -1;
}

/* --- tensor maps -------------------------------------------------------------------------------------------------- */

typedef struct {
  int type, rank, im2col, interleave, swizzle, fill, lower[3], upper[3];
  unsigned channels, pixels, box[5], step[5];
  uint64_t address, dim[5], stride[4];
} map_t;
static map_t *maps;
static unsigned encoded;
static const char MAGIC[16] = "mcheck recorder";

/* A map that is encoded anew is the one that it was: programs do so before every launch. */
static int encode(void *out, const map_t *map) {
  unsigned index = 0;
  while (index < encoded && memcmp(&maps[index], map, sizeof *map)) ++index;
  if (index == encoded) {
    map_t *more = realloc(maps, (encoded + 1) * sizeof *maps);
    if (!more) return 2;
    maps = more, memcpy(&maps[encoded++], map, sizeof *map);
  }
  memset(out, 0, 128);
  memcpy(out, MAGIC, sizeof MAGIC);
  memcpy((char *)out + sizeof MAGIC, &index, sizeof index);
  return 0;
}

static const map_t *map_at(const char *bytes, size_t left) {
  unsigned index;
  if (left < 128 || memcmp(bytes, MAGIC, sizeof MAGIC)) return NULL;
  memcpy(&index, bytes + sizeof MAGIC, sizeof index);
  return index < encoded ? &maps[index] : NULL;
}

static void common(map_t *map, int type, unsigned rank, void *address, const uint64_t *dim, const uint64_t *stride,
                   const unsigned *step, int interleave, int swizzle, int fill) {
  memset(map, 0, sizeof *map); /* what lies between the fields is compared as well */
  map->type = type, map->rank = (int)rank, map->address = (uint64_t)(uintptr_t)address;
  map->interleave = interleave, map->swizzle = swizzle, map->fill = fill;
  for (unsigned i = 0; i < rank && i < 5; ++i) map->dim[i] = dim[i], map->step[i] = step[i];
  for (unsigned i = 0; i + 1 < rank && i < 4; ++i) map->stride[i] = stride[i];
}

int cuTensorMapEncodeTiled(void *out, int type, unsigned rank, void *address, const uint64_t *dim, const uint64_t *stride,
                           const unsigned *box, const unsigned *step, int interleave, int swizzle, int l2, int fill) {
  map_t map;
  (void)l2;
  if (rank < 1 || rank > 5) return 1; /* CUDA_ERROR_INVALID_VALUE */
  common(&map, type, rank, address, dim, stride, step, interleave, swizzle, fill);
  memcpy(map.box, box, rank * sizeof *box);
  return encode(out, &map);
}

int cuTensorMapEncodeIm2col(void *out, int type, unsigned rank, void *address, const uint64_t *dim, const uint64_t *stride,
                            const int *lower, const int *upper, unsigned channels, unsigned pixels, const unsigned *step,
                            int interleave, int swizzle, int l2, int fill) {
  map_t map;
  (void)l2;
  if (rank < 3 || rank > 5) return 1;
  common(&map, type, rank, address, dim, stride, step, interleave, swizzle, fill);
  map.im2col = 1, map.channels = channels, map.pixels = pixels;
  memcpy(map.lower, lower, (rank - 2) * sizeof *lower);
  memcpy(map.upper, upper, (rank - 2) * sizeof *upper);
  return encode(out, &map);
}

int cuTensorMapReplaceAddress(void *map, void *address) {
  const map_t *old = map_at(map, 128);
  if (!old) return 1;
  map_t copy;
  memcpy(&copy, old, sizeof copy);
  copy.address = (uint64_t)(uintptr_t)address;
  return encode(map, &copy);
}

/* --- sizes of parameters, from the modules ------------------------------------------------------------------------ */

typedef struct { int count; struct { size_t size, align, offset; } of[512]; } parameters_t;

static char *contents(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  size_t size = 0, room = 1 << 16;
  char *text = malloc(room);
  while (text && (size += fread(text + size, 1, room - size - 1, file)) == room - 1) text = realloc(text, room *= 2);
  fclose(file);
  if (text) text[size] = 0;
  return text;
}

static int is_name(char c) { return c == '_' || c == '$' || c == '%' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

/* The parameters of the entry `name` in `text`; 0 if it has no such entry. */
static int parse(const char *text, const char *name, parameters_t *found) {
  for (const char *at = text; (at = strstr(at, ".entry")); ++at) {
    const char *p = at + strlen(".entry");
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') ++p;
    size_t length = strlen(name);
    if (strncmp(p, name, length) || is_name(p[length])) continue;
    p += length;
    while (*p && *p != '(' && *p != '{') ++p;
    found->count = 0;
    size_t offset = 0;
    while (*p && *p != ')' && *p != '{') {
      if (strncmp(p, ".param", 6)) { ++p; continue; }
      size_t size = 0, align = 0, many = 1;
      for (p += 6; *p && *p != ',' && *p != ')'; ++p) {
        unsigned bits;
        if (!strncmp(p, ".align", 6) && !align) align = strtoul(p + 6, NULL, 10);
        else if (!size && *p == '.' && strchr("busf", p[1]) && sscanf(p + 2, "%u", &bits) == 1) size = bits / 8;
        else if (*p == '[') many = strtoul(p + 1, NULL, 10);
        if (!strncmp(p, ".ptr", 4)) while (*p && *p != ',' && *p != ')' && !is_name(p[1] == '.' ? '.' : p[1])) ++p;
      }
      if (align < size || many == 1) align = size;
      offset = (offset + align - 1) / align * align;
      if (found->count == 512) return 0;
      found->of[found->count].size = size * many, found->of[found->count].align = align;
      found->of[found->count++].offset = offset;
      offset += size * many;
    }
    return 1;
  }
  return 0;
}

static int parameters(const char *name, parameters_t *found) {
  const char *paths = getenv("MCHECK_PTX");
  char *copy = strdup(paths ? paths : ""), *left = copy, *path;
  int known = 0;
  while (!known && (path = strsep(&left, ":"))) {
    char *text = *path ? contents(path) : NULL;
    if (*path && !text) fprintf(stderr, "recorder: %s cannot be read\n", path);
    known = text && parse(text, name, found);
    free(text);
  }
  free(copy);
  if (!known) fprintf(stderr, "recorder: no module of MCHECK_PTX has an entry %s, its launch is not written\n", name);
  return known;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static const char *const TYPES[] = {"u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz",
                                    "tf32", "tf32.ftz", "b4x16", "b4x16_p64", "b6x16_p32"};
static const char *const SWIZZLES[] = {"none", "32B", "64B", "128B", "128B", "128B", "128B"};
static const char *const ATOMICITIES[] = {"16B", "16B", "16B", "16B", "32B", "32B+8B", "64B"};
static const char *const INTERLEAVES[] = {"none", "16B", "32B"};

#define LIST(name, array, count, format, kind)                                                              \
  do {                                                                                                      \
    fprintf(file, ", \"%s\": [", name);                                                                     \
    for (int i = 0; i < (count); ++i) fprintf(file, i ? ", " format : format, (kind)(array)[i]);            \
    fprintf(file, "]");                                                                                     \
  } while (0)

static void write_buffer(FILE *file, uint64_t pointer) {
  long long left = rest(pointer);
  if (left < 0) fprintf(file, "{\"buffer\": null}");
  else fprintf(file, "{\"buffer\": %lld}", left);
}

static void write_map(FILE *file, const map_t *map) {
  fprintf(file, "{\"tensormap\": {\"global_address\": ");
  write_buffer(file, map->address);
  fprintf(file, ", \"elemtype\": \"%s\", \"rank\": %d", TYPES[map->type & 15], map->rank);
  LIST("global_dim", map->dim, map->rank, "%llu", unsigned long long);
  LIST("global_stride", map->stride, map->rank - 1, "%llu", unsigned long long);
  LIST("element_stride", map->step, map->rank, "%u", unsigned);
  if (map->im2col) {
    LIST("pixel_box_lower_corner", map->lower, map->rank - 2, "%d", int);
    LIST("pixel_box_upper_corner", map->upper, map->rank - 2, "%d", int);
    fprintf(file, ", \"channels_per_pixel\": %u, \"pixels_per_column\": %u", map->channels, map->pixels);
  } else {
    LIST("box_dim", map->box, map->rank, "%u", unsigned);
  }
  fprintf(file, ", \"interleave_layout\": \"%s\", \"swizzle_mode\": \"%s\", \"swizzle_atomicity\": \"%s\", \"fill_mode\": \"%s\"}}",
          INTERLEAVES[map->interleave % 3], SWIZZLES[map->swizzle % 7], ATOMICITIES[map->swizzle % 7], map->fill ? "nan" : "zero");
}

/* How many bytes stand for a map or a pointer into an allocation: they are written as such, and as zeros among the others,
   for where memory lies is another place in every run. */
static size_t place(const char *bytes, size_t left, int aligned) {
  uint64_t word;
  if (!aligned || left < 8) return 0;
  memcpy(&word, bytes, 8);
  return map_at(bytes, left) ? 128 : rest(word) >= 0 ? 8 : 0;
}

static void write_value(FILE *file, const char *bytes, size_t size) {
  uint64_t word;
  const map_t *map = size == 128 ? map_at(bytes, size) : NULL;
  memcpy(&word, bytes, size < 8 ? size : 8);
  if (map) { write_map(file, map); return; }
  if (size == 8 && rest(word) >= 0) { write_buffer(file, word); return; }
  fprintf(file, "{\"hex\": \"");
  for (size_t at = 0; at < size;) {
    size_t wide = place(bytes + at, size - at, size > 8 && at % 8 == 0);
    for (size_t end = at + (wide ? wide : 1); at < end; ++at) fprintf(file, "%02x", wide ? 0 : (unsigned char)bytes[at]);
  }
  fprintf(file, "\"");
  int places = 0;
  for (size_t at = 0; at + 8 <= size && size > 8; at += 8) {
    memcpy(&word, bytes + at, 8);
    map = map_at(bytes + at, size - at);
    if (!map && rest(word) < 0) continue;
    fprintf(file, places++ ? ", \"%zu\": " : ", \"at\": {\"%zu\": ", at);
    if (map) write_map(file, map), at += 120;
    else write_buffer(file, word);
  }
  fprintf(file, places ? "}}" : "}");
}

/* Whether a launch is one that was written before: loops that measure the time launch the same one again and again. */
static int again(const char *text) {
  static char **texts;
  static unsigned count;
  for (unsigned i = count; i--;)
    if (!strcmp(texts[i], text)) return 1;
  char **more = realloc(texts, (count + 1) * sizeof *texts);
  if (more) texts = more, texts[count++] = strdup(text);
  return 0;
}

static void record(const char *name, const unsigned *grid, const unsigned *block, const unsigned *cluster, size_t shared,
                   void **arguments, void **extra) {
  static unsigned launches;
  static parameters_t known;
  const char *folder = getenv("MCHECK_LAUNCHES");
  char path[4096], *text = NULL;
  size_t size;
  if (!parameters(name, &known)) return;
  FILE *file = open_memstream(&text, &size);
  if (!file) { fprintf(stderr, "recorder: no memory for a launch of %s\n", name); return; }
  fprintf(file, "{\"entry\": \"%s\", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u]", name, grid[0], grid[1], grid[2], block[0], block[1], block[2]);
  if (cluster) fprintf(file, ", \"cluster\": [%u, %u, %u]", cluster[0], cluster[1], cluster[2]);
  fprintf(file, ", \"shared\": %zu,\n \"params\": {", shared);
  for (int i = 0; i < known.count; ++i) {
    const char *block_of_all = NULL;
    for (void **e = extra; e && *e; e += 2)
      if (*e == (void *)1) block_of_all = e[1]; /* CU_LAUNCH_PARAM_BUFFER_POINTER */
    fprintf(file, i ? ",\n  \"%d\": " : "\n  \"%d\": ", i);
    write_value(file, block_of_all ? block_of_all + known.of[i].offset : arguments[i], known.of[i].size);
  }
  fprintf(file, "}}\n");
  fclose(file);
  if (!again(text)) {
    /* Names of templates may be longer than those of files. */
    snprintf(path, sizeof path, "%s/%.120s-%u.json", folder && *folder ? folder : ".", name, ++launches);
    if ((file = fopen(path, "w"))) fputs(text, file), fclose(file);
    fprintf(stderr, file ? "recorder: %s\n" : "recorder: %s cannot be written\n", path);
  }
  free(text);
}

static const unsigned *cluster_of(const attribute_t *attributes, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (attributes[i].id == CLUSTER_DIMENSION) return &attributes[i].value.cluster.x;
  return NULL;
}

/* --- kernels of the runtime: known by the address of their stub on the host ---------------------------------------- */

static struct { const void *stub; char *name; } kernels[1 << 14];
static unsigned registered;

void **__cudaRegisterFatBinary(void *image) { static void *handle[1]; (void)image; return handle; }
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
char __cudaInitModule(void **handle) { (void)handle; return 1; }
void __cudaRegisterVar(void) {}
void __cudaRegisterFunction(void **handle, const char *stub, char *function, const char *name) {
  (void)handle, (void)function;
  if (registered < sizeof kernels / sizeof *kernels) kernels[registered].stub = stub, kernels[registered++].name = strdup(name);
}

static const char *name_of(const void *stub) {
  for (unsigned i = 0; i < registered; ++i)
    if (kernels[i].stub == stub || kernels[i].name == stub) return kernels[i].name;
  return NULL;
}

static struct { dim3_t grid, block; size_t shared; void *stream; } pushed[64];
static unsigned depth;

unsigned __cudaPushCallConfiguration(dim3_t grid, dim3_t block, size_t shared, void *stream) {
  if (depth == 64) return 1;
  pushed[depth].grid = grid, pushed[depth].block = block, pushed[depth].shared = shared, pushed[depth++].stream = stream;
  return 0;
}
int __cudaPopCallConfiguration(dim3_t *grid, dim3_t *block, size_t *shared, void **stream) {
  if (!depth) return 1;
  *grid = pushed[--depth].grid, *block = pushed[depth].block, *shared = pushed[depth].shared, *stream = pushed[depth].stream;
  return 0;
}

int cudaLaunchKernel(const void *stub, dim3_t grid, dim3_t block, void **arguments, size_t shared, void *stream) {
  const char *name = name_of(stub);
  (void)stream;
  if (!name) return 98; /* cudaErrorInvalidDeviceFunction */
  record(name, &grid.x, &block.x, NULL, shared, arguments, NULL);
  return 0;
}
int cudaLaunchCooperativeKernel(const void *stub, dim3_t grid, dim3_t block, void **arguments, size_t shared, void *stream) {
  return cudaLaunchKernel(stub, grid, block, arguments, shared, stream);
}
int cudaLaunchKernelExC(const runtime_config_t *config, const void *stub, void **arguments) {
  const char *name = name_of(stub);
  if (!name) return 98;
  record(name, &config->grid.x, &config->block.x, cluster_of(config->attributes, config->count), config->shared, arguments, NULL);
  return 0;
}
int __cudaGetKernel(void **kernel, const void *stub) { *kernel = (void *)name_of(stub); return *kernel ? 0 : 98; }
int __cudaLaunchKernel(void *kernel, dim3_t grid, dim3_t block, void **arguments, size_t shared, void *stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
int __cudaLaunchKernel_ptsz(void *kernel, dim3_t grid, dim3_t block, void **arguments, size_t shared, void *stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

/* --- the rest of the runtime that programs call on the way --------------------------------------------------------- */

static int attribute(int which) {
  const char *arch = getenv("MCHECK_ARCH");
  int capability = arch ? atoi(arch) : 90;
  switch (which) {
    case 1: return 1024;                 /* threads of a block */
    case 10: return 32;                  /* threads of a warp */
    case 16: return 132;                 /* multiprocessors */
    case 75: return capability / 10;     /* compute capability, major */
    case 76: return capability % 10;     /* and minor */
    case 81: case 97: return 232448;     /* shared memory of a multiprocessor, and of a block that opts in */
    case 8: return 49152;                /* shared memory of a block */
    default: return 1;
  }
}

#define NOTHING(name) int name(void) { return 0; }
NOTHING(cudaSetDevice) NOTHING(cudaDeviceSynchronize) NOTHING(cudaDeviceReset) NOTHING(cudaGetLastError)
NOTHING(cudaPeekAtLastError) NOTHING(cudaFuncSetAttribute) NOTHING(cudaFuncSetCacheConfig) NOTHING(cudaStreamDestroy)
NOTHING(cudaStreamSynchronize) NOTHING(cudaEventDestroy) NOTHING(cudaEventRecord) NOTHING(cudaEventSynchronize)
NOTHING(cudaStreamWaitEvent) NOTHING(cudaDeviceSetLimit)
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaGetDeviceCount(int *count) { *count = 1; return 0; }
int cudaDeviceGetAttribute(int *value, int which, int device) { (void)device; *value = attribute(which); return 0; }
/* cudaDeviceProp: its first 348 bytes are those of all releases since CUDA 10, what comes behind is of CUDA 12 or of CUDA 13,
   whose function has the name of CUDA 11's. */
enum { PROPERTIES_12 = 1032, PROPERTIES_13 = 1008 };
static void put(char *out, size_t at, int value) { memcpy(out + at, &value, sizeof value); }
static int properties(char *out, int release) {
  const size_t memory = (size_t)80 << 30, shared = attribute(8), optin = attribute(97);
  const int dims[] = {1024, 1024, 64, 2147483647, 65535, 65535}; /* of a block, and of a grid */
  memset(out, 0, release == 12 ? PROPERTIES_12 : PROPERTIES_13);
  strcpy(out, "recorder");
  memcpy(out + 288, &memory, sizeof memory), memcpy(out + 296, &shared, sizeof shared);
  put(out, 304, 65536), put(out, 308, 32), put(out, 320, attribute(1)), memcpy(out + 324, dims, sizeof dims);
  put(out, 360, attribute(75)), put(out, 364, attribute(76));
  put(out, release == 12 ? 388 : 384, attribute(16));
  put(out, release == 12 ? 624 : 604, 2048); /* threads of a multiprocessor */
  memcpy(out + (release == 12 ? 640 : 624), &optin, sizeof optin);
  put(out, release == 12 ? 648 : 632, 65536), put(out, release == 12 ? 652 : 636, 1); /* registers; managed memory */
  put(out, release == 12 ? 688 : 668, 1);                                             /* cooperative launches */
  memcpy(out + (release == 12 ? 696 : 672), &optin, sizeof optin);
  put(out, release == 12 ? 772 : 748, attribute(75) >= 9); /* clusters */
  return 0;
}
int cudaGetDeviceProperties(void *out, int device) { (void)device; return properties(out, 13); }
int cudaGetDeviceProperties_v2(void *out, int device) { (void)device; return properties(out, 12); }
/* cudaFuncAttributes: sizes of shared, constant and local memory, then these integers. */
int cudaFuncGetAttributes(char *out, const void *stub) {
  const int of[] = {1024, 32, attribute(75) * 10 + attribute(76), attribute(75) * 10 + attribute(76), 0, attribute(97), 0};
  (void)stub;
  memset(out, 0, 24), memcpy(out + 24, of, sizeof of); /* threads of a block, registers, versions, cache, shared, carve-out */
  return 0;
}
int cudaMemGetInfo(size_t *available, size_t *total) { *available = *total = (size_t)80 << 30; return 0; }
int cudaDriverGetVersion(int *version) { *version = 13000; return 0; }
int cudaRuntimeGetVersion(int *version) { *version = 13000; return 0; }
int cudaStreamCreate(void **stream) { *stream = NULL; return 0; }
int cudaStreamCreateWithFlags(void **stream, unsigned flags) { (void)flags; *stream = NULL; return 0; }
int cudaEventCreate(void **event) { *event = NULL; return 0; }
int cudaEventCreateWithFlags(void **event, unsigned flags) { (void)flags; *event = NULL; return 0; }
int cudaEventElapsedTime(float *ms, void *a, void *b) { (void)a, (void)b; *ms = 1; return 0; }
int cudaOccupancyMaxActiveClusters(int *clusters, const void *f, const void *config) {
  (void)f, (void)config;
  *clusters = 1;
  return 0;
}
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *f, int block, size_t shared) {
  (void)f, (void)block, (void)shared;
  *blocks = 1;
  return 0;
}
int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *f, int block, size_t shared, unsigned flags) {
  (void)flags;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, block, shared);
}
int cudaMalloc(void **out, size_t size) { return allocate(out, size, DEVICE); }
int cudaMallocAsync(void **out, size_t size, void *stream) { (void)stream; return allocate(out, size, DEVICE); }
int cudaMallocManaged(void **out, size_t size, unsigned flags) { (void)flags; return allocate(out, size, MANAGED); }
int cudaMallocHost(void **out, size_t size) { return allocate(out, size, HOST); }
int cudaHostAlloc(void **out, size_t size, unsigned flags) { (void)flags; return allocate(out, size, HOST); }
int cudaFree(void *memory) { return release(memory); }
int cudaFreeAsync(void *memory, void *stream) { (void)stream; return release(memory); }
int cudaFreeHost(void *memory) { return release(memory); }
int cudaMemcpy(void *to, const void *from, size_t size, int kind) { (void)kind; memcpy(to, from, size); return 0; }
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
  (void)stream;
  return cudaMemcpy(to, from, size, kind);
}
int cudaMemset(void *to, int value, size_t size) { memset(to, value, size); return 0; }
int cudaMemsetAsync(void *to, int value, size_t size, void *stream) { (void)stream; return cudaMemset(to, value, size); }
/* cudaPointerAttributes: a type, a device and two pointers; what CUDA 13 has reserved behind them is left alone. */
int cudaPointerGetAttributes(char *out, const void *pointer) {
  const allocation_t *at = allocation_at((uint64_t)(uintptr_t)pointer);
  const void *device = at ? pointer : NULL, *host = at && at->kind == DEVICE ? NULL : pointer;
  put(out, 0, at ? at->kind : 0), put(out, 4, at ? 0 : -2 /* cudaInvalidDeviceId */);
  memcpy(out + 8, &device, sizeof device), memcpy(out + 16, &host, sizeof host);
  return 0;
}
static const char *error_text(int error) {
  return error == 0 ? "no error" : error == 1 ? "invalid argument" : error == 2 ? "out of memory"
       : error == 98 ? "invalid device function" : "unknown error";
}
const char *cudaGetErrorString(int error) { return error_text(error); }
const char *cudaGetErrorName(int error) { return error ? "cudaErrorUnknown" : "cudaSuccess"; }

/* A function of this library, under a name without the number of its form: `cuMemAlloc` is cuMemAlloc_v2. A program may have
   opened the library for itself, so that its names are not those that everybody sees. */
static void *function(const char *name) {
  static const char *const FORMS[] = {"%s_v2", "%s_v4", "%s"};
  static void *library;
  Dl_info here;
  char form[256];
  void *found = NULL;
  if (!library && dladdr(&allocated, &here)) library = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  for (int i = 0; i < 3 && !found; ++i) {
    snprintf(form, sizeof form, FORMS[i], name);
    found = library ? dlsym(library, form) : NULL;
    if (!found) found = dlsym(RTLD_DEFAULT, form);
  }
  return found;
}
int cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags, int *status) {
  (void)version, (void)flags;
  *out = function(name);
  if (status) *status = *out ? 0 : 1;
  return *out ? 0 : 1;
}
int cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *status) {
  return cudaGetDriverEntryPointByVersion(name, out, 0, flags, status);
}

/* --- the driver's ------------------------------------------------------------------------------------------------- */

NOTHING(cuInit) NOTHING(cuCtxSetCurrent) NOTHING(cuCtxSynchronize) NOTHING(cuModuleUnload) NOTHING(cuFuncSetAttribute)
NOTHING(cuStreamSynchronize) NOTHING(cuCtxDestroy_v2) NOTHING(cuDevicePrimaryCtxRelease_v2)
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { return cudaDeviceGetAttribute(value, which, device); }
static int context(void **out) { static int one; *out = &one; return 0; }
int cuCtxCreate_v2(void **out) { return context(out); }
int cuCtxCreate_v4(void **out) { return context(out); }
int cuCtxGetCurrent(void **out) { return context(out); }
int cuDevicePrimaryCtxRetain(void **out) { return context(out); }
int cuModuleLoad(void **out) { return context(out); }
int cuModuleLoadData(void **out) { return context(out); }
int cuModuleLoadDataEx(void **out) { return context(out); }
int cuModuleGetFunction(void **out, void *module, const char *name) { (void)module; *out = strdup(name); return 0; }
int cuGetErrorString(int error, const char **text) { *text = error_text(error); return 0; }
int cuGetErrorName(int error, const char **text) { *text = error ? "CUDA_ERROR_UNKNOWN" : "CUDA_SUCCESS"; return 0; }
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
  (void)version, (void)flags;
  *out = function(name);
  if (status) *status = *out ? 0 : 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
  return *out ? 0 : 500;              /* CUDA_ERROR_NOT_FOUND */
}
int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, out, version, flags, NULL);
}
/* The attributes that programs ask a pointer for, by their numbers in CUpointer_attribute. */
int cuPointerGetAttribute(void *out, int which, uint64_t pointer) {
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
int cuMemAlloc_v2(void **out, size_t size) { return allocate(out, size, DEVICE); }
int cuMemFree_v2(void *memory) { return release(memory); }
int cuMemcpyHtoD_v2(void *to, const void *from, size_t size) { memcpy(to, from, size); return 0; }
int cuMemcpyDtoH_v2(void *to, const void *from, size_t size) { memcpy(to, from, size); return 0; }
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **arguments, void **extra) {
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  (void)stream;
  record(function, grid, block, NULL, shared, arguments, extra);
  return 0;
}
int cuLaunchKernelEx(const driver_config_t *config, void *function, void **arguments, void **extra) {
  record(function, config->grid, config->block, cluster_of(config->attributes, config->count), config->shared, arguments, extra);
  return 0;
}
