"""Grids whose CTAs meet several times: what pairs of clusters say of all, for right barriers and for broken ones."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.signalled_grid import answer_signalled
from mcheck.simt.grid.pairs.reduction import NOT_RESIDENT
from tests.fuzz.grids import judge_threads, make_grid
from tests.fuzz.pair_answers import build, follow_pair, say_why
from tests.fuzz.rounds import answer_by_pairs, compare, generate

SECONDS = 60.0
LARGE = 12
SEEDS = 96
PER_TEST = 4
HEAD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 count, .param .u64 flag)
.reqntid 2, 1, 1
{
.reg .pred %p, %z;
.reg .b32 %r<20>;
.reg .b64 %a<9>;
ld.param.u64 %a1, [data];
ld.param.u64 %a2, [count];
ld.param.u64 %a3, [flag];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
mov.u32 %r3, %nctaid.x;
sub.u32 %r4, %r3, 1;
setp.eq.u32 %z, %r2, 0;
mad.lo.u32 %r5, %r1, 2, %r2;
mul.wide.u32 %a4, %r5, 4;
add.s64 %a4, %a1, %a4;
add.u32 %r6, %r1, 1;
rem.u32 %r6, %r6, %r3;
mad.lo.u32 %r6, %r6, 2, %r2;
mul.wide.u32 %a5, %r6, 4;
add.s64 %a5, %a1, %a5;
st.global.u32 [%a4], %r1;
"""
ADD = "red.release.gpu.global.add.u32 [%a2], 1;"
COUNT = (
    f"{ADD}\n"
    """mul.lo.u32 %r7, %r3, {next};
P{k}: ld.acquire.gpu.global.u32 %r8, [%a2];
setp.lt.u32 %p, %r8, %r7;
@%p bra P{k};
"""
)
SENSE = """ld.relaxed.gpu.global.u32 %r7, [%a3];
fence.acq_rel.gpu;
atom.relaxed.gpu.global.add.u32 %r8, [%a2], 1;
setp.ne.u32 %p, %r8, %r4;
@%p bra P{k};
fence.acq_rel.gpu;
st.relaxed.gpu.global.u32 [%a2], 0;
add.u32 %r9, %r7, 1;
st.release.gpu.global.u32 [%a3], %r9;
bra M{k};
P{k}: ld.acquire.gpu.global.u32 %r8, [%a3];
setp.eq.u32 %p, %r8, %r7;
@%p bra P{k};
"""
FLIPS = SENSE.replace("add.u32 %r9, %r7, 1", "xor.b32 %r9, %r7, 1")
COLLECTS = """setp.eq.u32 %p, %r1, 0;
@%p bra C{k};
red.release.gpu.global.add.u32 [%a2], 1;
P{k}: ld.acquire.gpu.global.u32 %r8, [%a3];
setp.ne.u32 %p, %r8, {next};
@%p bra P{k};
bra M{k};
C{k}: ld.acquire.gpu.global.u32 %r8, [%a2];
setp.ne.u32 %p, %r8, %r4;
@%p bra C{k};
st.relaxed.gpu.global.u32 [%a2], 0;
st.release.gpu.global.u32 [%a3], {next};
"""


def write(barrier: str, other: str = "", rounds: int = 2) -> str:
    """A kernel in which each CTA reads what its neighbour has written, and writes again; ``other`` is the barrier of
    the second round, if that is another one.
    """
    lines = [HEAD]
    for k in range(rounds):
        meet = (other or barrier if k else barrier).format(k=k, next=k + 1)
        lines += ["bar.sync 0;", f"@!%z bra M{k};", meet, f"M{k}: bar.sync 0;"]
        lines.append("st.global.u32 [%a4], %r10;" if k % 2 else "ld.global.u32 %r10, [%a5];")
    return "\n".join([*lines, "ret;", "}", ""])


