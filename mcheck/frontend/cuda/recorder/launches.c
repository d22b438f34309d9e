/* Writing launches: a file of its own for each (MCHECK_LAUNCHES), or a line of a record with the memory that it names. */
#include "recorder.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLUSTER_DIMENSION = 4, COOPERATIVE = 2, PROGRAMMATIC_SERIALIZATION = 6 };
static const char *const TYPES[] = {"u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz",
                                    "tf32", "tf32.ftz", "b4x16", "b4x16_p64", "b6x16_p32"};
static const char *const SWIZZLES[] = {"none", "32B", "64B", "128B", "128B", "128B", "128B"};
static const char *const ATOMICITIES[] = {"16B", "16B", "16B", "16B", "32B", "32B+8B", "64B"};
static const char *const INTERLEAVES[] = {"none", "16B", "32B"};

/* The allocations that a line of the record names, by their numbers. */
static struct { unsigned *of, count; int wanted; } named;

static void name_allocation(unsigned number) {
  for (unsigned i = 0; i < named.count; ++i)
    if (named.of[i] == number) return;
  unsigned *more = realloc(named.of, (named.count + 1) * sizeof *more);
  if (more) named.of = more, named.of[named.count++] = number;
}

#define LIST(name, array, count, format, kind)                                                              \
  do {                                                                                                      \
    fprintf(file, ", \"%s\": [", name);                                                                     \
    for (int i = 0; i < (count); ++i) fprintf(file, i ? ", " format : format, (kind)(array)[i]);            \
    fprintf(file, "]");                                                                                     \
  } while (0)

