"""Tests whose instances have CTAs of their own: their layout and their code, without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardware.emit import CannotEmit
from hardware.litmus import settings
from hardware.litmus.kernel import Kernel, kernel, module
from hardware.litmus.observe import observed
from hardware.litmus.plan import entry, programs
from hardware.litmus.rows import Position, computed
from hardware.litmus.session import geometry_of, presets_of
from hardware.litmus.streams import Varying, streams
from hardware.litmus.stress import WHOLE
from hardware.litmus.whole import whole
from mcheck.answers.final_states import terms_of
from mcheck.frontend.litmus import load as load_test
from mcheck.frontend.litmus import parse
from mcheck.ir.expr import Const
from mcheck.ir.program import Program
from tests.assembler import Assembler

LITMUS = Path(__file__).parents[2] / "litmus"
FOLDERS = ("barriers", "kernels", "warps", "atomics", "cp-async", "mbarrier", "coherence")
GOLDENS = Path(__file__).parent / "whole"


def the(name: str) -> Program:
    return observed(load_test(str(LITMUS / f"{name}.litmus")))


@cache
def alone() -> tuple[tuple[str, Program, Kernel], ...]:
    """The tests of the suites that have no other place on a chip, with their kernels."""
    found = []
    for name, program in programs(LITMUS / folder for folder in FOLDERS):
        try:
            kernel(program, "t")
        except CannotEmit:
            try:
                made = whole(program, f"t{len(found)}")
            except CannotEmit:
                continue
            found.append((name, program, made))
    return tuple(found)


@pytest.mark.daily(least=0)
def test_the_suites_have_many_of_them() -> None:
    stems = {Path(name).stem for name, _, _ in alone()}
    assert len(stems) > 80
    assert {"Bar+exited", "Bar.red+popc", "MP+bar.cta.sync", "warps-shfl-idx", "P15-full-empty-ring"} <= stems


def test_a_product_without_its_fence_is_not_what_the_chip_would_run() -> None:
    with pytest.raises(CannotEmit, match="the assembler inserts"):
        whole(the("warps/warps-wgmma-store-without-fence"), "t")


@pytest.mark.daily(least=0)
def test_all_of_them_assemble(assembler: Assembler) -> None:
    status, said = assembler.assemble(module([made.text for _, _, made in alone()]), "-arch", "sm_90a", "-O1")
    assert status == 0, said
    assert "serialized" not in said


def _of(value: Any, thread: int) -> Any:
    """What a value of a stream is for one thread."""
    if isinstance(value, Varying):
        return _of(Const(dict(value.values)[thread]), thread)
    if isinstance(value, tuple):
        return tuple(_of(v, thread) for v in value)
    if hasattr(value, "__dataclass_fields__"):
        names = [n for n, f in value.__dataclass_fields__.items() if f.compare]
        return (type(value).__name__, *(_of(getattr(value, n), thread) for n in names))
    return value


@pytest.mark.daily(least=0)
def test_a_stream_holds_the_code_of_each_of_its_threads() -> None:
    for name, program, _ in alone():
        for stream in streams(program):
            for thread in stream.threads:
                mine = [s.op for s in stream.steps if s.op is not None and thread.index in s.members]
                code = [op for op in thread.code if type(op).__name__ != "Label"]
                found = [_of(op, thread.index) for op in mine]
                assert found == [_of(op, thread.index) for op in code], (name, thread.name)


def test_the_lanes_of_a_warp_run_one_instruction() -> None:
    """Lane 0 alone arrives at the mbarrier: all other operations of the ring are those of all lanes."""
    _, consumer = streams(the("kernels/P15-full-empty-ring"))
    everybody = {t.index for t in consumer.threads}
    arrivals = [s for s in consumer.steps if len(s.members) < len(everybody)]
    assert len(consumer.steps) == 1 + 5 * 5
    assert [len(s.members) for s in arrivals] == [2] * 5


def test_operations_of_warps_keep_their_form() -> None:
    text = whole(the("warps/warps-shfl-idx"), "t0").text
    assert "shfl.sync.idx.b32" in text
    text = whole(the("barriers/Bar.red+popc"), "t0").text
    assert "barrier.red.popc.u32" in text
    assert "exit;" in text
    text = whole(the("barriers/MP+bar.warp.sync+other-masks"), "t0").text
    assert "bar.warp.sync 1;" in text
    assert "bar.warp.sync 2;" in text


def test_one_lane_of_a_warpgroup_stands_for_all() -> None:
    """All 128 threads execute wgmma; the barrier of the test counts the warps that the test names."""
    test = """PTX W
{ .global .u32 x; .shared .align 128 .b8 s[4096]; }
a@cta 0, warp 0, lane 0 {
  .reg .b32 d0;
  bar.sync 1;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {d0}, [s, 2048], [s + 2048, 2048];
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  st.global.u32 [x], 1;
}
exists (x == 1)
"""
    made = whole(parse(test, "w.litmus"), "t0")
    assert made.layout["warps"] == 4
    assert made.layout["turns"] == 1
    lines = made.text.splitlines()
    start, end = lines.index("// --- the test"), lines.index("// ---")
    body = lines[start:end]
    assert "barrier.sync 1, 32;" in body
    around = [line for line in body if line.startswith("@!%in")]
    assert len(around) == 2  # the barrier is that of its warp's lanes, the store that of one lane


def test_the_warps_of_a_warpgroup_multiply_together_whatever_their_roles() -> None:
    """The wait of one warp and its store are behind the product of all four."""
    (stream,) = streams(the("warps/warps-wgmma-wait-covers-the-warpgroup"))
    assert [len(s.members) for s in stream.steps] == [2, 2, 2, 1, 1]
    text = whole(the("warps/warps-wgmma-wait-covers-the-warpgroup"), "t0").text
    assert text.count("wgmma.mma_async") == 1
    body = text.partition("// --- the test")[2].partition("// ---")[0]
    before, behind = body.split("wgmma.commit_group.sync.aligned;")
    assert "@!%in" not in before
    assert behind.count("@!%in") == 2


@pytest.mark.parametrize(
    "name", ["kernels/G02-elected-release-without-warp-sync-fixed", "barriers/Barrier.cluster+exited"]
)
def test_golden(name: str, promote: bool) -> None:
    path = GOLDENS / f"{Path(name).name}.ptx"
    found = whole(the(name), "t0").text
    if promote:
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")


def _rows() -> Iterator[dict[str, Any]]:
    for number, (_, program, _) in enumerate(alone()[::9]):
        yield entry(program, number)[1]


@pytest.mark.daily(least=0)
def test_launches_fit() -> None:
    for row in _rows():
        assert presets_of(row) == WHOLE
        for preset in WHOLE:
            g = geometry_of(row, preset, 64)
            assert g.instances & (g.instances - 1) == 0
            assert g.grid == row["ctas"] * (g.groups + g.loud)
            assert g.grid % row["cluster"] == 0
            assert g.block == 32 * row["warps"] <= 1024
            assert settings.BLOCKS + row["block"] <= g.shared <= 227 * 1024
            assert sum(o["stride"] for o in row["objects"]) * g.instances <= 1 << 28


@pytest.mark.daily(least=0)
def test_every_thread_has_a_place_of_its_own() -> None:
    for name, program, made in alone():
        size = 32 * made.layout["warps"] * made.layout["ctas"]
        assert len({(t.place.cta.number, t.place.warp, t.place.lane) for t in program.threads}) == len(program.threads)
        assert len(program.threads) <= size, name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("warps/warps-elect-lane-missing", "expects deadlock"),
        ("barriers/Bar+divergent", "expects undefined"),
        ("barriers/Bar.arrive+then-sync-early", "left waiting"),
    ],
)
def test_what_must_not_run_does_not(name: str, reason: str) -> None:
    with pytest.raises(CannotEmit, match=reason):
        whole(the(name), "t0")


def test_words_of_two_clusters_are_told_apart() -> None:
    program = the("kernels/P43-reduce-add-with-semaphore")
    labels = [t.label for t in terms_of(program.condition)]
    assert len(set(labels)) == len(labels)
    assert any(" of CTA 1[" in label for label in labels)


@given(
    st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 7), st.integers(0, 31)), st.integers(0, 1), min_size=1),
    st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 99), st.booleans(),
)  # fmt: skip
def test_values_are_computed_from_places(
    places: dict[Position, int], cta: int, warp: int, lane: int, fixed: int, any_: bool
) -> None:
    placed = places if any_ else {p: fixed + cta * p[0] + warp * p[1] + lane * p[2] for p in places}
    lines = computed("%r", placed)
    for place, value in placed.items():
        registers = dict(zip(("%cta", "%warp", "%lane"), place, strict=True))
        for line in lines or ():
            code, operands = line.rstrip(";").split(None, 1)
            out, *sources = operands.split(", ")
            a = [registers[x] if x.startswith("%") else int(x) for x in sources]
            match code:
                case "mov.u32":
                    registers[out] = a[0] % (1 << 32)
                case "mad.lo.u32":
                    registers[out] = (a[0] * a[1] + a[2]) % (1 << 32)
                case "shr.u32":
                    registers[out] = a[0] >> a[1]
                case "and.b32":
                    registers[out] = a[0] & a[1]
        assert lines is None or registers["%r"] == value % (1 << 32)


def test_places_of_whole_warps_need_no_table() -> None:
    placed = {(c, w, la): 7 + 512 * w + 4 * la for c in range(2) for w in range(1, 4) for la in range(32)}
    assert computed("%r", placed) is not None
    assert computed("%r", {p: int(p[2] == 0) for p in placed}) is not None
    assert computed("%r", {p: p[2] * p[2] for p in placed}) is None
