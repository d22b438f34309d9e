"""Grids whose clusters take locks: what pairs of clusters say of all, and when they say nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from mcheck.simt.grid.locks.lock_order import order_locks
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.grid.signals.synchronisations import Synchronisation
from tests.fuzz import locked_words
from tests.fuzz.locked_grids import RIGHT, Plan, answer, answer_module, generate, judge

LOCK, OTHER = 0x100, 0x104
FENCES = {
    "take": "relaxed.gpu",
    "fence_after": "fence.acq_rel.gpu",
    "fence": "fence.acq_rel.gpu",
    "order": "relaxed.gpu",
}
QUICK = {
    "fences", "a loop of all threads", "a word under each of two locks", "two sections", "a lock inside",
    "a maximum", "nothing releases", "a narrow fence behind the taking", "a store behind the release",
    "no barrier behind the taking", "the row of another lock", "a lock that is not released", "two orders of two locks",
}  # fmt: skip

BROKEN = {
    "nothing acquires": (Plan(take="relaxed.gpu"), "race", "without a fence"),
    "nothing releases": (Plan(order="relaxed.gpu"), "race", "without a fence"),
    "a narrow fence behind the taking": (Plan(**{**FENCES, "fence_after": "fence.acq_rel.cta"}), "race", ""),
    "a narrow fence ahead of the release": (Plan(**{**FENCES, "fence": "fence.acq_rel.cta"}), "race", ""),
    "an atomic of the wrong scope": (Plan(take="acq_rel.cta"), "race", ""),
    "a weak release": (Plan(release="weak"), "race", ""),
    "no barrier behind the taking": (Plan(barrier=False), "race", "left open"),
    "no barrier ahead of the release": (Plan(barrier_after=False), "race", "left open"),
    "a store behind the release": (Plan(after=("store common",)), "race", "left open"),
    "a load ahead of the lock": (Plan(before=("load common",)), "race", "left open"),
    "the row of another lock": (Plan(ctas=4, locks=2, work=("load common", "store next")), "race", "left open"),
    "a word that tells the first, loaded without the lock": (
        Plan(counts="exch", take="relaxed.gpu", fence_after="fence.acq_rel.cta"), "race", ""
    ),
    "an access of those that found a word by a strong load": (
        Plan(counts="store", asks="relaxed.gpu", found="store common"), "race", "left open"
    ),
    "a lock that is not released": (Plan(skips=0), "stuck", "not released"),
    "a value that is not free": (Plan(freed=2), "stuck", "not free at first, or released by another value"),
    "two orders of two locks": (Plan(ctas=2, nested="two"), "stuck", "in different orders"),
}  # fmt: skip


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.daily) for n in RIGHT])
def test_pairs_prove_a_right_grid(name: str) -> None:
    assert judge(RIGHT[name]) == "fine"
    assert answer(RIGHT[name]) == "proved"


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.daily) for n in BROKEN])
def test_pairs_leave_a_wrong_grid_open(name: str) -> None:
    plan, wrong, why = BROKEN[name]
    assert judge(plan) == wrong
    found = answer(plan)
    assert found != "proved"
    assert why in found


def test_values_that_clusters_leave_are_found_again() -> None:
    assert answer(Plan(counts="exch", counted=2)) == "proved"
    # Two sections of a cluster: the value in the second one is not that of the first one.
    plan = replace(RIGHT["a word that tells the first"], again=True)
    assert "takes several locks" in answer(plan)
    # What it leaves is what was there at first, but not what others find between the two.
    assert "takes several locks" in answer(replace(plan, clears=True))
    assert answer(Plan(counts="store", clears=True)) == "proved"


ONE_THREAD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 words)
.reqntid 1, 1, 1
{{
.reg .pred %p<3>;
.reg .b32 %r<9>;
.reg .b64 %a<4>;
ld.param.u64 %a1, [data];
ld.param.u64 %a2, [words];
mov.u32 %r1, %ctaid.x;
add.s32 %r1, %r1, 1;
{take}
{body}
setp.{test};
atom.acq_rel.gpu.global.exch.b32 %r7, [%a2 + 60], 0;
@%p1 st.global.u32 [%a1], 7;
ret;
}}
"""
TAKE = """TAKE_{0}:
atom.acq_rel.gpu.global.cas.b32 %r8, [%a2 + 60], 0, 1;
setp.ne.u32 %p2, %r8, 0;
@%p2 bra TAKE_{0};"""


def write_one_thread(body: str, test: str) -> str:
    """A module whose CTAs store, behind their section, if a test of what they have found there says so."""
    return ONE_THREAD.format(take=TAKE.format(0), body=body, test=test)


