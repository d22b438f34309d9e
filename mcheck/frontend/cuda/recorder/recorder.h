/* Writes a launch file for every kernel that a CUDA program launches; no GPU, no driver and no CUDA headers are needed.
 *
 *     cc -shared -fPIC -O1 -fvisibility=hidden -o recorder.so *.c -ldl
 *     nvcc -ptx -arch=sm_90a kernels.cu -o kernels.ptx
 *     nvcc -cudart none -arch=sm_90a kernels.cu host.cu recorder.so -o program
 *     MCHECK_PTX=kernels.ptx LD_LIBRARY_PATH=. ./program
 *     mcheck check kernels.ptx --launch kernel-1.json
 *
 * `mcheck cuda -- ./program` does this for a program as it is: it preloads the recorder, which then stands in for a shared
 * runtime, for the driver's library (under its name, libcuda.so.1, in a folder of LD_LIBRARY_PATH), and for a runtime that
 * was linked statically, by way of its symbols (interposition.c).
 *
 * It stands in for the calls of the CUDA runtime and driver that set up and launch kernels. Device memory is memory of the
 * host that copies really fill; kernels do not run, so results are what the memory held before. Environment:
 *
 *     MCHECK_PTX       modules (separated by ':'), for the sizes of parameters
 *     MCHECK_LAUNCHES  the folder that launch files are written to, one for each launch
 *     MCHECK_RECORD    a file that gets one line of JSON for each launch instead, with the memory that it names
 *     MCHECK_MODULES   the folder for the modules that the program itself brings
 *     MCHECK_EXTRACT   the command that writes the PTX of a fat binary: its arguments are the file and that folder
 *     MCHECK_ARCH      the compute capability that the program is told (90)
 *     MCHECK_GPUS      how many devices it is told (1)
 */
#ifndef RECORDER_H
#define RECORDER_H
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define API __attribute__((visibility("default")))
#define NOTHING(name) API int name(void) { return 0; }

typedef struct { unsigned x, y, z; } dim3_t;
/* cudaLaunchAttribute and CUlaunchAttribute: an identifier, and a union of 64 bytes aligned to 8. */
typedef struct { int id; int pad; union { char bytes[64]; dim3_t cluster; int flag; uint64_t align; } value; } attribute_t;

/* --- memory.c: device memory ---------------------------------------------------------------------------------------- */

enum { HOST = 1, DEVICE = 2, MANAGED = 3 }; /* cudaMemoryType */
enum { WRITABLE = 1, CONSTANT = 2 };        /* variables: whether kernels can write them by their names */
enum { MARKED = 1 << 14 };                  /* the front of an allocation: the bytes whose contents are followed */
typedef struct {
  char *start;
  size_t size;
  int kind, foreign, gpu, graph, used; /* used: kernels may have written it */
  int variable, changed;               /* of a module; whether more than its kernels, by its name, may have written it */
  unsigned number, version, left;                /* left: the latest launch that may have written it */
  unsigned char *state;                          /* of each byte of the front */
  uint64_t digest;
} allocation_t;
int allocate(void **out, size_t size, int kind);
int allocate_for_graph(void **out, size_t size);
int adopt(void *memory, size_t size, int kind);
int release(void *memory);
allocation_t *allocation(unsigned i);
allocation_t *allocation_at(uint64_t pointer);
allocation_t *allocation_number(unsigned number);
long long rest(uint64_t pointer);
size_t front(const allocation_t *at);
int patterned(const allocation_t *at, size_t i);

/* --- contents.c: what is known of them -------------------------------------------------------------------------------- */

size_t filled(const allocation_t *at);
int is_changed(const allocation_t *at);
void begin_foreign(allocation_t *at);
void end_foreign(const allocation_t *at);
void *touch(void *memory, size_t size);
void *copy(void *to, const void *from, size_t size);
void notice(unsigned number);
void leave(const unsigned *numbers, unsigned count);
int forget_contents(void);
void distrust_program(void);

/* --- tensor_maps.c -------------------------------------------------------------------------------------------------- */

typedef struct {
  int type, rank, im2col, interleave, swizzle, fill, lower[3], upper[3];
  unsigned channels, pixels, box[5], step[5];
  uint64_t address, dim[5], stride[4];
} map_t;
const map_t *map_at(const char *bytes, size_t left);

/* --- modules.c: kernels, and the sizes of their parameters ----------------------------------------------------------- */

typedef struct { int count; struct { size_t size, align, offset; } of[512]; } parameters_t;
typedef struct { const void *image; char *file; int extracted; } module_t;
typedef struct { const void *stub; char *name; module_t *module; } kernel_t;
module_t *add_module(const void *image);
kernel_t *add_kernel(module_t *module, const void *stub, const char *name);
kernel_t *kernel_of(const void *stub);
int parameters(const kernel_t *kernel, parameters_t *found);
void *variable(const void *key, size_t size, const char *name, int constant);
void *variable_named(const char *name, size_t *size);
size_t variable_size(const void *key);
const allocation_t *changed_variable(unsigned *next, const char **name);

/* --- launches.c: writing -------------------------------------------------------------------------------------------- */

typedef struct {
  const unsigned *grid, *block, *cluster;
  size_t shared;
  void *stream;
  int cooperative, programmatic;
} shape_t;
void record(const kernel_t *kernel, const shape_t *shape, void **arguments, void **extra);
void note_missing(const char *function);
void read_attributes(shape_t *shape, const attribute_t *attributes, unsigned count);
int current_device(void);
void set_device(int device);
int device_count(void);
int device_attribute(int which);
const char *error_text(int error);
void *new_handle(void);
void *function(const char *name);

#endif
