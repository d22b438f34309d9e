"""Parameters that are any number: proofs for all of them, and what is in the way of one."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from mcheck import ptx
from mcheck.checking.run.result import Result
from mcheck.isa.opcode import read_opcode
from mcheck.simt.parametric.affine import Numbers, Value, rule_of
from tests.simt.rings import LAUNCH, ring

DIVIDED = {  # k / 3 % 2 and k % 3 as nvcc has them
    "stage": "mul.hi.u32 %r20, %r10, -1431655765; shr.u32 %r21, %r20, 1; mul.lo.s32 %r21, %r21, 3;"
    " sub.s32 %r12, %r10, %r21;",
    "parity": "bfe.u32 %r11, %r20, 1, 1;",
}


def checked(text: str, rounds: object = "any", **more: Any) -> Result:
    launch = {**LAUNCH, **more, "params": {**LAUNCH["params"], "rounds": rounds}}
    return ptx.check(text, launch)


@cache
def proved(**kinds: Any) -> Result:
    return checked(ring(**kinds))


# --- proofs -----------------------------------------------------------------------------------------------------------


@pytest.mark.daily(one_of="heavy")
def test_a_ring_is_proved_for_every_number() -> None:
    found = proved()
    assert found.verdict == "proved", found.reason
    assert found.reason is not None
    assert found.reason.startswith("for every number of rounds from 0 on: from rounds = ")
    assert "the state repeats every 4 (rounds up to 2147483" in found.reason
    assert any(a.startswith("sizes as written") for a in found.assumptions)
    assert not any("trip counts" in a for a in found.assumptions)


@pytest.mark.daily(one_of="heavy")
def test_quotients_by_three_as_compilers_have_them() -> None:
    found = checked(ring(3, **DIVIDED))
    assert found.verdict == "proved", found.reason
    assert found.reason is not None
    assert "every 6 " in found.reason


@pytest.mark.daily(days=3)
@pytest.mark.parametrize("rounds", [0, 1, 5, 22, 23, 24, 25, 26, 35])
def test_every_single_number_has_the_same_answer(rounds: int) -> None:
    assert checked(ring(), rounds).verdict == proved().verdict


@pytest.mark.daily(one_of="heavy")
def test_tiles_with_rounds_of_their_own() -> None:
    """A loop in the loop: k goes on over the tiles, each of three rounds."""
    found = checked(ring(last="add.s32 %r10, %r10, 1; rem.u32 %r20, %r10, 3; setp.lt.s32 %p2, %r10, %r1;"))
    assert found.verdict == "proved", found.reason


# --- what shows late ------------------------------------------------------------------------------------------------


@pytest.mark.daily(one_of="heavy")
def test_a_fence_that_is_missing_shows_with_the_smallest_number() -> None:
    found = checked(ring(fence=""))
    assert found.verdict == "finding"
    assert found.findings[0].message.endswith(", with rounds = 3")


@pytest.mark.daily(one_of="heavy")
def test_a_counter_that_overflows_its_bits_is_found() -> None:
    """k & 31 is no multiple of three stages when it begins again."""
    late = ring(3, parity="and.b32 %r11, %r10, 31; div.u32 %r11, %r11, 3; and.b32 %r11, %r11, 1;")
    found = checked(late)
    assert found.verdict == "finding"
    assert all(f.message.endswith(", with rounds = 34") for f in found.findings)
    assert checked(late, 33).verdict == "proved"


LATE = {
    "a wait that is another one from round 101 on": {
        "consumes": "setp.gt.u32 %p6, %r10, 100; selp.b32 %r11, 0, %r11, %p6;"
    },
    "a counter of 16 bits": {
        "last": "cvt.u16.u32 %h1, %r10; add.s16 %h1, %h1, 1; cvt.u32.u16 %r10, %h1; setp.lt.s32 %p2, %r10, %r1;"
    },
    "a parity that is made of 16 bits with an odd product": {
        "parity": "mul.lo.u32 %r11, %r10, %r10; shr.u32 %r11, %r11, 8; div.u32 %r13, %r10, 2; add.s32 %r11, %r13, %r11;"
        " and.b32 %r11, %r11, 1;"
    },
    "an end before the last round": {"consumes": "sub.s32 %r20, %r1, 200; setp.eq.s32 %p6, %r10, %r20; @%p6 bra $end;"},
    "a round that is skipped": {"produces": "setp.eq.u32 %p6, %r10, 1000; @%p6 bra $end;"},
    "a parity from bit 20 of the round": {
        "consumes": "shr.u32 %r20, %r10, 20; and.b32 %r20, %r20, 1; xor.b32 %r11, %r11, %r20;"
    },
}


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("kinds", LATE.values(), ids=LATE)
def test_what_shows_beyond_the_numbers_that_are_tried_is_not_proved(kinds: dict[str, str]) -> None:
    found = checked(ring(**kinds))
    assert found.verdict in ("unknown", "finding")
    if found.verdict == "unknown":
        assert found.reason is not None
        assert "not proved safe" in found.reason
        assert "(line " in found.reason


@pytest.mark.daily(one_of="heavy")
def test_a_buffer_that_does_not_grow_with_the_rounds() -> None:
    small = {**LAUNCH["params"], "source": {"buffer": 256 * 10}, "rounds": "any"}
    found = ptx.check(ring(), {**LAUNCH, "params": small})
    assert found.verdict == "finding"
    assert all(f.message.endswith(", with rounds = 11") for f in found.findings)


@pytest.mark.daily(one_of="heavy")
def test_engines_that_look_at_single_numbers(all_tests: bool) -> None:
    found = ptx.check(ring(), LAUNCH, engine="explicit", timeout=5 if all_tests else 1)
    assert found.verdict == "unknown"


# --- arithmetic -----------------------------------------------------------------------------------------------------

OPCODES = (
    "add.s32", "sub.u32", "mul.lo.s32", "mul.wide.u32", "mul.wide.s32", "mul.hi.u32", "mul.hi.s32", "shl.b32",
    "shr.u32", "shr.s32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.u32", "setp.lt.s32", "setp.ne.u32",
    "setp.ge.u32", "div.u32", "rem.u32", "div.s32", "rem.s32", "add.s64", "shl.b64", "shr.u64", "and.b64", "sub.s64",
)  # fmt: skip


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("name", OPCODES)
def test_what_is_said_of_results_holds_for_every_number(name: str) -> None:
    """Slopes of results, against the results for other numbers, of random operands."""
    from mcheck.frontend.ptx.lane_arithmetic import lane_function, truncate, type_bits

    opcode = read_opcode(tuple(name.split(".")))
    rule, function = rule_of(opcode), lane_function(opcode)
    assert rule is not None
    assert function is not None
    bits = type_bits(opcode.type)
    out = 2 * bits if opcode.has("wide") else 1 if opcode.name == "setp" else bits
    rng = np.random.default_rng(OPCODES.index(name))
    told = 0
    some_numbers = (0, 1, 3, 7, 31, 64, 100, 4096, (1 << 31) - 200, (1 << bits) - 5)
    for _ in range(150):
        base = [some_numbers[int(rng.integers(len(some_numbers)))] for _ in range(2)]
        if rng.random() < 0.3:
            base[1] = int(rng.choice([0xAAAAAAAB, 0x55555556, 0xCCCCCCCD, 0xFFFFFFF8, 2, 3, 4, 8]))
        slopes = np.array([[int(rng.choice([0, 0, 1, 2, 4, 6, 12, 64, -4])) for _ in range(2)] for _ in range(3)])
        if rng.random() < 0.7:
            slopes[:, 1] = 0
        given = [
            Value(np.array([b], np.uint64), slopes[:, k : k + 1].astype(np.int64), np.zeros(1, np.bool_))
            for k, b in enumerate(base)
        ]
        numbers = Numbers(most=1 << 16, least=8, spare=20)
        made = rule(numbers, given)
        if made.bad[0]:
            continue
        told += 1
        for _ in range(6):
            t = int(rng.integers(0, numbers.most + 1))
            w = int(rng.integers(0, numbers.most - t + 1))
            v = int(rng.integers(0, numbers.spare + 1))
            at = np.array([t, w, v])
            some = [np.array([(b + int(at @ slopes[:, k])) % (1 << 64)], np.uint64) for k, b in enumerate(base)]
            result = function(*(truncate(x, bits) for x in some))[0]
            start = function(*(truncate(np.array([b], np.uint64), bits) for b in base))[0]
            wanted = (int(start[0]) + int(at @ made.slopes[:, 0])) % (1 << out)
            assert int(result[0]) == wanted, (name, base, slopes.tolist(), at.tolist())
    assert told > 5


NOTHING_COPIED = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n, .param .u64 data)
.reqntid 1, 1, 1
{
.reg .pred %p;
.reg .b32 %r<4>;
.reg .b64 %a<4>;
.shared .align 128 .b8 sh[256];
.shared .align 8 .b64 full;
ld.param.u32 %r0, [n];
ld.param.u64 %a1, [data];
mbarrier.init.shared.b64 [full], 1;
mul.wide.u32 %a2, %r0, 2;
add.u64 %a3, %a1, %a2;
shr.u32 %r1, %r0, 3;
mov.u32 %r2, 0;
L: setp.ge.u32 %p, %r2, %r1;
@%p bra E;
st.shared.u32 [sh], %r2;
add.u32 %r2, %r2, 1;
bra L;
E: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sh+128], [%a3], 0, [full];
ret;
}
"""


def test_numbers_of_one_round_differ_where_an_address_is_not_aligned_with_all_of_them() -> None:
    """Even of a copy of nothing (9.7.9.25.4.1)."""
    found = ptx.check(NOTHING_COPIED, {"grid": [1], "params": {"n": "any", "data": {"buffer": None}}})
    assert {f.code for f in found.findings} == {"UB102"}
