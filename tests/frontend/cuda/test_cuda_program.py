"""Whole programs under the recorder: a static runtime is replaced, modules come from the program, memory is written."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mcheck.frontend.cuda import program as programs
from mcheck.frontend.cuda.program import ProgramRun, run_program
from mcheck.frontend.cuda.recording import compose_recording

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

HEAD = r"""
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { unsigned x, y, z; } dim3;
typedef struct { int id, pad; union { char bytes[64]; dim3 cluster; int flag; uint64_t align; } value; } attribute;
typedef struct { dim3 grid, block; size_t shared; void *stream; attribute *attributes; unsigned count; } config;
"""
STUBS = r"""
/* A runtime that was linked statically: without the recorder nothing works. */
#define LOST(name) __attribute__((noinline, aligned(16))) int name() { abort(); }
LOST(cudaMalloc) LOST(cudaMallocManaged) LOST(cudaMemcpy) LOST(cudaMemset) LOST(cudaLaunchKernel)
LOST(cudaLaunchKernelExC) LOST(cudaLaunchCooperativeKernel) LOST(cudaStreamCreate)
LOST(cudaGraphCreate) LOST(cudaGraphAddMemAllocNode) LOST(cudaGraphAddKernelNode) LOST(cudaGraphAddMemFreeNode)
LOST(cudaMemcpy2D) LOST(cudaMemcpyAsync) LOST(cudaHostAlloc) LOST(cudaMemcpyToSymbol) LOST(cudaMemcpyFromSymbol)
LOST(__cudaRegisterVar) LOST(__cudaRegisterManagedVar) LOST(cudaGetSymbolAddress)
LOST(cudaStreamBeginCapture) LOST(cudaStreamEndCapture)
LOST(cudaGraphInstantiate) LOST(cudaGraphLaunch) LOST(cudaSomethingNew) LOST(__cudaRegisterFunction)
__attribute__((noinline, aligned(16))) void **__cudaRegisterFatBinary(void *image) { abort(); }
__attribute__((section(".nv_fatbin"))) static const char image[] = {
#include "image.h"
};
static struct { int magic, version; const void *data; void *file; } wrapper = {0x466243b1, 1, image, 0};
static const char stub;
static dim3 grid = {4, 1, 1}, block = {64, 1, 1};
static void start(void) { __cudaRegisterFunction(__cudaRegisterFatBinary(&wrapper), &stub, NULL, "scale"); }
"""
MODULE = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 y, .param .u32 n)
{
	ret;
}
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorder")


def fat_image() -> str:
    """A fat binary with the module, as the bytes of an array in C."""
    import struct

    text = MODULE.encode() + bytes(-len(MODULE) % 8)
    entry = struct.pack("<HHIQIIIIIIQQQ", 1, 0x101, 64, len(text), 0, 0, 0, 90, 64, 0, 0x11, 0, 0) + text
    return ",".join(map(str, struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry))


def ran(
    folder: Path, cache: Path, main: str, head: str = HEAD + STUBS, *flags: str, quiet: float | None = None
) -> ProgramRun:
    (folder / "image.h").write_text(fat_image(), encoding="utf-8")
    (folder / "host.c").write_text(f"{head}\nint main(int argc, char **argv) {{\n{main}\n}}\n", encoding="utf-8")
    command = ["cc", "-w", *flags, "-o", folder / "host", folder / "host.c", "-ldl"]
    subprocess.run(command, check=True)
    return run_program([str(folder / "host")], cache, shown=False, quiet=quiet)


@pytest.mark.daily(days=4, least=0)
def test_a_static_runtime_is_replaced(tmp_path: Path, cache: Path) -> None:
    main = """
    start();
    char *x, *y; int n = 7;
    void *arguments[3] = {&x, &y, &n};
    if (cudaMalloc(&x, 4096) || cudaMalloc(&y, (size_t)1 << 20) || cudaSomethingNew()) return 1;
    cudaMemset(x, 0, 8);
    for (int k = 0; k < 3; ++k) cudaLaunchKernel(&stub, grid, block, arguments, (size_t)64, NULL);
    return 0;
    """
    found = ran(tmp_path, cache, main)
    assert (found.status, found.ending) == (0, ""), found.said
    assert "recorder: cudaSomethingNew is not recorded: it does nothing and succeeds" in found.said
    assert len(found.lines) == 3
    first = found.lines[0]
    assert first["missing"] == ["cudaSomethingNew"]
    recording = compose_recording(found.lines, {"scale": ("x", "y", "n")})
    assert recording is not None
    assert recording.notes == ("the recorder lacks cudaSomethingNew: parameters that depend on it may be wrong",)
    assert (first["entry"], first["grid"], first["block"], first["shared"]) == ("scale", [4, 1, 1], [64, 1, 1], 64)
    assert first["params"]["2"] == {"hex": "07000000"}
    memory = first["allocations"]
    assert [about["bytes"] for about in memory.values()] == [4096, 1 << 20]
    assert memory["0"]["init"] == {"hex": "00" * 8}, "what the host has filled"
    assert "init" not in memory["1"]
    ((name, text),) = found.modules
    assert (name.startswith("module-"), text) == (True, MODULE)


LIBRARY = """
#include <stdlib.h>
int cublasCreate_v2(void **handle) { return 1; }
int cublasSgemm_v2(void *handle) { abort(); }
int cublasSetMathMode(void *handle, int mode) { abort(); }
int cublasLtMatmulAlgoGetHeuristic(void) { return 1; }
"""


@pytest.mark.daily(days=4, least=0)
@pytest.mark.parametrize("linked", ["shared", "static"])
def test_libraries_that_want_a_device_do_nothing_and_succeed(tmp_path: Path, cache: Path, linked: str) -> None:
    """Programs that compare their results with those of cuBLAS do not end there, and what it writes is unknown."""
    (tmp_path / "library.c").write_text(LIBRARY, encoding="utf-8")
    shared = ["-shared", "-fPIC", "-Wl,-soname,libcublas.so"] if linked == "shared" else ["-c"]
    built = tmp_path / ("libcublas.so" if linked == "shared" else "cublas.o")
    subprocess.run(["cc", "-w", "-falign-functions=16", *shared, "-o", built, tmp_path / "library.c"], check=True)
    main = """
    start();
    char *x; int n = 7, found = 0; void *handle = NULL;
    void *arguments[3] = {&x, &x, &n};
    if (cublasCreate_v2(&handle) || !handle) return 1;
    if (cublasLtMatmulAlgoGetHeuristic(handle, NULL, NULL, NULL, NULL, NULL, NULL, 1, NULL, &found) || !found) return 2;
    if (cudaMalloc(&x, 64)) return 3;
    cudaMemset(x, 0, 8);
    if (cublasSetMathMode(handle, 1)) return 4;
    cudaLaunchKernel(&stub, grid, block, arguments, (size_t)64, NULL);
    if (cublasSgemm_v2(handle) || cublasSgemm_v2(handle)) return 5;
    cudaLaunchKernel(&stub, grid, block, arguments, (size_t)64, NULL);
    return 0;
    """
    head = (
        HEAD
        + STUBS
        + "\nint cublasCreate_v2(void **), cublasSgemm_v2(), cublasLtMatmulAlgoGetHeuristic(), cublasSetMathMode();"
    )
    found = ran(tmp_path, cache, main, head, "-Wl,--no-as-needed", str(built), f"-Wl,-rpath,{tmp_path}")
    assert found.status == 0, found.said
    assert found.said.count("recorder: cublasSgemm_v2 is not recorded") == 1
    before, after = (line["allocations"]["0"] for line in found.lines)
    assert "init" in before
    assert "init" not in after
    recording = compose_recording(found.lines, {"scale": ("x", "y", "n")})
    assert recording is not None
    assert recording.notes == (
        "kernels of libraries are not checked, and what they compute is unknown: cublasSgemm_v2",
    )


@pytest.mark.daily(days=3, least=0)
def test_kernels_of_a_graph_are_recorded(tmp_path: Path, cache: Path) -> None:
    main = """
    start();
    struct { char pool[88]; void *access; size_t count, size; char *start; } memory = {.size = 256};
    void *graph, *node, *made; int n = 7;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddMemAllocNode(&node, graph, NULL, (size_t)0, &memory);
    void *arguments[3] = {&memory.start, &memory.start, &n};
    struct { const void *stub; dim3 grid, block; unsigned shared; void **arguments, **extra; } kernel = {
      &stub, grid, block, 32, arguments, NULL};
    cudaGraphAddKernelNode(&node, graph, NULL, (size_t)0, &kernel);
    cudaGraphAddMemFreeNode(&node, graph, NULL, (size_t)0, memory.start);
    cudaGraphInstantiate(&made, graph, NULL, NULL, 0);
    return cudaGraphLaunch(made, NULL);
    """
    found = ran(tmp_path, cache, main)
    assert found.status == 0, found.said
    (line,) = found.lines
    assert (line["entry"], line["grid"], line["shared"]) == ("scale", [4, 1, 1], 32)
    assert [about["bytes"] for about in line["allocations"].values()] == [256]
    assert "missing" not in line


def test_without_symbols_the_runtime_stays(tmp_path: Path, cache: Path) -> None:
    found = ran(tmp_path, cache, "return cudaMalloc();", HEAD + STUBS, "-s")
    assert found.ending.startswith("it was stopped by signal 6 (SIGABRT)")


def test_how_launches_are_made(tmp_path: Path, cache: Path) -> None:
    main = """
    start();
    char *x; int n = 7; void *s, *t;
    void *arguments[3] = {&x, &x, &n};
    cudaMallocManaged(&x, (size_t)64, 1), cudaStreamCreate(&s), cudaStreamCreate(&t);
    *(int *)x = 5;
    attribute how[2] = {{.id = 4, .value.cluster = {2, 1, 1}}, {.id = 6, .value.flag = 1}};
    config c = {grid, block, 0, t, how, 2};
    cudaLaunchCooperativeKernel(&stub, grid, block, arguments, (size_t)0, s);
    dim3 none = {0, 1, 1};
    cudaLaunchKernel(&stub, none, block, arguments, (size_t)0, s);
    cudaLaunchKernelExC(&c, &stub, arguments);
    return 3;
    """
    found = ran(tmp_path, cache, main)
    assert found.ending == "it ended with status 3"
    one, two = found.lines
    assert (one.get("cooperative"), one.get("programmatic"), one.get("cluster"), one["stream"]) == (True, None, None, 1)
    assert (two.get("cooperative"), two.get("programmatic"), two["cluster"], two["stream"]) == (
        None,
        True,
        [2, 1, 1],
        2,
    )
    assert one["allocations"]["0"]["init"] == {"hex": "05000000"}, "written by the host itself"


def test_pointers_and_maps_in_memory(tmp_path: Path, cache: Path) -> None:
    main = """
    start();
    char *table, *x, *maps, map[128]; int n = 0;
    void *arguments[3] = {&table, &maps, &n};
    int (*encode)(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *, const unsigned *,
                  int, int, int, int) = dlsym(RTLD_DEFAULT, "cuTensorMapEncodeTiled");
    cudaMalloc(&table, (size_t)32), cudaMalloc(&x, (size_t)65536), cudaMalloc(&maps, (size_t)128);
    char *pointers[2] = {x + 16, NULL};
    cudaMemcpy(table, pointers, sizeof pointers, 1);
    uint64_t dim[2] = {32, 16}, stride[1] = {128};
    unsigned box[2] = {32, 8}, step[2] = {1, 1};
    if (encode(map, 7, 2, x, dim, stride, box, step, 0, 3, 0, 0)) return 1;
    cudaMemcpy(maps, map, sizeof map, 1);
    cudaLaunchKernel(&stub, grid, block, arguments, (size_t)0, NULL);
    cudaMemcpy(table, pointers, sizeof pointers, 1);
    return cudaLaunchKernel(&stub, grid, block, arguments, (size_t)0, NULL);
    """
    found = ran(tmp_path, cache, main)
    assert found.status == 0, found.said
    memory = found.lines[0]["allocations"]
    assert memory["0"]["init"] == {"hex": "00" * 16, "at": {"0": {"allocation": 1, "offset": 16}}}
    assert memory["2"]["init"]["at"]["0"]["tensormap"]["global_address"] == {"allocation": 1, "offset": 0}
    assert memory["1"]["bytes"] == 65536
    versions = [line["allocations"]["0"]["version"] for line in found.lines]
    assert versions[1] > versions[0], "the host has filled it again"


def test_a_module_that_the_driver_loads(tmp_path: Path, cache: Path) -> None:
    text = MODULE.replace("\n", "\\n").replace("\t", "\\t")
    main = f"""
    void *module, *kernel, *x; unsigned n = 3;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*get)(const char *, void **, int, uint64_t, int *) = dlsym(driver, "cuGetProcAddress_v2");
    int (*load)(void **, const void *), (*find)(void **, void *, const char *), (*allocate)(void **, size_t);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                  void **);
    char *image = strdup("{text}");
    if (get("cuModuleLoadData", (void **)&load, 12000, 0, NULL)) return 1;
    if (get("cuModuleGetFunction", (void **)&find, 12000, 0, NULL)) return 1;
    if (get("cuMemAlloc", (void **)&allocate, 12000, 0, NULL)) return 2;
    if (get("cuLaunchKernel", (void **)&launch, 12000, 0, NULL)) return 2;
    if (load(&module, image) || find(&kernel, module, "scale") || allocate(&x, 64)) return 3;
    memset(image, 0, strlen(image)), free(image); /* the driver has its own */
    void *arguments[3] = {{&x, &x, &n}};
    return launch(kernel, 1, 2, 3, 32, 1, 1, 0, NULL, arguments, NULL);
    """
    found = ran(tmp_path, cache, main, HEAD)
    assert found.status == 0, found.said
    assert [line["grid"] for line in found.lines] == [[1, 2, 3]]
    assert [text for _, text in found.modules] == [MODULE]


def test_a_program_that_does_not_end_is_stopped(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "LIMIT", 2.0)
    found = ran(tmp_path, cache, "for (;;) ;", HEAD)
    assert found.ending == "it did not end within 2 s and was stopped"


def test_the_environment_says_how_to_compile(tmp_path: Path, cache: Path) -> None:
    script = tmp_path / "make"
    script.write_text('#!/bin/sh\necho "$NVCC_APPEND_FLAGS|$MCHECK_ARCH"\n', encoding="utf-8")
    script.chmod(0o755)
    assert run_program([str(script)], cache, arch="sm_100a", shown=False).said.strip() == "-lineinfo|100"
    assert "LD_PRELOAD" not in os.environ


def inits(found: ProgramRun) -> list[object]:
    """What the first allocation holds at each launch, and whether that is new since the launch before."""
    versions = [line["allocations"]["0"]["version"] for line in found.lines]
    told = [line["allocations"]["0"].get("init", {}).get("hex") for line in found.lines]
    return [(text, k > 0 and versions[k] != versions[k - 1]) for k, text in enumerate(told)]


ONE = """
    start();
    char *x, *y; int n = 7;
    void *arguments[3] = {&x, &y, &n};
    cudaMallocManaged(&x, (size_t)64, 1), cudaMalloc(&y, (size_t)64);
