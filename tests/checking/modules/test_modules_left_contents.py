"""What launches find in the words by which the CTAs of the launch before have synchronised."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from mcheck.answers.result import Answer
from mcheck.ptx import check
from tests.fuzz.left_words import compare, generate

HEAD = """.version 8.7
.target sm_90
.address_size 64
.global .align 4 .u32 unused = 0;
.visible .entry k(.param .u64 data, .param .u64 count) .reqntid 1, 1, 1 {
.reg .pred %p, %q; .reg .b32 %r<9>; .reg .b64 %a<9>;
ld.param.u64 %a1, [data]; ld.param.u64 %a2, [count];
mov.u32 %r1, %ctaid.x; mov.u32 %r3, %nctaid.x; sub.u32 %r4, %r3, 1;
mul.wide.u32 %a3, %r1, 4; add.s64 %a3, %a1, %a3;
"""
LAST = """st.global.u32 [%a3], %r1;
atom.acq_rel.gpu.global.add.u32 %r5, [%a2], 1;
setp.ne.u32 %p, %r5, %r4;
@%p ret;
ld.global.u32 %r6, [%a1];
ld.global.u32 %r6, [%a1+4];
{reset}
ret; }}
"""
RESET = "st.relaxed.gpu.global.u32 [%a2], 0;"
MEET = """atom.acq_rel.gpu.global.add.u32 %r5, [%a2], 1;
setp.ne.u32 %p, %r5, %r4;
@%p bra WAIT;
{reset}
st.release.gpu.global.u32 [%a2+4], {flag};
ret;
WAIT: ld.acquire.gpu.global.u32 %r6, [%a2+4];
setp.eq.u32 %p, %r6, 0;
@%p bra WAIT;
{then}
ret; }}
"""


def launches(number: int, ctas: int, **more: Any) -> dict[str, Any]:
    """So many launches of the kernel over one counter."""
    one = {"grid": ctas, "params": {"data": {"buffer": "data"}, "count": {"buffer": "count"}}, **more}
    buffers = {"data": {"bytes": 4 * ctas}, "count": {"bytes": 8, "init": {"hex": "00" * 8}}}
    return {"launches": [one] * number, "buffers": buffers}


def answer(body: str, number: int = 2, ctas: int = 3, **more: Any) -> Answer:
    """The answer about these launches."""
    return check(HEAD + body, launches(number, ctas, **more))


RESETS = (RESET, "atom.relaxed.gpu.global.exch.b32 %r6, [%a2], 0;", RESET.replace("relaxed.gpu.", ""))


@pytest.mark.daily
@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("ctas", [3, 12])
def test_the_last_block_of_each_launch_resets_the_counter(reset: str, ctas: int) -> None:
    assert answer(LAST.format(reset=reset), 3, ctas).verdict == "proved"


@pytest.mark.daily(one_of="heavy")
def test_the_next_launch_finds_the_counter_as_it_was_left() -> None:
    """Without a reset nobody is the last one in the second launch; a reset to one makes the last but one go on."""
    assert answer(LAST.format(reset="")).verdict == "proved"
    found = answer(LAST.format(reset=RESET.replace(", 0;", ", 1;")))
    assert [(f.code, f.message.partition(":")[0]) for f in found.findings] == [("RACE001", "launch 2 (k)")]


def test_a_barrier_that_is_not_reset_stops_the_next_launch() -> None:
    """The flag is still set in the second launch, or nobody sets it in the second one."""
    used = "st.global.u32 [%a3], %r1;\n" + MEET.format(reset=RESET, flag=1, then="ld.global.u32 %r6, [%a1];")
    assert answer(used, 1, 2, cooperative=True).verdict == "proved"
    found = answer(used, 2, 2, cooperative=True)
    assert {f.code for f in found.findings} == {"RACE001"}
    assert all("launch 2" in f.message for f in found.findings)
    stuck = answer(MEET.format(reset="", flag=0, then=""), 1, 2, cooperative=True)
    assert {f.kind for f in stuck.findings} == {"deadlock"}


@pytest.mark.daily(one_of="heavy")
def test_launches_that_may_overlap_say_nothing_of_each_other() -> None:
    assert answer(LAST.format(reset=RESET), programmatic=True).verdict != "proved"


@pytest.mark.parametrize("start", range(0, 12, 3))
@pytest.mark.daily(days=12, least=0)
def test_words_of_random_grids_are_left_as_the_explicit_engine_says(start: int) -> None:
    for seed in range(start, start + 3):
        assert not compare(generate(Random(seed))).startswith("wrong")
