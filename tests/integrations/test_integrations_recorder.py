"""The recorder of CUDA launches: a program that calls the runtime as nvcc's code does, run without CUDA."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.ptx.launch_reader import build_launch, from_file
from mcheck.frontend.ptx.reader import parse_module
from mcheck.integrations.cuda import build
from mcheck.integrations.cuda.__main__ import main

compiled = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

MODULE = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry helper_of_scale(.param .u32 n) { ret; }
.visible .entry scale(
    .param .u64 .ptr .global .align 16 in,
    .param .u64 out,
    .param .f32 factor,
    .param .align 64 .b8 both[192]
) { ret; }
"""

# Declared by hand: a host program that nvcc compiled makes the same calls.
HOST = """
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef struct { unsigned x, y, z; } dim3;
typedef struct { int id, pad; union { char bytes[64]; dim3 cluster; uint64_t align; } value; } attribute;
typedef struct { dim3 grid, block; size_t shared; void *stream; attribute *attributes; unsigned count; } config;
int cudaMalloc(void **, size_t);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaLaunchKernelExC(const config *, const void *, void **);
int cudaGetDriverEntryPoint(const char *, void **, unsigned long long, void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *);
typedef int encoder(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *,
                    const unsigned *, int, int, int, int);
int main(void) {
  char *in, *out;
  static const char stub;
  void *encode;
  cudaMalloc((void **)&in, 4096);
  cudaMalloc((void **)&out, 8192);
  char back[4], sent[4] = {1, 2, 3, 4};
  cudaMemcpy(in, sent, 4, 1);
  cudaMemcpy(back, in, 4, 2);
  if (memcmp(back, sent, 4)) return 1;
  __cudaRegisterFunction(NULL, &stub, NULL, "scale");
  struct { float *p; int n; char gap[52]; char map[128]; } both = {0};
  both.p = (float *)(out + 128), both.n = 7;
  uint64_t dim[2] = {32, 16}, stride[1] = {128};
  unsigned box[2] = {32, 8}, step[2] = {1, 1};
  if (cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, 0, NULL)) return 2;
  if (((encoder *)encode)(both.map, 7, 2, out, dim, stride, box, step, 0, 3, 0, 0)) return 3;
  float factor = 2.5f;
  void *arguments[4] = {&in, &out, &factor, &both};
  attribute cluster = {.id = 4, .value.cluster = {2, 1, 1}};
  config how = {{8, 1, 1}, {128, 1, 1}, 1024, NULL, &cluster, 1};
  for (int k = 0; k < 3; ++k)
    if (cudaLaunchKernelExC(&how, &stub, arguments)) return 4;
  if (REPEATED) return 0;
  how.grid.x = 16;
  return cudaLaunchKernelExC(&how, &stub, arguments);
}
"""

DEVICE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int cudaGetDeviceProperties(void *, int);
int cudaGetDeviceProperties_v2(void *, int);
int cudaFuncGetAttributes(void *, const void *);
int main(void) {
  static char bytes[2048];
  memset(bytes, 255, sizeof bytes);
  if (cudaGetDeviceProperties(bytes, 0)) return 1;
  printf("%d %d %d %d", *(int *)(bytes + 360), *(int *)(bytes + 364), *(int *)(bytes + 384), bytes[1008]);
  memset(bytes, 255, sizeof bytes);
  if (cudaGetDeviceProperties_v2(bytes, 0)) return 2;
  printf(" %d %d %d %d", *(int *)(bytes + 360), *(int *)(bytes + 364), *(int *)(bytes + 388), bytes[1032]);
  if (cudaFuncGetAttributes(bytes, NULL)) return 3;
  printf(" %d %d %d", *(int *)(bytes + 24), *(int *)(bytes + 32), *(int *)(bytes + 44));
  return 0;
}
"""


FRONTS = """
#include <stddef.h>
typedef struct { unsigned x, y, z; } dim3;
int cudaMalloc(void **, size_t);
int cudaMemset(void *, int, size_t);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *);
int main(void) {
  static const char stub;
  void *flags, *zeros, *data, *copy;
  dim3 one = {1, 1, 1};
  void *arguments[4] = {&flags, &zeros, &data, &copy};
  __cudaRegisterFunction(NULL, &stub, NULL, "fronts");
  cudaMalloc(&flags, 1 << 20), cudaMemset(flags, 3, 8);
  cudaMalloc(&zeros, 1 << 20), cudaMemset(zeros, 0, 1 << 20);
  cudaMalloc(&data, 1 << 20), cudaMemset(data, 1, 1 << 20);
  cudaMalloc(&copy, 1 << 20), cudaMemcpy(copy, (char *)flags + 8, 1 << 15, 3);
  for (int k = 0; k < 2; ++k) {
    cudaLaunchKernel(&stub, one, one, arguments, 0, NULL);
    cudaMemset(zeros, 0, 1 << 15), cudaMemset(data, 0, 4);
  }
}
"""


def ran(folder: Path, source: str, *flags: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A program that was linked with the recorder, run in a folder."""
    build(folder / "recorder.so")
    (folder / "host.c").write_text(source, encoding="utf-8")
    subprocess.run(["cc", *flags, "-o", folder / "host", folder / "host.c", folder / "recorder.so"], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), **more}
    return subprocess.run([folder / "host"], cwd=folder, env=environment, capture_output=True, text=True, check=True)


