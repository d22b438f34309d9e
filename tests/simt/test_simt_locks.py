"""Locks that are taken by compare-and-swap: whoever has one keeps the others out, whoever comes first."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.execution.waits.value_tests import AwaitedValue
from mcheck.simt.execution.waits.value_waits import find_awaited

HEAD = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 lock, .param .u64 sums, .param .u64 in)
{
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<16>;
  .shared .align 16 .b8 tile[512];
  ld.param.u64 %rd1, [lock];
  ld.param.u64 %rd2, [sums];
  ld.param.u64 %rd3, [in];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
"""
SUM = """
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
AGAIN:
  mov.u32 %r3, 0;
  mov.u32 %r4, 1;
  atom.cas.acquire.gpu.b32 %r5, [%rd1], %r3, %r4;
  setp.ne.s32 %p2, %r5, 0;
  @%p2 bra AGAIN;
  ld.global.u32 %r6, [%rd2];
  add.s32 %r7, %r6, 1;
  st.global.u32 [%rd2], %r7;
  st.release.gpu.b32 [%rd1], %r3;
DONE:
  ret;
}
"""
"""One thread of each CTA adds to a sum."""


def ask(text: str, *, ctas: int = 2, threads: int = 1, sums: str = "") -> Answer:
    """The answer about a cluster of CTAs; ``sums`` are what there is of these at first, if anybody knows."""
    read = parse_module(HEAD + text)
    known = {"init": {"hex": sums}} if sums else {}
    params = {
        "lock": {"buffer": 16, "init": {"hex": "00" * 16}},
        "sums": {"buffer": 256, **known},
        "in": {"buffer": 64},
    }
    given = {"grid": [ctas], "block": [threads], "cluster": [ctas], "params": params}
    question = Question(about=Completeness.FINDINGS, timeout=60)
    return answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)


def codes(found: Answer) -> set[str]:
    return {f.code for f in found.findings}


@pytest.mark.daily
@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", ""),
        ("cas.acquire.gpu", "cas.relaxed.gpu", "RACE001"),
        ("cas.acquire.gpu", "cas.acquire.cta", "RACE010"),
        ("cas.acquire", "cas.acq_rel", ""),
        ("st.release.gpu", "st.relaxed.gpu", "RACE001"),
        ("st.release.gpu", "st.release.cta", "RACE010"),
        ("st.release.gpu.b32 [%rd1], %r3;", "", "DEAD004"),
        ("st.release.gpu.b32 [%rd1], %r3;", "fence.acq_rel.gpu; atom.exch.relaxed.gpu.b32 %r8, [%rd1], 0;", ""),
        ("st.release.gpu.b32 [%rd1], %r3;", "atom.exch.relaxed.gpu.b32 %r8, [%rd1], 0;", "RACE001"),
        ("st.release.gpu.b32 [%rd1], %r3;", "st.release.gpu.b32 [%rd1], 2;", "DEAD004"),
        ("@%p2 bra AGAIN;", "", "RACE001"),
        ("st.global.u32 [%rd2], %r7;\n  st.release.gpu.b32 [%rd1], %r3;",
         "st.release.gpu.b32 [%rd1], %r3;\n  st.global.u32 [%rd2], %r7;", "RACE001"),
        ("[%rd1], %r3, %r4", "[%rd1+4], %r3, %r4", "DEAD004"),  # never given back
        ("[%rd1], %r3, %r4", "[%rd1], %r3, %r3", "RACE001"),  # it is free for the next one as well
        ("setp.ne.s32 %p2, %r5, 0;", "nanosleep.u32 20; setp.eq.u32 %p3, %r5, 0; not.pred %p2, %p3;", ""),
        ("setp.ne.s32 %p2, %r5, 0;\n  @%p2 bra AGAIN;", "setp.eq.s32 %p2, %r5, 0;\n  @!%p2 bra AGAIN;", ""),
    ],
)  # fmt: skip
def test_a_sum_under_a_lock(old: str, new: str, wanted: str) -> None:
    assert old in SUM
    found = ask(SUM.replace(old, new) if old else SUM)
    assert (codes(found) & set(wanted.split())) if wanted else found.verdict == "proved", (found.verdict, found.reason)


