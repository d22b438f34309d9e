"""Several launches: their order in a stream, and what programmatic dependent launch lets overlap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcheck.base.reasons import Cause
from mcheck.base.source_files import SourceText
from mcheck.checking.check.modules import check_text
from mcheck.checking.modules.launches.launch_order import Conflict, StreamOrder
from mcheck.checking.run.case import Options, Settings
from mcheck.frontend.ptx.launch_reader import from_object
from mcheck.report.source_text import places_shown, primary_place
from tests.checking.modules.stream_kernels import (
    BARRIER,
    FENCE,
    MAKE,
    READ,
    TRIGGER,
    WAIT,
    WRITE,
    checked,
    kernel,
    launch,
    races,
    verdict_of,
)

# --- two launches ---------------------------------------------------------------------------------------------


def test_a_read_behind_the_wait() -> None:
    found = checked(MAKE + kernel("use", WAIT, READ), launch("make", "a", programmatic=False), launch("use", "a"))
    assert (found.verdict, found.findings) == ("proved", ())
    assert not any("only one grid" in text for text in found.assumptions)


@pytest.mark.parametrize("trigger", [TRIGGER, ""])
def test_a_read_before_the_wait(trigger: str) -> None:
    """Without launch_dependents the launch begins when the CTAs have exited, and that publishes nothing."""
    module = kernel("make", trigger, WRITE) + kernel("use", READ, WAIT)
    found = checked(module, launch("make", "a", programmatic=False), launch("use", "a"))
    assert races(found) == [(READ, WRITE)]
    (finding,) = found.findings
    said = "launch 2 (use) reads bytes of a before its griddepcontrol.wait, and launch 1 (make) may not have written"
    assert finding.message.startswith(said)
    assert [a.thread.partition(",")[0] for a in finding.accesses] == ["launch 2 (use)", "launch 1 (make)"]
    assert {a.object for a in finding.accesses} == {"a"}
    assert finding.accesses[0].line is not None
    assert finding.missing.startswith(
        f"Execute griddepcontrol.wait before line {finding.accesses[0].line}, in its thread"
    )
    assert primary_place(finding, places_shown(finding, SourceText(module, None))) == finding.accesses[0].span


def test_the_same_without_the_attribute() -> None:
    module = MAKE + kernel("use", READ, WAIT)
    found = checked(module, launch("make", "a", programmatic=False), launch("use", "a", programmatic=False))
    assert (found.verdict, found.findings) == ("proved", ())


def test_a_kernel_that_never_waits() -> None:
    found = checked(MAKE + kernel("use", READ), launch("make", "a", programmatic=False), launch("use", "a"))
    assert races(found) == [(READ, WRITE)]
    assert "without a griddepcontrol.wait" in found.findings[0].message


def test_an_early_write_of_what_is_still_read() -> None:
    module = kernel("make", TRIGGER, READ) + kernel("use", WRITE, WAIT)
    found = checked(module, launch("make", "a", programmatic=False), launch("use", "a"))
    assert races(found) == [(WRITE, READ)]
    late = checked(kernel("make", TRIGGER, READ) + kernel("use", WAIT, WRITE), launch("make", "a"), launch("use", "a"))
    assert late.verdict == "proved"


def test_an_early_write_when_all_ctas_have_exited() -> None:
    """Whether their reads are over is said by no text."""
    module = kernel("make", READ) + kernel("use", WRITE, WAIT)
    found = checked(module, launch("make", "a", programmatic=False), launch("use", "a"))
    assert (found.verdict, found.findings) == ("bounded", ())
    assert "all CTAs of the earlier launch have exited" in str(found.reason)


def test_other_buffers_and_other_bytes() -> None:
    module = MAKE + kernel("use", READ, WAIT)
    first = launch("make", "a", programmatic=False)
    assert checked(module, first, launch("use", "b")).verdict == "proved"
    assert checked(module, first, launch("use")).verdict == "proved", "a buffer of its own"
    upper = MAKE + kernel("use", "add.u64 %rd3, %rd3, 512;", READ, WAIT)
    assert checked(upper, first, launch("use", "a")).verdict == "proved"
    last = MAKE + kernel("use", "add.u64 %rd3, %rd3, 508;", READ, WAIT)
    found = checked(last, first, launch("use", "a"))
    assert [a.bytes for a in found.findings[0].accesses] == [(508, 512), (508, 512)]
    assert [a.thread for a in found.findings[0].accesses] == [
        "launch 2 (use), CTA (0, 0, 0)",
        "launch 1 (make), CTA (3, 0, 0)",
    ]


def test_variables_of_the_module_are_shared() -> None:
    module = ".visible .global .align 4 .u32 v;" + kernel("make", TRIGGER, "st.global.u32 [v], 1;")
    module += kernel("use", "ld.global.u32 %r4, [v];", WAIT)
    one = {"grid": 1}
    found = checked(module, launch("make", programmatic=False) | one, launch("use") | one)
    assert races(found) == [("ld.global.u32 %r4, [v];", "st.global.u32 [v], 1;")]
    apart = checked(module, launch("make") | one, launch("use", gpu=1, programmatic=False) | one)
    assert apart.verdict == "proved", "each GPU has its own"


def test_a_pointer_that_is_not_given_may_be_to_anything() -> None:
    module = MAKE + kernel("use", READ, WAIT)
    second = {**launch("use", "a"), "params": {}}
    found = checked(module, launch("make", "a", programmatic=False), second)
    assert found.verdict == "bounded"
    assert "one of the addresses is not known" in str(found.reason)


RELEASE, ACQUIRE = "st.release.gpu.global.u32 [%rd3], 1;", "ld.acquire.gpu.global.u32 %r4, [%rd3];"


@pytest.mark.parametrize(
    ("make", "use", "why"),
    [
        ((RELEASE,), (ACQUIRE,), "reads bytes of a that launch 1 (make) writes in line 21; both are strong"),
        (
            (WRITE, "st.release.gpu.global.u32 [%rd5], 1;"), ("ld.acquire.gpu.global.u32 %r4, [%rd5];", READ),
            "reads bytes of a that launch 1 (make) writes in line 21; flags between the two launches are not followed",
        ),
        (
            ("ld.global.u32 %r4, [%rd5];", "setp.eq.u32 %p1, %r4, 7;", "@!%p1 bra END;", WRITE, "END:"), (READ,),
            "reads bytes of a that launch 1 (make) writes in line 24; whether both are executed, and with these bytes,",
        ),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_no_finding(make: tuple[str, ...], use: tuple[str, ...], why: str) -> None:
    module = kernel("make", TRIGGER, *make) + kernel("use", *use, WAIT)
    found = checked(module, launch("make", "a", "b", programmatic=False), launch("use", "a", "b"))
    assert found.findings == ()
    assert found.verdict in ("bounded", "unknown")
    assert why in str(found.reason)


# --- what puts an access behind the wait ----------------------------------------------------------------------


FIRST = "setp.eq.u32 %p1, %r1, 0;"


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ((FIRST, f"@%p1 {WAIT}", BARRIER, READ), "proved"),
        ((FIRST, f"@%p1 {WAIT}", "bar.sync 0, 64;", READ), "proved"),
        ((FIRST, BARRIER, f"@%p1 {WAIT}", READ), "finding"),
        ((FIRST, f"@%p1 {WAIT}", READ, BARRIER), "finding"),
        ((FIRST, f"@%p1 {WAIT}", "barrier.cluster.arrive;", "barrier.cluster.wait;", READ), "proved"),
        ((FIRST, f"@%p1 {WAIT}", "bar.warp.sync -1;", READ), "finding"),
        ((FIRST, f"@%p1 {WAIT}", "bar.warp.sync -1;", "setp.lt.u32 %p2, %r1, 32;", f"@%p2 {READ}"), "proved"),
    ],
)
def test_barriers_behind_the_wait_of_one_thread(lines: tuple[str, ...], verdict: str) -> None:
    module = MAKE + kernel("use", *lines, width=64)
    found = checked(module, launch("make", "a", programmatic=False), launch("use", "a"))
    assert verdict_of(found) == verdict


def handed(arrive: str, *, count: int = 1, lines: tuple[str, ...] = (), waits: str = "") -> str:
    """A kernel of two warps of which thread 0 waits for the grid before, and others for an mbarrier; then they read."""
    code = (
        "mov.u32 %r5, bar;", FIRST, f"@%p1 mbarrier.init.shared::cta.b64 [%r5], {count};", BARRIER, *lines,
        f"@%p1 {WAIT}", arrive, "LOOP:", f"mbarrier.try_wait{waits}.parity.shared::cta.b64 %p2, [%r5], 0;",
        "@!%p2 bra LOOP;", READ,
    )  # fmt: skip
    return kernel("use", *code, width=64, regs=".shared .align 8 .b64 bar;")


ARRIVE = "@%p1 mbarrier.arrive.shared::cta.b64 _, [%r5];"
COMMIT = "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r5];"
EARLY_ARRIVAL = ("setp.eq.u32 %p3, %r1, 40;", "@%p3 mbarrier.arrive.shared::cta.b64 _, [%r5];")


@pytest.mark.parametrize(
    ("use", "verdict"),
    [
        (handed(ARRIVE), "proved"),
        (handed(ARRIVE, count=2, lines=EARLY_ARRIVAL), "bounded"),  # which arrival is of which thread is not followed
        (handed(ARRIVE.replace("shared", "relaxed.cta.shared")), "bounded"),
        (handed(ARRIVE, lines=(READ,)), "finding"),
        (handed(COMMIT), "proved"),
        (handed(f"{COMMIT} {ARRIVE}", count=2, lines=EARLY_ARRIVAL[:1]), "proved"),
    ],
)
def test_an_mbarrier_behind_the_wait_of_one_thread(use: str, verdict: str) -> None:
    given = launch("make", "a", programmatic=False), launch("use", "a")
    found = checked(MAKE + use, *given, target="sm_100a" if COMMIT in use else "sm_90a")
    assert verdict_of(found) == verdict
    if verdict == "bounded":
        assert "behind griddepcontrol.wait is not followed" in str(found.reason)


RING = (
    "mov.u32 %r5, full;", "mov.u32 %r6, empty;", FIRST,
    "@%p1 mbarrier.init.shared::cta.b64 [%r5], 1;", "@%p1 mbarrier.init.shared::cta.b64 [%r6], 1;", BARRIER,
    "mov.u32 %r7, 0;", "setp.ge.u32 %p2, %r1, 32;", "@%p2 bra CONSUMER;", "@!%p1 bra END;", "GATE",
    "PRODUCE:", "xor.b32 %r4, %r7, 1;", "and.b32 %r4, %r4, 1;", "FREE:",
    "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r6], %r4;", "@!%p3 bra FREE;",
    "mbarrier.arrive.shared::cta.b64 _, [%r5];", "add.u32 %r7, %r7, 1;", "setp.lt.u32 %p3, %r7, 3;",
    "@%p3 bra PRODUCE;", "bra END;",
    "CONSUMER:", "and.b32 %r4, %r7, 1;", "FULL:", "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], %r4;",
    "@!%p3 bra FULL;", "st.global.u32 [%rd3], %r3;", "setp.eq.u32 %p3, %r1, 32;", "bar.warp.sync -1;",
    "@%p3 mbarrier.arrive.shared::cta.b64 _, [%r6];", "add.u32 %r7, %r7, 1;", "setp.lt.u32 %p3, %r7, 3;",
    "@%p3 bra CONSUMER;", "END:",
)  # fmt: skip


@pytest.mark.parametrize(("gate", "verdict"), [(WAIT, "proved"), ("", "finding")])
def test_a_ring_whose_producer_waits(gate: str, verdict: str) -> None:
    """The consumers write what the launch before reads; they come after the producer's wait through the ring."""
    lines = [gate if line == "GATE" else line for line in RING]
    use = kernel("use", *lines, width=64, regs=".shared .align 8 .b64 full, empty;")
    module = kernel("make", TRIGGER, READ, width=64) + use
    found = checked(module, launch("make", "a", programmatic=False), launch("use", "a"))
    assert verdict_of(found) == verdict


