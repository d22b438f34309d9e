"""Locks whose word holds one of two values: failed attempts to take them change nothing."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.ir.expr import Const, Reg
from mcheck.ir.memory import GLOBAL_BASE, Cta
from mcheck.ir.program import Place, Thread
from mcheck.simt.execution.waits.two_valued_locks import TwoValuedLock, weaker_accesses
from tests.fuzz import spin_locks

SUM = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 lock, .param .u64 sum)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  .shared .align 16 .b8 tile[16];
  ld.param.u64 %rd1, [lock];
  ld.param.u64 %rd2, [sum];
  mov.u32 %r1, %ctaid.x;
AGAIN:
  atom.acquire.gpu.global.exch.b32 %r2, [%rd1], 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra AGAIN;
  ld.global.u32 %r3, [%rd2];
  add.u32 %r3, %r3, 1;
  st.global.u32 [%rd2], %r3;
  st.release.gpu.global.u32 [%rd1], 0;
  ret;
}
"""
SWAP = "atom.acquire.gpu.global.exch.b32 %r2, [%rd1], 1;\n  setp.ne.u32 %p1, %r2, 0;"
SWAPS = {
    "exchange": SWAP,
    "exchange until it is not taken": SWAP.replace("ne.u32 %p1, %r2, 0", "eq.u32 %p1, %r2, 1"),
    "swap until it is not taken": "atom.acquire.gpu.global.cas.b32 %r2, [%rd1], 0, 1;\n  setp.eq.u32 %p1, %r2, 1;",
}
GIVEN_BACK = "st.release.gpu.global.u32 [%rd1], 0;"


def ask(text: str, *, held: str | None = "00" * 16, seconds: float = 4) -> Answer:
    """The answer about two CTAs of one thread; ``held`` are the first contents of the lock and what lies behind it."""
    read = parse_module(text)
    known = {"init": {"hex": held}} if held is not None else {}
    params = {"lock": {"buffer": 16, **known}, "sum": {"buffer": 64}}
    given = build_launch(read, from_object({"grid": [2], "block": [1], "params": params, "cooperative": True}))
    question = Question(about=Completeness.FINDINGS, timeout=seconds)
    return answer_launch(read, given, load_model("ptx-9.0"), question)


def codes(found: Answer) -> set[str]:
    return {f.code for f in found.findings}


@pytest.mark.daily
@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", ""),
        (GIVEN_BACK, GIVEN_BACK.replace("release", "relaxed"), "RACE001"),
        (GIVEN_BACK, GIVEN_BACK.replace("gpu", "cta"), "RACE010"),
        ("atom.acquire", "atom.relaxed", "RACE001"),
        (GIVEN_BACK, "", "DEAD004"),
        (GIVEN_BACK, "atom.release.gpu.global.exch.b32 %r4, [%rd1], 0;", ""),
        ("@%p1 bra AGAIN;", "", "RACE001"),
    ],
)
def test_a_sum_under_a_lock(swap: str, old: str, new: str, wanted: str) -> None:
    text = SUM.replace(SWAP, SWAPS[swap])
    assert old in text
    found = ask(text.replace(old, new) if old else text, seconds=30)
    assert codes(found) >= set(wanted.split()), (found.verdict, found.reason)
    assert wanted or found.verdict == "proved", (found.verdict, found.reason, found.findings)


@pytest.mark.daily
@pytest.mark.parametrize(
    ("more", "held"),
    [
        ("", "02" + "00" * 15),  # a third value at first: exchanged for 1, and never free; swapped: free for all
        ("st.relaxed.gpu.global.u32 [%rd1], 2;", "00" * 16),
        ("st.relaxed.gpu.global.u8 [%rd1], 1;", "00" * 16),
        ("st.global.u32 [%rd1], 1;", "00" * 16),
        ("atom.relaxed.gpu.global.add.u32 %r5, [%rd1], 0;", "00" * 16),
        ("mov.b32 %r6, tile; cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r6], 16;", "00" * 16),
    ],
)
@pytest.mark.parametrize("swap", SWAPS)
def test_another_value_or_another_kind_of_access_is_no_lock(more: str, held: str, swap: str) -> None:
    text = SUM.replace(SWAP, SWAPS[swap]).replace(GIVEN_BACK, f"{more} {GIVEN_BACK}")
    assert ask(text, held=held).verdict != "proved"