@pytest.mark.daily
@pytest.mark.parametrize("ctas", [1, 3])
def test_lanes_of_a_warp_and_ctas_take_turns(ctas: int) -> None:
    text = SUM.replace("setp.ne.u32 %p1, %r1, 0;", "setp.gt.u32 %p1, %r1, 1;")
    found = ask(text, ctas=ctas, threads=1 if ctas > 1 else 3)
    assert found.verdict == "proved", found.reason
    assert "RACE001" in codes(ask(text.replace("acquire", "relaxed"), ctas=ctas, threads=1 if ctas > 1 else 3))


DRAWN = SUM.replace(
    "st.release.gpu.b32 [%rd1], %r3;",
    "st.release.gpu.b32 [%rd1], %r3; setp.FIRST.u32 %p3, %r6, %r2; @%p3 bra DONE; st.global.u32 [%rd2+64], 1;",
)
"""A number is drawn under the lock. In the order of the CTAs each gets its own."""


@pytest.mark.parametrize("test", ["eq", "ne"])
def test_who_comes_first_is_not_taken_for_granted(test: str) -> None:
    """In one order nobody stores there, in the other one both do, or the other way round; neither may be proved."""
    found = ask(DRAWN.replace("FIRST", test), sums="00" * 64)
    assert found.verdict in ("bounded", "finding", "unknown"), found.reason
    assert found.verdict == "finding" or "only one order is followed" in (found.reason or "")


def test_what_is_known_without_a_lock_stays_known() -> None:
    text = SUM.replace(
        "@%p1 bra DONE;", "@%p1 bra DONE; ld.global.u32 %r9, [%rd2+4]; setp.ne.u32 %p4, %r9, 0; @%p4 bra DONE;"
    )
    assert ask(text, sums="00" * 64).verdict == "proved"


TILE = """
  setp.ne.u32 %p1, %r1, 0;
AGAIN:
  @%p1 bra MET;
  atom.cas.acquire.gpu.b32 %r5, [%rd1], 0, 1;
  st.shared.u32 [tile], %r5;
MET:
  bar.sync 0;
  ld.shared.u32 %r6, [tile];
  bar.sync 0;
  setp.ne.s32 %p2, %r6, 0;
  @%p2 bra AGAIN;
  mul.wide.u32 %rd4, %r1, 4;
  add.u64 %rd5, %rd2, %rd4;
  ld.global.u32 %r7, [%rd5];
  st.global.u32 [%rd5], %r7;
  bar.sync 0;
  @%p1 bra DONE;
  atom.exch.release.gpu.b32 %r8, [%rd1], 0;
DONE:
  ret;
}
"""
"""As Triton has it: one thread tries, the others hear whether it has succeeded."""


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", ""),
        ("cas.acquire", "cas.relaxed", "RACE001"),
        ("exch.release", "exch.relaxed", "RACE001"),
        ("st.global.u32 [%rd5], %r7;\n  bar.sync 0;", "st.global.u32 [%rd5], %r7;", "RACE001"),
        ("@%p2 bra AGAIN;", "", "RACE001"),
    ],
)
def test_a_lock_for_all_threads_of_a_cta(old: str, new: str, wanted: str) -> None:
    assert old in TILE
    found = ask(TILE.replace(old, new) if old else TILE, threads=64)
    assert codes(found) >= set(wanted.split())
    assert wanted or found.verdict in ("proved", "bounded"), (found.verdict, found.reason)


SEVERAL = SUM.replace("setp.ne.u32 %p1, %r1, 0;", "setp.gt.u32 %p1, %r1, 1;").replace(
    "AGAIN:", "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd1, %rd1, %rd4; add.u64 %rd2, %rd2, %rd4;\nAGAIN:"
)
"""A lock and a sum for each of two lanes of every CTA."""


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", ""),
        ("add.u64 %rd2, %rd2, %rd4;", "", "RACE001"),  # one sum under two locks
        ("cas.acquire", "cas.relaxed", "RACE001"),
        ("@%p2 bra AGAIN;", "", "RACE001"),
    ],
)
def test_lanes_wait_for_locks_of_their_own(old: str, new: str, wanted: str) -> None:
    assert old in SEVERAL
    found = ask(SEVERAL.replace(old, new) if old else SEVERAL, threads=32)
    assert codes(found) >= set(wanted.split())
    assert wanted or found.verdict == "proved", (found.verdict, found.reason)


@pytest.mark.daily(days=3, least=0)
def test_who_has_a_lock_does_not_get_it_again() -> None:
    twice = SUM.replace("AGAIN:", "mov.u32 %r10, 0;\nAGAIN:").replace(
        "ld.global.u32 %r6, [%rd2];",
        "add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 2; @%p4 bra AGAIN; ld.global.u32 %r6, [%rd2];",
    )
    assert "DEAD004" in codes(ask(twice))


