"""Random grids whose slices count themselves in the counters of their tiles, and two answers about each.

    python -m tests.fuzz.tile_counters --programs 100 --seed 1

One answer is from a box of clusters that stands for all (``mcheck.checking.modules.closed_boxes``), the other one is
about all clusters of a grid of two tiles of two slices, followed together. Plans are changed in a few places: fences,
which word is the counter, what is asked of the number, which bytes of which tile are accessed, and in some CTAs alone.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.modules.closed_boxes import find_closed_box
from mcheck.checking.modules.pairs.counted_grid import answer_counted
from mcheck.checking.policy.question import Question
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from tests.fuzz.differential import DEFAULT_MODEL, model_of
from tests.fuzz.pair_answers import Compared, build, compare_random, follow_pair, say_why

HEAD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 partial, .param .u64 counts, .param .u64 out)
.reqntid 1, 1, 1
{
.reg .pred %p, %q;
.reg .b32 %r<20>;
.reg .b64 %a<12>;
.shared .align 4 .b32 said;
ld.param.u64 %a1, [partial];
ld.param.u64 %a2, [counts];
ld.param.u64 %a3, [out];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ctaid.y;
mov.u32 %r3, %nctaid.y;
mad.lo.u32 %r5, %r1, %r3, %r2;
mul.wide.u32 %a4, %r5, 4;
add.s64 %a4, %a1, %a4;
mul.lo.u32 %r6, %r1, %r3;
mul.wide.u32 %a5, %r6, 4;
add.s64 %a5, %a1, %a5;
sub.u32 %r9, %r3, 1;
"""
WORDS = ("mov.u32 %r7, %r1;",) * 5 + (
    "mov.u32 %r7, 0;", "shr.u32 %r7, %r1, 1;", "and.b32 %r7, %r1, 1;", "mov.u32 %r7, %r2;", "xor.b32 %r7, %r1, 1;",
    "mov.u32 %r7, %r5;", "add.u32 %r7, %r1, %r2;",
)  # fmt: skip
"""Which counter."""
DRAWS = ("atom.acq_rel.gpu.global.add.u32 %r8, [%a6], 1;",) * 4 + (
    "atom.relaxed.gpu.global.add.u32 %r8, [%a6], 1;", "atom.acq_rel.cta.global.add.u32 %r8, [%a6], 1;",
    "atom.release.gpu.global.add.u32 %r8, [%a6], 1;", "atom.acq_rel.gpu.global.add.u32 %r8, [%a6], 2;",
    "atom.acq_rel.gpu.global.inc.u32 %r8, [%a6], %r9;", "atom.acq_rel.gpu.global.inc.u32 %r8, [%a6], 5;",
    "atom.acq_rel.gpu.global.inc.u32 %r8, [%a6], 0;", "atom.acq_rel.gpu.global.inc.u32 %r8, [%a6], %r1;",
)  # fmt: skip
ASKS = ("setp.ne.u32 %p, %r8, %r9;",) * 4 + (
    "setp.ne.u32 %p, %r8, 0;", "setp.lt.u32 %p, %r8, %r9;", "setp.ne.u32 %p, %r8, %r1;", "setp.ne.u32 %p, %r8, %r2;",
)  # fmt: skip
READS = ("",) * 4 + (
    "add.s64 %a5, %a5, 4;", "sub.s64 %a5, %a5, 4;", "mov.u64 %a5, %a1;", "@%q add.s64 %a5, %a5, 4;",
)  # fmt: skip
"""A change of where the last CTA reads."""
OUTS = ("mov.u32 %r10, %r1;",) * 4 + ("mov.u32 %r10, 0;", "mov.u32 %r10, %r2;", "add.u32 %r10, %r1, %r2;")
TESTS = ("setp.eq.u32 %q, %r1, 1;", "setp.eq.u32 %q, %r2, 1;", "setp.eq.u32 %q, %r5, 2;")
FENCES = ("fence.acq_rel.gpu;", "fence.sc.gpu;", "", "fence.acq_rel.cta;", "@%q bra F;\nfence.acq_rel.gpu;\nF:")


@dataclass(frozen=True)
class Plan:
    """A kernel; each field is one of its parts."""

    word: str = WORDS[0]
    draw: str = DRAWS[0]
    ask: str = ASKS[0]
    read: str = ""
    out: str = OUTS[0]
    test: str = TESTS[0]
    fence: str = ""
    after: str = ""
    reset: str = ""
    stray: str = ""
    by_shared: bool = False
    first: tuple[int, ...] = ()
    """What counters hold at first, if not zero."""