"""
GO = "cudaLaunchKernel(&stub, grid, block, arguments, (size_t)0, NULL);"


@pytest.mark.parametrize(
    ("then", "ending"), [("for (;;) ;", "it launched nothing more for 1 s and was stopped"), ("return 0;", "")]
)
def test_a_program_that_launches_nothing_more_is_stopped_sooner(
    tmp_path: Path, cache: Path, then: str, ending: str
) -> None:
    main = f"start(); char *x; int n = 7; void *arguments[3] = {{&x, &x, &n}}; cudaMalloc(&x, 4096); {GO} {then}"
    found = ran(tmp_path, cache, main, quiet=1.0)
    assert (len(found.lines), found.ending) == (1, ending)


def test_after_a_launch_only_what_the_host_fills_again_is_known(tmp_path: Path, cache: Path) -> None:
    """Kernels do not run, so the host's memory still has what it had; on a GPU the kernel may have changed it."""
    main = f"{ONE} cudaMemset(x, 1, 4); {GO} cudaMemset(x, 2, 2); {GO} cudaMemset(x + 8, 3, 2); {GO} {GO} return 0;"
    found = ran(tmp_path, cache, main.replace("cudaMemset(x + 8, 3, 2)", "cudaMemset(x + 8, 3, (size_t)2)"))
    assert found.status == 0, found.said
    assert inits(found) == [("01010101", False), ("0202", True), (None, True), (None, False)]


