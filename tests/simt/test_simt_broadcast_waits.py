"""Waits of one thread that hands what it reads to others, through a word of shared memory or by a shuffle."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.simt.trace_extraction import PathChoices, PathRules, Runner
from tests.fuzz.broadcasts import main

HEAD = """.version 8.5
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 global_smem[];
.visible .entry k(.param .u64 sums, .param .u64 word)
{
  .reg .pred %p<12>; .reg .b32 %r<24>; .reg .f32 %f<8>; .reg .b64 %rd<16>;
  ld.param.u64 %rd2, [sums];
  ld.param.u64 %rd3, [word];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r3, %tid.x;
  mul.wide.s32 %rd4, %r3, 4;
  add.s64 %rd5, %rd2, %rd4;
  setp.eq.b32 %p1, %r3, 0;
  setp.eq.b32 %p4, %r3, 1;
  setp.ne.b32 %p5, %r3, 1;
  mov.b32 %r11, 0;
"""
LOOK = "@%p1 atom.global.acq_rel.gpu.cas.b32 %r6, [%rd3], %r7, %r8;"
LOCK = f"""
AGAIN:
  bar.sync 0;
  mov.b32 %r7, 0;
  mov.b32 %r8, 1;
  mov.u32 %r6, 0;
  {LOOK}
  mov.b32 %r9, global_smem;
  @%p1 st.shared::cta.b32 [%r9], %r6;
  bar.sync 0; // meeting
  ld.shared.b32 %r10, [global_smem];
  setp.eq.b32 %p2, %r10, 1;
  @%p2 bra AGAIN;
"""
BODY = """
  ld.global.f32 %f1, [%rd5];
  add.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%rd5], %f2;
  bar.sync 0; // done
