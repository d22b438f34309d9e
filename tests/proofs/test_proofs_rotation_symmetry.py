"""Rounds that are alike but for a turn of stages and parities, and those that only seem to be."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.any_number import sketch
from mcheck.base.budget import Limit
from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.state.cyclic_names import Ring, RotatedNames, Rotation
from mcheck.frontend.litmus import parse
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.proofs.parametric_proof import Proof, prove
from mcheck.proofs.state_recurrence import Periods, Recurrence
from tests.engines.protocol.sketches import changed
from tests.engines.protocol.unbounded import GUARDED, PING_PONG, REGISTERS, TWO_PIPELINES, gemm
from tests.engines.protocol.unbounded import ring as drained

MODEL = load_model("ptx-9.0")


def ring(stages: int = 3, *changes: tuple[str, str]) -> str:
    """The ring without what waits for its end."""
    text = drained(stages)
    head, _, rest = text.partition("  for k in N..N+S {")
    return changed(head + rest[rest.index("}\n") + 2 :], *changes)


class Seen:
    """How the executions of a proof were followed, and where they were twice in one form."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.periods: list[Periods] = []
        self.found: list[Recurrence] = []
        follow = Periods.follow

        def followed(periods: Periods, *args: object) -> Recurrence | None:
            self.periods.append(periods)
            found = follow(periods, *args)  # type: ignore[arg-type]
            self.found += [found] if found is not None else []
            return found

        monkeypatch.setattr(Periods, "follow", followed)

    @property
    def rotation(self) -> Rotation | None:
        return self.periods[-1].rotation


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


def proof(text: str) -> Proof:
    return prove(parse(text, "any.litmus", every=True), MODEL, "ptx", 2, Limit(None))


# --- circles ----------------------------------------------------------------------------------------------------------

CIRCLES = st.builds(
    lambda low, block, count, by: Ring(low, block * count, block * (by % count or 1)),
    st.integers(0, 100), st.integers(1, 8), st.integers(2, 6), st.integers(1, 5),
)  # fmt: skip