def test_memory_that_the_host_changes_by_itself_is_another_one(tmp_path: Path, cache: Path) -> None:
    found = ran(tmp_path, cache, f"{ONE} *(int *)x = 5; {GO} {GO} *(int *)x = 6; {GO} return 0;")
    assert inits(found) == [("05000000", False), (None, False), (None, True)]


def test_after_a_launch_that_is_not_recorded_nothing_is_known(tmp_path: Path, cache: Path) -> None:
    main = f'{ONE} cudaMemset(x, 1, 4); static const char other; __cudaRegisterFunction(NULL, &other, NULL, "other");'
    main += "cudaLaunchKernel(&other, grid, block, arguments, (size_t)0, NULL);"
    assert inits(ran(tmp_path, cache, f"{main} {GO} return 0;")) == [(None, False)]
    unknown = ran(tmp_path, cache, f"{ONE} cudaMemset(x, 1, 4); cudaSomethingNew(); {GO} return 0;")
    assert inits(unknown) == [(None, False)]


def test_what_a_large_table_points_to_may_have_been_written(tmp_path: Path, cache: Path) -> None:
    main = f"""
    {ONE} char **table;
    cudaMalloc(&table, (size_t)1 << 16), cudaMemset(x, 1, (size_t)4);
    table[100] = x;
    arguments[0] = &table; {GO} arguments[0] = &x; {GO} return 0;
    """
    found = ran(tmp_path, cache, main)
    assert [line["allocations"].get("0", {}).get("init") for line in found.lines] == [None, None]