FLAG = (
    FIRST, "mov.u32 %r5, bar;", "@%p1 st.shared.u32 [%r5], 0;", BARRIER, f"@%p1 {WAIT}",
    "@%p1 st.release.cta.shared.u32 [%r5], 1;", "LOOP:", "ld.acquire.cta.shared.u32 %r6, [%r5];",
    "setp.ne.u32 %p2, %r6, 1;", "@%p2 bra LOOP;",
)  # fmt: skip


def test_a_synchronisation_that_is_not_followed_bounds_the_answer() -> None:
    use = kernel("use", *FLAG, READ, regs=".shared .align 8 .b64 bar;")
    found = checked(MAKE + use, launch("make", "a", programmatic=False), launch("use", "a"))
    assert (found.verdict, found.findings) == ("bounded", ())
    assert "behind griddepcontrol.wait is not followed" in str(found.reason)


# --- what is released before launch_dependents ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ((WRITE, FENCE, TRIGGER), "finding"),  # another thread of the CTA may have executed launch_dependents before
        ((WRITE, BARRIER, FENCE, TRIGGER), "proved"),
        ((WRITE, FENCE, BARRIER, TRIGGER), "finding"),
        ((WRITE, BARRIER, TRIGGER), "finding"),
        ((WRITE, BARRIER, "fence.acq_rel.cta;", TRIGGER), "finding"),
        ((FIRST, WRITE, BARRIER, f"@%p1 {FENCE}", f"@%p1 {TRIGGER}"), "proved"),
        ((FIRST, BARRIER, f"@%p1 {WRITE}", f"@%p1 {FENCE}", f"@%p1 {TRIGGER}"), "proved"),
        ((FIRST, BARRIER, f"@%p1 {FENCE}", f"@%p1 {WRITE}", f"@%p1 {TRIGGER}"), "finding"),
        ((FIRST, WRITE, f"@%p1 {FENCE}", f"@%p1 {TRIGGER}"), "finding"),
        ((FENCE, WRITE), "finding"),
        ((WRITE, FENCE), "bounded"),  # no text says that an exit publishes anything
    ],
)
def test_a_release_fence_before_what_lets_the_next_launch_begin(lines: tuple[str, ...], verdict: str) -> None:
    module = kernel("make", *lines) + kernel("use", READ, WAIT)
    found = checked(module, launch("make", "a", programmatic=False), launch("use", "a"))
    assert verdict_of(found) == verdict


