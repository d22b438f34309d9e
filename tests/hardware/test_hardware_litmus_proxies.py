"""What the runner does with textures, surfaces, tensor maps that change, prefetches and ``mbarrier.inval``."""

from __future__ import annotations

from ctypes import Structure, sizeof
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardware import resources
from hardware.emit import CannotEmit
from hardware.litmus.device import Device, rows
from hardware.litmus.kernel import Kernel, kernel, module
from hardware.litmus.observe import observed
from hardware.litmus.plan import entry
from hardware.litmus.session import Session
from hardware.litmus.settings import ROW
from mcheck.frontend.litmus import load, parse
from mcheck.ir.program import Program
from tests.assembler import Assembler

LITMUS = Path(__file__).parents[2] / "litmus"
GOLDEN = Path(__file__).parent / "golden"
SAMPLE = (
    "proxies/Tex+no-fence", "proxies/MP+tex+no-fence+same-cta", "proxies/MP+surf-surf+other-cta",
    "proxies/MP+surf-surf+same-cta", "proxies/Surf+own-read", "tensor/tensor-map-replaced-with-fence-pair",
    "tensor/tensor-map-replaced-by-another-address", "tensor/tensor-map-replaced-by-another-cta",
    "tensor/tensor-map-copied-with-cp-fenceproxy", "tensor/tensor-prefetch-has-no-effect",
    "bulk/bulk-prefetch-is-no-copy", "mbarrier/mbarrier-inval-then-reuse-as-data",
    "undefined/undefined-reuse-as-copy-destination-ok",
)  # fmt: skip


def sample(name: str) -> Program:
    return observed(load(str(LITMUS / f"{name}.litmus")))


def body(made: Kernel) -> str:
    """The code of the threads, without the frame."""
    parts = made.text.split("// --- the test\n")[1:]
    return "".join(f"thread {k}\n{part.split('// ---')[0]}" for k, part in enumerate(parts))


def test_they_assemble(assembler: Assembler) -> None:
    text = module([kernel(sample(name), f"t{k}").text for k, name in enumerate(SAMPLE)])
    status, said = assembler.assemble(text, "-arch", "sm_90a")
    assert status == 0, said


@pytest.mark.parametrize(
    "name",
    [
        "proxies/MP+tex+no-fence+same-cta",
        "proxies/MP+surf-surf+same-cta",
        "tensor/tensor-map-copied-with-cp-fenceproxy",
    ],
)
def test_the_code_of_a_test(name: str, promote: bool) -> None:
    found = body(kernel(sample(name), "t0"))
    golden = GOLDEN / f"{name.rsplit('/', 1)[-1]}.ptx"
    if promote:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found)
    assert golden.read_text() == found


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("proxies/Tex+fence", "PTX has no fence.proxy.texture"),
        ("proxies/Surf+write-back", "PTX has no fence.proxy.surface"),
        ("proxies/Const+fence", "PTX has no fence.proxy.constant"),
        ("proxies/Const+no-fence", "may not be written while a kernel runs"),
        ("proxies/Surf+no-fence", "a surface's memory has no generic address"),
        ("proxies/Surf+CoWW", "a surface's memory has no generic address"),
        ("proxies/Surf+then-bulk-store", "a surface's memory has no generic address"),
        ("atomics/Ops", "PTX has no atomic sub"),
    ],
)
def test_what_a_chip_lacks_is_said(name: str, reason: str) -> None:
    with pytest.raises(CannotEmit, match=reason):
        kernel(sample(name), "t0")


SURFACE = "PTX s\n{ x = 3; s @ surface aliases x; }\n P0@cta 0,gpu 0 ;\n %s ;\n"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("sust.weak s, 1 ;\nforall (x == 1)", "no generic address"),
        ("suld.relaxed.gpu r0, s ;\nexists (P0:r0 == 3)", "PTX has no suld.relaxed.gpu"),
        ("suatom.relaxed.gpu.add r0, s, 1 ;\nexists (P0:r0 == 3)", "PTX has no suatom.relaxed.gpu.add"),
        ("suld.weak r0, s ;\n ld.weak r1, x ;\nexists (P0:r0 == 3)", "no generic address"),
    ],
)
def test_what_a_surface_cannot_do_is_said(code: str, reason: str) -> None:
    program = parse(SURFACE.replace("%s ;\n", code), "s.litmus")
    with pytest.raises(CannotEmit, match=reason):
        kernel(observed(program), "t0")


def test_a_map_that_the_host_wrote_is_acquired_and_may_be_warm() -> None:
    """It is only warm where the test changes it."""
    frame = kernel(sample("tensor/tensor-map-replaced-without-fences"), "t0").text.split("// --- the test")[0]
    assert frame.count("fence.proxy.tensormap::generic.acquire.sys") == 1
    assert frame.count("prefetch.tensormap") == 1
    assert "prefetch.tensormap" not in kernel(sample("tensor/tensor-load-1d"), "t0").text


