"""Random launches of one stream, against all of their threads as one program."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest

from tests.fuzz.draft import Draft, Role
from tests.fuzz.launches import Comparison, OneLaunch, Sequence, compare, generate, report, write_test

SEEDS = range(48)


@cache
def compared(seed: int) -> Comparison:
    """The answers about a random sequence."""
    return compare(generate(Random(seed)))


def sequence(*kernels: tuple[str, ...], programmatic: tuple[bool, ...] = (False, False)) -> Sequence:
    """Launches of two CTAs of one thread each, a kernel after the other."""
    roles = tuple(Role(f"k{k}", "", lines) for k, lines in enumerate(kernels))
    launches = tuple(OneLaunch(k, 2, 1, early) for k, early in enumerate(programmatic))
    return Sequence(Draft("kernels", "ptx-9.0", (), roles), launches)


@pytest.mark.daily
@pytest.mark.parametrize("seed", SEEDS)
def test_the_threads_have_the_same_answer(seed: int) -> None:
    found = compared(seed)
    assert not found.what, report(found)


@pytest.mark.daily(days=4, least=0)
def test_most_answers_are_compared(all_tests: bool) -> None:
    seeds = SEEDS if all_tests else SEEDS[:12]
    seen = Counter(compared(seed).outcome for seed in seeds)
    assert seen["proved, right"] > 1
    assert seen["finding, wrong"] > 1
    assert seen["the judge left it open"] < len(seeds) / 2


@pytest.mark.parametrize("test", ["!= 2", "== 0", "!= 7"])
def test_what_was_left_decides_whether_there_is_a_race(test: str) -> None:
    """The first launch leaves 2, so there is a race in the last case alone; each is open at least."""
    leave = ("if (me == 0) {", "st.global.u32 [x], 2;", "}")
    use = ("ld.global.u32 r1, [x];", f"if (r1 {test}) {{", "st.global.u32 [d], 1;", "ld.global.u32 r7, [d];", "}")
    found = compare(sequence(leave, use))
    assert not found.what, report(found)
    assert bool(found.judge.kinds) is (test == "!= 7")
    assert found.module.verdict == "unknown"


def test_threads_leave_out_blocks_of_others() -> None:
    lines = ("if (me != 1) {", "if (r0 == 1) {", "ld.global.u32 r7, [d+2*me+1];", "}", "}", "st.global.u32 [x], 1;")
    roles = write_test(sequence(lines, (), programmatic=(False, True))).roles
    assert roles[1].lines[0] == "st.global.u32 [x + 0], 1;"
    assert roles[0].lines[:4] == ("if (r0 == 1) {", "ld.global.u32 r7, [d + 4];", "}", "st.global.u32 [x + 0], 1;")
