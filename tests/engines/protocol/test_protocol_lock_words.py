"""Locks and awaited swaps: what they order in coherence, so that no interleaving is missing, and where that ends."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer
from mcheck.engines.protocol.analysis.atomic_words import find_atomic_words
from mcheck.engines.protocol.analysis.lock_words import find_lock_words
from mcheck.engines.protocol.analysis.sole_writes import find_sole_writes
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from tests.fuzz import lock_orders

HEAD = "{ .global .u32 l = 0, m = 0, n = 0, x = 0, y = 0, d = 0, e = 0; .global .align 8 .u64 wide = 0; }"
USE = "ld.global.u32 r7, [d]; add.u32 r7, r7, 1; st.global.u32 [d], r7;"


def take(lock: str) -> str:
    return f"await atom.acquire.gpu.global.cas.b32 r0, [{lock}], 0, 1 == 0;"


def leave(lock: str) -> str:
    return f"st.release.gpu.global.u32 [{lock}], 0;"


def under(lock: str, inner: str) -> str:
    return f"{take(lock)} {inner} {leave(lock)}"


def program_of(*bodies: str) -> Program:
    roles = "\n".join(f"P{k}@cta {k} {{ {body} }}" for k, body in enumerate(bodies))
    return parse(f"PTX locks\n{HEAD}\n{roles}\n", "locks.litmus")


STORE = "st.global.u32 [e], 1;"
EXCHANGED = "await atom.acquire.gpu.global.exch.b32 r0, [l], 1 == 0;"
FENCED = "await atom.relaxed.gpu.global.cas.b32 r0, [l], 0, 1 == 0; fence.acq_rel.gpu;"
FENCED_LEAVE = "fence.acq_rel.gpu; atom.relaxed.gpu.global.exch.b32 r0, [l], 0;"
HAND_OVER = "atom.release.gpu.global.exch.b32 r0, [{}], 1; await atom.acquire.gpu.global.cas.b32 r0, [{}], 1, 0 == 1;"

RIGHT = {
    "one-lock-after-the-other": (
        under("l", USE) + under("m", STORE),
        under("m", STORE) + under("l", USE),
    ),
    "three-threads": (
        under("l", USE) + under("m", STORE),
        under("m", STORE) + under("l", USE),
        under("l", USE),
    ),
    "a-gate": (
        under("n", under("l", under("m", USE))),
        under("n", under("m", under("l", USE))),
    ),
    "exchanges": (
        EXCHANGED + USE + leave("l") + under("m", STORE),
        under("m", STORE) + EXCHANGED + USE + leave("l"),
    ),
    "fences": (
        FENCED + USE + FENCED_LEAVE + under("m", STORE),
        under("m", STORE) + FENCED + USE + FENCED_LEAVE,
    ),
    "swaps-that-wait": (
        "st.global.u32 [d], 1;" + HAND_OVER.format("x", "y") + "ld.global.u32 r1, [e];",
        "st.global.u32 [e], 1;" + HAND_OVER.format("y", "x") + "ld.global.u32 r1, [d];",
    ),
}

BROKEN = {
    "relaxed-take": ("acquire", "relaxed"),
    "relaxed-return": ("st.release", "st.relaxed"),
    "return-at-scope-cta": ("st.release.gpu", "st.release.cta"),
    "take-at-scope-cta": ("acquire.gpu", "acquire.cta"),
    "store-to-the-lock": ("P0@cta 0 {", "P0@cta 0 { st.release.gpu.global.u32 [l], 0;"),
    "data-behind-the-return": (f"{USE} {leave('l')}", f"{leave('l')} {USE}"),
}


@pytest.mark.daily
@pytest.mark.parametrize("name", RIGHT)
def test_right_locks_are_proved(name: str) -> None:
    model = load_model("ptx-9.0")
    found = check(program_of(*RIGHT[name]), model, timeout=30)
    assert (found.verdict, found.findings) == ("proved", ())
    judge = answer(program_of(*RIGHT[name]), model, findings=True, timeout=60)
    assert not [f for f in judge.findings if f.severity == "error"]


@pytest.mark.daily
@pytest.mark.parametrize("name", BROKEN)
def test_broken_locks_are_not_proved(name: str) -> None:
    """In one of the two threads; both increment what the lock protects."""
    old, new = BROKEN[name]
    roles = [f"P{k}@cta {k} {{ {body} }}" for k, body in enumerate(RIGHT["one-lock-after-the-other"])]
    source = f"PTX locks\n{HEAD}\n{roles[0]}\n{roles[1]}\n"
    broken = source.replace(old, new, 1)
    assert broken != source
    model = load_model("ptx-9.0")
    judge = answer(parse(broken, "locks.litmus"), model, findings=True, timeout=60)
    assert any(f.severity == "error" for f in judge.findings)
    assert check(parse(broken, "locks.litmus"), model, timeout=30).verdict == "finding"


@pytest.mark.parametrize(
    ("body", "is_lock"),
    [
        (take("l") + leave("l"), True),
        (take("l"), True),
        (take("l") + "if (r7 == 0) {" + STORE + "}" + leave("l"), True),
        ("for k in 0..3 {" + take("l") + leave("l") + "}", True),
        (take("l") + "atom.release.gpu.global.exch.b32 r0, [l], 0;", True),
        (take("l") + "atom.acq_rel.gpu.global.exch.b32 r0, [l], 0;", True),
        (EXCHANGED + leave("l"), True),
        (FENCED + FENCED_LEAVE, True),
        (FENCED.replace("acq_rel", "acquire") + leave("l"), True),
        (FENCED.replace("acq_rel", "release") + leave("l"), False),
        (FENCED.replace("fence.acq_rel.gpu;", STORE + "fence.acq_rel.gpu;") + leave("l"), False),
        (FENCED.replace("fence.acq_rel.gpu", "fence.acq_rel.cta") + leave("l"), False),
        (take("l") + FENCED_LEAVE.replace("acq_rel", "acquire"), False),
        (take("l") + FENCED_LEAVE.replace("atom", STORE + "atom"), False),
        (take("l") + leave("l") + leave("l"), False),
        (leave("l"), False),
        (leave("l") + take("l"), False),
        ("if (r7 == 0) {" + take("l") + "}" + leave("l"), False),
        (take("l") + leave("l").replace(", 0", ", 2"), False),
        (take("l") + leave("l").replace(", 0", ", r7"), False),
        (take("l") + leave("l").replace("st.release", "st.relaxed"), False),
        (take("l") + leave("l").replace("st.release.gpu", "st"), False),
        (take("l") + leave("l").replace("gpu", "cta"), False),
        (take("l") + leave("l").replace("[l]", "[r7]"), False),
        (take("l").replace("0, 1", "0, 0") + leave("l"), False),
        (take("l").replace("acquire", "release") + leave("l"), False),
        (take("l").replace("== 0", "!= 1") + leave("l"), False),
        (take("l").replace("0, 1", "3, 1") + leave("l"), False),
        (EXCHANGED.replace("1 ==", "2 ==") + leave("l"), False),
        (take("l") + "atom.relaxed.gpu.global.cas.b32 r0, [l], 1, 1;" + leave("l"), False),
        (take("l") + "red.release.gpu.global.add.u32 [l], 4294967295;", False),
        (take("l") + "st.relaxed.gpu.global.u8 [l+2], 0;" + leave("l"), False),
    ],
)  # fmt: skip
def test_what_is_a_lock(body: str, is_lock: bool) -> None:
    """A word that two threads take, of which one is right."""
    program = program_of(body, take("l") + leave("l"))
    assert bool(find_lock_words(find_atomic_words(program))) == is_lock


WAIT = "await atom.acquire.gpu.global.cas.b32 r0, [x], 1, 0 == 1;"
SET = "atom.release.gpu.global.exch.b32 r0, [x], 1;"


@pytest.mark.parametrize(
    ("bodies", "found"),
    [
        ((SET, WAIT), True),
        (("st.release.gpu.global.u32 [x], 1;", WAIT), True),
        (("st.relaxed.gpu.global.u32 [x], 1;", WAIT), True),
        ((SET, WAIT + WAIT), True),
        ((SET, WAIT + "st.relaxed.gpu.global.u32 [x], 2;"), True),
        ((SET + SET, WAIT), False),
        ((SET, SET, WAIT), False),
        (("S: " + SET + "setp.eq.u32 %p1, r0, 5; @%p1 bra S;", WAIT), False),
        ((SET.replace("1;", "r7;"), WAIT), True),
        ((SET, WAIT + "atom.relaxed.gpu.global.add.u32 r0, [x], 1;"), False),
        ((SET, WAIT + "atom.relaxed.gpu.global.cas.b32 r0, [x], 0, 2;"), False),
        ((SET, WAIT.replace("1, 0", "1, 1")), False),
        ((SET.replace("gpu", "cta"), WAIT), False),
        ((SET, WAIT.replace("cas.b32 r0, [x], 1, 0", "exch.b32 r0, [x], 0")), False),
        ((SET.replace("1;", "0;"), WAIT.replace("1, 0", "0, 1").replace("== 1", "== 0")), False),  # 0 at first
        ((SET, WAIT, "st.global.u32 [x], 0;"), False),
    ],
)  # fmt: skip
def test_what_is_the_sole_write_of_a_value(bodies: tuple[str, ...], found: bool) -> None:
    sole = find_sole_writes(find_atomic_words(program_of(*bodies)))
    assert bool(sole.writes) == bool(sole.swaps) == found
    assert {k for k, _ in sole.writes} <= {0}


EARLY = "ld.relaxed.gpu.global.u32 r1, [y];" + WAIT + "if (r1 == 1) { st.global.u32 [d], 1; }"
LEFT = "atom.relaxed.gpu.global.exch.b32 r2, [x], 1; st.relaxed.gpu.global.u32 [y], 1; "
FOUND = "if (r2 == 0) { st.global.u32 [d], 2; }"


@pytest.mark.daily
@pytest.mark.parametrize(
    ("bodies", "first"),
    [
        ((EARLY, LEFT + FOUND), 1),
        ((EARLY, SET + LEFT + FOUND), 0),
        ((EARLY, LEFT + FOUND, SET), 0),
        ((EARLY, "atom.relaxed.gpu.global.add.u32 r3, [x], 1;" + LEFT + FOUND), 0),
    ],
)
def test_a_swap_may_come_before_one_of_several_writes_of_its_value(bodies: tuple[str, ...], first: int) -> None:
    """Load buffering through the word: the other thread's last exchange has found what the swap has left."""
    model = load_model("ptx-9.0")

    def program() -> Program:
        roles = "\n".join(f"P{k}@cta {k} {{ {body} }}" for k, body in enumerate(bodies))
        head = HEAD.replace("x = 0", f"x = {first}")
        return parse(f"PTX swaps\n{head}\n{roles}\n", "swaps.litmus")

    assert any(f.code == "RACE001" for f in answer(program(), model, findings=True, timeout=60).findings)
    assert check(program(), model, timeout=30).verdict in ("bounded", "finding")


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(12))
def test_random_locks(seed: int) -> None:
    found = [lock_orders.compare(lock_orders.generate(Random(100 * seed + k)), 4.0)[0] for k in range(8)]
    assert not {"missed", "invented"} & set(found), found