COPIES = r"""
    start();
    char *x, *y, *z; int n = 7; char own[64], *p;
    void *arguments[3] = {&x, &x, &n}, *other[3] = {&y, &y, &n}, *both[3] = {&y, &z, &n};
    cudaMalloc(&y, (size_t)64), cudaMalloc(&x, (size_t)64), cudaMalloc(&z, (size_t)64);
    cudaMemset(x, 1, (size_t)64), cudaMemset(y, 2, (size_t)64);
    static char key;
    __cudaRegisterVar(NULL, &key, &key, "key", 0, (size_t)8, 0, 0);
"""
RUN = {"x": GO, "y": GO.replace("arguments", "other"), "yz": GO.replace("arguments", "both")}
INTO_Y = {
    "the device": "cudaMemcpy(y, x, (size_t)8, 3);",
    "in rows": "cudaMemcpy2D(y, (size_t)4, x, (size_t)4, (size_t)4, (size_t)2, 3);",
    "by the host": "cudaMemcpy(own, x, (size_t)64, 2), cudaMemcpyAsync(y, own, (size_t)8, 1, NULL);",
    "of what nobody wrote": "cudaMemcpy(y, z + 3, (size_t)8, 3);",
    "by a third": "cudaMemcpy(z, x, (size_t)64, 3), cudaMemcpy(y, z + 8, (size_t)8, 3);",
    "by pinned memory": """
        cudaHostAlloc(&p, (size_t)64, 0), cudaMemcpy(p, x, (size_t)64, 2), cudaMemcpy(y, p, (size_t)8, 1);""",
    "of a variable": """
        cudaMemcpyToSymbol(&key, x, (size_t)8, (size_t)0, 3);
        cudaMemcpyFromSymbol(y, &key, (size_t)8, (size_t)0, 3);""",
}


