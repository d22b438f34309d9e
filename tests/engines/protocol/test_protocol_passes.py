"""Passes: without any one of them the protocol engine gives the same answers, by other work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from mcheck.base.budget import processor_time
from mcheck.base.errors import InputError
from mcheck.cat import load_model
from mcheck.engines.protocol import final_states
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.exploration import Search
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.passes import ALL_PASSES, Pass, Passes, find_pass, passes_without
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from tests.engines.protocol.clusters_of_two import READS, cluster
from tests.engines.protocol.counters import exchange_of_flags, grid_barrier
from tests.engines.protocol.followed import TOLD_OF_WORK
from tests.engines.protocol.pipelines import RIGHT
from tests.engines.protocol.sketches import FENCE, changed, ring
from tests.engines.protocol.unbounded import TENSOR

ROOT = Path(__file__).parents[3]
MODEL = load_model("ptx-9.0")
IN_ENGINE = [one for one in Pass if not one.module.startswith("mcheck.proofs.")]
SECONDS = 10.0
"""Processor time for one answer."""


def text_of(name: str) -> str:
    """A test of ``tests/agreement`` or of ``litmus/kernels``."""
    (path,) = [p for folder in ("tests/agreement", "litmus/kernels") for p in (ROOT / folder).rglob(f"{name}.litmus")]
    return path.read_text(encoding="utf-8")


# --- the registry -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", Pass)
def test_each_pass_says_what_it_does_and_where(one: Pass) -> None:
    assert find_spec(one.module) is not None
    assert one.argument[0].isupper()
    assert one.argument.endswith(".")
    assert find_pass(one.value) is one
    switched = f"Pass.{one.name} "
    assert any(switched in p.read_text(encoding="utf-8") for p in (ROOT / "mcheck").rglob("*.py")), (
        "nothing asks for it"
    )


def test_a_set_of_passes_is_what_is_left() -> None:
    assert passes_without(()) == ALL_PASSES == frozenset(Pass)
    assert passes_without(("slicing", "lane-groups")) == ALL_PASSES - {Pass.SLICING, Pass.LANE_GROUPS}


def test_a_name_that_is_none_is_an_error_with_the_names() -> None:
    with pytest.raises(InputError) as raised:
        passes_without(["slicin"])
    assert raised.value.hint == "did you mean slicing?"
    assert set((raised.value.expected or "").split(", ")) == {one.value for one in Pass}
    with pytest.raises(InputError) as raised:
        find_pass("SLICING!?")
    assert raised.value.hint is None


# --- answers and work -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Work:
    """What an exploration did: executions, steps with trials, events, and those that were live at the ends."""

    executions: int = 0
    steps: int = 0
    events: int = 0
    live: int = 0

    def add(self, m: Machine) -> None:
        self.executions += 1
        self.steps += len(m.trace) + m.trial_count
        self.events += m.window.count
        self.live += m.window.all.bit_count()


def work_of(program: Program, passes: Passes) -> Work:
    work = Work()
    Search(program, MODEL, "ptx", 2, passes=passes, suggests_fixes=False, on_execution=work.add).run()
    return work


def findings(program: Program, passes: Passes) -> object:
    """The verdict and the codes."""
    with processor_time():
        given = check(program, MODEL, timeout=SECONDS, passes=passes)
    return given.verdict, {f.code for f in given.findings}


def states(program: Program, passes: Passes) -> object:
    """The verdict and the final states; ``None`` where they are not all known."""
    with processor_time():
        given = final_states.answer(program, MODEL, timeout=SECONDS, passes=passes)
    return (given.verdict, {o.state for o in given.outcomes}) if given.complete else None


OWN_ELEMENTS = """PTX own-elements
{ .global .u32 d[4]; .shared .u32 s; }
a@cta 0, warp 0, lane 0 { st.global.u32 [d], 1; st.shared.u32 [s], 1; bar.sync 0; st.global.u32 [d+4], 1; }
b@cta 0, warp 1, lane 0 { st.global.u32 [d+8], 1; bar.sync 0; ld.shared.u32 r0, [s]; st.global.u32 [d+8], r0; }
"""

KERNELS = {
    Pass.LANE_GROUPS: (ring(3, 2, 1), ring(2, 2, 1).replace(FENCE, "")),
    Pass.REPRESENTATIVE_LANES: (ring(3, 2, 1), ring(3, 2, 1).replace(FENCE, "")),
    Pass.COMBINED_ACCESSES: (
        text_of("H10-zero-fill-tail-never-waited"),
        text_of("G12-commit-barrier-overcounted-fixed"),
    ),
    Pass.COMMON_LOADS: (TOLD_OF_WORK.replace("N = any", "N = 1").replace("warp 1..3", "warp 1"),),
    Pass.SLICING: (text_of("additions-of-which-one-acquires"), text_of("last-arrival-of-the-looking-thread")),
    Pass.UNUSED_CONTENTS: (
        """PTX additions-and-a-maximum
        { .global .u32 x = 0; }
        a@cta 0 { red.relaxed.gpu.global.add.u32 [x], 1; }
        b@cta 1 { red.relaxed.gpu.global.max.u32 [x], 7; }
        """,
        changed(
            TENSOR,
            ("N = any", "N = 2"),
            ("swizzle_mode = none", "swizzle_mode = 128B"),
            ("ld.shared.u32 r0, [buf[k%S] + 4*%laneid];", ""),
        ),
    ),
    Pass.UNWRITTEN_OBJECTS: (ring(3, 2, 1), text_of("bytes-behind-the-init-that-renews")),
    Pass.UNSHARED_ACCESSES: (
        OWN_ELEMENTS,
        OWN_ELEMENTS.replace("bar.sync 0; ", ""),
        OWN_ELEMENTS.replace("[d+8], 1", "[d+4], 1"),
    ),
    Pass.SPIN_LOOPS: (text_of("strong-read-in-a-round-in-vain"), text_of("round-in-vain-around-a-wait")),
    Pass.REDUNDANT_POLLS: (
        """PTX poll-before-a-wait
        { .shared .align 8 .b64 full; }
        a@cta 0, warp 0, lane 0 {
          mbarrier.init.shared::cta.b64 [full], 1;
          bar.sync 0;
          mbarrier.arrive.shared::cta.b64 _, [full];
        }
        b@cta 0, warp 1, lane 0 {
          .reg .pred p;
          bar.sync 0;
          mbarrier.try_wait.parity.shared::cta.b64 p, [full], 0;
          @!p await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
        }
        """,
    ),
    Pass.SC_FENCE_ORDER: (
        text_of("fences-that-order-a-copy-in-one-order"),
        text_of("fences-that-order-a-map-in-one-order"),
    ),
    Pass.COMMUTING_ATOMICS: (
        text_of("copy-behind-one-of-two-atomics"),
        text_of("read-behind-additions-that-are-handed-over"),
    ),
    Pass.OVERWRITTEN_WRITES: (
        text_of("read-behind-additions-that-are-handed-over"),
        """PTX overwritten-before-the-wait-ends
        { .global .u32 y = 0; }
        P@cta 0 {
          st.relaxed.gpu.global.u32 [y], 2;
          st.relaxed.gpu.global.u32 [y], 3;
          st.release.gpu.global.u32 [y], 1;
        }
        Q@cta 0 { await ld.acquire.gpu.global.u32 r2, [y] == 1; ld.relaxed.gpu.global.u32 r3, [y]; }
        """,
    ),
    Pass.UNSPLIT_ATOMICS: (
        """PTX last-of-two-to-leave
        { .global .u32 left = 0, x = 0; }
        a@cta 0 {
          .reg .pred p;
          st.relaxed.gpu.global.u32 [left], 2;
          atom.acq_rel.gpu.global.add.u32 r0, [left], -1;
          setp.ne.u32 p, r0, 1;
          @p bra out;
          st.global.u32 [x], 1;
        out:
        }
        b@cta 1 {
          .reg .pred p;
          atom.acq_rel.gpu.global.add.u32 r0, [left], -1;
          setp.ne.u32 p, r0, 1;
          @p bra out;
          st.global.u32 [x], 2;
        out:
        }
        """,
        """PTX lock-that-is-tried-twice
        { .global .u32 lock = 0, x = 0; }
        t@cta 0..2 {
          .reg .pred p;
          atom.acquire.gpu.global.cas.b32 r0, [lock], 0, 1;
          setp.ne.u32 p, r0, 0;
          @p bra out;
          st.global.u32 [x], 1;
          atom.release.gpu.global.exch.b32 r1, [lock], 0;
        out:
        }
        """,
        """PTX additions-of-different-scopes
        { .global .u32 c = 0, x = 0; }
        a@cta 0 {
          st.global.u32 [x], 1;
          atom.release.gpu.global.add.u32 r0, [c], 1;
          atom.release.gpu.global.add.u32 r1, [c], 1;
        }
        b@cta 1 {
          .reg .pred p;
          atom.acquire.gpu.global.add.u32 r0, [c], 1;
          setp.eq.u32 p, r0, 0;
          @p bra out;
          ld.global.u32 r1, [x];
        out:
        }
        c@cta 2 { atom.relaxed.cta.global.add.u32 r0, [c], 1; }
        """,
    ),
    Pass.SEEN_PHASES: (ring(3, 2, 1), ring(3, 1, 1).replace(FENCE, "")),
    Pass.BLOCKED_EXECUTIONS: (
        """PTX arrival-before-a-wait
        { .shared .align 8 .b64 full; .shared .u32 x; }
        a@cta 0, warp 0, lane 0 {
          mbarrier.init.shared::cta.b64 [full], 1;
          bar.sync 0;
          st.shared.u32 [x], 1;
          mbarrier.arrive.shared::cta.b64 _, [full];
        }
        b@cta 0, warp 1, lane 0 {
          bar.sync 0;
          await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
          ld.shared.u32 r0, [x];
        }
        """,
        """PTX counter-of-arrivals
        { .global .u32 x = 0, f = 0; }
        a@cta 0 { st.global.u32 [x], 1; red.release.gpu.global.add.u32 [f], 1; }
        b@cta 1 { red.release.gpu.global.add.u32 [f], 1; st.global.u32 [x], 1; }
        c@cta 2 { await ld.acquire.gpu.global.u32 r0, [f] >= 1; ld.global.u32 r1, [x]; }
        """,
    ),
    Pass.EQUIVALENT_EXECUTIONS: (text_of("bytes-after-the-phase-of-what-is-invalidated"),),
    Pass.COMMUTING_ARRIVALS: (cluster(3, 2, before=(READS, READS)),),
    Pass.DETERMINED_WAITS: (grid_barrier(2, 1), exchange_of_flags(2, 2)),
    Pass.JOINT_ARRIVALS: (
        """PTX barrier-of-all-lanes
        { .global .u32 c = 0; .global .u32 d[4]; }
        t@cta 0..2, warp 0, lane 0..2 {
          st.global.u32 [d + 4*(2*%ctaid.x + %laneid)], 1;
          red.release.gpu.global.add.u32 [c], 1;
          await ld.acquire.gpu.global.u32 r0, [c] >= 4;
          ld.global.u32 r1, [d + 4*((2*%ctaid.x + %laneid + 3) % 4)];
        }
        """,
    ),
    Pass.EVENT_MERGING: (ring(24, 2, 1), ring(24, 2, 1).replace("src + 1024*k]", "src + 1024*(k + k/23)]")),
    Pass.COMPLETION_CLASSES: (RIGHT["arrives"].replace("N = any", "N = 24"),),
}
"""For each pass, programs on which it does something."""


@pytest.mark.daily
@pytest.mark.parametrize("one", KERNELS, ids=str)
def test_without_a_pass_there_is_other_work_and_the_same_answer(one: Pass) -> None:
    for text in KERNELS[one]:
        program = parse(text, "pass.litmus")
        assert findings(program, ALL_PASSES - {one}) == findings(program, ALL_PASSES)
        assert work_of(program, ALL_PASSES - {one}) != work_of(program, ALL_PASSES)


def test_threads_that_may_change_places_need_fewer_executions() -> None:
    text = """PTX counter
    { .global .u32 x = 0; }
    asked@cta 0, warp 0, lane 0 { atom.relaxed.gpu.global.add.u32 r0, [x], 1; }
    other@cta 0, warp 1, lane 0..3 { red.relaxed.gpu.global.add.u32 [x], 1; }
    exists (asked:r0 == 2)
    """
    program = parse(text, "pass.litmus")
    one, every = (
        final_states.answer(program, MODEL, passes=p) for p in (ALL_PASSES, passes_without(["thread-symmetry"]))
    )
    assert (one.verdict, len(one.outcomes), one.complete) == ("pass", 4, True)
    assert (one.verdict, {o.state for o in one.outcomes}) == (every.verdict, {o.state for o in every.outcomes})
    assert one.executions < every.executions


def test_every_pass_of_the_engine_has_a_program_on_which_it_does_something() -> None:
    elsewhere = {Pass.THREAD_SYMMETRY, Pass.WEAKENED_ACCESSES}  # in final states, and before the exploration
    assert {*KERNELS, *elsewhere} == set(IN_ENGINE)


AGREED = sorted((ROOT / "tests" / "agreement").glob("*.litmus"))
EVERY = 6


@cache
def with_all_passes(path: Path, asked: Callable[[Program, Passes], object]) -> object:
    """What is answered about a test, for each pass the same."""
    return asked(parse(path.read_text(encoding="utf-8"), path.name), ALL_PASSES)


@pytest.mark.daily(days=72)
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("one", IN_ENGINE)
def test_without_a_pass_small_programs_have_the_same_answers(one: Pass, part: int) -> None:
    """A sixth of the programs on which engines once differed, another one for each pass."""
    for path in AGREED[IN_ENGINE.index(one) % EVERY :: EVERY][part::3]:
        program = parse(path.read_text(encoding="utf-8"), path.name)
        for asked in (findings, states) if program.condition.kind != "none" else (findings,):
            given, told = with_all_passes(path, asked), asked(program, ALL_PASSES - {one})
            assert given == told or None in (given, told), path.name