TRIED = SUM.replace("@%p2 bra AGAIN;", "ELSE")
"""Who does not get the lock does something else."""


@pytest.mark.daily
@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        ("@%p2 bra DONE;", ""),
        ("@%p2 st.global.u32 [%rd2+4], %r3; @%p2 bra DONE;", ""),  # one of two CTAs at most
        ("@%p2 st.global.u32 [%rd2], %r3; @%p2 bra DONE;", "RACE001"),
        ("@%p2 st.release.gpu.b32 [%rd1], %r3; @%p2 bra AGAIN;", "RACE001"),  # gives back what another one has
    ],
)
def test_a_lock_that_is_tried_once(other: str, wanted: str) -> None:
    found = ask(TRIED.replace("ELSE", other))
    assert codes(found) >= set(wanted.split())
    assert wanted or found.verdict == "bounded", (found.verdict, found.reason)


LOOP = """.version 8.5
.target sm_90
.address_size 64
.visible .entry loop(.param .u64 flag, .param .u32 least) {{
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [flag];
  ld.param.u32 %r2, [least];
AGAIN:
  {body}
  ret;
}}
"""


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("atom.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN;", True),
        ("mov.u32 %r2, 5; atom.cas.b32 %r1, [%rd1], %r2, 1; setp.ne.u32 %p1, %r1, 5; @%p1 bra AGAIN;", True),
        (
            "atom.cas.b32 %r1, [%rd1], %r2, 1; mov.u32 %r2, 0; setp.ne.u32 %p1, %r1, 5; @%p1 bra AGAIN;",
            False,
        ),
        ("atom.cas.b32 %r1, [%rd1], %r2, 1; add.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r1, 5; @%p1 bra AGAIN;", False),
        ("atom.cas.b32 %r1, [%rd1], 0, 1; add.u64 %rd1, %rd1, 4; setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN;", False),
        ("atom.cas.b32 %r1, [%rd1], 0, %r2; mov.u32 %r2, %r1; setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN;", False),
    ],
)
def test_a_swap_that_is_asked_for_again_is_the_same(body: str, wanted: bool) -> None:
    function = parse_module(LOOP.format(body=body)).functions["loop"]
    at = next(k for k, s in enumerate(function.body) if "cas" in s.opcode.parts)

    def value(operand: ptx.Operand) -> int | None:
        return operand.value if isinstance(operand, ptx.Immediate) else 5

    found = find_awaited(function, at, value)
    assert isinstance(found, AwaitedValue) is wanted


TICKET = """
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  atom.add.relaxed.gpu.u32 %r3, [%rd1], 1;
AGAIN:
  ld.acquire.gpu.u32 %r4, [%rd1+4];
  setp.ne.s32 %p2, %r4, %r3;
  @%p2 bra AGAIN;
  ld.global.u32 %r6, [%rd2];
  add.s32 %r7, %r6, 1;
  st.global.u32 [%rd2], %r7;
  add.s32 %r8, %r3, 1;
  st.release.gpu.u32 [%rd1+4], %r8;
DONE:
  ret;
}
"""
"""The same in the order of tickets, which an atomic gives out."""


@pytest.mark.daily(days=3, least=0)
def test_whoever_waits_for_its_ticket_is_no_race() -> None:
    found = ask(TICKET, ctas=3)
    assert (found.verdict, found.findings) == ("proved", ()), "each order of the tickets is a path"


@pytest.mark.parametrize(("there", "instead"), [("st.release", "st.relaxed"), ("ld.acquire", "ld.relaxed")])
def test_a_ticket_that_hands_nothing_over_is_a_race(there: str, instead: str) -> None:
    assert {f.code for f in ask(TICKET.replace(there, instead)).findings} == {"RACE001"}


@pytest.mark.parametrize("engine", ["explicit", "z3"])
def test_engines_that_follow_no_order_of_atomics_say_so(engine: str) -> None:
    read = parse_module(HEAD + TICKET)
    params = {"lock": {"buffer": 16, "init": {"hex": "00" * 16}}, "sums": {"buffer": 256}, "in": {"buffer": 64}}
    given = build_launch(read, from_object({"grid": [2], "block": [1], "cluster": [2], "params": params}))
    found = answer_launch(read, given, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60), engine)
    assert (found.verdict, found.findings) == ("unknown", ())
    assert "what a load or an atomic returns" in (found.reason or "")