@pytest.mark.daily(days=3, least=0)
@compiled
def test_a_launch_is_recorded_with_buffers_and_maps(tmp_path: Path) -> None:
    (tmp_path / "m.ptx").write_text(MODULE, encoding="utf-8")
    done = ran(tmp_path, HOST, "-DREPEATED=1", MCHECK_PTX=str(tmp_path / "m.ptx"))
    assert done.stderr == "recorder: ./scale-1.json\n"
    found = json.loads((tmp_path / "scale-1.json").read_text(encoding="utf-8"))
    params = found.pop("params")
    assert found == {"entry": "scale", "grid": [8, 1, 1], "block": [128, 1, 1], "cluster": [2, 1, 1], "shared": 1024}
    assert params["0"] == {"buffer": 4096}
    assert params["1"] == {"buffer": 8192}
    assert params["2"] == {"hex": "00002040"}
    assert params["3"]["at"]["0"] == {"buffer": 8192 - 128}
    assert params["3"]["at"]["64"]["tensormap"] == {
        "global_address": {"buffer": 8192}, "elemtype": "f32", "rank": 2, "global_dim": [32, 16],
        "global_stride": [128], "element_stride": [1, 1], "box_dim": [32, 8], "interleave_layout": "none",
        "swizzle_mode": "128B", "swizzle_atomicity": "16B", "fill_mode": "zero",
    }  # fmt: skip
    resolved = build_launch(parse_module(MODULE), from_file(str(tmp_path / "scale-1.json")))
    assert len(resolved.arguments) == 4


@pytest.mark.daily(days=3, least=0)
@compiled
def test_a_launch_is_written_once(tmp_path: Path) -> None:
    (tmp_path / "m.ptx").write_text(MODULE, encoding="utf-8")
    done = ran(tmp_path, HOST, "-DREPEATED=0", MCHECK_PTX=str(tmp_path / "m.ptx"))
    assert done.stderr == "recorder: ./scale-1.json\nrecorder: ./scale-2.json\n"
    grids = [json.loads((tmp_path / f"scale-{k}.json").read_text(encoding="utf-8"))["grid"][0] for k in (1, 2)]
    assert grids == [8, 16]