def test_a_texture_is_warmed_through_the_texture() -> None:
    frame = kernel(sample("proxies/Tex+no-fence"), "t0").text.split("// --- the test")[0]
    assert frame.count("tex.1d") == 1


@pytest.mark.parametrize(
    ("name", "every_round"),
    [("mbarrier/mbarrier-inval-then-reuse-as-data", True), ("mbarrier/mbarrier-try-wait-may-give-up", False)],
)
def test_what_is_invalidated_is_cleared_like_data(name: str, every_round: bool) -> None:
    text = kernel(sample(name), "t0").text
    assert ("st.shared.u32 [%s0+0], 0;" in text.split("ROUND0:")[1]) == every_round


# --- the host's side ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "size", "offsets"),
    [
        (resources.ResourceDescription, 144, {"res": 8, "flags": 136}),
        (resources.Linear, 24, {"format": 8, "numChannels": 12, "sizeInBytes": 16}),
        (resources.TextureDescription, 104, {"filterMode": 12, "flags": 16, "borderColor": 40}),
        (resources.ArrayDescription, 40, {"Format": 24, "NumChannels": 28, "Flags": 32}),
        (resources.Copy, 128, {"srcDevice": 32, "srcPitch": 48, "dstMemoryType": 72, "dstArray": 96, "Height": 120}),
    ],
)
def test_structures_lie_as_cuda_h_has_them(kind: type[Structure], size: int, offsets: dict[str, int]) -> None:
    assert sizeof(kind) == size
    assert {name: getattr(kind, name).offset for name in offsets} == offsets


class FakeDriver:
    """Remembers calls, and hands out numbers for handles."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def call(self, name: str, *arguments: Any, log: object = None) -> None:
        self.calls.append((name, tuple(getattr(a, "_obj", a) for a in arguments)))
        if name in ("cuTexObjectCreate", "cuSurfObjectCreate", "cuArray3DCreate_v2"):
            arguments[0]._obj.value = 1000 + len(self.calls)

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [arguments for called, arguments in self.calls if called == name]


def session() -> tuple[Session, FakeDriver]:
    made, device, driver = object.__new__(Session), object.__new__(Device), FakeDriver()
    device.driver = driver  # type: ignore[assignment]
    device.arena, device.used, device.used_twice, device.twice = 1 << 40, 0, 0, ()
    device.textures, device.arrays = {}, {}
    made.device = device
    return made, driver


def test_a_texture_lies_over_its_object() -> None:
    made, driver = session()
    _, row = entry(sample("proxies/Tex+no-fence"), 0)
    assert row["objects"] == [
        {"stride": 4, "init": "00000000"},
        {"stride": 4, "proxy": "texture", "of": 0},
    ]
    first = made.places(row["objects"], 1024, [419, 7])
    again = made.places(row["objects"], 1024, [419, 7])
    (base, multiplier), (handle, same) = first
    assert multiplier == same == 419
    (handle_out, resource, how, view), (_, second, _, _) = driver.of("cuTexObjectCreate")
    assert handle_out.value == handle
    assert (resource.resType, resource.flags) == (resources.LINEAR, 0)
    assert (resource.res.linear.devPtr, resource.res.linear.sizeInBytes) == (base, 4096)
    assert (resource.res.linear.format, resource.res.linear.numChannels) == (resources.WORDS, 1)
    assert how.flags == resources.AS_INTEGER
    assert view is None
    assert second.res.linear.devPtr == again[0][0]


def test_a_surface_is_filled_with_what_its_object_holds() -> None:
    made, driver = session()
    _, row = entry(sample("proxies/Surf+own-read"), 0)
    objects = made.places(row["objects"], 4 * ROW, [1])
    made.initialise(row["objects"][1], objects, 1, 4 * ROW)
    (_, shape), (out, resource) = driver.of("cuArray3DCreate_v2")[0], driver.of("cuSurfObjectCreate")[0]
    assert (shape.Width, shape.Height, shape.Depth, shape.Flags) == (ROW, 4, 0, resources.LOAD_AND_STORE)
    assert (resource.resType, out.value) == (resources.ARRAY, objects[1][0])
    ((copy, stream),) = driver.of("cuMemcpy2DAsync_v2")
    assert stream is None
    assert (copy.srcDevice, copy.dstArray) == (objects[0][0], resource.res.hArray)
    assert (copy.WidthInBytes, copy.srcPitch, copy.Height) == (4 * ROW, 4 * ROW, 4)
    made.device.reset()
    assert [a.value for (a,) in driver.of("cuSurfObjectDestroy")] == [objects[1][0]]
    assert len(driver.of("cuArrayDestroy")) == 1


@given(st.integers(0, 24))
def test_the_words_of_a_surface_have_places_and_are_all_filled(bits: int) -> None:
    count = 1 << bits
    assert ROW & (ROW - 1) == 0  # coordinates are made by a mask and a shift
    assert (count - 1) // ROW < rows(4 * count)
    assert min(4 * count, 4 * ROW) * rows(4 * count) == 4 * count
