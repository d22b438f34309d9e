"""Barriers with a count, at which a warp may arrive more often than another one (Q22)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.base.budget import processor_time
from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse
from tests.samples import examples

TWICE = """PTX twice
{ }
C@cta 0, warp 0, lane 0..2 { bar.arrive 1, 64; bar.arrive 1, 64; }
A@cta 0, warp 1, lane 0 { bar.sync 1, 64; }
B@cta 0, warp 2, lane 0 { bar.sync 1, 64; }
"""


def test_lanes_that_part_at_a_barrier_with_a_count_are_no_deadlock() -> None:
    """Four arrivals are two rounds, whoever comes first; whose arrival is for which round is not followed."""
    given = ask(parse(TWICE, "twice.litmus"), load_model("ptx-9.0"), Question(about=Completeness.FINDINGS), "protocol")
    assert given.findings == ()


# --- against an enumeration that shares nothing with the engine ----------------------------------------------------

Thread = list[tuple[str, int]]
"""What a warp does: ``arrive`` or ``sync``, at which barrier."""


@st.composite
def meetings(draw: st.DrawFn) -> tuple[list[Thread], list[int]]:
    """Warps, and how many arrivals make a round of each barrier: few are left over, so that not all are deadlocks."""
    needed = draw(st.lists(st.integers(2, 3), min_size=1, max_size=2))
    step = st.tuples(st.sampled_from(("arrive", "sync")), st.integers(0, len(needed) - 1))
    threads = draw(st.lists(st.lists(step, min_size=1, max_size=3), min_size=2, max_size=4))
    for k, count in enumerate(needed):
        left = sum(step[1] == k for thread in threads for step in thread) % count
        threads += [[("arrive", k)]] * (count - left if left else 0)
    return threads, needed


def may_wait_for_ever(threads: list[Thread], needed: list[int]) -> bool:
    """Whether some order of the arrivals leaves a warp standing (9.7.13.1)."""
    start = ((0,) * len(threads), (False,) * len(threads), (0,) * len(needed))
    seen, todo = {start}, [start]
    while todo:
        at, standing, come = todo.pop()
        able = [k for k, thread in enumerate(threads) if at[k] < len(thread) and not standing[k]]
        if not able and any(standing):
            return True
        for k in able:
            kind, where = threads[k][at[k]]
            here, stands, arrived = list(at), list(standing), list(come)
            arrived[where] += 1
            stands[k] = kind == "sync"
            here[k] += kind == "arrive"
            if arrived[where] == needed[where]:
                arrived[where] = 0
                for j, thread in enumerate(threads):
                    if stands[j] and thread[here[j]][1] == where:
                        stands[j], here[j] = False, here[j] + 1
            then = (tuple(here), tuple(stands), tuple(arrived))
            if then not in seen:
                seen.add(then)
                todo.append(then)
    return False


ENOUGH = 0.5
"""Seconds of the processor for one example in the quick tier, which few take longer than."""
LONG = 10.0
"""The same where all tests run."""


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("part", range(4))
@examples(20)
@given(given=meetings())
def test_whoever_may_wait_for_ever_is_found(part: int, all_tests: bool, given: tuple[list[Thread], list[int]]) -> None:
    threads, needed = given
    lines = [[f"bar.{kind} {where}, {32 * needed[where]};" for kind, where in thread] for thread in threads]
    roles = "\n".join(f"P{k}@cta 0 {{ {' '.join(line)} }}" for k, line in enumerate(lines))
    text = f"PTX meetings\n{{ }}\n{roles}\n"
    with processor_time():
        question = Question(about=Completeness.FINDINGS, timeout=LONG if all_tests else ENOUGH)
        answer = ask(parse(text, "m.litmus"), load_model("ptx-9.0"), question, "protocol")
    if answer.reason is None:
        expected = {"DEAD002"} if may_wait_for_ever(threads, needed) else set()
        assert {f.code for f in answer.findings} == expected, text


SEPARATE = """PTX lanes-that-arrive-apart
{ .shared .u32 x; }
a@cta 0, warp 0, lane 0..2 {
  if (%laneid == 0) { await ld.relaxed.cta.shared.u32 r0, [x] == 1; }
  barrier.sync 1, 64;
}
b@cta 0, warp 1, lane 0..2 {
  barrier.sync 1, 64;
  st.relaxed.cta.shared.u32 [x], 1;
}
"""


def test_a_round_that_lanes_of_one_warp_may_complete_names_the_barrier_and_what_to_do() -> None:
    question = Question(about=Completeness.FINDINGS, timeout=60)
    answer = ask(parse(SEPARATE, "s.litmus"), load_model("ptx-9.0"), question, "protocol")
    assert answer.reason is not None
    assert "arrive at barrier 1 at lines 5, 8 decides when it is complete" in answer.reason
    assert "let them meet before it (bar.warp.sync, __syncwarp())" in answer.reason