AGAIN = """
#include <stddef.h>
#include <stdint.h>
typedef struct { unsigned x, y, z; } dim3;
int cudaMalloc(void **, size_t);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int cuTensorMapEncodeTiled(void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const unsigned *,
                           const unsigned *, int, int, int, int);
void __cudaRegisterFunction(void **, const char *, char *, const char *);
int main(void) {
  static const char stub;
  void *in, *out;
  __cudaRegisterFunction(NULL, &stub, NULL, "scale");
  for (int k = 0; k < 5001; ++k) {
    struct { float *p; int n; char gap[52]; char map[128]; } both = {0};
    uint64_t dim[2] = {32, 16}, stride[1] = {128};
    unsigned box[2] = {32, 8}, step[2] = {1, 1};
    float factor = 2.5f;
    void *arguments[4] = {&in, &out, &factor, &both};
    dim3 grid = {8, 1, 1}, block = {128, 1, 1};
    cudaMalloc(&in, 4096), cudaMalloc(&out, 8192); /* elsewhere in each round, for none is freed */
    both.p = out, both.n = 7;
    if (cuTensorMapEncodeTiled(both.map, 7, 2, out, dim, stride, box, step, 0, 3, 0, 0)) return 1;
    if (k % 50 == 0 && cudaLaunchKernel(&stub, grid, block, arguments, 0, NULL)) return 2;
  }
  return 0;
}
"""


@pytest.mark.daily(days=4, least=0)
@compiled
def test_a_launch_whose_maps_are_encoded_anew_is_written_once(tmp_path: Path) -> None:
    """In a block of other bytes as well, and wherever the buffers lie; so many maps as a program likes."""
    (tmp_path / "m.ptx").write_text(MODULE, encoding="utf-8")
    done = ran(tmp_path, AGAIN, MCHECK_PTX=str(tmp_path / "m.ptx"))
    assert done.stderr == "recorder: ./scale-1.json\n"
    both = json.loads((tmp_path / "scale-1.json").read_text(encoding="utf-8"))["params"]["3"]
    assert both["hex"] == "00" * 8 + "07" + "00" * (192 - 9), "only what is data"
    assert set(both["at"]) == {"0", "64"}
    resolved = build_launch(parse_module(MODULE), from_file(str(tmp_path / "scale-1.json")))
    assert [at for at, _ in resolved.arguments[3].places] == [0, 64]