@pytest.mark.daily
@pytest.mark.parametrize("test", ["eq.u32 %p1, %r2, 1", "ne.u32 %p1, 0, %r2", "gt.u32 %p1, %r2, 0"])
@pytest.mark.parametrize("load", ["ld.relaxed.gpu.global.u32", "ld.acquire.sys.global.u32", "ld.volatile.global.u32"])
def test_a_strong_load_under_a_lock_returns_what_others_left(load: str, test: str) -> None:
    # The CTAs that find 1 store without the lock: two of three do.
    found = answer_module(write_one_thread(f"{load} %r2, [%a2];\nst.volatile.global.u32 [%a2], 1;", test), 3, 1)
    assert found == "the pair is left open"


def test_values_that_clusters_leave_are_not_known_to_two_sections_of_strong_loads() -> None:
    store, load = "st.relaxed.gpu.global.u32 [%a2], {};", "ld.relaxed.gpu.global.u32 %r2, [%a2];"
    release = "atom.acq_rel.gpu.global.exch.b32 %r7, [%a2 + 60], 0;"
    body = "\n".join((store.format(1), release, TAKE.format(1), load, store.format(2)))
    assert "takes several locks" in answer_module(write_one_thread(body, "gt.u32 %p1, %r2, 1"), 3, 1)


def test_the_sign_that_an_addition_finds_is_not_known() -> None:
    add = "atom.acq_rel.gpu.global.add.u32 %r2, [%a2], 0x80000000;\nld.relaxed.gpu.global.u32 %r3, [%a2 + 4];"
    found = answer_module(write_one_thread(f"{add}\nxor.b32 %r4, %r3, %r2;", "lt.s32 %p1, %r4, 0"), 3, 1)
    assert "values that other threads write" in found


def test_a_vector_that_is_a_whole_word_returns_what_others_left() -> None:
    body = "ld.global.v2.u32 {%r2, %r3}, [%a2];\nmov.u64 %a3, 1;\nst.global.u64 [%a2], %a3;"
    assert answer_module(write_one_thread(body, "ne.u32 %p1, %r2, 0"), 3, 1) == "the pair is left open"


@pytest.mark.parametrize("update", ["red.relaxed.gpu.global.add.u32 [%a2], 1", "atom.global.inc.u32 %r6, [%a2], 9"])
def test_an_update_leaves_what_others_left_and_its_own(update: str) -> None:
    # Two CTAs add 1 and load nothing; two others find 2 there and store without the lock.
    body = f"setp.lt.u32 %p2, %r1, 3;\n@%p2 {update};\nmov.u32 %r2, 0;\n@!%p2 ld.global.u32 %r2, [%a2];"
    assert answer_module(write_one_thread(body, "gt.u32 %p1, %r2, 1"), 4, 1) != "proved"


def test_a_cluster_of_a_pair_does_not_find_what_the_other_one_stores_after_it() -> None:
    # The second CTA, if it is the first one there, finds 0 and stores once more behind its section.
    body = "setp.lt.u32 %p2, %r1, 2;\n@%p2 st.global.u32 [%a2], 1;\nld.global.u32 %r2, [%a2];\nst.global.u32 [%a1], 6;"
    assert answer_module(write_one_thread(body, "ne.u32 %p1, %r2, 1"), 2, 1) == "the pair is left open"


@pytest.mark.parametrize("again", [False, True])
def test_what_a_cluster_stores_to_unknown_contents_stays_unknown(*, again: bool) -> None:
    release = "atom.acq_rel.gpu.global.exch.b32 %r7, [%a2 + 60], 0;"
    body = ["st.global.u32 [%a2], %r1;", *([release, TAKE.format(1)] if again else []), "ld.global.u32 %r2, [%a2];"]
    text = write_one_thread("\n".join(body), f"{'ne' if again else 'eq'}.u32 %p1, %r2, %r1")
    assert "control depends on data" in answer_module(text, 6, 1, known_from=32)