"""
RELEASE = """
  @%p1 atom.global.gpu.acq_rel.exch.b32 %r13, [%rd3], 0;
  ret;
}
"""
KERNEL = HEAD + LOCK + BODY + RELEASE
"""A lock, as Triton compiles it for several warps."""
BRANCHES = (
    (LOOK, "@!%p1 bra MEET; atom.global.acquire.gpu.cas.b32 %r6, [%rd3], %r7, %r8;"),
    ("@%p1 st.shared", "st.shared"),
    ("bar.sync 0; // meeting", "MEET: bar.sync 0;"),
)
"""One thread goes another way than the others."""
PREDICATE = (
    (LOOK, f"{LOOK} setp.eq.b32 %p6, %r6, 1; selp.b32 %r6, 1, 0, %p6;"),
    ("setp.eq.b32 %p2, %r10, 1", "setp.ne.b32 %p2, %r10, 0"),
)
"""What is handed on is the result of a comparison."""
AT_THE_END = (("AGAIN:\n  bar.sync 0;", "AGAIN:"), ("  @%p2 bra", "  bar.sync 0; @%p2 bra"))
SHUFFLE = (
    ("  @%p1 st.shared::cta.b32 [%r9], %r6;", "shfl.sync.idx.b32 %r10, %r6, 0, 31, -1;"),
    ("ld.shared.b32 %r10, [global_smem];", ""),
)
"""The same with one warp."""
TURN = (
    (LOOK, "@%p1 ld.acquire.gpu.global.b32 %r6, [%rd3];"),
    ("setp.eq.b32 %p2, %r10, 1", "setp.ne.b32 %p2, %r10, %r1"),
    (RELEASE, "  @%p1 red.global.gpu.release.add.u32 [%rd3], 1;\n  ret;\n}\n"),
)
EXCHANGE = ((LOOK, "@%p1 atom.global.acquire.gpu.exch.b32 %r6, [%rd3], 1;"), ("%p2, %r10, 1", "%p2, %r10, 1"))
Edits = tuple[tuple[str, str], ...]


def make(edits: Edits, *, threads: int = 64, cluster: int = 1) -> tuple[Module, Launch]:
    """The kernel with parts of it replaced, and a launch of two CTAs."""
    text = KERNEL
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    read = parse_module(text)
    zeros = {"buffer": 16, "init": {"hex": "00" * 16}}
    given = {
        "grid": [2], "block": [threads], "cluster": [cluster], "cooperative": True, "shared": 64,
        "params": {"sums": {"buffer": 4 * threads}, "word": zeros},
    }  # fmt: skip
    return read, build_launch(read, from_object(given))


def ask(edits: Edits, *, threads: int = 64) -> Answer:
    """The answer about the kernel with parts of it replaced."""
    question = Question(about=Completeness.FINDINGS, timeout=60)
    return answer_launch(*make(edits, threads=threads), load_model("ptx-9.0"), question)


@pytest.mark.daily
@pytest.mark.parametrize(
    ("edits", "threads"),
    [
        ((), 64),
        (BRANCHES, 64),
        (PREDICATE, 64),
        ((*BRANCHES, ("MEET: bar.sync 0;", "MEET: bar.sync 3;")), 64),
        (AT_THE_END, 64),
        (SHUFFLE, 32),
        ((*SHUFFLE, ("AGAIN:\n  bar.sync 0;", "AGAIN:")), 32),
        (TURN, 64),
        ((*TURN, *SHUFFLE), 32),
        (EXCHANGE, 64),
    ],
)
def test_waits_that_one_thread_hands_on(edits: Edits, threads: int) -> None:
    found = ask(edits, threads=threads)
    assert found.verdict == "proved", (found.reason, found.findings)


@pytest.mark.daily
@pytest.mark.parametrize(
    ("edits", "codes"),
    [
        (((".acq_rel.gpu.cas", ".relaxed.gpu.cas"),), {"RACE001"}),
        ((("gpu.acq_rel.exch", "gpu.relaxed.exch"),), {"RACE001"}),
        (((".acq_rel.gpu.cas", ".acq_rel.cta.cas"),), {"RACE010"}),
        ((("  bar.sync 0; // done", ""),), {"RACE001"}),
        (((RELEASE, "  ret;\n}\n"),), {"DEAD004"}),
        ((*TURN, ("red.global.gpu.release", "red.global.gpu.relaxed")), {"RACE001"}),
        # Between the load of the word and the next store of it nobody waits.
        ((("AGAIN:\n  bar.sync 0;", "AGAIN:"),), {"RACE001"}),
        # Another thread writes the word: in the round, before it, behind it.
        ((("  bar.sync 0; // meeting", "@%p4 st.shared.b32 [global_smem], %r6; bar.sync 0;"),), {"RACE001"}),
        ((("  mov.b32 %r11, 0;", "@%p4 st.shared.b32 [global_smem], 1;"), *AT_THE_END), {"RACE001"}),
        (((BODY, f"@%p4 st.shared.b32 [global_smem], 1; {BODY}"),), {"RACE001"}),
    ],
)
def test_waits_that_go_wrong(edits: Edits, codes: set[str]) -> None:
    found = ask(edits)
    assert found.verdict == "finding", found.reason
    assert codes <= {f.code for f in found.findings}, found.findings


EARLY = (
    "@%p5 bra AGAIN; st.shared.b32 [global_smem], 7; red.release.gpu.global.add.u32 [%rd3], 1; ret;\nAGAIN:",
    "setp.ne.and.b32 %p7, %r1, 0, %p4; @!%p7 bra AGAIN; mapa.shared::cluster.u32 %r14, global_smem, 0;\n"  # noqa: ISC004
    "st.shared::cluster.b32 [%r14], 7; red.release.gpu.global.add.u32 [%rd3], 1;\nAGAIN:",
)
"""Whoever writes the word and signals that it has: a thread that ends before the loop, another CTA."""
COUNTED = (
    "add.s32 %r11, %r11, 1; @%p2 bra AGAIN; setp.gt.s32 %p7, %r11, 1; @%p7 st.global.f32 [%rd2], %f3;",
    "@%p4 add.s32 %r11, %r11, 1; @%p2 bra AGAIN; setp.gt.s32 %p7, %r11, 1; @%p7 st.global.f32 [%rd2], %f3;",
)
LATER = (
    "add.s32 %r11, %r11, 1; @%p2 bra AGAIN; setp.ne.s32 %p7, %r12, 1; @%p7 bra NEXT; setp.gt.s32 %p8, %r11, 2; "
    "@%p8 st.global.f32 [%rd2], %f3; NEXT: add.s32 %r12, %r12, 1; setp.lt.s32 %p9, %r12, 2; @%p9 bra AGAIN;"
)
"""What rounds have counted decides something when the wait has ended for the second time."""
OTHERWISE = "@%p4 setp.ne.b32 %p2, %r10, 0; @%p4 mov.b32 %r10, 5; @%p2 bra AGAIN;"
BACK, MEETING = "  @%p2 bra AGAIN;", "  bar.sync 0; // meeting"


@pytest.mark.parametrize(
    ("edits", "threads", "cluster", "wanted"),
    [
        ((), 64, 1, True),
        (TURN, 64, 2, True),
        ((*TURN, *SHUFFLE), 32, 1, True),
        ((*TURN, ("AGAIN:", EARLY[0]), ("%p2, %r10, %r1", "%p2, %r10, 2")), 64, 1, False),
        ((*TURN, ("AGAIN:", EARLY[1]), ("%p2, %r10, %r1", "%p2, %r10, 1")), 64, 2, False),
        # Part of the CTA takes part in the barrier.
        (((MEETING, "@!%p4 bar.sync 0;"),), 64, 1, False),
        (((MEETING, "bar.sync 0, 32;"),), 64, 1, False),
        # Nobody waits between the load of the word and the next store of it.
        ((("AGAIN:\n  bar.sync 0;", "AGAIN:"),), 64, 1, False),
        # One thread leaves the loop, tests otherwise, or counts the rounds.
        (((BACK, "@%p4 bra OUT; @%p2 bra AGAIN; OUT:"),), 64, 1, False),
        (((BACK, OTHERWISE), ("setp.eq.b32 %p2, %r10, 1", "setp.ge.s32 %p2, %r10, 1")), 64, 1, False),
        (((BACK, COUNTED[0]),), 64, 1, False),
        (((BACK, COUNTED[1]),), 64, 1, False),
        ((*TURN, (BACK, LATER), ("mov.b32 %r11, 0;", "mov.b32 %r11, 0; mov.b32 %r12, 0;")), 64, 1, False),
        # A round is seen, or the word is not the one that is loaded.
        (((MEETING, "@%p4 st.global.f32 [%rd2+4], %f3; bar.sync 0;"),), 64, 1, False),
        # The word is loaded again, behind the barrier in front of the next store of it.
        ((("AGAIN:\n  bar.sync 0;", "AGAIN:\n  bar.sync 0; @%p4 ld.shared.b32 %r16, [global_smem];"),), 64, 1, False),
        ((("%r10, [global_smem]", "%r10, [global_smem+4]"),), 64, 1, False),
        (((MEETING, "@%p4 st.shared.b32 [global_smem], %r6; bar.sync 0;"),), 64, 1, False),
        # The lane whose value is handed on is not the one that looks, or each of two warps has a value of its own.
        ((*SHUFFLE, ("%r6, 0, 31, -1", "%r6, 1, 31, -1")), 32, 1, False),
        ((*SHUFFLE, ("AGAIN:\n  bar.sync 0;", "AGAIN:")), 64, 1, False),
        ((*SHUFFLE, ("AGAIN:\n  bar.sync 0;", "AGAIN:"), (MEETING, "")), 64, 1, True),
    ],
)
def test_which_loops_are_waits(edits: Edits, threads: int, cluster: int, *, wanted: bool) -> None:
    module, launch = make(edits, threads=threads, cluster=cluster)
    rules = PathRules(barrier_waits=True, two_valued_locks=True)
    runner = Runner(module, launch, Limit(None), rules)
    executed = runner.run(PathChoices(), max_steps=2_000)
    waits = any(isinstance(op, ops.Await) for op in executed.recorded.distinct_operations())
    assert (waits and runner.next_rules(executed, set()).barrier_waits) is wanted


SIGNALLER = """
  setp.eq.b32 %p6, %r1, 0;
  @!%p6 bra WAITER;
  @!%p1 bra DONE;
  st.global.f32 [%rd2], %f1;
  st.release.gpu.global.b32 [%rd3], 1;
  st.release.gpu.global.b32 [%rd3], 2;