def answer(text: str, clusters: int = LARGE, *, cooperative: bool = True, first: int = 0) -> tuple[Verdict | None, str]:
    """The answer that pairs give, or why they give none."""
    words = {name: {"buffer": 4, "init": {"hex": first.to_bytes(4, "little").hex()}} for name in ("count", "flag")}
    given = {"grid": clusters, "block": 2, "params": {"data": {"buffer": 8 * clusters}, **words}}
    module, launch = build(text, given, cooperative=cooperative)
    found, why = say_why(lambda: answer_signalled(module, launch, partial(follow_pair, module), Limit(SECONDS)))
    return None if found is None else found.verdict, why


RIGHT = {
    "a counter that counts on": write(COUNT),
    "a counter that counts on, three times": write(COUNT, rounds=3),
    "the last one resets the counter and sets the flag": write(SENSE),
    "the last one flips the flag": write(FLIPS),
    "the first one collects": write(COLLECTS),
    "a counter that counts on, then a flag": write(COUNT, COLLECTS.replace("%r8, %r4", "%r8, 23")),
}
MORE = "a signal may come before what its thread has waited for"
SILENT = "a signal for another cluster releases nothing"
UNORDERED = "two signals of one word are not ordered"
STUCK = "a wait of a cluster does not end"
MIXED = "a word that clusters signal by is accessed otherwise"
LEARNED = "control depends on values that other threads write"
BROKEN = {
    "counts release nothing": (write(COUNT.replace("red.release", "red.relaxed")), SILENT),
    "counts release for the CTA": (write(COUNT.replace("release.gpu", "release.cta")), MIXED),
    "waits acquire nothing": (
        write(COUNT.replace("ld.acquire", "ld.relaxed")), "a wait for another cluster acquires nothing",
    ),
    "waits for one less": (write(COUNT.replace("%r3, {next}", "%r4, {next}")), UNORDERED),
    "the second round waits for the first": (write(COUNT, COUNT.replace("{next}", "1")), UNORDERED),
    "waits for a number that may have passed": (
        write(COUNT.replace("setp.lt", "setp.ne")), "a wait may miss the value that ends it",
    ),
    "each adds twice": (
        write(COUNT.replace("red.", "red.release.gpu.global.add.u32 [%a2], 1;\nred.", 1)), UNORDERED,
    ),
    "a CTA does not count": (write(COUNT, COUNT.replace("red.", "setp.ne.u32 %p, %r1, 5;\n@%p red.")), STUCK),
    "no fence before the counts": (write(SENSE.replace("fence.acq_rel.gpu;\natom", "atom")), SILENT),
    "no fence behind the last count": (write(SENSE.replace("fence.acq_rel.gpu;\nst", "st")), MORE),
    "a fence of the CTA behind the last count": (
        write(SENSE.replace("fence.acq_rel.gpu;\nst", "fence.acq_rel.cta;\nst")), MORE,
    ),
    "the flag is set before the counter is reset": (
        write(SENSE.replace("st.relaxed.gpu.global.u32 [%a2], 0;\n", "").replace(
            "bra M", "st.release.gpu.global.u32 [%a2], 0;\nbra M")), UNORDERED,
    ),
    "the counter is not reset": (write(SENSE.replace("st.relaxed.gpu.global.u32 [%a2], 0;\n", "")), LEARNED),
    "the flag is not set in the second round": (
        write(SENSE, SENSE.replace("st.release.gpu.global.u32 [%a3], %r9;\n", "")), STUCK,
    ),
    "the flag keeps its value": (write(SENSE.replace("add.u32 %r9, %r7, 1", "mov.u32 %r9, %r7")), STUCK),
    "who is last but one sets the flag": (write(SENSE.replace("%r8, %r4", "%r8, 5")), "a cluster asks more"),
    "the flag is set relaxed, without a fence": (
        write(SENSE.replace("fence.acq_rel.gpu;\nst", "st").replace("st.release", "st.relaxed")), "",
    ),
    "the look comes behind the count": (
        write(SENSE.replace("ld.relaxed.gpu.global.u32 %r7, [%a3];\n", "").replace(
            "setp.ne.u32 %p, %r8, %r4", "ld.relaxed.gpu.global.u32 %r7, [%a3];\nsetp.ne.u32 %p, %r8, %r4")), LEARNED,
    ),
    "the look stands between the fence and the count": (
        write(SENSE.replace("fence.acq_rel.gpu;\natom", "atom").replace("ld.rel", "fence.acq_rel.gpu;\nld.rel")), MORE,
    ),
    "the first one opens before it has collected": (
        write(COLLECTS.replace("setp.ne.u32 %p, %r8, %r4;\n@%p bra C", "setp.ne.u32 %p, %r8, %r4;\n@!%p bra C")), "",
    ),
}  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("name", RIGHT)
def test_pairs_prove_a_right_barrier(name: str) -> None:
    assert answer(RIGHT[name]) == (Verdict.PROVED, "")


