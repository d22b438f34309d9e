"""``pytest -p mcheck.triton`` with Triton: a small suite that knows nothing of it runs without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or find_spec("torch") is None, reason="Triton and PyTorch are not installed"
)

HEAD = """
import numpy as np
import pytest
import torch
import triton
import triton.language as tl

"""


def run(folder: Path, tests: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_kernels.py").write_text(HEAD + tests)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "mcheck.triton", "-W", "ignore", "-rA", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        timeout=400,
        check=False,
    )


def launches(folder: Path) -> list[dict[str, object]]:
    found = (folder / ".pytest_cache" / "d" / "mcheck-kernels").glob("*.json")
    return [json.loads(path.read_text()) for path in sorted(found)]


ROWS = """
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

def added(x, y):
    out = torch.empty_like(x)
    compiled = add[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    assert "ld.global" in compiled.asm["ptx"]
    return out

def test_close():
    x = torch.rand(1000, device="cuda")
    y = torch.rand(1000, device="cuda")
    torch.testing.assert_close(added(x, y), x + y)
    assert torch.allclose(added(x, y), x + y)
    assert not (added(x, y) != x + y).any()

def test_numbers():
    x = torch.rand(1000, device="cuda")
    assert np.max(added(x, x).cpu().numpy()) < 2

def test_shapes():
    x = torch.rand(1000, device="cuda")
    assert added(x, x).shape == (1001,)

def test_host():
    x = torch.arange(5, device="cuda")
    assert x.sum().item() == 10 and x.tolist()[-1] == 4
    assert (x == x + 1).any()
"""


def test_assertions_about_numbers_are_passed_over_and_others_hold(tmp_path: Path) -> None:
    done = run(tmp_path, ROWS)
    assert "PASSED test_kernels.py::test_close" in done.stdout
    assert "PASSED test_kernels.py::test_numbers" in done.stdout
    assert "FAILED test_kernels.py::test_shapes" in done.stdout
    assert "FAILED test_kernels.py::test_host" in done.stdout, "what the host computed is known"
    assert "1 test passed over assertions about numbers" in done.stdout
    assert "1 test ended early" in done.stdout
    assert "3 tests with" not in done.stdout, "a test that fails by itself is not judged"
    assert "2 tests with 2 launches, 2 different: 2 proved" in done.stdout
    assert all(one["grid"] == [8, 1, 1] for one in launches(tmp_path) if "launches" not in one)
    assert sum("launches" in one for one in launches(tmp_path)) == 1, "x and x are one buffer"


GLUON = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

@gluon.jit
def doubling(source, tile, full, FENCE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    rows = gl.program_id(0) * 64 + gl.arange(0, 64, gl.SliceLayout(1, layout))
    value = gl.load(source + rows[:, None] * 32 + gl.arange(0, 32, gl.SliceLayout(0, layout))[None, :])
    tile.store(value + value)
    if FENCE:
        fence_async_shared()
    mbarrier.arrive(full, count=1)

@gluon.jit
def storing(target, tile, full, FENCE: gl.constexpr):
    mbarrier.wait(full, 0)
    tma.async_store(target, [gl.program_id(0) * 64, 0], tile)
    tma.store_wait(0)

@gluon.jit
def doubled(source, target, FENCE: gl.constexpr):
    tile = gl.allocate_shared_memory(target.dtype, target.block_type.shape, target.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    fence_async_shared()
    gl.warp_specialize([(doubling, (source, tile, full, FENCE)), (storing, (target, tile, full, FENCE))], [1], [24])

@pytest.mark.parametrize("fence", [True, False])
def test_doubled(fence):
    source = torch.rand(256, 32, device="cuda")
    target = torch.empty_like(source)
    layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)
    doubled[(4,)](source, TensorDescriptor.from_tensor(target, [64, 32], layout), fence)
    torch.testing.assert_close(target, 2 * source)
"""


def test_a_missing_fence_fails_at_the_line_of_the_source(tmp_path: Path) -> None:
    done = run(tmp_path, GLUON, "--tb=short")
    assert "PASSED test_kernels.py::test_doubled[True]" in done.stdout
    assert "FAILED test_kernels.py::test_doubled[False]" in done.stdout
    assert "error[RACE004]" in done.stdout
    lines = (tmp_path / "test_kernels.py").read_text().splitlines()
    store = lines.index("    tile.store(value + value)")
    copy = next(k for k, line in enumerate(lines) if "async_store(" in line or "async_copy_shared_to_global(" in line)
    assert f"--> test_kernels.py:{copy + 1}:" in done.stdout
    assert f"{store + 1} | {lines[store]}\n" in done.stdout
    assert "2 launches, 2 different: 1 proved, 1 finding" in done.stdout


TUNED = """
@triton.autotune([triton.Config({"BLOCK": b}) for b in (128, 256, 512)], key=["n"])
@triton.jit
def scale(x, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for k in range(tl.load(counts)):
        tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

def test_scale():
    x = torch.rand(1024, device="cuda")
    counts = torch.tensor([3, 1], dtype=torch.int32, device="cuda")
    scale[lambda meta: (triton.cdiv(1024, meta["BLOCK"]),)](x, counts, 1024)

@triton.jit
def shift(source, target, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + BLOCK + at))

def test_aliased():
    x = torch.rand(1024, device="cuda")
    shift[(4,)](x, x, BLOCK=128)

def test_overlapping():
    x = torch.rand(1024, device="cuda")
    shift[(4,)](x, x[128:], BLOCK=128)
"""


@pytest.mark.parametrize(("choice", "grids"), [("first", [8]), ("all", [2, 4, 8])])
def test_configurations_and_contents(tmp_path: Path, choice: str, grids: list[int]) -> None:
    done = run(tmp_path, TUNED, "--mcheck-autotune", choice)
    assert "PASSED test_kernels.py::test_scale" in done.stdout
    assert "FAILED test_kernels.py::test_aliased" in done.stdout, "a program reads what the one before it writes"
    assert "RACE001" in done.stdout
    assert "1 bounded: arguments that overlap in memory were checked as separate buffers" in done.stdout
    tuned = [one for one in launches(tmp_path) if one.get("entry") == "scale"]
    assert sorted(one["grid"][0] for one in tuned) == grids  # type: ignore[index]
    for one in tuned:
        assert one["params"]["1"] == {"buffer": 8, "init": {"hex": "0300000001000000"}}  # type: ignore[index]
    (aliased,) = (one for one in launches(tmp_path) if "launches" in one)
    assert aliased["buffers"] == {"memory0": {"bytes": 4096}}


ADDRESSES = """
@triton.jit
def store(address, table, value):
    tl.store(address.to(tl.pointer_type(tl.int32)) + tl.program_id(0), value)
    tl.store(tl.load(table).to(tl.pointer_type(tl.int32)), value)

def test_addresses():
    x, y = torch.zeros(8, dtype=torch.int32, device="cuda"), torch.zeros(8, dtype=torch.int32, device="cuda")
    table = torch.tensor([y.data_ptr()], device="cuda")
    assert x.tolist() == [0] * 8
    store[(4,)](x.data_ptr() + 16, table, 7)
    assert (y == 7).any() and (x == 7).any(), "neither is known any more"
"""


def test_addresses_are_buffers_and_what_is_behind_them_is_written(tmp_path: Path) -> None:
    done = run(tmp_path, ADDRESSES)
    assert "PASSED test_kernels.py::test_addresses" in done.stdout
    (launch,) = launches(tmp_path)
    assert launch["params"]["0"] == {"buffer": 16}  # type: ignore[index]
    assert launch["params"]["1"] == {"buffer": 8}  # type: ignore[index]


def test_a_target_is_what_tests_see(tmp_path: Path) -> None:
    tests = """
@pytest.mark.skipif(torch.cuda.get_device_capability()[0] < 9, reason="Hopper")
def test_hopper():
    assert triton.runtime.driver.active.get_current_target().arch == 90

def test_any():
    processors = {(8, 0): 108, (9, 0): 132}[torch.cuda.get_device_capability()]
    assert torch.cuda.get_device_properties("cuda").multi_processor_count == processors
"""
    done = run(tmp_path, tests, "--mcheck-arch", "80,90")
    assert "1 passed, 1 skipped" in done.stdout
    assert "2 passed" in done.stdout


BACKWARD = """
@triton.jit
def scale(x, out, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return Scaled.launch(x, factor)

    @staticmethod
    def backward(ctx, gradient):
        return Scaled.launch(gradient, ctx.factor + 1.0), None

    @staticmethod
    def launch(x, factor):
        out = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 128),)](x, out, factor, x.numel(), BLOCK=128)
        return out

def test_backward():
    x = torch.rand(1000, device="cuda", requires_grad=True)
    (Scaled.apply(x * 2, 3.0) ** 2).sum().backward()
    assert x.grad.shape == x.shape
"""


def test_a_backward_pass_launches_its_kernels(tmp_path: Path) -> None:
    done = run(tmp_path, BACKWARD)
    assert "1 test with 2 launches, 2 different: 2 proved" in done.stdout


PROFILED = """
import triton.profiler as proton

@triton.jit
def fill(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), 1.0)

def test_profile():
    proton.start("fills", hook="triton")
    proton.deactivate()
    fill[(1,)](torch.empty(128, device="cuda"), BLOCK=128)
    proton.finalize()
    import triton.profiler.viewer as viewer
    tree, metrics = viewer.parse(["time/ms"], "fills.hatchet")
    assert False, "there is no profile"
"""


def test_a_profile_is_one_of_the_numbers_that_are_not_computed(tmp_path: Path) -> None:
    done = run(tmp_path, PROFILED)
    assert "PASSED test_kernels.py::test_profile" in done.stdout
    assert "1 test ended early, at a number that no kernel has computed: the profile of kernels" in done.stdout
    assert "leaked" not in done.stderr, "modules imported by tests are gone from sys.modules at the end"