# --- three launches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("between", "verdict"),
    [((TRIGGER,), "finding"), ((), "finding"), ((TRIGGER, WAIT), "proved"), ((WAIT, TRIGGER), "proved")],
)
def test_a_wait_waits_for_the_launch_before_alone(between: tuple[str, ...], verdict: str) -> None:
    module = MAKE + kernel("between", *between) + kernel("use", WAIT, READ)
    found = checked(module, launch("make", "a", programmatic=False), launch("between", "b"), launch("use", "a"))
    assert verdict_of(found) == verdict
    if verdict == "finding":
        assert races(found) == [(READ, WRITE)]
        assert "behind its griddepcontrol.wait, but launch 2 (between) does not wait" in found.findings[0].message
        assert "Execute griddepcontrol.wait in launch 2 (between) too" in found.findings[0].missing


def test_a_wait_in_one_order_of_threads_is_none() -> None:
    # The second thread draws 1, and waits, only if it comes second.
    lines = (
        "setp.ne.u32 %p1, %r1, 0;", "@!%p1 st.shared.u32 [drawn], 0;", BARRIER, "atom.shared.add.u32 %r5, [drawn], 1;",
        "mul.lo.u32 %r5, %r5, %r1;", "setp.eq.u32 %p2, %r5, 0;", "@%p2 bra OUT;", WAIT, "OUT:",
    )  # fmt: skip
    module = MAKE + kernel("mid", *lines, width=2, regs=".shared .align 4 .u32 drawn;") + kernel("use", WAIT, READ)
    result = checked(module, launch("make", "a", programmatic=False), launch("mid", "b"), launch("use", "a"))
    assert verdict_of(result) == "bounded"