@pytest.mark.daily
@pytest.mark.parametrize("name", BROKEN)
def test_pairs_do_not_prove_a_broken_barrier(name: str) -> None:
    text, said = BROKEN[name]
    verdict, why = answer(text)
    assert verdict is None
    assert why.startswith(said)


@pytest.mark.daily(days=4)
def test_a_cta_that_does_not_wait_is_found_in_a_pair() -> None:
    text = write(COUNT, f"setp.eq.u32 %p, %r1, 5;\n@%p bra N;\n{COUNT}bra M1;\nN: {ADD}\n")
    assert answer(text) == (Verdict.FINDING, "")


@pytest.mark.daily(days=4)
def test_ctas_that_need_not_be_resident_are_not_proved_to_meet() -> None:
    assert answer(RIGHT["a counter that counts on"], cooperative=False) == (
        None, f"all {LARGE} clusters were checked; but {NOT_RESIDENT}",
    )  # fmt: skip
    assert answer(RIGHT["a counter that counts on"], first=1)[0] is None


ASKS_AGAIN = """fence.acq_rel.gpu;
atom.relaxed.gpu.global.add.u32 r0, [x], 1;
fence.acq_rel.gpu;
if (r0 == 1) {
st.relaxed.gpu.global.u32 [x], 0;
mov.u32 r3, 1;
st.release.gpu.global.u32 [y], 1;
} else {
await ld.acquire.gpu.global.u32 r1, [y] == 1;
}
fence.acq_rel.gpu;
atom.relaxed.gpu.global.add.u32 r0, [x], 1;
fence.acq_rel.gpu;
if (r0 != 1) {
await ld.acquire.gpu.global.u32 r1, [y] == 2;
if (r3 == 1) {
atom.acq_rel.gpu.global.exch.b32 r5, [x], 0;
if (r5 == 0) {
st.global.u32 [d], 2;
}
}
} else {
st.relaxed.gpu.global.u32 [x], 0;
st.release.gpu.global.u32 [y], 2;
st.global.u32 [d], 1;
}"""
WAITS_FOR_NUMBER = """atom.acq_rel.gpu.global.add.u32 r0, [x], 1;
if (r0 == 2) {
st.release.gpu.global.u32 [y], 5;
await ld.acquire.gpu.global.u32 r1, [z] == 2;
st.release.gpu.global.u32 [y], 0;
} else {
await ld.acquire.gpu.global.u32 r1, [y] == 5;
red.release.gpu.global.add.u32 [z], 1;
await ld.acquire.gpu.global.u32 r1, [y] >= r0;
}"""


@pytest.mark.daily(days=4)
@pytest.mark.parametrize(
    ("text", "ctas", "said"),
    [(ASKS_AGAIN, 2, LEARNED), (WAITS_FOR_NUMBER, 3, "'setp.lt.u32 %p1, %r1, %r0' uses the number that is drawn")],
)
def test_more_is_asked_of_a_word_of_numbers_than_who_is_last(text: str, ctas: int, said: str) -> None:
    grid = make_grid([tuple(text.splitlines())] * ctas, 1, cooperative=True)
    assert judge_threads(grid.draft).kinds
    found, why = answer_by_pairs(grid, SECONDS)
    assert (found, why) == (None, said)


@pytest.mark.daily
@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_pairs_prove_no_random_grid_with_an_error(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        grid = generate(Random(seed))
        found, why, _ = compare(grid)
        assert found is None or not why, grid.draft.text()