static void write_buffer(FILE *file, uint64_t pointer) {
  const allocation_t *at = allocation_at(pointer);
  if (!at) fprintf(file, "{\"buffer\": null}");
  else if (!named.wanted) fprintf(file, "{\"buffer\": %lld}", rest(pointer));
  else {
    name_allocation(at->number);
    fprintf(file, "{\"allocation\": %u, \"offset\": %llu}", at->number, (unsigned long long)(pointer - (uintptr_t)at->start));
  }
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

/* Bytes, with the maps and pointers among them. */
static void write_contents(FILE *file, const char *bytes, size_t size) {
  uint64_t word;
  fprintf(file, "{\"hex\": \"");
  for (size_t at = 0; at < size;) {
    size_t wide = place(bytes + at, size - at, at % 8 == 0);
    for (size_t end = at + (wide ? wide : 1); at < end; ++at) fprintf(file, "%02x", wide ? 0 : (unsigned char)bytes[at]);
  }
  fprintf(file, "\"");
  int places = 0;
  for (size_t at = 0; at + 8 <= size; at += 8) {
    memcpy(&word, bytes + at, 8);
    const map_t *map = map_at(bytes + at, size - at);
    if (!map && rest(word) < 0) continue;
    fprintf(file, places++ ? ", \"%zu\": " : ", \"at\": {\"%zu\": ", at);
    if (map) write_map(file, map), at += 120;
    else write_buffer(file, word);
  }
  fprintf(file, places ? "}}" : "}");
}

static void write_value(FILE *file, const char *bytes, size_t size) {
  uint64_t word = 0;
  const map_t *map = size == 128 ? map_at(bytes, size) : NULL;
  memcpy(&word, bytes, size < 8 ? size : 8);
  if (map) write_map(file, map);
  else if (size == 8 && rest(word) >= 0) write_buffer(file, word);
  else write_contents(file, bytes, size);
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

static int gpu, streams;

/* Functions that the program has called and this library lacks, as JSON strings: what they should have done is not known. */
static char lacks[1 << 12];
void note_missing(const char *function) {
  size_t used = strlen(lacks);
  snprintf(lacks + used, sizeof lacks - used, "%s\"%.100s\"", used ? ", " : "", function);
  if (strlen(lacks) == sizeof lacks - 1) lacks[used] = 0; /* no room: it stays as it was */
}

int current_device(void) { return gpu; }
void set_device(int device) { gpu = device; }

/* Streams are numbered as they launch; 0 is the default one, which handles 0 to 2 name. */
static int stream_number(const void *stream) {
  static const void *seen[1 << 10];
  if ((uintptr_t)stream <= 2) return 0;
  for (int i = 0; i < streams; ++i)
    if (seen[i] == stream) return i + 1;
  if (streams == sizeof seen / sizeof *seen) return streams;
  seen[streams++] = stream;
  return streams;
}

void read_attributes(shape_t *shape, const attribute_t *attributes, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    switch (attributes[i].id) {
      case CLUSTER_DIMENSION: shape->cluster = &attributes[i].value.cluster.x; break;
      case COOPERATIVE: shape->cooperative = attributes[i].value.flag != 0; break;
      case PROGRAMMATIC_SERIALIZATION: shape->programmatic = attributes[i].value.flag != 0; break;
    }
}

static void write_shape(FILE *file, const char *name, const shape_t *shape) {
  const unsigned *g = shape->grid, *b = shape->block, *c = shape->cluster;
  fprintf(file, "{\"entry\": \"%s\", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u]", name, g[0], g[1], g[2], b[0], b[1], b[2]);
  if (c) fprintf(file, ", \"cluster\": [%u, %u, %u]", c[0], c[1], c[2]);
  fprintf(file, ", \"shared\": %zu", shape->shared);
  if (shape->cooperative) fprintf(file, ", \"cooperative\": true");
  if (shape->programmatic) fprintf(file, ", \"programmatic\": true");
}

static void write_parameters(FILE *file, const parameters_t *known, void **arguments, void **extra) {
  const char *block_of_all = NULL, *space = named.wanted ? " " : "\n  ";
  for (void **e = extra; e && *e; e += 2)
    if (*e == (void *)1) block_of_all = e[1]; /* CU_LAUNCH_PARAM_BUFFER_POINTER */
  fprintf(file, ",%s\"params\": {", named.wanted ? " " : "\n ");
  for (int i = 0; i < known->count; ++i) {
    fprintf(file, "%s%s\"%d\": ", i ? "," : "", space, i);
    write_value(file, block_of_all ? block_of_all + known->of[i].offset : arguments[i], known->of[i].size);
  }
  fprintf(file, "}");
}

/* Whether all of an allocation is known, and none of it is a pointer into another one, or a map. */
static int is_plain(const allocation_t *at) {
  if (filled(at) < at->size) return 0;
  for (size_t i = 0; i + 8 <= at->size; i += 8)
    if (place(at->start + i, at->size - i, 1)) return 0;
  return 1;
}

/* The variables of modules whose contents are not those of the module: unknown ones, and what the others hold. */
static void write_variables(FILE *file) {
  const allocation_t *at;
  const char *name;
  int count = 0;
  for (unsigned next = 0; (at = changed_variable(&next, &name));)
    if (!is_plain(at)) fprintf(file, count++ ? ", \"%s\"" : ", \"forgotten\": [\"%s\"", name);
  if (count) fprintf(file, "]"), count = 0;
  for (unsigned next = 0; (at = changed_variable(&next, &name));)
    if (is_plain(at)) {
      fprintf(file, count++ ? ", \"%s\": {\"init\": " : ", \"variables\": {\"%s\": {\"init\": ", name);
      write_contents(file, at->start, at->size);
      fprintf(file, "}");
    }
  if (count) fprintf(file, "}");
}

/* A line of the record: what the host says of the launch, and the memory that it names, which may name more. */
static void append_line(const char *path, const kernel_t *kernel, const shape_t *shape, const parameters_t *known,
                        void **arguments, void **extra) {
  char *text = NULL;
  size_t size;
  FILE *file = open_memstream(&text, &size);
  if (!file) return;
  named.count = 0;
  write_shape(file, kernel->name, shape);
  fprintf(file, ", \"process\": %d, \"gpu\": %d, \"stream\": %d", (int)getpid(), gpu, stream_number(shape->stream));
  if (*lacks) fprintf(file, ", \"missing\": [%s]", lacks);
  write_variables(file);
  write_parameters(file, known, arguments, extra);
  fprintf(file, ", \"allocations\": {");
  for (unsigned i = 0; i < named.count; ++i) {
    const allocation_t *at = allocation_number(named.of[i]);
    notice(at->number);
    size_t told = filled(at);
    fprintf(file, "%s\"%u\": {\"bytes\": %zu, \"version\": %u, \"gpu\": %d", i ? ", " : "", at->number, at->size,
            at->version, at->gpu);
    if (told) fprintf(file, ", \"init\": "), write_contents(file, at->start, told);
    fprintf(file, "}");
  }
  fprintf(file, "}}\n");
  fclose(file);
  leave(named.of, named.count);
  int out = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666); /* the processes of a program append, each line at once */
  if (out < 0 || write(out, text, size) != (ssize_t)size) fprintf(stderr, "recorder: %s cannot be written\n", path);
  if (out >= 0) close(out);
  free(text);
}

static void write_file(const kernel_t *kernel, const shape_t *shape, const parameters_t *known, void **arguments, void **extra) {
  static unsigned launches;
  const char *folder = getenv("MCHECK_LAUNCHES");
  char path[4096], *text = NULL;
  size_t size;
  FILE *file = open_memstream(&text, &size);
  if (!file) { fprintf(stderr, "recorder: no memory for a launch of %s\n", kernel->name); return; }
  write_shape(file, kernel->name, shape);
  write_parameters(file, known, arguments, extra);
  fprintf(file, "}\n");
  fclose(file);
  if (!again(text)) {
    /* Names of templates may be longer than those of files. */
    snprintf(path, sizeof path, "%s/%.120s-%u.json", folder && *folder ? folder : ".", kernel->name, ++launches);
    if ((file = fopen(path, "w"))) fputs(text, file), fclose(file);
    fprintf(stderr, file ? "recorder: %s\n" : "recorder: %s cannot be written\n", path);
  }
  free(text);
}

void record(const kernel_t *kernel, const shape_t *shape, void **arguments, void **extra) {
  static parameters_t known;
  const char *path = getenv("MCHECK_RECORD");
  for (int i = 0; i < 3; ++i)
    if (!shape->grid[i] || !shape->block[i]) return; /* the driver refuses it */
  if (!parameters(kernel, &known)) { forget_contents(); return; }
  named.wanted = path != NULL;
  if (path) append_line(path, kernel, shape, &known, arguments, extra);
  else write_file(kernel, shape, &known, arguments, extra);
}
