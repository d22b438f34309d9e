"""Threads that take several locks: in one order, in orders that go round, and with attempts that are given up."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.base.verdicts import Verdict
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module

HEAD = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 locks, .param .u64 sums)
{
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [locks];
  ld.param.u64 %rd2, [sums];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %nctaid.x;
  add.u32 %r5, %r1, 1;
  rem.u32 %r5, %r5, %r2;
  min.u32 %r6, %r1, %r5;
  max.u32 %r7, %r1, %r5;
  mad.wide.u32 %rd3, %r1, 4, %rd1;
  mad.wide.u32 %rd4, %r5, 4, %rd1;
  mad.wide.u32 %rd5, %r6, 4, %rd1;
  mad.wide.u32 %rd6, %r7, 4, %rd1;
  add.u64 %rd7, %rd1, 60;
"""
OWN, NEXT, LOWER, HIGHER, GATE = (f"%rd{k}" for k in range(3, 8))
"""The lock of a CTA and that of the next one, the two in the order of their numbers, and one that all CTAs share."""


def take(lock: str, attempt: str = "atom.cas.acquire.gpu.b32 %r8, [{}], 0, 1;") -> str:
    """A loop that takes a lock."""
    name = f"TAKE_{lock.strip('%')}"
    return f"{name}: {attempt.format(lock)} setp.ne.s32 %p1, %r8, 0; @%p1 bra {name};\n"


def leave(*locks: str) -> str:
    """Releases of locks."""
    return "".join(f"st.release.gpu.b32 [{lock}], 0;\n" for lock in locks)


ADD = "ld.global.u32 %r9, [%rd2]; add.u32 %r9, %r9, 1; st.global.u32 [%rd2], %r9;\n"
RELAXED = "atom.cas.relaxed.gpu.b32 %r8, [{}], 0, 1;"
EXCHANGE = "atom.exch.acquire.gpu.b32 %r8, [{}], 1;"
BACK_OFF = f"""
AGAIN:
{take(OWN)}
  atom.cas.acquire.gpu.b32 %r8, [{NEXT}], 0, 1;
  setp.eq.s32 %p2, %r8, 0;
  @%p2 bra BOTH;
  {leave(OWN)}
  bra AGAIN;
BOTH:
  {leave(NEXT, OWN)}
"""
"""Whoever does not get the next lock gives its own one back."""


def ask(code: str, *, ctas: int, clusters: int = 1, seconds: float = 60) -> Answer:
    """The answer about a grid of so many CTAs, in so many clusters, of which each does this."""
    read = parse_module(HEAD + code + "  ret;\n}\n")
    params = {name: {"buffer": 64, "init": {"hex": "00" * 64}} for name in ("locks", "sums")}
    given = {"grid": [ctas], "block": [1], "cluster": [ctas // clusters], "params": params}
    question = Question(about=Completeness.FINDINGS, timeout=seconds)
    return answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("ctas", [2, 3, 4])
def test_each_holds_the_lock_that_the_one_before_waits_for(ctas: int, *, apart: bool) -> None:
    code = take(OWN) + take(NEXT) + ADD + leave(NEXT, OWN)
    found = ask(code, ctas=ctas, clusters=ctas if apart else 1)
    (stuck,) = found.findings
    assert (found.verdict, stuck.code) == (Verdict.FINDING, "DEAD004")
    assert len(stuck.accesses) == len({(access.object, access.bytes) for access in stuck.accesses}) == ctas


@pytest.mark.parametrize("attempt", [RELAXED, EXCHANGE])
def test_locks_may_be_taken_by_other_atomics(attempt: str) -> None:
    fence = "fence.acq_rel.gpu;\n"
    code = take(OWN, attempt) + fence + take(NEXT, attempt) + fence + leave(NEXT, OWN)
    assert [f.code for f in ask(code, ctas=2).findings] == ["DEAD004"]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("ctas", [2, 3])
@pytest.mark.parametrize(
    "code",
    [
        take(LOWER) + take(HIGHER) + leave(HIGHER, LOWER),
        take(GATE) + take(OWN) + take(NEXT) + leave(NEXT, OWN, GATE),
        take(GATE) + take(OWN) + take(NEXT) + leave(GATE, NEXT, OWN),
        take(OWN) + leave(OWN) + take(NEXT) + leave(NEXT),
    ],
    ids=["in one order", "under one lock", "taken under one lock", "one at a time"],
)
def test_no_thread_waits_for_the_other(code: str, ctas: int, *, apart: bool) -> None:
    found = ask(code, ctas=ctas, clusters=ctas if apart else 1)
    assert not found.findings


@pytest.mark.parametrize("apart", [False, True])
def test_locks_that_two_ctas_take_in_one_order_are_proved(*, apart: bool) -> None:
    code = take(LOWER) + take(HIGHER) + leave(HIGHER, LOWER)
    assert ask(code, ctas=2, clusters=2 if apart else 1).verdict is Verdict.PROVED


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("ctas", [2, 3])
def test_giving_a_lock_back_is_no_deadlock(ctas: int, *, apart: bool) -> None:
    found = ask(BACK_OFF, ctas=ctas, clusters=ctas if apart else 1, seconds=4)
    assert not found.findings
