"""Grids whose clusters wait for each other's signals: what pairs of clusters say of all, and when they say nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import pytest

from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.signalled_grid import answer_signalled
from mcheck.ptx import check
from mcheck.simt.grid.pairs.reduction import NOT_RESIDENT
from tests.fuzz.pair_answers import build, follow_pair, say_why
from tests.fuzz.signalled_grids import RELAXED, Plan, answer_by_pairs, compare, generate, launch_of, read, write

SECONDS = 60.0
SEEDS = 60
LARGE = 12
NEIGHBOURS = ("store own", "load before")


def answer(plan: Plan) -> tuple[Verdict | None, str]:
    """The answer that pairs give, or why they give none."""
    found, why = answer_by_pairs(*read(plan), SECONDS)
    return None if found is None else found.verdict, why


RIGHT = {
    "turns": Plan(),
    "turns by fences": Plan(**RELAXED),
    "turns by tickets, not cooperative": Plan(tickets=True, cooperative=False),
    "a ticket that is loaded again from shared memory": Plan(tickets=True, kept=True),
    "words of 64 bits": Plan(wide=True),
    "exchanges": Plan(signal="atom.exch"),
    "additions": Plan(signal="red.add"),
    "additions by tickets": Plan(signal="red.add", tickets=True, cooperative=False),
    "additions, and two rounds": Plan(signal="red.add", rounds=2),
    "an addition that is ordered by another word": Plan(
        kind="flags", work=NEIGHBOURS, resets="red.release.gpu.global.add.u32 [%a2+36], 1;"
    ),
    "a second word that all count in": Plan(more=("red.release.gpu.global.add.u32 [%a2+52], 1;",)),
    "flags by additions": Plan(kind="flags", work=NEIGHBOURS, signal="red.add"),
    "two dimensions": Plan(plane=True),
    "two rounds": Plan(rounds=2),
    "at least": Plan(until="lt"),
    "the last one resets the turn": Plan(resets="st.relaxed.gpu.global.u32 [%a2], 0;"),
    "scope sys": Plan(poll="ld.acquire.sys", signal="st.release.sys"),
    "a flag for each": Plan(kind="flags", work=NEIGHBOURS),
    "flags, and one word that all write": Plan(kind="flags"),
    "two columns of a wavefront": Plan(kind="flags", rounds=2, tickets=True, cooperative=False, work=("store own",)),
    "every other cluster": Plan(kind="flags", distance=2, work=NEIGHBOURS),
    "the tile of the next one, before it is written": Plan(kind="flags", work=("store own", "load next")),
    "no wait where nothing is shared": Plan(kind="flags", work=("store own",), skips=7),
    "waits around a barrier": Plan(around=True),
    "waits around a barrier by fences": Plan(around=True, **RELAXED),
    "waits around a barrier, and two rounds": Plan(around=True, rounds=2),
    "a look before the wait": Plan(early=True, before=("store own",)),
    "a look before the wait around a barrier": Plan(around=True, early=True, before=("store own",)),
}

OPEN = {
    "no barrier behind the wait": Plan(barrier=False),
    "no barrier before the signal": Plan(barrier_after=False),
    "a store before the wait": Plan(before=("store common",)),
    "a store behind the signal": Plan(after=("store common",)),
    "the tile of the next one": Plan(kind="flags", work=NEIGHBOURS, after=("load next",)),
    "the tile of the cluster before the last": Plan(kind="flags", work=NEIGHBOURS, distance=2, clusters=LARGE, after=(
        "load common",), before=("store common",)),
    "the signal comes first": Plan(kind="flags", work=NEIGHBOURS, signals_first=True),
    "one cluster does not wait": Plan(kind="flags", work=NEIGHBOURS, skips=7),
    "every other cluster, and one word that all write": Plan(kind="flags", distance=2),
    "a tile that is written again": Plan(kind="flags", rounds=2, work=NEIGHBOURS),
    "a load between a look and the wait": Plan(around=True, early=True, before=("load common",)),
    "a store between a look and the wait": Plan(early=True, before=("store common",)),
}  # fmt: skip

REFUSED = {
    "relaxed stores": (Plan(signal="st.relaxed.gpu"), "a signal for another cluster releases nothing"),
    "a relaxed store of one cluster": (Plan(unordered=5), "a signal for another cluster releases nothing"),
    "a fence of the CTA": (
        Plan(signal="st.relaxed.gpu", fence="fence.acq_rel.cta;"), "a signal for another cluster releases nothing",
    ),
    "relaxed loads": (Plan(poll="ld.relaxed.gpu"), "a wait for another cluster acquires nothing"),
    "a fence behind the signal": (
        Plan(poll="ld.relaxed.gpu", after=("fence.acq_rel.gpu;",)),
        "a signal may come before what its thread has waited for",
    ),
    "a fence before the wait": (
        Plan(signal="st.relaxed.gpu", before=("fence.acq_rel.gpu;",)),
        "a signal may come before what its thread has waited for",
    ),
    "a fence before the work": (
        Plan(kind="flags", work=NEIGHBOURS, signal="st.relaxed.gpu", before=("fence.acq_rel.gpu;",)),
        "a signal may come before what its thread has waited for",
    ),
    "weak stores": (Plan(signal="st.weak"), "a word that clusters signal by is accessed otherwise"),
    "a release of the CTA": (Plan(signal="st.release.cta"), "a word that clusters signal by is accessed otherwise"),
    "an acquire of the CTA": (Plan(poll="ld.acquire.cta"), "no cluster waits for a signal"),
    "a turn that nobody has": (Plan(initial=99), "a wait of a cluster does not end"),
    "a turn too far": (Plan(offset=1), "a wait of a cluster does not end"),
    "a turn that stays": (Plan(offset=-1), "a wait of a cluster does not end"),
    "a wait that may end too early": (Plan(until="eq"), "two signals of one word are not ordered"),
    "a cluster that does not wait for its turn": (Plan(skips=5), "two signals of one word are not ordered"),
    "additions that round": (
        Plan(threads=1, work=(
            ".reg .b16 %h<4>;", "mov.b16 %h1, 0x3f80;", "mul.lo.u32 %r15, %r1, 0x3f80;", "cvt.u16.u32 %h2, %r15;",
            "SUM: ld.acquire.gpu.global.u16 %h3, [%a2+44];", "setp.ne.u16 %p, %h3, %h2;", "@%p bra SUM;",
            "red.release.gpu.global.add.noftz.bf16 [%a2+44], %h1;",
        )), "a word that clusters signal by is accessed otherwise",
    ),
    "a wait for an unsigned number, which a signed load returns": (
        Plan(threads=1, work=(
            "st.release.gpu.global.u32 [%a2+44], -1;",
            "SIGN: ld.acquire.gpu.global.s32 %r30, [%a2+44];", "setp.gt.u32 %p, %r30, 5;", "@%p bra SIGN;",
        )), "a wait of a cluster does not end",
    ),
    "additions of two": (Plan(signal="red.two"), "a wait of a cluster does not end"),
    "relaxed additions": (Plan(signal="atom.add.relaxed"), "a signal for another cluster releases nothing"),
    "a reset that the next one may miss": (
        Plan(kind="flags", work=NEIGHBOURS, distance=2, resets="st.relaxed.gpu.global.u32 [%a2+32], 0;"),
        "two signals of one word are not ordered",
    ),
    "relaxed stores, and waits around a barrier": (
        Plan(around=True, early=True, signal="st.relaxed.gpu"), "a signal for another cluster releases nothing",
    ),
    "relaxed loads around a barrier": (
        Plan(around=True, poll="ld.relaxed.gpu"), "a wait for another cluster acquires nothing",
    ),
    "a fence only behind the wait": (
        Plan(early=True, **RELAXED), "what a thread does differs with what it finds before it waits",
    ),
    "a look whose value is stored": (
        Plan(around=True, early=True, before=("@%z st.global.u32 [%a11], %r10;",)),
        "control depends on values that other threads write",
    ),
    "a look that decides more": (
        Plan(around=True, early=True, before=("setp.eq.u32 %p, %r10, %r1;", "@%p st.global.u32 [%a11], 1;")),
        "control depends on values that other threads write",
    ),
    "a look in each of two rounds": (
        Plan(around=True, early=True, rounds=2), "several loads decide whether to wait",
    ),
    "a weak reset": (Plan(resets="st.global.u32 [%a2], 0;"), "a word that clusters signal by is accessed otherwise"),
    "a look at the turn": (
        Plan(more=("ld.relaxed.gpu.global.u32 %r30, [%a2];",)), "a word that clusters signal by is accessed otherwise",
    ),
    "a turn by an atomic, too": (
        Plan(more=("red.release.gpu.global.add.u32 [%a2], 0;",)), "two signals of one word are not ordered",
    ),
    "half of a word": (
        Plan(kind="flags", resets="st.relaxed.gpu.global.u16 [%a2+46], 0;"), "words that clusters signal by overlap",
    ),
    "a relaxed addition": (
        Plan(more=("red.relaxed.gpu.global.add.u32 [%a2+52], 1;",)), "a signal for another cluster releases nothing",
    ),
    "two tickets": (
        Plan(tickets=True, more=("atom.relaxed.gpu.global.add.u32 %r31, [%a3], 1;",)),
        "a cluster does not draw exactly one ticket",
    ),
    "a ticket in shared memory that another thread may write": (
        Plan(tickets=True, kept=True, before=("@!%z st.shared.u32 [drawn], %r1;",)),
        "another thread may write what is waited for",
    ),
    "tickets of two words": (
        Plan(tickets=True, more=(
            "atom.relaxed.gpu.global.add.u32 %r31, [%a3+4], 1;", "st.relaxed.gpu.global.u32 [%a2+40], %r31;",
        )),
        "control depends on values that other threads write",
    ),
    "tickets that are reset": (
        Plan(tickets=True, resets="st.relaxed.gpu.global.u32 [%a3], 0;"),
        "tickets are accessed otherwise than by one atomic of each cluster",
    ),
    "tickets and coordinates": (
        Plan(tickets=True, more=("mov.u32 %r30, %ctaid.x;",)),
        "'mad.lo.s32 %r20, %r1, 2, %r2' uses the number that is drawn",
    ),
    "a wait without a promise": (
        Plan(cooperative=False), f"all {LARGE} clusters were checked; but {NOT_RESIDENT}",
    ),
    "memory that is discarded": (
        Plan(more=("discard.global.L2 [%a1], 128;",)), "'@%z discard.global.L2 [%a1], 128' is not followed",
    ),
}  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("name", RIGHT)
def test_pairs_prove_a_right_grid(name: str) -> None:
    assert answer(replace(RIGHT[name], clusters=LARGE)) == (Verdict.PROVED, "")


@pytest.mark.daily
@pytest.mark.parametrize("name", OPEN)
def test_pairs_do_not_prove_a_wrong_grid(name: str) -> None:
    """It is a finding where no order is lost in a pair, and left open otherwise."""
    found = answer(replace(OPEN[name], clusters=LARGE))
    assert found in [(Verdict.FINDING, ""), (None, "the pair is left open")]


@pytest.mark.daily
@pytest.mark.parametrize("name", REFUSED)
def test_pairs_say_nothing_where_a_condition_does_not_hold(name: str) -> None:
    plan, why = REFUSED[name]
    assert answer(replace(plan, clusters=LARGE)) == (None, why)


@pytest.mark.daily(days=28)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_pairs_say_what_is_so_of_all_clusters(seed: int) -> None:
    found = compare(generate(Random(seed)), seconds=8.0)
    assert not found.wrong, (found.wrong, found.plan)


def test_both_answers_about_a_small_grid_are_compared() -> None:
    small = Plan(clusters=2, threads=1)
    right, wrong = compare(small, SECONDS), compare(replace(small, signal="st.relaxed.gpu"), SECONDS)
    assert right.pairs is not None
    assert (right.pairs.verdict, right.whole.verdict, right.wrong) == (Verdict.PROVED, Verdict.PROVED, "")
    assert (wrong.pairs, wrong.whole.verdict, wrong.wrong) == (None, Verdict.FINDING, "")


@pytest.mark.daily(days=3, least=0)
def test_a_large_grid_is_proved_for_the_launch() -> None:
    plan = Plan(clusters=LARGE, tickets=True)
    found = check(write(plan), launch_of(plan))
    assert found.verdict == "proved"
    assert (found.covers.clusters, found.covers.total, found.covers.together) == (LARGE, LARGE, 2)
    said = f"all {LARGE} clusters wait for signals that are the same in every execution"
    assert any(text.startswith(said) for text in found.assumptions)
    assert not any("not to touch its memory" in text for text in found.assumptions)


@pytest.mark.daily(days=4, least=0)
def test_the_answer_about_a_few_clusters_says_why_no_pair_stands_for_all() -> None:
    plan = Plan(clusters=LARGE, tickets=True, work=("store own",), signal="st.relaxed.gpu")
    found = check(write(plan), launch_of(plan))
    assert found.verdict == "bounded"
    said = "that mcheck cannot reduce to pairs of them: a signal for another cluster releases nothing"
    assert said in (found.reason or "")


POLL_OF_SHARED_MEMORY = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 word)
.reqntid 33, 1, 1
{
.reg .pred %p<4>;
.reg .b32 %r<6>;
.reg .b64 %a<3>;
.shared .align 4 .b32 told;
ld.param.u64 %a1, [data];
ld.param.u64 %a2, [word];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
setp.eq.u32 %p0, %r2, 0;
@%p0 st.shared.u32 [told], 0;
bar.sync 0;
setp.eq.u32 %p1, %r2, 32;
@%p1 bra TELL;
@!%p0 bra DONE;
setp.eq.u32 %p1, %r1, 0;
@%p1 bra FIRST;
WAIT:
ld.acquire.gpu.global.u32 %r3, [%a2];
setp.ne.u32 %p2, %r3, 1;
@%p2 bra WAIT;
ld.global.u32 %r4, [%a1];
bra POLL;
FIRST:
st.global.u32 [%a1], 1;
st.release.gpu.global.u32 [%a2], 1;
POLL:
ld.acquire.cta.shared.u32 %r3, [told];
setp.eq.u32 %p2, %r3, 0;
@%p2 bra POLL;
ld.shared.u32 %r5, [told];
setp.eq.u32 %p2, %r5, FOUND;
@%p2 st.global.u32 [%a1], 7;
bra DONE;
TELL:
st.release.cta.shared.u32 [told], 2;
DONE:
ret;
}
"""


@pytest.mark.parametrize(("found", "verdict"), [(1, Verdict.PROVED), (2, None)])
def test_a_poll_of_shared_memory_finds_what_its_own_cluster_stores(found: int, verdict: Verdict | None) -> None:
    given = {
        "grid": [2],
        "block": [33],
        "params": {"0": {"buffer": 64}, "1": {"buffer": 4, "init": {"hex": "00000000"}}},
    }
    module, launch = build(POLL_OF_SHARED_MEMORY.replace("FOUND", str(found)), given, cooperative=True)
    answered, _ = say_why(lambda: answer_signalled(module, launch, partial(follow_pair, module), Limit(SECONDS)))
    assert (None if answered is None else answered.verdict) is verdict
