/* Kernels, the modules that they are from, and the sizes of their parameters, which only PTX tells. */
#include "recorder.h"
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static module_t *modules[1 << 12];
static unsigned loaded;
static kernel_t kernels[1 << 14];
static unsigned registered;
static struct { const void *key; char *name; void *memory; size_t size; } variables[1 << 12];
static unsigned declared;

module_t *add_module(const void *image) {
  for (unsigned i = 0; i < loaded; ++i)
    if (modules[i]->image == image) return modules[i];
  module_t *made = calloc(1, sizeof *made);
  if (!made || loaded == sizeof modules / sizeof *modules) return made;
  made->image = image;
  return modules[loaded++] = made;
}

kernel_t *add_kernel(module_t *module, const void *stub, const char *name) {
  for (unsigned i = 0; i < registered && !stub; ++i)
    if (kernels[i].module == module && !strcmp(kernels[i].name, name)) return &kernels[i];
  if (registered == sizeof kernels / sizeof *kernels) return NULL;
  kernels[registered] = (kernel_t){stub, strdup(name), module};
  return &kernels[registered++];
}

/* The kernel of a stub on the host, or of a handle that the program was given. */
kernel_t *kernel_of(const void *stub) {
  for (unsigned i = 0; i < registered; ++i)
    if (kernels[i].stub == stub || (const void *)&kernels[i] == stub) return &kernels[i];
  return NULL;
}

/* The memory that stands for a variable of a module. */
void *variable(const void *key, size_t size, const char *name, int constant) {
  for (unsigned i = 0; i < declared; ++i)
    if (variables[i].key == key) return variables[i].memory;
  if (!name || declared == sizeof variables / sizeof *variables) return NULL;
  variables[declared].key = key, variables[declared].name = strdup(name), variables[declared].size = size;
  if (allocate(&variables[declared].memory, size, DEVICE)) return NULL;
  if (size) allocation_at((uintptr_t)variables[declared].memory)->variable = constant ? CONSTANT : WRITABLE;
  return variables[declared++].memory;
}

void *variable_named(const char *name, size_t *size) {
  for (unsigned i = 0; i < declared; ++i)
    if (!strcmp(variables[i].name, name)) {
      if (size) *size = variables[i].size;
      return variables[i].memory;
    }
  return NULL;
}

/* A variable whose contents are not those of its module, from number `*next` on, and its name; NULL behind the last. */
const allocation_t *changed_variable(unsigned *next, const char **name) {
  while (*next < declared) {
    unsigned i = (*next)++;
    const allocation_t *at = allocation_at((uintptr_t)variables[i].memory);
    *name = variables[i].name;
    if (at && is_changed(at)) return at;
  }
  return NULL;
}

size_t variable_size(const void *key) {
  for (unsigned i = 0; i < declared; ++i)
    if (variables[i].key == key) return variables[i].size;
  return 0;
}

/* --- parameters ----------------------------------------------------------------------------------------------------- */

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

static int known_in(const char *path, const char *name, parameters_t *found, int complain) {
  char *text = contents(path);
  if (!text && complain) fprintf(stderr, "recorder: %s cannot be read\n", path);
  int known = text && parse(text, name, found);
  free(text);
  return known;
}

/* Fat binaries and modules as text have a size of their own; of a cubin nothing is to be had. */
static size_t image_size(const unsigned char *image) {
  uint16_t head;
  uint64_t size;
  uint32_t magic;
  memcpy(&magic, image, 4), memcpy(&head, image + 6, 2), memcpy(&size, image + 8, 8);
  if (magic == 0xba55ed50) return head + size;
  return magic == 0x464c457f ? 0 : strlen((const char *)image);
}

/* Write the image of a module into the folder for modules, and have its PTX extracted. */
static void extract(module_t *module) {
  const char *folder = getenv("MCHECK_MODULES"), *command = getenv("MCHECK_EXTRACT");
  char path[4096], line[12288];
  if (!folder || !command || !module || module->extracted || !module->image) return;
  module->extracted = 1;
  const unsigned char *image = module->image;
  uint32_t magic;
  memcpy(&magic, image, 4);
  if (magic == 0x466243b1) memcpy(&image, image + 8, sizeof image); /* a wrapper: magic, version, pointer */
  size_t size = image_size(image);
  static unsigned written;
  snprintf(path, sizeof path, "%s/image-%d-%u", folder, (int)getpid(), written++);
  FILE *file = size ? fopen(path, "wb") : NULL;
  if (!file) { fprintf(stderr, "recorder: a module of the program has no PTX (a cubin), or %s cannot be written\n", path); return; }
  fwrite(image, 1, size, file), fclose(file);
  snprintf(line, sizeof line, "unset LD_PRELOAD; %s '%s' '%s'", command, path, folder);
  if (system(line)) fprintf(stderr, "recorder: the PTX of a module was not extracted\n");
}

static int in_folder(const char *folder, const char *name, parameters_t *found) {
  DIR *open = folder ? opendir(folder) : NULL;
  int known = 0;
  for (struct dirent *entry; open && !known && (entry = readdir(open));) {
    size_t length = strlen(entry->d_name);
    char path[8192];
    if (length < 5 || strcmp(entry->d_name + length - 4, ".ptx")) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    known = known_in(path, name, found, 0);
  }
  if (open) closedir(open);
  return known;
}

int parameters(const kernel_t *kernel, parameters_t *found) {
  const char *paths = getenv("MCHECK_PTX"), *folder = getenv("MCHECK_MODULES");
  char *copy = strdup(paths ? paths : ""), *left = copy, *path;
  int known = 0;
  while (!known && (path = strsep(&left, ":")))
    if (*path) known = known_in(path, kernel->name, found, 1);
  free(copy);
  if (!known) extract(kernel->module), known = in_folder(folder, kernel->name, found);
  if (!known)
    fprintf(stderr, folder ? "recorder: the program has no PTX of %s, its launch is not written (compile with -arch=sm_90a, "
                             "or -gencode arch=compute_90a,code=compute_90a)\n"
                           : "recorder: no module of MCHECK_PTX has an entry %s, its launch is not written\n", kernel->name);
  return known;
}