@pytest.mark.daily
@pytest.mark.parametrize("swap", SWAPS)
def test_a_lock_that_the_launch_does_not_give_is_free_at_first(swap: str) -> None:
    """With contents that are not known at all, both threads would seem to have it at once."""
    text = SUM.replace(SWAP, SWAPS[swap])
    found = ask(text, held=None, seconds=30)
    assert (found.verdict, found.findings) == ("bounded", ())
    assert 'initial value of this word ("init" of its buffer): 0 was assumed' in (found.reason or "")
    assert "RACE001" in codes(ask(text.replace("st.release", "st.relaxed"), held=None, seconds=30))


LOOK = "ld.relaxed.gpu.global.u32 %r6, [%rd1];\n  setp.eq.u32 %p2, %r6, 0;\n  @%p2 ret;"


@pytest.mark.parametrize("look", [LOOK, LOOK.replace("relaxed.gpu.", "")])
def test_what_is_not_reached_with_the_assumed_contents_is_not_proved(look: str) -> None:
    """Nobody takes the lock if it is free, and nobody gets it if not."""
    text = SUM.replace("AGAIN:", f"{look}\nAGAIN:")
    found = ask(text, held=None)
    assert (found.verdict, found.findings) == ("bounded", ())
    assert 'initial value of this word ("init" of its buffer): 0 was assumed' in (found.reason or "")


NARROW = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 lock, .param .u64 flag)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [lock];
  ld.param.u64 %rd2, [flag];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra OTHER;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra FREES;
TAKES:
  atom.acquire.cta.global.exch.b32 %r3, [%rd1], 1;
  setp.ne.u32 %p2, %r3, 0;
  @%p2 bra TAKES;
  ret;
FREES:
  ld.acquire.gpu.global.u32 %r4, [%rd2];
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra FREES;
  st.release.cta.global.u32 [%rd1], 0;
  ret;
OTHER:
  setp.ne.u32 %p1, %r2, 0;
  @%p1 ret;
  st.relaxed.gpu.global.u32 [%rd1], 1;
  st.release.gpu.global.u32 [%rd2], 1;
  ret;
}
"""
"""A thread waits for a word at scope ``.cta`` that a thread of another CTA has written before it was freed."""


@pytest.mark.daily
@pytest.mark.parametrize(
    "takes",
    ["atom.acquire.cta.global.exch.b32 %r3, [%rd1], 1;", "atom.acquire.cta.global.cas.b32 %r3, [%rd1], 0, 1;",
     "ld.acquire.cta.global.u32 %r3, [%rd1];"],
)  # fmt: skip
def test_failed_attempts_of_a_narrow_scope_race(takes: str) -> None:
    def verdict(text: str) -> Answer:
        params = {
            "lock": {"buffer": 4, "init": {"hex": "01000000"}},
            "flag": {"buffer": 4, "init": {"hex": "00000000"}},
        }
        given = from_object({"grid": [2], "cluster": [2], "block": [2], "params": params})
        read = parse_module(text)
        question = Question(about=Completeness.FINDINGS, timeout=30)
        return answer_launch(read, build_launch(read, given), load_model("ptx-9.0"), question)

    text = NARROW.replace("atom.acquire.cta.global.exch.b32 %r3, [%rd1], 1;", takes)
    assert "RACE001" in codes(verdict(text))
    assert verdict(text.replace(".cta.global", ".cluster.global")).verdict == "proved"


def test_failed_exchanges_of_a_narrow_scope_may_race_with_what_is_read() -> None:
    """They write, too: they may race with a load of another CTA that is ordered before the attempt that succeeds."""
    lock = {GLOBAL_BASE: TwoValuedLock(4, 0, 1, "cta")}
    swap = ops.Atomic(dst=Reg("r"), op="exch", address=Const(GLOBAL_BASE), srcs=(Const(1),), type="b32", scope="cta")
    load = ops.Load(dsts=(Reg("r"),), address=Const(GLOBAL_BASE), type="b32", sem="relaxed", scope="gpu")

    def weaker(cta: int) -> list[ops.Op]:
        threads = []
        for k, (number, op) in enumerate([(0, swap), (cta, load)]):
            place = Place(Cta(number, 0, 0, number), 0, k)
            threads.append(Thread(index=k, role="t", number=k, name=f"t[{k}]", place=place, code=(op,), labels={}))
        return list(weaker_accesses(lock, threads))

    assert weaker(0) == []
    assert weaker(1) == [swap, load]


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(24))
def test_no_race_of_a_few_attempts_is_missed(seed: int) -> None:
    outcome, grid, _ = spin_locks.compare(seed, 2.0)
    assert outcome not in ("missed", "error"), grid.draft.text()