def test_a_chain_in_which_an_earlier_link_does_not_wait() -> None:
    module = MAKE + kernel("idle", TRIGGER) + kernel("waits", WAIT) + kernel("use", WAIT, READ)
    launches = [launch("make", "a", programmatic=False), launch("idle"), launch("waits"), launch("use", "a")]
    found = checked(module, *launches)
    assert "but launch 2 (idle) does not wait" in found.findings[0].message
    launches[1]["programmatic"] = False
    assert checked(module, *launches).verdict == "proved"


def test_threads_that_were_not_followed_may_let_the_next_launch_begin() -> None:
    # The second warp of the first CTA waits for the other CTA, and not for the launch before.
    lines = (
        "setp.ne.u32 %p1, %r2, 0;", "@%p1 bra ONE;", "setp.ge.u32 %p2, %r1, 32;", "@%p2 bra TWO;", WAIT, FENCE, TRIGGER,
        "ret;", "TWO: ld.acquire.gpu.global.u32 %r5, [%rd4];", "setp.ne.u32 %p3, %r5, 1;", "@%p3 bra TWO;", TRIGGER,
        "ret;", "ONE: setp.eq.u32 %p2, %r1, 0;", "@%p2 st.release.gpu.global.u32 [%rd4], 1;", TRIGGER,
    )  # fmt: skip
    launches = [
        launch("make", "a", programmatic=False), launch("mid", "b", "c", grid=2, cooperative=True), launch("use", "a")
    ]  # fmt: skip
    module = MAKE + kernel("mid", *lines, width=64) + kernel("use", READ)
    result = checked(module, *launches, c={"init": {"hex": "00" * 4096}})
    assert verdict_of(result) == "bounded"
    assert "launches that may overlap are not ordered for certain" in {reason.what for reason in result.reasons}