DRIVER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
int main(void) {
  void *library = dlopen("./libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  int (*get)(const char *, void **, int, uint64_t, int *) = dlsym(library, "cuGetProcAddress_v2");
  int (*allocate)(void **, size_t), (*say)(int, const char **), (*ask)(void *, int, uint64_t), status = -1;
  int (*described)(void *, const void *) = dlsym(library, "cudaPointerGetAttributes");
  const char *(*told)(int) = dlsym(library, "cudaGetErrorString"), *text;
  void *memory, *none;
  size_t size;
  struct { int type, device; void *there, *here; } what;
  if (get("cuMemAlloc", (void **)&allocate, 12000, 0, &status) || status) return 1;
  if (get("cuGetErrorString", (void **)&say, 6000, 0, NULL)) return 2;
  if (get("cuPointerGetAttribute", (void **)&ask, 7000, 0, NULL)) return 2;
  if (!get("cuNoSuchThing", &none, 12000, 0, &status) || !status || none) return 3;
  if (allocate(&memory, 100) || say(0, &text) || strcmp(text, "no error") || strcmp(told(0), text)) return 4;
  if (ask(&size, 12, (uintptr_t)memory + 4) || size != 100 || !ask(&size, 12, (uintptr_t)&size)) return 5;
  if (described(&what, memory) || what.type != 2 || what.there != memory) return 6;
  return described(&what, &what) || what.type != 0 || what.there;
}
"""


@pytest.mark.daily(days=4, least=0)
@compiled
def test_a_program_that_opens_the_driver_by_itself_finds_it(tmp_path: Path) -> None:
    """By the names of the driver's functions alone, none of which everybody sees."""
    build(tmp_path / "libcuda.so.1")
    (tmp_path / "host.c").write_text(DRIVER, encoding="utf-8")
    subprocess.run(["cc", "-o", tmp_path / "host", tmp_path / "host.c", "-ldl"], check=True)
    assert subprocess.run([tmp_path / "host"], cwd=tmp_path, check=False).returncode == 0


_NVIDIA = find_spec("nvidia")
_PACKAGES = (Path(folder) for folder in (_NVIDIA.submodule_search_locations or ())) if _NVIDIA else ()
NVCC = next((nvcc for folder in _PACKAGES for nvcc in folder.glob("*/bin/nvcc")), None)
PROGRAM = """
#include <cstdio>
#include <cuda_runtime.h>
__global__ void scale(float *x, float f) { x[threadIdx.x] *= f; }
int main() {
  float *x;
  cudaPointerAttributes about;
  cudaMalloc(&x, 4096);
  cudaPointerGetAttributes(&about, x);
  scale<<<2, 128>>>(x, 2.0f);
  printf("%s %d", cudaGetErrorString(cudaDeviceSynchronize()), (int)about.type);
  return cudaFree(x);
}
"""


@pytest.mark.slow
@compiled
@pytest.mark.skipif(NVCC is None, reason="no nvcc: pip install nvidia-cuda-nvcc nvidia-cuda-runtime")
def test_a_program_of_nvcc_is_linked_as_the_documentation_says(tmp_path: Path) -> None:
    """With the packages of PyPI, which have no libcudart.so."""
    text = (Path(__file__).parents[2] / "docs" / "cuda.md").read_text(encoding="utf-8")
    (linked,) = (line for line in text.split("\n") if line.startswith("nvcc -cudart"))
    (tmp_path / "k.cu").write_text(PROGRAM, encoding="utf-8")
    build(tmp_path / "recorder.so")
    command = linked.replace("kernels.cu main.cu", "k.cu").split()[1:]
    subprocess.run([NVCC, "-ptx", "-arch=sm_90a", "k.cu", "-o", "k.ptx"], cwd=tmp_path, check=True)
    subprocess.run([NVCC, *command], cwd=tmp_path, check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "MCHECK_PTX": "k.ptx"}
    done = subprocess.run(
        [tmp_path / "program"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "no error 2"
    (found,) = tmp_path.glob("*.json")
    assert json.loads(found.read_text(encoding="utf-8"))["params"] == {"0": {"buffer": 4096}, "1": {"hex": "00000040"}}


@pytest.mark.daily(days=4, least=0)
@compiled
def test_properties_of_the_device_and_of_functions_as_cuda_13_and_12_lay_them_out(tmp_path: Path) -> None:
    """And no byte behind the structure is written."""
    assert ran(tmp_path, DEVICE, MCHECK_ARCH="100").stdout == "10 0 132 -1 10 0 132 -1 1024 100 232448"


@pytest.mark.daily(days=4, least=0)
@compiled
def test_an_entry_that_no_module_has_is_said(tmp_path: Path) -> None:
    done = ran(tmp_path, HOST, "-DREPEATED=1", MCHECK_PTX="missing.ptx")
    assert "missing.ptx cannot be read" in done.stderr
    assert "no module of MCHECK_PTX has an entry scale" in done.stderr


@pytest.mark.daily(days=3, least=0)
@compiled
def test_what_the_host_fills_at_the_front_of_large_memory(tmp_path: Path) -> None:
    """Flags of a workspace, and zeros; data that fill more of it are not given, nor a copy of what nobody wrote. What a
    kernel may have written is unknown until the host fills it again.
    """
    (tmp_path / "m.ptx").write_text(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.entry fronts(.param .u64 a, .param .u64 b, .param .u64 c, "
        ".param .u64 d) { ret; }",
        encoding="utf-8",
    )
    ran(tmp_path, FRONTS, MCHECK_PTX=str(tmp_path / "m.ptx"), MCHECK_RECORD=str(tmp_path / "record"))
    first, second = [json.loads(text) for text in (tmp_path / "record").read_text(encoding="utf-8").splitlines()]
    inits = [[about.get("init", {}).get("hex") for about in line["allocations"].values()] for line in (first, second)]
    assert inits == [["03" * 8, "00" * (1 << 14), None, None], [None, "00" * (1 << 14), "00" * 4, None]]


@pytest.mark.daily(days=3, least=0)
@compiled
def test_the_command_makes_the_library(tmp_path: Path) -> None:
    assert main([str(tmp_path / "recorder.so")]) == 0
    assert (tmp_path / "recorder.so").exists()


def test_a_missing_compiler_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="no C compiler 'no-such-cc'"):
        build(tmp_path / "recorder.so", "no-such-cc")
    assert main([]) == 2
    assert "usage: python -m mcheck.integrations.cuda FILE" in capsys.readouterr().err
