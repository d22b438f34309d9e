"""The recorder of CUDA launches: a program that calls the runtime as nvcc's code does, run without CUDA."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mcheck.errors import InputError
from mcheck.integrations.cuda import build
from mcheck.integrations.cuda.__main__ import main
from mcheck.ptx.launching import from_file, launch
from mcheck.ptx.reading import module

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


def ran(folder: Path, source: str, *flags: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A program that was linked with the recorder, run in a folder."""
    build(folder / "recorder.so")
    (folder / "host.c").write_text(source, encoding="utf-8")
    subprocess.run(["cc", *flags, "-o", folder / "host", folder / "host.c", folder / "recorder.so"], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), **more}
    return subprocess.run([folder / "host"], cwd=folder, env=environment, capture_output=True, text=True, check=True)


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
    resolved = launch(module(MODULE), from_file(str(tmp_path / "scale-1.json")))
    assert len(resolved.arguments) == 4


@compiled
def test_a_launch_is_written_once(tmp_path: Path) -> None:
    (tmp_path / "m.ptx").write_text(MODULE, encoding="utf-8")
    done = ran(tmp_path, HOST, "-DREPEATED=0", MCHECK_PTX=str(tmp_path / "m.ptx"))
    assert done.stderr == "recorder: ./scale-1.json\nrecorder: ./scale-2.json\n"
    grids = [json.loads((tmp_path / f"scale-{k}.json").read_text(encoding="utf-8"))["grid"][0] for k in (1, 2)]
    assert grids == [8, 16]


@compiled
def test_properties_of_the_device_and_of_functions_as_cuda_13_and_12_lay_them_out(tmp_path: Path) -> None:
    """And no byte behind the structure is written."""
    assert ran(tmp_path, DEVICE, MCHECK_ARCH="100").stdout == "10 0 132 -1 10 0 132 -1 1024 100 232448"


@compiled
def test_an_entry_that_no_module_has_is_said(tmp_path: Path) -> None:
    done = ran(tmp_path, HOST, "-DREPEATED=1", MCHECK_PTX="missing.ptx")
    assert "missing.ptx cannot be read" in done.stderr
    assert "no module of MCHECK_PTX has an entry scale" in done.stderr


@compiled
def test_the_command_makes_the_library(tmp_path: Path) -> None:
    assert main([str(tmp_path / "recorder.so")]) == 0
    assert (tmp_path / "recorder.so").exists()


def test_a_missing_compiler_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="no C compiler 'no-such-cc'"):
        build(tmp_path / "recorder.so", "no-such-cc")
    assert main([]) == 2
    assert "usage: python -m mcheck.integrations.cuda FILE" in capsys.readouterr().err