@pytest.mark.parametrize(
    ("between", "programmatic", "verdict"),
    [
        ((TRIGGER, WAIT), True, "finding"),
        ((WAIT, TRIGGER), True, "bounded"),  # in time, but nothing publishes it
        ((WAIT, FENCE, TRIGGER), True, "proved"),
        ((WAIT, BARRIER, FENCE, TRIGGER), True, "proved"),
        ((FENCE, WAIT, TRIGGER), True, "bounded"),
        ((WAIT,), True, "bounded"),
        ((TRIGGER,), False, "proved"),
    ],
)
def test_an_early_read_of_what_the_launch_before_the_last_wrote(
    between: tuple[str, ...], programmatic: bool, verdict: str
) -> None:
    module = MAKE + kernel("between", *between) + kernel("use", READ, WAIT)
    first, last = launch("make", "a", programmatic=False), launch("use", "a")
    assert checked(module, first, launch("between", "b", programmatic=programmatic), last).verdict == verdict


def test_a_launch_without_the_attribute_comes_after_all_before_it() -> None:
    module = MAKE + kernel("between", TRIGGER) + kernel("use", READ)
    found = checked(
        module, launch("make", "a", programmatic=False), launch("between"), launch("use", "a", programmatic=False)
    )
    assert found.verdict == "proved"


def test_a_kernel_beside_its_own_next_launch() -> None:
    """Each launch reads what the one before wrote, and writes: double buffering over two buffers."""
    step = kernel("step", TRIGGER, WAIT, READ, "st.global.u32 [%rd5], %r4;")
    rounds = [launch("step", *("ab" if k % 2 else "ba")) for k in range(4)]
    assert checked(step, *rounds).verdict == "proved"
    early = kernel("step", TRIGGER, READ, WAIT, "st.global.u32 [%rd5], %r4;")
    found = checked(early, *rounds)
    assert {f.code for f in found.findings} == {"RACE011", "RACE012"}, "before the first launch nothing is known"


def test_pairs_that_are_ordered_alike_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    step = kernel("step", TRIGGER, WAIT, READ, "st.global.u32 [%rd5], %r4;")
    asked = []
    real = StreamOrder.conflicts

    def conflicts(self: StreamOrder, first: int, second: int) -> Iterator[Conflict]:
        asked.append((first, second))
        return real(self, first, second)

    monkeypatch.setattr(StreamOrder, "conflicts", conflicts)
    rounds = [launch("step", *("ab" if k % 2 else "ba")) for k in range(60)]
    assert checked(step, *rounds).verdict == "proved"
    assert len(asked) < 12