def write(plan: Plan) -> str:
    """The module."""
    said = (
        "selp.u32 %r11, 1, 0, %p;\nst.shared.u32 [said], %r11;\nld.shared.u32 %r12, [said];\nsetp.ne.u32 %p, %r12, 0;"
    )
    return "\n".join((
        HEAD, plan.test, "st.global.u32 [%a4], 1;", plan.stray, plan.fence, plan.word, "mul.wide.u32 %a6, %r7, 4;",
        "add.s64 %a6, %a2, %a6;", plan.draw, plan.ask, said if plan.by_shared else "", "@%p bra DONE;", plan.after,
        plan.read, "ld.global.u32 %r13, [%a5];", "ld.global.u32 %r13, [%a5+4];", plan.out,
        "mul.wide.u32 %a7, %r10, 4;", "add.s64 %a7, %a3, %a7;", "st.global.u32 [%a7], %r13;", plan.reset, "DONE: ret;",
        "}",
    ))  # fmt: skip


def read(plan: Plan, tiles: int = 2, slices: int = 2) -> tuple[Module, Launch]:
    """The module and its launch."""
    first = [*plan.first, *[0] * (8 - len(plan.first))]
    counts = b"".join(n.to_bytes(4, "little") for n in first)
    params = {"partial": {"buffer": 64}, "counts": {"buffer": 32, "init": {"hex": counts.hex()}}, "out": {"buffer": 64}}
    return build(write(plan), {"grid": [tiles, slices], "params": params}, cooperative=False)


def generate(random: Random) -> Plan:
    """A plan with up to three changes."""
    plan = Plan(by_shared=random.random() < 0.5)
    resets = ("", "st.relaxed.gpu.global.u32 [%a6], 0;", "st.global.u32 [%a6], 0;", "st.global.u32 [%a2], 0;")
    strays = (
        "", "@%q st.global.u32 [%a3+32], 1;", "st.global.u32 [%a2+16], 1;", "@%q ret;",
        "ld.global.u32 %r14, [%a2+16];\nsetp.ne.u32 %p, %r14, 0;\n@%p bra DONE;",
    )  # fmt: skip
    choices: dict[str, tuple[object, ...]] = {
        "word": WORDS, "draw": DRAWS, "ask": ASKS, "read": READS, "out": OUTS, "test": TESTS, "fence": FENCES,
        "after": FENCES[:4], "reset": resets, "stray": strays, "first": ((), (), (0, 1), (1, 1), (1, 0)),
    }  # fmt: skip
    for name in random.choices(list(choices), k=random.randint(0, 3)):
        plan = replace(plan, **{name: random.choice(choices[name])})  # type: ignore[arg-type]
    if plan.draw.startswith(("atom.relaxed", "atom.release")) and random.random() < 0.5:
        plan = replace(plan, fence=FENCES[0], after=FENCES[0])
    return plan


def answer_by_box(module: Module, launch: Launch, seconds: float) -> tuple[Answer | None, str]:
    """The answer from a box, or why there is none."""
    limit = Limit(seconds)

    def find() -> Answer | None:
        boxed = find_closed_box(module, launch, limit, counts=True)
        return None if boxed is None else answer_counted(module, boxed, partial(follow_pair, module), limit)

    return say_why(find)


def compare(plan: Plan, seconds: float) -> Compared[Plan]:
    """Both answers about two tiles of two slices."""
    module, launch = read(plan)
    found, why = answer_by_box(module, launch, seconds)
    every = replace(launch, group=tuple((x, y, 0) for y in range(2) for x in range(2)))
    whole = answer_launch(module, every, model_of(DEFAULT_MODEL), Question(timeout=seconds), alone=True)
    wrong = ""
    errors = any(f.severity == "error" for f in whole.findings)
    if found is not None and found.verdict is Verdict.PROVED and errors:
        wrong = "missed"
    if found is not None and any(f.severity == "error" for f in found.findings) and whole.verdict is Verdict.PROVED:
        wrong = "invented"
    return Compared(plan, found, why, whole, wrong)


def main() -> int:
    return compare_random(__doc__, generate, compare)


if __name__ == "__main__":
    sys.exit(main())