@given(CIRCLES, st.integers(0, 47), st.integers(0, 20), st.integers(0, 20))
def test_a_circle_is_a_permutation_that_comes_round(circle: Ring, at: int, once: int, more: int) -> None:
    places = range(circle.low, circle.low + circle.size)
    assert sorted(circle.rotate(x, once) for x in places) == list(places)
    at = circle.low + at % circle.size
    assert circle.rotate(circle.rotate(at, once), more) == circle.rotate(at, once + more)
    assert circle.rotate(at, circle.size // circle.block) == at


@given(CIRCLES, st.integers(-4, 50), st.integers(1, 20))
def test_what_is_torn_comes_apart_some_time(circle: Ring, low: int, size: int) -> None:
    """Held against the bytes, moved one by one."""
    low += circle.low
    inside = [x for x in range(low, low + size) if circle.low <= x < circle.low + circle.size]
    apart = bool(inside) and len(inside) < size
    for often in range(circle.size // circle.block):
        moved = [circle.rotate(x, often) for x in inside]
        apart = apart or any(b - a != 1 for a, b in pairwise(moved))
    assert circle.splits_block(low, low + size) == apart


@given(CIRCLES, st.integers(0, 47), st.sets(st.integers(0, 5)), st.integers(0, 20))
def test_parities_change_on_the_way(circle: Ring, at: int, blocks: set[int], often: int) -> None:
    """Held against a phase bit that is carried along."""
    flips = frozenset(circle.low + block * circle.block for block in blocks)
    now = circle.low + at % circle.size // circle.block * circle.block
    first, parity = now, 0
    for _ in range(often):
        parity ^= now in flips
        now = circle.rotate(now, 1)
    turned = RotatedNames(Rotation((circle,), flips), often)
    assert (turned.original_address(now), turned.parity_change(now)) == (first, parity)


# --- what is found ----------------------------------------------------------------------------------------------------


@pytest.mark.daily
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_ring_turns_by_one_stage(stages: int, seen: Seen) -> None:
    given = proof(ring(stages))
    assert (given.answer.verdict, given.period) == ("proved", 1)
    turning = seen.rotation
    assert turning is not None
    assert {(c.size, c.step) for c in turning.rings} == {(8 * stages, 8), (1024 * stages, 1024)}
    bars = [c for c in turning.rings if c.step == 8]
    assert turning.flips == {c.low + 8 * (stages - 1) for c in bars}  # the last stage goes to the first one
    assert seen.found[-1].distance == 1


def test_a_single_stage_turns_its_parity_alone(seen: Seen) -> None:
    assert proof(ring(1)).period == 1
    assert seen.rotation is not None
    assert not seen.rotation.rings
    assert len(seen.rotation.flips) == 2


def test_what_is_behind_the_loops_may_ask_for_whole_periods(seen: Seen) -> None:
    given = proof(drained(3))
    assert (given.period, seen.found[-1].distance) == (6, 1)
    assert proof(ring(3, ("    \n  }\n}\n", "  }\n  bar.sync 1, 32;\n}\n"))).period == 1
    given = proof(ring(3, ("    \n  }\n}\n", "  }\n  ld.shared.u32 r1, [other + 4*%laneid];\n}\n"),
                       (".shared .align 8 ", ".shared .align 4 .u32 other[32];\n  .shared .align 8 ")))  # fmt: skip
    assert given.period == 1


@pytest.mark.daily
@pytest.mark.parametrize(
    "text",
    [PING_PONG, TWO_PIPELINES, gemm(1), gemm(2), REGISTERS],
    ids=["ping-pong", "attention", "gemm", "two CTAs", "registers"],
)
def test_which_sketches_turn(text: str, seen: Seen) -> None:
    assert proof(text).answer.verdict == "proved"
    assert seen.rotation is not None


# --- what only seems to turn ------------------------------------------------------------------------------------------

AT_END = "    \n  }\n}\n"
THIRD = """third@cta 0, warp 2 {{
  bar.sync 0;
  for k in 0..N {{
    {body}
  }}
}}
"""
ELSE = (".shared .align 8 ", ".shared .align 4 .u32 other[8];\n  .shared .align 8 ")
FIXED = {
    "one stage is read in every round": ring(3, ("[buf[k%S] + 4*%laneid]", "[buf[0] + 4*%laneid]")),
    "one stage is read by a third role": ring(
        3, (AT_END, AT_END + THIRD.format(body="ld.shared.u32 r0, [buf[1] + 4*%laneid];"))
    ),
    "stages are read backwards": ring(3, ("[buf[k%S] + 4*%laneid]", "[buf[S-1-k%S] + 4*%laneid]")),
    "a register with a part that nobody knows says which stage": ring(
        3, ("ld.shared.u32 r0, [buf[k%S] + 4*%laneid];",
            "ld.shared.u32 n, [buf[k%S]]; and.b32 n, n, 4; ld.shared.u32 r0, [buf[k%S] + n];")
    ),
    "two of three stages": ring(3, ("[buf[k%S] + 4*%laneid]", "[buf[k%2] + 4*%laneid]")),
    "parities that others do not wait for": ring(
        2, ("    ld.shared", "    mbarrier.test_wait.parity.shared::cta.b64 p, [empty[k%S]], k%2;\n    ld.shared"),
        ("  .reg .b32 n;", "  .reg .b32 n;\n  .reg .pred p;"),
    ),
}  # fmt: skip


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("name", FIXED)
def test_what_does_not_go_round_with_the_others_is_no_turn(name: str, seen: Seen) -> None:
    text = FIXED[name]
    with suppress(Aperiodic):
        proof(text)
    assert all(periods.rotation is None or periods.unit.period > 1 for periods in seen.periods)


OVERLAPPING = """PTX overlapping
const N = any;
{
  .global .align 128 .b8  src[32];
  .shared .align 128 .b8  buf[64];
  .shared .align 8   .b64 full;
}
alone@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  for k in 0..N {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 32;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf + 16*(k%3)], [src], 32, [full];
    await mbarrier.try_wait.parity.shared::cta.b64 [full], k%2;
  }
}
"""
"""Copies to three places, each of which reaches into the next one."""


def test_an_access_over_the_end_of_a_stage_is_followed_without_a_turn(seen: Seen) -> None:
    assert proof(OVERLAPPING).answer.verdict == "proved"
    assert [periods.rotation is not None for periods in seen.periods] == [True, False]


# --- against other judges ---------------------------------------------------------------------------------------------


@pytest.mark.daily
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("text", [ring(), GUARDED["guards"]], ids=["ring", "guards"])
def test_full_runs_say_the_same_for_two_periods_more(text: str, stages: int) -> None:
    program = parse(text.replace("S = 3", f"S = {stages}"), "any.litmus", every=True)
    given = prove(program, MODEL, "ptx", 2, Limit(None))
    assert program.instance is not None
    for number in range(given.first, given.first + 4 * stages + 1):
        found = check(program.instance(number), MODEL)
        assert (found.verdict, found.executions) == ("proved", 1), number


@pytest.mark.daily
@pytest.mark.parametrize("item", [7, 8, 20, 25, 26, 27, 28, 33, 35, 51])  # those of a seed that are proved
def test_what_a_turn_proves_of_sketches_with_mistakes_is_so(item: int) -> None:
    program = parse(sketch(Random(f"turning-{item}")), "any.litmus", every=True)
    given = prove(program, MODEL, "ptx", 2, Limit(None))
    assert program.instance is not None
    known = {f.code for f in given.answer.findings}
    for number in range(given.first, given.first + 7):
        assert {f.code for f in check(program.instance(number), MODEL).findings} <= known, number
