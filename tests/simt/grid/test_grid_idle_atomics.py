"""Atomics that leave what they find: which ones are loads in arguments about grids, and what those say then."""

from __future__ import annotations

import re

import pytest

from mcheck.base.verdicts import Verdict
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.grid.pairs.idle_atomics import without_idle_atomics
from tests.fuzz.signalled_grids import RELAXED, Plan, answer_by_pairs, read, write
from tests.simt.grid.test_grid_looking_handed import LOOK, SCAN
from tests.simt.grid.test_grid_looking_handed import answer as answer_scan

SECONDS = 60.0
BODY = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 words)
{{
.reg .b32 %r<9>;
.reg .b64 %a<3>;
.reg .pred %p;
ld.param.u64 %a1, [words];
mov.u32 %r1, 0;
mov.u32 %r2, 7;
mov.u32 %r3, %tid.x;
{}
ret;
}}
"""


def opcode_of(instruction: str) -> str:
    """The opcode that stands for an instruction."""
    module = without_idle_atomics(parse_module(BODY.format(instruction)))
    return module.functions["k"].body[-2].opcode.text


@pytest.mark.parametrize(
    ("instruction", "opcode"),
    [
        ("atom.acq_rel.gpu.global.add.u32 %r4, [%a1], 0;", "ld.acquire.gpu.global.u32"),
        ("atom.global.gpu.acq_rel.add.u32 %r4, [%a1], %r1;", "ld.acquire.gpu.global.u32"),
        ("atom.release.sys.global.or.b32 %r4, [%a1], 0;", "ld.relaxed.sys.global.b32"),
        ("atom.global.xor.b64 %a2, [%a1], 0;", "ld.relaxed.gpu.global.b64"),
        ("atom.acquire.gpu.global.and.b32 %r4, [%a1], -1;", "ld.acquire.gpu.global.b32"),
        ("atom.acquire.gpu.global.and.b32 %r4, [%a1], 0xffffffff;", "ld.acquire.gpu.global.b32"),
        ("atom.acquire.cta.global.cas.b32 %r4, [%a1], %r3, %r3;", "ld.acquire.cta.global.b32"),
        ("atom.acquire.gpu.global.cas.b32 %r4, [%a1], %r2, 7;", "ld.acquire.gpu.global.b32"),
    ],
)
def test_an_atomic_that_leaves_what_it_finds_is_a_load(instruction: str, opcode: str) -> None:
    assert opcode_of(instruction) == opcode


@pytest.mark.parametrize(
    "instruction",
    [
        "atom.acq_rel.gpu.global.add.u32 %r4, [%a1], 1;",
        "atom.acq_rel.gpu.global.add.u32 %r4, [%a1], %r3;",
        "@%p mov.u32 %r5, 0;\natom.acq_rel.gpu.global.add.u32 %r4, [%a1], %r5;",
        "mov.u32 %r5, 0;\nmov.u32 %r5, 1;\natom.acq_rel.gpu.global.add.u32 %r4, [%a1], %r5;",
        "atom.acq_rel.gpu.global.and.b32 %r4, [%a1], 0;",
        "atom.acquire.gpu.global.cas.b32 %r4, [%a1], 0, 1;",
        "atom.acquire.gpu.global.exch.b32 %r4, [%a1], 0;",
        "atom.acq_rel.gpu.add.u32 %r4, [%a1], 0;",
        "atom.acq_rel.gpu.global.add.f32 %r4, [%a1], 0f00000000;",
        "atom.relaxed.gpu.global.add.f32 %r4, [%a1], 0fBF800000;",
    ],
)
def test_other_atomics_stay(instruction: str) -> None:
    assert opcode_of(instruction).startswith("atom.")


def test_a_module_without_them_stays_the_same() -> None:
    module = parse_module(BODY.format("atom.acq_rel.gpu.global.add.u32 %r4, [%a1], 1;"))
    assert without_idle_atomics(module) is module


def answer(plan: Plan) -> tuple[Verdict | None, str]:
    """The answer that pairs give, or why they give none."""
    found, why = answer_by_pairs(*read(plan), SECONDS)
    return None if found is None else found.verdict, why


@pytest.mark.parametrize(
    "plan",
    [
        Plan(idle="acq_rel"),
        Plan(idle="acquire", wide=True, tickets=True, cooperative=False),
        Plan(idle="acq_rel", around=True),
        Plan(idle="relaxed", **{k: v for k, v in RELAXED.items() if k != "poll"}),
    ],
)
def test_clusters_wait_by_such_atomics(plan: Plan) -> None:
    assert "atom." + plan.idle in write(plan)
    assert answer(plan) == (Verdict.PROVED, "")


@pytest.mark.parametrize(
    "plan",
    [
        Plan(idle="relaxed"),
        Plan(idle="release"),
        Plan(idle="acq_rel", more=("ld.global.u32 %r30, [%a2];",)),
        Plan(idle="acq_rel", more=("atom.relaxed.gpu.global.add.u32 %r30, [%a2+12], 0;",)),
        Plan(idle="acq_rel", before=("ld.global.u32 %r30, [%a2+12];",), more=(
            "atom.relaxed.gpu.global.add.u32 %r31, [%a2+12], 0;",)),
    ],
)  # fmt: skip
def test_nothing_is_proved_where_they_do_not_order(plan: Plan) -> None:
    assert answer(plan)[0] is None


def test_a_thread_looks_back_by_such_atomics() -> None:
    atomic = re.sub(r"ld\.acquire(.*) (%\w+), \[(%\w+)\]", r"atom.acq_rel\1 \2, [\3], 0", LOOK).replace(
        ".u32", ".add.u32"
    )
    assert LOOK in SCAN
    assert answer_scan(SCAN.replace(LOOK, atomic)) == "proved"