def told(found: ProgramRun, number: str = "0") -> list[str | None]:
    """The contents of an allocation at each launch that names it."""
    lines = [line["allocations"][number] for line in found.lines if number in line["allocations"]]
    return [about.get("init", {}).get("hex") for about in lines]


@pytest.mark.daily
@pytest.mark.parametrize("way", INTO_Y)
def test_a_copy_of_unknown_contents_is_unknown(tmp_path: Path, cache: Path, way: str) -> None:
    """The first launch may have written what is copied; before it, the contents of a copy are known."""
    refill = "cudaMemset(y, 2, (size_t)64);"
    main = f"{COPIES} {INTO_Y[way]} {RUN['y']} {refill} {RUN['x']} {INTO_Y[way]} {RUN['y']} return 0;"
    found = ran(tmp_path, cache, main)
    assert found.status == 0, found.said
    before = "01" * 8 + "02" * 56 if way != "of what nobody wrote" else None
    assert told(found) == [before, None]


def test_a_copy_behind_unknown_contents(tmp_path: Path, cache: Path) -> None:
    """What is in front of unknown bytes is known; all of it is, once the program fills all of it."""
    main = f"""{COPIES} {RUN["x"]} cudaMemcpy(y + 16, x, (size_t)8, 3); {RUN["y"]}
    cudaMemset(y, 3, (size_t)32), cudaMemset(y + 32, 4, (size_t)32); {RUN["y"]} return 0;"""
    assert told(ran(tmp_path, cache, main)) == ["02" * 16, "03" * 32 + "04" * 32]


