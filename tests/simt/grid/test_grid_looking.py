"""Scans with look-back: the argument about words that clusters look at, beside all interleavings of their CTAs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mcheck.frontend.ptx.lane_arithmetic import lane_function
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.grid.looks.known_bits import Bits, compute
from mcheck.simt.grid.looks.shared_states import SharedStates
from mcheck.simt.grid.looks.word_values import Words
from tests.fuzz.looking_grids import WHOLE, Plan, answer, generate, is_wrong, judge

RIGHT = Plan(ctas=3)


def test_a_scan_is_proved() -> None:
    assert answer(RIGHT) == "proved"
    assert judge(RIGHT) == "fine"


@pytest.mark.parametrize(
    ("plan", "wrong", "why"),
    [
        (replace(RIGHT, last=None), "stuck", ""),  # tile 0 alone says that it has all
        (replace(RIGHT, last=None, waits="whole", start=-1), "stuck", "forever"),
        (replace(RIGHT, reverse=True, ctas=2), "stuck", "forever"),
        (replace(RIGHT, start=1, step=1), "stuck", "forever"),
        (replace(RIGHT, store="weak"), "race", "otherwise"),
        (replace(RIGHT, store="relaxed.cta"), "race", "otherwise"),
        (replace(RIGHT, load="weak"), "race", "no cluster looks"),
        (replace(RIGHT, shares=True), "race", "left open"),
        (replace(RIGHT, decides=True, waits="never", shares=True), "race", "depends on what it finds"),
    ],
)
def test_a_broken_scan_is_not(plan: Plan, wrong: str, why: str) -> None:
    found = answer(plan)
    if why:
        assert judge(plan) == wrong
        assert why in found
    else:
        assert (judge(plan), found) == ("fine", "proved")


@pytest.mark.parametrize("first", [RIGHT.first, None])
def test_without_tickets_the_last_cluster_may_begin_first(first: int | None) -> None:
    assert "forever" in answer(replace(RIGHT, ctas=6, first=first, tickets=False))


def test_without_tickets_looks_that_wait_for_nothing_are_no_deadlock() -> None:
    assert "promises that these run" in answer(replace(RIGHT, tickets=False, waits="never", stops=None))


@pytest.mark.parametrize("patient", [1, 2, 4])
def test_what_clusters_before_have_found_is_not_found_by_one_that_does_something_else(patient: int) -> None:
    """From tile 2 on the word before holds no more than a part, which ends the looks of all others."""
    plan = replace(RIGHT, ctas=6, last=None, patient=patient)
    found = answer(plan)
    assert ("forever" in found) == (patient > 1)
    assert judge(replace(plan, ctas=patient + 1)) == ("stuck" if patient > 1 else "fine")


@pytest.mark.parametrize(
    "special", [("silent", 3), ("waits", 2), ("patient", 3), ("ahead", 3), ("again", 2), ("skips", 1)]
)
@pytest.mark.parametrize("last", [WHOLE, None])
def test_what_one_tile_does_otherwise_is_seen(special: tuple[str, int], last: int | None) -> None:
    plan = replace(RIGHT, ctas=5, special=special, last=last)
    assert (answer(plan) == "proved") == (judge(plan) == "fine")


def test_what_is_shared_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(16)
    plans = [replace(generate(rng), ctas=5) for _ in range(8)]
    shared = [answer(plan) for plan in plans]
    monkeypatch.setattr(SharedStates, "_shared_key", lambda *_, **__: object())
    assert shared == [answer(plan) for plan in plans]
    assert {found == "proved" for found in shared} == {True, False}, shared


def test_the_work_of_a_cluster_does_not_grow_with_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = list[int]()
    look = Words.look

    def counted(words: Words, cluster: int, *given: Any, **named: Any) -> Any:
        looks.append(cluster)
        return look(words, cluster, *given, **named)

    monkeypatch.setattr(Words, "look", counted)
    assert answer(replace(RIGHT, ctas=12)) == "proved"
    assert looks.count(11) == looks.count(4)


def test_a_look_ahead_of_a_store_of_the_same_cluster_is_not_followed() -> None:
    assert "stores to afterwards" in answer(replace(RIGHT, start=0, first=None, waits="never", stops=None))


@pytest.mark.daily(days=6, least=0)
def test_random_scans_are_judged_by_all_interleavings() -> None:
    rng = random.Random(20)
    answers = [(plan, answer(plan), judge(plan)) for plan in (generate(rng) for _ in range(40))]
    assert [one for one in answers if is_wrong(*one[1:])] == []
    assert sum(found == "proved" for _, found, _ in answers) > 10


OPERATIONS = (
    "and.b32 %r, %a, %b", "or.b32 %r, %a, %b", "xor.b32 %r, %a, %b", "not.b32 %r, %a", "add.u32 %r, %a, %b",
    "shl.b32 %r, %a, 5", "shr.u32 %r, %a, 7", "shr.s32 %r, %a, 7", "bfe.u32 %r, %a, 3, 9", "bfe.s32 %r, %a, 3, 9",
    "prmt.b32 %r, %a, %b, 0x5FA1", "bfi.b32 %r, %a, %b, 4, 11", "lop3.b32 %r, %a, %b, %a, 0x6A",
    "shf.l.wrap.b32 %r, %a, %b, 9", "brev.b32 %r, %a", "selp.b32 %r, %a, %b, %p", "min.u32 %r, %a, %b",
    "setp.eq.u32 %q, %a, %b", "setp.ne.s32 %q, %a, %b", "setp.lt.s32 %q, %a, %b", "setp.hs.u32 %q, %a, %b",
    "setp.gt.u32 %q, %a, %b", "setp.le.s32 %q, %a, %b", "cvt.s32.s16 %r, %a", "cvt.u32.u8 %r, %a",
)  # fmt: skip


@pytest.mark.parametrize("text", OPERATIONS)
def test_what_is_known_of_a_result_holds_for_all_values(text: str) -> None:
    body = f".reg .b32 %a, %b, %r;\n.reg .pred %p, %q;\n{text};\nret;"
    module = parse_module(f".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n{body}\n}}")
    statement = module.functions["k"].body[0]
    rng = np.random.default_rng(3)
    shape = (400,)
    names = ("a", "b", "p")

    def draw(name: str) -> Bits:
        width = 1 if name == "p" else 32
        unknown = rng.integers(0, 1 << width, shape, np.uint64) & rng.integers(0, 1 << width, shape, np.uint64)
        unknown[:100] &= np.uint64(3)
        return Bits(rng.integers(0, 1 << width, shape, np.uint64) & ~unknown, unknown)

    given = {name: draw(name) for name in names}

    def fetch(values: dict[str, Bits], operand: object) -> Bits:
        name = getattr(operand, "name", "")
        if name:
            return values[name.lstrip("%")]
        return Bits(np.full(shape, operand.value, np.uint64), np.zeros(shape, np.uint64))  # type: ignore[attr-defined]

    made = compute(statement, lambda o: fetch(given, o), shape)
    function = lane_function(statement.opcode)
    assert made is not None
    assert function is not None
    width = np.uint64(1 if "setp" in text else (1 << 32) - 1)
    for _ in range(30):
        some = {
            name: Bits(one.value | (rng.integers(0, 1 << 63, shape, np.uint64) & one.unknown), one.unknown * 0)
            for name, one in given.items()
        }  # fmt: skip
        exact, *_ = function(*(fetch(some, operand).value for operand in statement.operands[1:]))
        assert not ((exact ^ made[0].value) & ~made[0].unknown & width).any(), text