DONE:
  ret;
WAITER:
  mov.b32 %r9, global_smem;
"""
"""The first CTA writes what the second waits for, and counts to 2."""
COUNT = """
AGAIN:
  bar.sync 0;
  @%p1 ld.acquire.gpu.global.b32 %r6, [%rd3];
  mov.b32 %r12, %r6;
  @%p1 st.shared::cta.b32 [%r9], %r6;
  bar.sync 0;
  ld.shared.b32 %r10, [global_smem];
  setp.lt.s32 %p2, %r10, 1;
  @%p2 bra AGAIN;
"""
TOUCHES = """
  @!%p4 bra AGAIN;
  {touch}
  st.release.gpu.global.b32 [%rd3], 1;
AGAIN:
  @%p1 ld.acquire.gpu.global.b32 %r6, [%rd3];
  @%p1 st.shared::cta.b32 [global_smem], %r6;
  bar.sync 0;
  ld.shared.b32 %r10, [global_smem];
  setp.ne.s32 %p2, %r10, 1;
  bar.sync 0;
  @%p2 bra AGAIN;
  ret;
}}
"""
"""A thread touches shared memory and then ends the wait of another one, which has written the word in failed rounds."""
TWO_LOOKS = """
  mov.b32 %r14, 0;
AGAIN:
  bar.sync 0;
  @!%p1 bra MEET;
  setp.eq.s32 %p9, %r14, 0;
  @!%p9 bra LOOK;
  ld.acquire.gpu.global.b32 %r6, [%rd3];
  setp.lt.s32 %p8, %r6, 1;
  selp.b32 %r7, 1, 0, %p8;
  st.shared::cta.b32 [%r9], %r7;
  @!%p8 bra READ;
  bra MEET;