def test_pointers_that_the_record_does_not_tell_are_followed(tmp_path: Path, cache: Path) -> None:
    """The second launch may write what the table points to, although nothing is known of the table then."""
    main = f"""{COPIES} cudaMemcpy(x, &z, sizeof z, 1), cudaMemcpy(z, &y, sizeof y, 1); {RUN["x"]}
    cudaMemset(y, 5, (size_t)64); {RUN["x"]} {RUN["y"]} return 0;"""
    found = ran(tmp_path, cache, main)
    assert told(found)[-1] is None
    versions = [line["allocations"]["0"]["version"] for line in found.lines if "0" in line["allocations"]]
    assert versions[-1] > versions[0] + 1, "it is not what the program filled either"


def test_contents_of_a_captured_launch_are_those_of_the_capture(tmp_path: Path, cache: Path) -> None:
    """A graph is launched later, and again."""
    main = f"""{COPIES} cudaStreamBeginCapture(NULL, 0); cudaMemset(x, 3, (size_t)64); {RUN["x"]} {RUN["y"]}
    void *graph; cudaStreamEndCapture(NULL, &graph); {RUN["y"]} return 0;"""
    found = ran(tmp_path, cache, main)
    assert (told(found), told(found, "1")) == ([None, None], ["03" * 64])


VARIABLES = r"""
    start();
    char *x, *address; int n = 7; static char a, b, c, d; static char *e;
    void *arguments[3] = {&x, &x, &n}, *pointer[3] = {&address, &x, &n};
    cudaMalloc(&x, (size_t)64);
    __cudaRegisterVar(NULL, &a, &a, "a", 0, (size_t)8, 0, 0), __cudaRegisterVar(NULL, &b, &b, "b", 0, (size_t)8, 0, 0);
    __cudaRegisterVar(NULL, &c, &c, "c", 0, (size_t)8, 0, 0), __cudaRegisterVar(NULL, &d, &d, "d", 0, (size_t)8, 0, 0);
    __cudaRegisterManagedVar(NULL, &e, &e, "e", 0, (size_t)8, 0, 0);
"""


def test_variables_that_the_host_changes_are_named(tmp_path: Path, cache: Path) -> None:
    """By a copy, by a fill at the address, by a kernel that is given it, and by itself where they are managed. None of
    them is written as a whole.
    """
    main = f"""{VARIABLES} {GO} cudaMemcpyToSymbol(&a, &n, (size_t)4, (size_t)0, 1); {GO}
    cudaGetSymbolAddress(&address, &b), cudaMemset(address, 1, (size_t)4); {GO}
    cudaGetSymbolAddress(&address, &c); {GO.replace("arguments", "pointer")} {GO} *(int *)e = 5; {GO} return 0;"""
    found = ran(tmp_path, cache, main)
    assert [line.get("forgotten", []) for line in found.lines] == [
        [], ["a"], ["a", "b"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "e"],
    ]  # fmt: skip


def test_variables_that_the_host_writes_are_known_until_a_kernel_may_write_them(tmp_path: Path, cache: Path) -> None:
    """Constants also behind a launch; not those that hold pointers."""
    main = f"""{VARIABLES} char *p[1] = {{x}};
    __cudaRegisterVar(NULL, (char *)&n, (char *)&n, "k", 0, (size_t)4, 1, 0);
    cudaMemcpyToSymbol(&n, &n, (size_t)4, (size_t)0, 1), cudaMemcpyToSymbol(&a, "12345678", (size_t)8, (size_t)0, 1);
    cudaMemcpyToSymbol(&b, p, (size_t)8, (size_t)0, 1); {GO} {GO}
    cudaGetSymbolAddress(&address, &c), cudaMemset(address, 1, (size_t)8); {GO} return 0;"""
    found = ran(tmp_path, cache, main)
    assert [line.get("forgotten", []) for line in found.lines] == [["b"], ["a", "b"], ["a", "b"]]
    known = [{name: one["init"]["hex"] for name, one in line["variables"].items()} for line in found.lines]
    assert known == [{"a": b"12345678".hex(), "k": "07000000"}, {"k": "07000000"}, {"c": "01" * 8, "k": "07000000"}]
