"""Grids whose clusters count themselves: what pairs of clusters say of all, and when they say nothing."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut, use_clock
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules import cluster_groups
from mcheck.checking.modules.pairs import counted_grid, signalled_grid
from mcheck.frontend.ptx.launch import Launch
from mcheck.ptx import check
from mcheck.simt.grid.counters.counted_clusters import Execution, execute_counted
from mcheck.simt.grid.pairs.reduction import NOT_RESIDENT
from tests.fuzz.last_blocks import BRANCH, Plan, answer_by_pairs, compare, generate, launch_of, read, write

SECONDS = 60.0
SEEDS = 60
LARGE = 12
STORE_BEHIND = "st.global.u32 [%a3], 0;"
DRAW = "ld.relaxed.gpu.global.u32 %r6, [%a3];\nadd.u32 %r9, %r6, 1;\nst.relaxed.gpu.global.u32 [%a3], %r9;"
RELEASE = "atom.release.gpu.global.add.u32 %r6, [%a3], 1;"


def answer(plan: Plan) -> tuple[Verdict | None, str]:
    """The answer that pairs give, or why they give none."""
    found, why = answer_by_pairs(*read(plan), SECONDS)
    return None if found is None else found.verdict, why


TRIPLED = "mul.lo.u32 %r20, %r20, 3;\nsetp.eq.u32 %q, %r20, 0;"


def by_part(change: str, ask: str, initial: int) -> Plan:
    """A plan in which some clusters also write to another word, as a function of the number says."""
    change = f"st.shared.u32 [part], %r6;\n{change}\nld.shared.u32 %r20, [part];\n{ask}"
    return Plan(
        threads=1, initial=initial, count=f"{Plan.count}\n{change}\n@%q bra KEPT;\nst.global.u32 [%a4], 1;\nKEPT:",
        ask=f"sub.u32 %r6, %r6, {initial};\n{Plan.ask}",
    )  # fmt: skip


RIGHT = {
    "sum": Plan(),
    "release": Plan(count=RELEASE, fence=""),
    "a CTA that goes another way": Plan(count=RELEASE, unfenced="7"),
    "contents that are given": Plan(given=True),
    "inc": Plan(count="atom.relaxed.gpu.global.inc.u32 %r6, [%a3], %r4;"),
    "number handed on": Plan(by_number=True),
    "at least": Plan(ask="setp.ge.u32 %p, %r6, %r4;"),
    "number and one": Plan(ask="add.u32 %r6, %r6, 1;\nsetp.eq.u32 %p, %r6, %r3;"),
    "reset": Plan(resets=("st.relaxed.gpu.global.u32 [%a3], 0;",)),
    "weak reset": Plan(count="atom.acq_rel.gpu.global.add.u32 %r6, [%a3], 1;", resets=(STORE_BEHIND,)),
    "something else where the number was": by_part("st.shared.u32 [part], %r2;", TRIPLED, initial=0),
    "barrier of the grid": Plan(waits=True),
    "wait by another comparison": Plan(waits=True, until="setp.ne.u32 %p, %r7, %r3;"),
    "red": Plan(waits=True, count="red.relaxed.gpu.global.add.u32 [%a3], 1;"),
}

WRONG = {
    "no fence": Plan(fence=""),
    "fence of the CTA": Plan(fence="fence.acq_rel.cta;"),
    "no fence in the last CTA of the grid": Plan(unfenced="%r4"),
    "no fence in one CTA": Plan(unfenced="7"),
    "no fence behind": Plan(fence_after=""),
    "no barrier": Plan(barrier=False),
    "a weak reset that nothing orders after the atomics": Plan(resets=(STORE_BEHIND,)),
    "reset by another thread": Plan(tail=("setp.eq.u32 %q, %r2, 0;", f"@%q {STORE_BEHIND}"), fence_after=""),
    "no fence before a wait": Plan(waits=True, fence=""),
    "a wait without acquire": Plan(
        waits=True, poll="ld.relaxed.gpu.global.u32 %r7, [%a3];", fence_after=""
    ),
}  # fmt: skip

EARLY = {
    "a counter that starts at one": Plan(initial=1),
    "the last but one": Plan(ask="sub.u32 %r14, %r3, 2;\nsetp.eq.u32 %p, %r6, %r14;"),
    "each CTA asks for its own number": Plan(ask="setp.eq.u32 %p, %r6, %r1;"),
    "the first": Plan(ask="setp.eq.u32 %p, %r6, 0;"),
    "tiles that overlap": Plan(store="st.global.u32 [%a6+4], 1;\nst.global.u32 [%a6], 1;", size=64),
    "a word for all": Plan(store="st.global.u32 [%a1], 1;", threads=1),
    "a look at the data before": Plan(more=("ld.global.u32 %r17, [%a1];",)),
    "a look at one tile before": Plan(early=("ld.global.u32 %r15, [%a1+40];",)),
}  # fmt: skip
"""Grids in which clusters conflict before all have counted themselves."""

REFUSED = {
    "a CTA that does not count itself": (Plan(skipped=1), "a cluster does not count itself exactly once"),
    "an atomic of the CTA": (
        Plan(count="atom.relaxed.cta.global.add.u32 %r6, [%a3], 1;"),
        "the counter is accessed otherwise than by one atomic of each cluster",
    ),
    "steps of two": (
        Plan(count="atom.relaxed.gpu.global.add.u32 %r6, [%a3], 2;"),
        "the counter is accessed otherwise than by one atomic of each cluster",
    ),
    "a limit that is reached": (
        Plan(count="atom.relaxed.gpu.global.inc.u32 %r6, [%a3], 1;"),
        "the counter is accessed otherwise than by one atomic of each cluster",
    ),
    "two atomics": (Plan(counts_twice=True), "a cluster does not count itself exactly once"),
    "a load and a store": (
        Plan(count=DRAW),
        "no cluster counts itself in a word whose initial value is given",
    ),
    "two counters": (
        Plan(count="atom.relaxed.gpu.global.add.u32 %r6, [%a3], 1;\natom.relaxed.gpu.global.add.u32 %r6, [%a4], 1;"),
        "control depends on values that other threads write",
    ),
    "a counter that overflows": (Plan(initial=0xFFFFFFFA), "the counter may overflow"),
    "a ticket": (
        Plan(by_number=True, more=("mul.wide.u32 %a9, %r6, 4;", "add.s64 %a9, %a9, %a2;", "st.global.u32 [%a9], 1;")),
        "'mul.wide.u32 %a9, %r6, 4' uses the number that is drawn",
    ),
    "a number that is cut": (
        Plan(ask="and.b32 %r6, %r6, 1;\nsetp.eq.u32 %p, %r6, 0;"),
        "'and.b32 %r6, %r6, 1' uses the number that is drawn",
    ),
    "a reset too early": (
        Plan(early=(STORE_BEHIND,)), "the counter is accessed otherwise than by one atomic of each cluster",
    ),
    "a reset by all": (
        Plan(more=("st.relaxed.gpu.global.u32 [%a3], 0;",)),
        "the counter is accessed otherwise than by one atomic of each cluster",
    ),
    "a strong reset by another thread": (
        Plan(tail=("setp.ne.u32 %q, %r2, 0;", "@%q st.relaxed.gpu.global.u32 [%a3], 0;")),
        "the counter is accessed otherwise than by one atomic of each cluster",
    ),
    "one element too far": (Plan(offset=4), "an access may leave its buffer"),
    "sums by atomics": (
        Plan(store="red.global.add.u32 [%a1], 1;"), "clusters also share words by strong accesses or atomics",
    ),
    "a load of one tile through the non-coherent cache": (
        Plan(threads=1, tail=("ld.global.nc.u32 %r18, [%a1+28];",)), "the pair is left open",
    ),
    "memory that is discarded": (
        Plan(tail=("discard.global.L2 [%a1], 128;",)), "'discard.global.L2 [%a1], 128' is not followed",
    ),
    "an atomic that computes with the number": (
        by_part("red.shared.and.b32 [part], 1;", "setp.ne.u32 %q, %r20, 0;", initial=1),
        "'red.shared.and.b32 [part], 1' uses the number that is drawn",
    ),
    "the number is overwritten by a strong store": (
        by_part("st.relaxed.cta.shared.u32 [part], %r2;", TRIPLED, initial=0),
        "'mul.lo.u32 %r20, %r20, 3' uses the number that is drawn",
    ),
    "a part of the number is overwritten": (
        by_part("st.shared.u8 [part+1], 0;", "setp.ne.u32 %q, %r20, 0;", initial=254),
        "'st.shared.u8 [part+1], 0' uses the number that is drawn",
    ),
    "a branch on what is left": (Plan(tail=BRANCH, given=True), "control depends on data, or on the order of threads"),
    "a wait without a promise": (
        Plan(waits=True, cooperative=False), NOT_RESIDENT,
    ),
    "a wait that ends early": (
        Plan(waits=True, until="setp.lt.u32 %p, %r7, %r4;"),
        "the counter is accessed otherwise than by one atomic of each cluster",
    ),
    "a wait of the CTA": (
        Plan(waits=True, poll="ld.acquire.cta.global.u32 %r7, [%a3];"),
        "the counter is accessed otherwise than by one atomic of each cluster",
    ),
}  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("name", RIGHT)
def test_pairs_prove_a_right_grid(name: str) -> None:
    assert answer(replace(RIGHT[name], clusters=LARGE)) == (Verdict.PROVED, "")


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("name", WRONG)
def test_pairs_find_the_error_of_a_wrong_grid(name: str) -> None:
    assert answer(replace(WRONG[name], clusters=LARGE)) == (Verdict.FINDING, "")


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("name", EARLY)
def test_clusters_that_go_on_before_all_have_counted_themselves_are_found(name: str) -> None:
    plan = EARLY[name]
    given = replace(plan, clusters=LARGE, size=plan.size and 4 * LARGE * plan.threads + 4)
    assert answer(given) == (Verdict.FINDING, "")


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("name", REFUSED)
def test_pairs_say_nothing_where_a_condition_does_not_hold(name: str) -> None:
    plan, why = REFUSED[name]
    assert answer(replace(plan, clusters=LARGE, size=plan.size and 4 * LARGE * plan.threads + 4)) == (None, why)


@pytest.mark.daily(days=30)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_pairs_say_what_is_so_of_all_clusters(seed: int) -> None:
    found = compare(generate(Random(seed)), seconds=8.0)
    assert not found.wrong, (found.wrong, found.plan)


@pytest.mark.daily(days=3, least=0)
def test_both_answers_about_a_small_grid_are_compared() -> None:
    small = Plan(clusters=2, threads=1)
    right, wrong = compare(small, SECONDS), compare(replace(small, fence=""), SECONDS)
    assert right.pairs is not None
    assert wrong.pairs is not None
    assert (right.pairs.verdict, right.whole.verdict, right.wrong) == (Verdict.PROVED, Verdict.PROVED, "")
    assert (wrong.pairs.verdict, wrong.whole.verdict, wrong.wrong) == (Verdict.FINDING, Verdict.FINDING, "")


@pytest.mark.daily(least=0)
def test_a_large_grid_is_proved_for_the_launch() -> None:
    plan = Plan(clusters=LARGE)
    found = check(write(plan), launch_of(plan))
    assert found.verdict == "proved"
    assert (found.covers.clusters, found.covers.total, found.covers.together) == (LARGE, LARGE, 2)
    said = f"all {LARGE} clusters count themselves in count, and only the last one goes on"
    assert any(text.startswith(said) for text in found.assumptions)
    assert not any("not to touch its memory" in text for text in found.assumptions)


@pytest.mark.daily(least=0)
def test_the_race_of_a_pair_is_found_in_a_large_grid() -> None:
    plan = Plan(clusters=LARGE, unfenced="7")
    found = check(write(plan), launch_of(plan))
    assert (found.verdict, [f.code for f in found.findings]) == ("finding", ["RACE001"])
    assert any(a.thread.startswith("cta(7, 0, 0).") for a in found.findings[0].accesses)


@pytest.mark.daily(days=4, least=0)
def test_the_answer_about_a_few_clusters_says_why_no_pair_stands_for_all() -> None:
    plan = replace(REFUSED["a ticket"][0], clusters=11)
    found = check(write(plan), launch_of(plan))
    assert found.verdict == "bounded"
    said = "reduce to pairs of them: .*'mul.wide.u32 %a9, %r6, 4' uses the number that is drawn"
    assert re.search(said, found.reason or "")


# --- its time -------------------------------------------------------------------------------------------------------


@pytest.mark.daily(days=4, least=0)
def test_an_argument_that_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_groups, "COUNTED_SECONDS", 0.01)
    plan = Plan(clusters=11, threads=1)
    found = check(write(plan), launch_of(plan))
    assert found.verdict == "bounded"
    assert "following pairs of clusters takes more than 0.01 s" in (found.reason or "")


@pytest.mark.daily(least=0)
def test_a_pair_that_takes_too_long_is_out_of_time() -> None:
    plan = Plan(clusters=11, threads=1)
    module, launch = read(plan)
    limit = Limit().share(3.0)

    def follow(pair: Launch, limit: Limit) -> Answer:
        while not limit.is_over():
            pass
        return Answer(verdict=Verdict.UNKNOWN, engine="protocol")

    with pytest.raises(TimeOut):
        counted_grid.answer_counted(module, launch, follow, limit)


@pytest.mark.daily(days=4, least=0)
def test_a_cluster_that_takes_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def execute(*given: Any, **named: Any) -> Execution:
        raise TimeOut

    monkeypatch.setattr(counted_grid, "execute_counted", execute)
    monkeypatch.setattr(signalled_grid, "execute_signalling", execute)
    plan = Plan(clusters=11, threads=1)
    found = check(write(plan), launch_of(plan))
    assert found.verdict == "bounded"
    said = "that mcheck cannot reduce to pairs of them: executing one cluster takes more than 5 s"
    assert said in (found.reason or "")


@pytest.mark.daily(days=4, least=0)
@pytest.mark.parametrize("clusters", [3, LARGE])
def test_the_load_of_the_machine_changes_no_answer(clusters: int) -> None:
    plan = Plan(clusters=clusters, threads=1)
    with use_clock(lambda: 1000 * time.monotonic()):
        found = check(write(plan), launch_of(plan))
    assert (found.verdict, found.covers.clusters) == ("proved", clusters)


def test_groups_that_take_too_long_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_groups, "GROUP_SECONDS", 0.01)
    plan = replace(REFUSED["a number that is cut"][0], clusters=3)
    found = check(write(plan), launch_of(plan))
    assert found.verdict == "bounded"
    assert "following clusters together takes more than 0.01 s" in (found.reason or "")
    assert "reduce to pairs" not in (found.reason or "")


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize("plan", [Plan(), Plan(fence="")], ids=["right", "wrong"])
def test_pairs_answer_for_a_small_grid_whose_group_takes_too_long(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_groups, "GROUP_SECONDS", 0.01)
    found = check(write(plan), launch_of(plan))
    assert (found.verdict, found.covers.together) == ("proved" if plan.fence else "finding", 2)


def test_both_shares_of_a_small_grid_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_groups, "GROUP_SECONDS", 0.01)
    monkeypatch.setattr(cluster_groups, "COUNTED_SECONDS", 0.02)
    plan = Plan()
    found = check(write(plan), launch_of(plan))
    assert found.verdict == "bounded"
    for said in ("following clusters together takes more than 0.01 s", "of clusters takes more than 0.02 s"):
        assert said in (found.reason or "")


def test_conditions_are_checked_of_a_few_clusters_first(monkeypatch: pytest.MonkeyPatch) -> None:
    executed: list[object] = []

    def execute(*given: Any) -> Execution:
        executed.append(given[2])
        return execute_counted(*given)

    monkeypatch.setattr(counted_grid, "execute_counted", execute)
    plan, why = REFUSED["sums by atomics"]
    large = replace(plan, clusters=150)
    assert answer(large) == (None, why)
    assert set(executed) <= {(0, 0, 0), (1, 0, 0), (149, 0, 0)}
    executed.clear()
    assert answer(Plan(clusters=LARGE)) == (Verdict.PROVED, "")
    assert len(executed) <= 2 * LARGE
