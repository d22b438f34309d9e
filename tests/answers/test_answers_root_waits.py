"""Which of the threads of a deadlock are its cause: a function of their waits and of the code that is left."""

from __future__ import annotations

import pytest

from mcheck.answers.root_waits import Steps, StuckThread, Target, find_causes
from mcheck.answers.step_text import deadlock_code
from mcheck.frontend.litmus import parse
from mcheck.ir import ops
from mcheck.ir.expr import Const

OBJECTS = "{ .shared .align 8 .b64 a, b; .global .u32 x; }"
BAR_A = "await mbarrier.try_wait.parity.shared::cta.b64 [a], 0;"
BAR_B = "await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;"
ARRIVE_A = "mbarrier.arrive.shared::cta.b64 _, [a];"
ARRIVE_B = "mbarrier.arrive.shared::cta.b64 _, [b];"
FLAG = "await ld.acquire.gpu.global.u32 r0, [x] == 1;"
SET = "st.release.gpu.global.u32 [x], 1;"


def causes(*roles: str) -> tuple[set[int], str]:
    """The roles that are the cause, and the code; each role is stuck at its first statement."""
    text = "\n".join(f"P{k}@{role}" for k, role in enumerate(roles))
    program = parse(f"PTX causes\n{OBJECTS}\n{text}\n", "causes.litmus")
    firsts = [next(t for t in program.threads if t.role == f"P{k}") for k in range(len(roles))]
    stuck = [
        StuckThread.create([t], Steps.create(t), 0, t.code[0], deadlock_code(t.code[0]), targets_of(t.code[0]))
        for t in firsts
    ]
    roots = find_causes(stuck).roots
    return set(roots), max(stuck[k].code for k in roots)


def targets_of(op: ops.Op) -> list[Target]:
    inner = ops.performed_operation(op)
    if inner is op:
        return []
    kind = "mbarrier" if isinstance(inner, ops.MbarrierWait) else "word"
    assert isinstance(inner, ops.MbarrierWait | ops.ScalarAccess)
    assert isinstance(inner.address, Const)
    return [(kind, inner.address.value)]


@pytest.mark.parametrize(
    ("roles", "roots", "code"),
    [
        ((f"cta 0 {{ {BAR_A} }}", f"cta 0 {{ bar.sync 0; {ARRIVE_A} }}"), {0, 1}, "DEAD003"),
        ((f"cta 0 {{ {BAR_A} }}", "cta 0 { bar.sync 0; }"), {0}, "DEAD003"),
        ((f"cta 0 {{ {BAR_A} {ARRIVE_B} }}", f"cta 0 {{ {BAR_B} {ARRIVE_A} }}"), {0, 1}, "DEAD003"),
        ((f"cta 0 {{ {BAR_A} {ARRIVE_B} }}", f"cta 0 {{ {BAR_B} }}"), {0}, "DEAD003"),
        ((f"cta 0 {{ {FLAG} {ARRIVE_A} }}", f"cta 0 {{ {BAR_A} }}"), {0}, "DEAD004"),
        ((f"cta 0 {{ {FLAG} {SET} }}", f"cta 0 {{ {FLAG} {SET} }}"), {0, 1}, "DEAD004"),
        ((f"cta 0 {{ {FLAG} }}", f"cta 1 {{ bar.sync 0; {SET} }}"), {1}, "DEAD002"),
        (("cta 0 { bar.sync 0; bar.sync 1; }", "cta 0 { bar.sync 1; bar.sync 0; }"), {0, 1}, "DEAD002"),
        (("cta 0 { bar.sync 1, 64; }", f"cta 0 {{ {FLAG} }}"), {0, 1}, "DEAD004"),
        (("cta 0 { bar.sync 1, 64; }", f"cta 0 {{ {FLAG} bar.sync 1, 64; }}"), {1}, "DEAD004"),
        (("cta 0 { bar.sync 1, 64; }", "cta 0 { bar.sync 2, 64; bar.sync 3, 64; }"), {0, 1}, "DEAD002"),
        (
            ("cta 0, warp 0, lane 0 { bar.warp.sync 1; }", "cta 0, warp 0, lane 1 { bar.warp.sync 3; }"),
            {0},
            "DEAD006",
        ),
        (("cta 0, warp 0, lane 0 { bar.warp.sync 3; }", f"cta 0, warp 0, lane 1 {{ {FLAG} }}"), {1}, "DEAD004"),
        (("cta 0, warp 0, lane 0 { bar.warp.sync 1; }", f"cta 0, warp 0, lane 1 {{ {FLAG} }}"), {0, 1}, "DEAD006"),
        (
            (
                "cluster 0, cta 0 { barrier.cluster.wait; }",
                f"cluster 0, cta 1 {{ {FLAG} barrier.cluster.arrive; barrier.cluster.wait; }}",
            ),
            {1},
            "DEAD004",
        ),
        (
            ("cluster 0, cta 0 { barrier.cluster.wait; }", f"cluster 0, cta 1 {{ {FLAG} barrier.cluster.wait; }}"),
            {0, 1},
            "DEAD005",
        ),
    ],
)
def test_the_cause_is_what_the_others_wait_for(roles: tuple[str, ...], roots: set[int], code: str) -> None:
    assert causes(*roles) == (roots, code)


def test_a_signal_earlier_in_the_loop_is_still_to_come() -> None:
    text = f"PTX loop\n{OBJECTS}\nP0@cta 0 {{ {BAR_A} }}\nP1@cta 0 {{ L: {ARRIVE_A} {BAR_B} @%p1 bra L; }}\n"
    one, two = parse(text, "loop.litmus").threads
    at = next(k for k, op in enumerate(two.code) if isinstance(op, ops.Await))
    stuck = [
        StuckThread.create([t], Steps.create(t), k, t.code[k], deadlock_code(t.code[k]), targets_of(t.code[k]))
        for t, k in ((one, 0), (two, at))
    ]
    assert find_causes(stuck).roots == {1}
