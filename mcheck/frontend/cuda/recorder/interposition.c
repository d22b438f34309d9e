/* A runtime that was linked statically is replaced in memory: its functions, which the symbol table of the program names,
 * jump to those of this library as soon as the program begins. So do the functions of CUDA's libraries (cuBLAS and others)
 * that a program calls, linked either way: without a device they fail, and programs end there that only compare their
 * results with those of a library. Functions that this library lacks succeed and do nothing, and say so once. A program
 * without symbols (strip) keeps its static runtime, which finds no device.
 */
#include "recorder.h"
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined __x86_64__
enum { JUMP = 14 };
static void write_jump(unsigned char *at, const void *to) {
  static const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
  memcpy(at, jump, sizeof jump), memcpy(at + sizeof jump, &to, sizeof to);
}
#elif defined __aarch64__
enum { JUMP = 16 };
static void write_jump(unsigned char *at, const void *to) {
  static const uint32_t jump[2] = {0x58000050, 0xd61f0200}; /* ldr x16, .+8; br x16 */
  memcpy(at, jump, sizeof jump), memcpy(at + sizeof jump, &to, sizeof to);
}
#else
enum { JUMP = 0 };
static void write_jump(unsigned char *at, const void *to) { (void)at, (void)to; }
#endif

/* --- functions that are missing here -------------------------------------------------------------------------------- */

/* Whether a function may write memory of the host: a copy, a question, or an operation on vectors that returns a number. */
static int writes_host(const char *name) {
  static const char *const PARTS[] = {"Memcpy", "Get", "dot", "nrm2", "asum", "amax", "amin", "rotg", "rotmg"};
  for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; ++i)
    if (strstr(name, PARTS[i])) return 1;
  return 0;
}

enum { MISSING = 256 };
static const char *missing[MISSING];
static int absent(int which) {
  if (missing[which]) {
    fprintf(stderr, "recorder: %s is not recorded: it does nothing and succeeds\n", missing[which]);
    note_missing(missing[which]);
    if (writes_host(missing[which])) distrust_program();
  }
  missing[which] = NULL;
  return forget_contents();
}
/* One function for each, since what is called has to know its name. */
#define ONE(n) static int absent_##n(void) { return absent(0x##n); }
#define SIXTEEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9) ONE(n##a) \
  ONE(n##b) ONE(n##c) ONE(n##d) ONE(n##e) ONE(n##f)
SIXTEEN(0) SIXTEEN(1) SIXTEEN(2) SIXTEEN(3) SIXTEEN(4) SIXTEEN(5) SIXTEEN(6) SIXTEEN(7) SIXTEEN(8) SIXTEEN(9) SIXTEEN(a) SIXTEEN(b)
SIXTEEN(c) SIXTEEN(d) SIXTEEN(e) SIXTEEN(f)
#define NAMES(n) absent_##n##0, absent_##n##1, absent_##n##2, absent_##n##3, absent_##n##4, absent_##n##5, absent_##n##6, absent_##n##7, \
  absent_##n##8, absent_##n##9, absent_##n##a, absent_##n##b, absent_##n##c, absent_##n##d, absent_##n##e, absent_##n##f
static int (*const ABSENT[MISSING])(void) = {NAMES(0), NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6), NAMES(7),
                                             NAMES(8), NAMES(9), NAMES(a), NAMES(b), NAMES(c), NAMES(d), NAMES(e), NAMES(f)};
static int lacking;

/* Whether this is a function of one of CUDA's libraries of kernels, such as cublasSgemm_v2 and ncclAllReduce. */
static int is_of_library(const char *name) {
  static const char *const LIBRARIES[] = {"cublas", "cublasLt", "cudnn", "cufft", "curand", "cusolverDn", "cusparse", "nccl"};
  for (size_t i = 0; i < sizeof LIBRARIES / sizeof *LIBRARIES; ++i) {
    const size_t length = strlen(LIBRARIES[i]);
    if (!strncmp(name, LIBRARIES[i], length) && name[length] >= 'A' && name[length] <= 'Z') return 1;
  }
  return 0;
}

static int succeed(void) { return 0; }
static int is_setting(const char *name) { return strstr(name, "Set") || strstr(name, "Destroy") || strstr(name, "Create"); }