LOOK:
  ld.acquire.gpu.global.b32 %r6, [%rd3];
  setp.lt.s32 %p8, %r6, 2;
  selp.b32 %r7, 2, 3, %p8;
  st.shared::cta.b32 [%r9], %r7;
MEET:
  bar.sync 0;
READ:
  ld.shared.b32 %r10, [global_smem];
  sub.s32 %r15, %r10, 1;
  setp.lt.u32 %p2, %r15, 2;
  @!%p1 setp.eq.s32 %p2, %r10, 2;
  @%p2 bra AGAIN;
  @!%p1 bra FIN;
  setp.eq.s32 %p9, %r10, 3;
  @%p9 bra FIN;
  mov.b32 %r14, 1;
  bra LOOK;
FIN:
  ld.global.f32 %f3, [%rd2];
  ret;
}
"""
"""A thread ends a first wait without meeting the others, which leave the loop where it fails."""
STALE = "ld.shared.b32 %r12, [global_smem];"


def value_decides(value: int, what: str, *edits: tuple[str, str]) -> str:
    """What is done after the wait if ``%r12`` holds a value."""
    loop = COUNT
    for old, new in edits:
        assert old in loop, old
        loop = loop.replace(old, new, 1)
    decides = f"{what} setp.eq.s32 %p7, %r12, {value}; @%p7 st.global.f32 [%rd2], %f2;"
    return f"{SIGNALLER}{loop}@!%p1 bra OUT; {decides} OUT: ret;\n}}\n"


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    ("body", "ctas", "proved"),
    [
        (SIGNALLER + COUNT.replace("mov.b32 %r12, %r6;", "") + "ret;\n}\n", 2, True),
        # What ends the wait is known to more than a comparison: a copy of what was read, another load of the word.
        (value_decides(1, "", ("[%r9], %r6", "[%r9], %r12")), 2, False),
        (value_decides(1, STALE, ("  mov.b32 %r12, %r6;\n", "")), 2, False),
        (value_decides(1, STALE.replace("ld.", "ld.relaxed.cta."), ("  mov.b32 %r12, %r6;\n", "")), 2, False),
        # The look of a failed round is not ordered behind what ends the wait.
        (TOUCHES.format(touch="st.shared.b32 [global_smem], 7;"), 1, False),
        (TOUCHES.format(touch="ld.shared.b32 %r16, [global_smem];"), 1, False),
        (TOUCHES.format(touch="st.shared.b32 [global_smem+4], 7;"), 1, True),
        (SIGNALLER + TWO_LOOKS, 2, False),
    ],
)
def test_what_failed_rounds_bring_about(body: str, ctas: int, *, proved: bool) -> None:
    read = parse_module(HEAD + body)
    zeros = {"buffer": 256, "init": {"hex": "00" * 256}}
    given = {
        "grid": [ctas], "block": [64], "cluster": [ctas], "shared": 64, "params": {"sums": zeros, "word": zeros},
    }  # fmt: skip
    question = Question(about=Completeness.FINDINGS, timeout=5)
    found = answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)
    assert (found.verdict == "proved") is proved, (found.reason, found.findings)


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("seed", range(3))
def test_random_broadcasts(seed: int) -> None:
    assert main(["--programs", "10", "--seed", str(40 + seed), "--orders", "40"]) == 0
