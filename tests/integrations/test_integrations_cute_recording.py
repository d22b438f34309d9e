"""Launches of CuTe DSL, recorded: maps as its host code packs them, parameters, and the library that it calls."""

from __future__ import annotations

import ctypes
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from mcheck.frontend.ptx import launch_reader
from mcheck.integrations import cute_recording
from mcheck.integrations.cute_maps import MAP_BYTES, read_map
from mcheck.integrations.cute_recording import Recorder
from mcheck.ptx import check

CORPUS = Path(__file__).parents[1] / "simt" / "corpus" / "cute"
ENTRY = "kernel_cutlass_made_0"
MODULE = f""".version 8.7
.target sm_90a
.address_size 64
.visible .entry {ENTRY}(
	.param .align 64 .b8 {ENTRY}_param_0[128],
	.param .u64 .ptr .global .align 16 {ENTRY}_param_1,
	.param .f32 {ENTRY}_param_2,
	.param .align 8 .b8 {ENTRY}_param_3[16]
)
{{
	ret;
}}
"""


def packed(head: int, strides: tuple[int, ...], sizes: tuple[int, ...], box: tuple[int, ...]) -> bytes:
    """What host code of release 4.8 passes for a map at address 0x1000."""

    def padded(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
        return numbers + (0,) * (count - len(numbers))

    words = struct.pack("<QI4II5I", 0x1000, head, *padded(strides, 4), 0, *padded(sizes, 5))
    return (words + bytes(3) + bytes(padded(box, 5))).ljust(MAP_BYTES, b"\0")


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        (packed(0x240392, (32,), (127, 511), (31, 63)), ("f32", [128, 512], [512], [32, 64], "none")),
        (packed(0x246392, (32,), (127, 511), (31, 63)), ("f32", [128, 512], [512], [32, 64], "128B")),
        (packed(0x242392, (32,), (127, 511), (7, 63)), ("f32", [128, 512], [512], [8, 64], "32B")),
        (packed(0x240312, (16,), (127, 511), (63, 63)), ("f16", [128, 512], [256], [64, 64], "none")),
        (packed(0x240512, (16,), (127, 511), (15, 63)), ("bf16", [128, 512], [256], [16, 64], "none")),
        (packed(0x250392, (32,), (127, 511), (15, 63)), ("tf32", [128, 512], [512], [16, 64], "none")),
        (packed(0x040012, (8,), (127, 511), (63, 63)), ("u8", [128, 512], [128], [64, 64], "none")),
        (packed(0x240492, (64,), (127, 511), (15, 63)), ("f64", [128, 512], [1024], [16, 64], "none")),
        (
            packed(0x2403B2, (32, 0x4000, 0x18000), (127, 511, 5, 4), (31, 63, 1, 0)),
            ("f32", [128, 512, 6, 5], [512, 0x40000, 0x180000], [32, 64, 2, 1], "none"),
        ),
    ],
)
def test_a_packed_map_is_read(data: bytes, fields: tuple[Any, ...]) -> None:
    found = read_map(data, lambda address: {"buffer": address})
    assert found is not None
    named = ("elemtype", "global_dim", "global_stride", "box_dim", "swizzle_mode")
    assert tuple(found[name] for name in named) == fields
    assert found["global_address"] == {"buffer": 0x1000}


@pytest.mark.parametrize("head", [0x240390, 0x2403E2, 0x240592, 0x240B92, 0x248392])
def test_bytes_of_another_form_are_no_map(head: int) -> None:
    assert read_map(packed(head, (32,), (127, 511), (31, 63)), lambda _: {}) is None


def test_the_recorder_writes_each_launch_once(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "made.ptx").write_text(MODULE, encoding="utf-8")
    recorder = Recorder(tmp_path / "kept", tmp_path / "dump", memory=[(0x1000, 0x3000)])
    recorder.folder.mkdir()
    library = ctypes.CDLL(str(cute_recording._built(tmp_path)))
    sink = cute_recording._SINK(recorder.launched)
    library.mcheck_record(sink)
    kernel = ctypes.c_void_p()
    assert library._cudaLibraryGetKernel(ctypes.byref(kernel), None, ENTRY.encode()) == 0
    given = (
        packed(0x240392, (32,), (31, 15), (31, 15)),
        struct.pack("<Q", 0x1800),
        struct.pack("<f", 2.0),
        struct.pack("<QQ", 7, 0x1000),
    )
    values = [ctypes.create_string_buffer(data, len(data)) for data in given]
    arguments = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    attribute = struct.pack("<II3I", 4, 0, 2, 1, 1).ljust(72, b"\0")
    attributes = ctypes.create_string_buffer(attribute, len(attribute))
    config = struct.pack("<6IQQQI", 4, 1, 1, 160, 1, 1, 4096, 0, ctypes.addressof(attributes), 1).ljust(64, b"\0")
    for _ in range(2):
        assert library._cudaLaunchKernelEx(config, kernel, arguments) == 0
    assert not recorder.problems
    (path,) = recorder.paths.values()
    launch = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    (made,) = launch["launches"]
    assert (made["grid"], made["block"], made["cluster"], made["shared"]) == ([4, 1, 1], [160, 1, 1], [2, 1, 1], 4096)
    first = made["params"]["0"]["tensormap"]["global_address"]
    assert first == {"buffer": "memory0"}
    assert launch["buffers"]["memory0"]["bytes"] == 0x2000
    assert made["params"]["1"] == {"buffer": 0x1800}
    assert made["params"]["2"] == {"hex": "00000040"}
    assert made["params"]["3"]["at"] == {"8": first}
    assert launch_reader.from_object(launch)
    assert check(path).verdict in ("proved", "bounded")


def test_a_kernel_without_a_module_is_a_problem(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, tmp_path)
    assert recorder.launched(ctypes.pointer(cute_recording._Config()), b"gone", None) == 0
    assert recorder.problems == ["gone: CuTe DSL has left no module with this kernel"]