# --- tensor copies --------------------------------------------------------------------------------------------

LOAD = (
    "mov.u32 %r5, bar;", "mov.u32 %r6, tile;", FIRST, "@%p1 mbarrier.init.shared::cta.b64 [%r5], 1;", BARRIER,
    "@!%p1 bra END;", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 128;", "mov.u32 %r7, 0;",
    "mov.u64 %rd6, tm;", "cvta.param.u64 %rd6, %rd6;",
    "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r6], [%rd6, {%r7}], [%r5];",
    "LOOP:", "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], 0;", "@!%p2 bra LOOP;", "END:",
)  # fmt: skip
MAP = {
    "global_address": {"buffer": "a"}, "elemtype": "f32", "rank": 1, "global_dim": [1024], "global_stride": [],
    "box_dim": [32], "element_stride": [1], "interleave_layout": "none", "swizzle_mode": "none", "fill_mode": "zero",
}  # fmt: skip


def copying(at: int, *lines: str) -> str:
    """A kernel that loads a box of the tensor ``tm``, from element ``at`` on."""
    code = [line.replace("%r7, 0", f"%r7, {at}") for line in lines]
    regs = ".shared .align 8 .b64 bar; .shared .align 128 .b8 tile[128];"
    return (
        kernel("use", *code, regs=regs)
        .replace(".param .u64 y", ".param .align 64 .b8 tm[128]")
        .replace("  ld.param.u64 %rd4, [y];\n", "")
    )


@pytest.mark.parametrize(
    ("at", "early", "verdict"),
    [(0, True, "finding"), (96, True, "finding"), (128, True, "proved"), (0, False, "proved")],
)
def test_a_tensor_copy_of_what_stores_wrote(at: int, early: bool, verdict: str) -> None:
    """Behind the wait no proxy fence is needed (Q36)."""
    use = copying(at, *LOAD, WAIT) if early else copying(at, WAIT, *LOAD)
    second: dict[str, Any] = {"entry": "use", "grid": 1, "programmatic": True}
    second["params"] = {"x": {"buffer": 4096}, "tm": {"tensormap": MAP}}
    found = checked(MAKE + use, launch("make", "a", programmatic=False), second)
    assert verdict_of(found) == verdict
    if verdict == "finding":
        assert [a.proxy for a in found.findings[0].accesses] == ["async", "generic"]


# --- GPUs -----------------------------------------------------------------------------------------------------


def test_what_bounds_several_launches_is_said_once() -> None:
    """Launches 1, 2 and 4 wait for the clock, whose value decides how often the loop runs."""
    loop = ("LOOP:", "mov.u32 %r5, %clock;", "setp.lt.u32 %p1, %r5, 1000;", "@%p1 bra LOOP;")
    module = kernel("_Z4spinPiS_", *loop, width=1) + kernel("_Z4fillPiS_", WRITE)
    spin = launch("_Z4spinPiS_", "a", programmatic=False)
    found = checked(module, spin, spin, launch("_Z4fillPiS_", "b", programmatic=False), spin)
    assert found.verdict == "bounded"
    (why,) = found.reasons
    assert str(found.reason).startswith("launches 1, 2, 4 (spin): ")
    assert why.cause is Cause.LAUNCH


def test_launches_on_different_gpus() -> None:
    """They run at the same time (``test_modules_gpus.py``)."""
    module = MAKE + kernel("use", READ)
    first, second = launch("make", "a", programmatic=False), launch("use", "a", programmatic=False, gpu=1)
    assert [f.code for f in checked(module, first, second).findings] == ["RACE001"]
    assert checked(module, first, {**second, "gpu": 0}).verdict == "proved"
    assert checked(module, first, launch("use", "b", programmatic=False, gpu=1)).verdict == "proved"
    both = [launch("use", "a", programmatic=False, gpu=g) for g in (0, 1)]
    assert checked(module, *both).verdict == "proved", "both read"