TOLD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 words)
.reqntid 33, 1, 1
{
.reg .pred %p<4>;
.reg .b32 %r<9>;
.reg .b64 %a<4>;
.shared .align 4 .b32 flag;
ld.param.u64 %a1, [data];
ld.param.u64 %a2, [words];
mov.u32 %r1, %tid.x;
setp.eq.u32 %p1, %r1, 0;
@%p1 st.shared.u32 [flag], 0;
bar.sync 0;
setp.eq.u32 %p2, %r1, 32;
@%p2 bra TELL;
@!%p1 bra DONE;
TAKE
atom.acq_rel.gpu.global.exch.b32 %r7, [%a2 + 60], 0;
POLL:
ld.acquire.cta.shared.u32 %r3, [flag];
setp.eq.u32 %p3, %r3, 0;
@%p3 bra POLL;
ld.shared.u32 %r4, [flag];
setp.eq.u32 %p3, %r4, FOUND;
@%p3 st.global.u32 [%a1], 7;
bra DONE;
TELL:
st.release.cta.shared.u32 [flag], 2;
DONE:
ret;
}
"""


@pytest.mark.parametrize(("found", "expected"), [(1, "proved"), (2, "the pair is left open")])
def test_a_wait_in_shared_memory_finds_what_its_own_cluster_stores(found: int, expected: str) -> None:
    # The poll ends with any value but 0, and the other thread stores 2.
    text = TOLD.replace("TAKE", TAKE.format(0).replace("%p2", "%p3"), 1).replace("FOUND", str(found))
    assert answer_module(text, 2, 33) == expected


@pytest.mark.daily
def test_many_clusters_are_proved() -> None:
    assert answer(Plan(ctas=24, locks=3, counts="store")) == "proved"


@pytest.mark.daily(days=6, least=0)
def test_random_grids_are_judged_by_orders_of_threads() -> None:
    rng = random.Random(20)
    answers = [(plan, answer(plan), judge(plan)) for plan in (generate(rng) for _ in range(60))]
    assert [one for one in answers if one[1] == "proved" and one[2] != "fine"] == []
    assert sum(found == "proved" for _, found, _ in answers) > 20


@pytest.mark.daily(days=6, least=0)
def test_random_changes_of_words_under_a_lock_are_judged_by_orders_of_threads() -> None:
    rng = random.Random(3)
    plans = [replace(Plan(), words=locked_words.generate(rng), found="store common") for _ in range(40)]
    answers = [(plan, answer(plan), judge(plan)) for plan in plans]
    assert [one for one in answers if one[1] == "proved" and one[2] != "fine"] == []
    assert sum(found == "proved" for _, found, _ in answers) > 5


def take(lock: int, place: int, point: int | None = 0) -> Synchronisation:
    return Synchronisation(lock, "u32", 0, "==", place, point, updates=True, taken=1)


def release(lock: int, place: int, point: int | None = 9) -> Synchronisation:
    return Synchronisation(lock, "u32", 0, place=place, point=point)


def test_the_sections_of_two_clusters_come_in_all_orders() -> None:
    once = take(LOCK, 0), release(LOCK, 1)
    twice = *once, take(LOCK, 2), release(LOCK, 3, 10)
    orders = order_locks([once, twice, (take(OTHER, 0), release(OTHER, 1))], [0, 1, 2], {LOCK: 0, OTHER: 0})
    assert set(orders.links(0, 1)) == {
        ((1, 0), (0, 0, 0, 1)),
        ((1, 1), (0, 1, 1, 0)),
        ((0, 1), (1, 0, 1, 0)),
    }
    assert orders.links(0, 2) == (((0, 0), (0, 0)),)
    assert orders.links(1, 1) == ()


def test_clusters_take_locks_in_one_order() -> None:
    inside = take(LOCK, 0), take(OTHER, 1), release(OTHER, 2), release(LOCK, 3)
    outside = take(OTHER, 0), take(LOCK, 1), release(LOCK, 2), release(OTHER, 3)
    behind = take(OTHER, 0), release(OTHER, 1), take(LOCK, 2), release(LOCK, 3)
    first = {LOCK: 0, OTHER: 0}
    assert order_locks([inside, behind], [0, 1], first).links(0, 1)
    with pytest.raises(NotReducible, match="in different orders"):
        order_locks([inside, outside], [0, 1], first)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ((take(LOCK, 0, None), release(LOCK, 1)), "without a fence"),
        ((take(LOCK, 0), release(LOCK, 1, None)), "without a fence"),
        ((take(LOCK, 0, 5), release(LOCK, 1, 4)), "before what its section has acquired"),
        ((take(LOCK, 0), take(LOCK, 1), release(LOCK, 2)), "that it holds"),
        ((take(LOCK, 0),), "not released"),
        ((release(LOCK, 0),), "does not hold it"),
        ((replace(take(LOCK, 0), value=3), replace(release(LOCK, 1), value=3)), "not free at first"),
        ((take(LOCK, 0), replace(release(LOCK, 1), value=1)), "released by another value"),
        ((take(LOCK, 0), replace(release(LOCK, 1), adds=True)), "otherwise than by locks"),
    ],
)
def test_what_is_no_section_is_refused(code: tuple[Synchronisation, ...], why: str) -> None:
    with pytest.raises(NotReducible, match=why):
        order_locks([code], [0], {LOCK: 0})