static const void *absent_function(const char *name) {
  if (is_of_library(name) && is_setting(name)) return (const void *)succeed;
  for (int i = 0; i < lacking; ++i)
    if (missing[i] && !strcmp(missing[i], name)) return (const void *)ABSENT[i];
  if (lacking == MISSING - 1) return (const void *)absent_ff; /* the rest say nothing */
  missing[lacking] = strdup(name);
  return (const void *)ABSENT[lacking++];
}

/* --- the symbols of the program ------------------------------------------------------------------------------------- */

static int is_runtime(const char *name) {
  if (!strncmp(name, "__cuda", 6)) name += 2;
  return !strncmp(name, "cuda", 4) && name[4] >= 'A' && name[4] <= 'Z';
}

static void *own(const char *name) {
  static void *library;
  static int here;
  Dl_info about;
  if (!library && dladdr(&here, &about)) library = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return library ? dlsym(library, name) : NULL;
}

static int writable(unsigned char *at) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *start = (char *)((uintptr_t)at & ~(page - 1));
  return !mprotect(start, (size_t)((char *)at + JUMP - start), PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void replace_symbols(const char *image, const ElfW(Ehdr) *head, uintptr_t base) {
  const ElfW(Shdr) *sections = (const void *)(image + head->e_shoff);
  int refused = 0;
  for (int i = 0; i < head->e_shnum; ++i) {
    const int imports = sections[i].sh_type == SHT_DYNSYM;
    if (!imports && sections[i].sh_type != SHT_SYMTAB) continue;
    const ElfW(Sym) *symbols = (const void *)(image + sections[i].sh_offset);
    const char *names = image + sections[sections[i].sh_link].sh_offset;
    for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; ++k) {
      const char *name = names + symbols[k].st_name;
      unsigned char *at = (unsigned char *)(base + symbols[k].st_value);
      const int imported = symbols[k].st_shndx == SHN_UNDEF;
      if (imported != imports || !(is_of_library(name) || (!imported && is_runtime(name)))) continue;
      if (!imported && ELF64_ST_TYPE(symbols[k].st_info) != STT_FUNC) continue;
      const void *to = own(name);
      if (imported && (to || !(at = dlsym(RTLD_DEFAULT, name)))) continue; /* this library comes first */
      /* A function of 16 bytes, or one that is aligned so, has room for the jump. */
      if (symbols[k].st_size < JUMP && (uintptr_t)at % 16) continue;
      if (!writable(at)) { refused = 1; continue; }
      write_jump(at, to ? to : absent_function(name));
      __builtin___clear_cache((char *)at, (char *)at + JUMP);
    }
  }
  if (refused) fprintf(stderr, "recorder: the system does not let the static runtime of the program be replaced: link it with -cudart shared\n");
}

/* Whether a file holds code for the device, or the runtime itself. */
static int has_device_code(const char *image, const ElfW(Ehdr) *head) {
  const ElfW(Shdr) *sections = (const void *)(image + head->e_shoff);
  const char *names = image + sections[head->e_shstrndx].sh_offset;
  for (int i = 0; i < head->e_shnum; ++i)
    if (!strcmp(names + sections[i].sh_name, ".nv_fatbin")) return 1;
  return 0;
}

static int replace_in(struct dl_phdr_info *info, size_t size, void *data) {
  const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
  struct stat about;
  (void)size, (void)data;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  if (!fstat(file, &about) && about.st_size > (off_t)sizeof(ElfW(Ehdr))) {
    const char *image = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    const ElfW(Ehdr) *head = (const void *)image;
    if (image != MAP_FAILED) {
      if (!memcmp(head->e_ident, ELFMAG, SELFMAG) && head->e_shoff && head->e_shnum &&
          head->e_shoff + head->e_shnum * sizeof(ElfW(Shdr)) <= (size_t)about.st_size && has_device_code(image, head))
        replace_symbols(image, head, info->dlpi_addr);
      munmap((void *)image, about.st_size);
    }
  }
  close(file);
  return 0;
}

__attribute__((constructor)) static void replace_static_runtimes(void) {
  if (JUMP && getenv("MCHECK_RECORD")) dl_iterate_phdr(replace_in, NULL);
}