SPIN = ("LOOP:", "ld.acquire.sys.global.u32 %r4, [%rd1];", "setp.ne.u32 %p1, %r4, 1;", "@%p1 bra LOOP;")


@pytest.mark.daily(one_of="heavy")
def test_a_wait_that_another_launch_may_end() -> None:
    module = kernel("set", "st.release.sys.global.u32 [%rd1], 1;", width=1) + kernel("await", *SPIN, width=1)
    one, zero = {"grid": 1}, {"init": {"hex": "00000000"}}
    first = launch("set", "a", programmatic=False) | one
    found = checked(module, first, launch("await", "a", programmatic=False, gpu=1) | one, a=zero)
    assert (found.verdict, found.findings) == ("proved", ())
    alone = checked(module, launch("await", "a", programmatic=False) | one, first, a=zero)
    assert [f.code for f in alone.findings] == ["DEAD004"], "the one that sets it begins only when this one has ended"


# --- what a launch finds in memory ----------------------------------------------------------------------------


def test_what_earlier_launches_wrote_is_not_known() -> None:
    """The flag is 1 at first, so that the wait ends, unless the launch before has written something."""
    module = kernel("clear", "st.global.u32 [%rd1], 0;", width=1) + kernel("await", *SPIN, width=1)
    one, set_ = {"grid": 1}, {"init": {"hex": "01000000"}}
    awaits = launch("await", "a", programmatic=False) | one
    assert checked(module, awaits, a=set_).verdict == "proved"
    assert checked(module, awaits, awaits, a=set_).verdict == "proved", "who reads changes nothing"
    assert checked(module, launch("clear", "b", programmatic=False) | one, awaits, a=set_).verdict == "proved"
    assert checked(module, launch("clear", "a", programmatic=False) | one, awaits, a=set_).verdict != "proved"


@pytest.mark.daily(one_of="heavy")
def test_what_an_earlier_launch_may_have_written_is_not_known() -> None:
    """Whether the flag is set depends on data, so the launch behind it may find it set."""
    lines = ("ld.global.u32 %r4, [%rd5];", "setp.eq.u32 %p1, %r4, 7;", "@%p1 st.global.u32 [%rd1], 1;")
    module = kernel("set", *lines, width=1) + kernel("await", *SPIN, width=1)
    one = {"grid": 1}
    launches = launch("set", "a", "b", programmatic=False) | one, launch("await", "a", programmatic=False) | one
    found = checked(module, *launches, a={"init": {"hex": "00000000"}})
    assert found.findings == ()
    assert found.verdict in ("bounded", "unknown")


# --- a compiled kernel ---------------------------------------------------------------------------------------------

DEPENDENT = (Path(__file__).parents[2] / "simt" / "corpus" / "cuda" / "dependent.ptx").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "raced"),
    [
        (DEPENDENT, set()),
        (DEPENDENT.replace(WAIT, ""), {"reads bytes of b", "writes bytes of a"}),
        (DEPENDENT.replace(WAIT, "").replace("bar.sync", f"{WAIT} bar.sync"), {"reads bytes of b"}),
    ],
)
def test_a_kernel_of_nvcc(text: str, raced: set[str]) -> None:
    """Launches that hand their results to each other in two buffers; the wait is where it belongs, gone, or late."""
    assert text.count(WAIT) == (0 if len(raced) == 2 else 1)
    rounds = []
    for k in range(3):
        params = {"0": {"buffer": "ab"[k % 2]}, "1": {"buffer": "ba"[k % 2]}, "2": 2.0}
        rounds.append({"entry": "dependent", "grid": 8, "block": 128, "params": params, "programmatic": k > 0})
    found = check_text(
        text, "<ptx>", from_object({"launches": rounds, "buffers": {"a": {"bytes": 4096}, "b": {"bytes": 4096}}}),
        Settings(timeout=60), Options(),
    )  # fmt: skip
    said = [f.message.removeprefix("launch 2 (dependent) ") for f in found.findings if f.code == "RACE012"]
    assert {" ".join(m.split()[:4]) for m in said if not m.startswith("launch 3")} == raced
    assert found.verdict == ("finding" if raced else "proved")
