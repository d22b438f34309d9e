"""Random grids whose clusters count themselves, right and wrong, and two answers about each.

    python -m tests.fuzz.last_blocks --programs 100 --seed 1

One answer is that of ``mcheck.checking.modules.pairs.counted_grid``, which follows pairs of clusters; the other one is
about all clusters of the grid, followed together. A plan is changed in a few places: fences, scopes, who counts and how
often, what the number drawn is compared with, who resets the counter and when, which bytes are accessed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from random import Random
from typing import Any

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.modules.pairs.counted_grid import answer_counted
from mcheck.checking.policy.question import Question
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from tests.fuzz.differential import DEFAULT_MODEL, model_of
from tests.fuzz.pair_answers import Compared, build, compare_random, contradiction, follow_pair, say_why

HEAD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out, .param .u64 count, .param .u64 other)
.reqntid {threads}, 1, 1
{{
.reg .pred %p, %q;
.reg .b32 %r<30>;
.reg .b64 %a<12>;
.shared .align 4 .b32 said;
.shared .align 4 .b32 part;
ld.param.u64 %a1, [data];
ld.param.u64 %a2, [out];
ld.param.u64 %a3, [count];
ld.param.u64 %a4, [other];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
mov.u32 %r3, %nctaid.x;
sub.u32 %r4, %r3, 1;
mad.lo.u32 %r5, %r1, {threads}, %r2;
mul.wide.u32 %a5, %r5, 4;
add.s64 %a6, %a1, %a5;
add.s64 %a7, %a2, %a5;
mov.u32 %r10, 0;
"""


@dataclass(frozen=True)
class Plan:
    """A grid of which the last cluster adds what all have left, or whose clusters wait for each other."""

    clusters: int = 3
    threads: int = 2
    waits: bool = False
    cooperative: bool = True
    initial: int = 0
    store: str = "st.global.u32 [%a6], 1;"
    barrier: bool = True
    fence: str = "fence.acq_rel.gpu;"
    unfenced: str = ""
    """The number of a CTA without the fence; ``%r4`` is the last one of the grid."""
    count: str = "atom.relaxed.gpu.global.add.u32 %r6, [%a3], 1;"
    counts_twice: bool = False
    skipped: int = -1
    """A CTA that leaves before it counts itself."""
    ask: str = "setp.eq.u32 %p, %r6, %r4;"
    fence_after: str = "fence.acq_rel.gpu;"
    barrier_after: bool = True
    by_number: bool = False
    """Whether the number is given to other threads, instead of the answer."""
    early: tuple[str, ...] = ()
    """Done by the counting thread before it counts."""
    resets: tuple[str, ...] = ()
    """Done by thread 0 of the last cluster, or in every cluster behind the wait."""
    tail: tuple[str, ...] = ()
    """Done by every thread of the last cluster before it adds."""
    offset: int = 0
    poll: str = "ld.acquire.gpu.global.u32 %r7, [%a3];"
    until: str = "setp.lt.u32 %p, %r7, %r3;"
    more: tuple[str, ...] = ()
    """Done by all threads at their end, of all clusters."""
    size: int = 0
    """The bytes of the data, if they are not as many as are written."""
    given: bool = False
    """Whether the launch gives the contents of the data: zeros."""


def write(plan: Plan) -> str:
    """The module of a plan."""
    return "\n".join([HEAD.format(threads=plan.threads), *_body(plan), "DONE:", *plan.more, "ret;", "}", ""])


def _body(plan: Plan) -> Iterator[str]:
    yield plan.store
    if plan.barrier:
        yield "bar.sync 0;"
    if plan.skipped >= 0:
        yield from (f"setp.eq.u32 %p, %r1, {plan.skipped};", "@%p bra DONE;")
    yield from ("setp.ne.u32 %p, %r2, 0;", "@%p bra COUNTED;")
    if plan.unfenced:
        yield from (f"setp.eq.u32 %p, %r1, {plan.unfenced};", "@%p bra UNFENCED;")
    yield plan.fence
    yield "UNFENCED:"
    yield from plan.early
    yield plan.count
    if plan.counts_twice:
        yield plan.count
    if plan.waits:
        yield from ("POLL:", plan.poll, plan.until, "@%p bra POLL;", plan.fence_after)
    elif plan.by_number:
        yield from ("st.shared.u32 [said], %r6;", plan.fence_after)
    else:
        yield from (plan.ask, "selp.u32 %r8, 1, 0, %p;", "st.shared.u32 [said], %r8;", plan.fence_after)
    yield "COUNTED:"
    if plan.barrier_after:
        yield "bar.sync 0;"
    if plan.waits:
        yield from ("add.u32 %r9, %r1, 1;", "rem.u32 %r9, %r9, %r3;", f"mad.lo.u32 %r9, %r9, {plan.threads}, %r2;")
        yield from ("mul.wide.u32 %a8, %r9, 4;", "add.s64 %a8, %a1, %a8;")
        yield f"ld.global.u32 %r11, [%a8+{plan.offset}];"
        yield "st.global.u32 [%a7], %r11;"
    else:
        yield "ld.shared.u32 %r6, [said];"
        yield plan.ask if plan.by_number else "setp.eq.u32 %p, %r6, 1;"
        yield "@!%p bra DONE;"
        yield from plan.tail
        yield from ("mov.u32 %r9, %r2;", "LOOP:", "mul.wide.u32 %a8, %r9, 4;", "add.s64 %a8, %a1, %a8;")
        yield from (f"ld.global.u32 %r11, [%a8+{plan.offset}];", "add.u32 %r10, %r10, %r11;")
        yield from (f"add.u32 %r9, %r9, {plan.threads};", "add.u32 %r12, %r12, 1;")
        yield from (f"setp.lt.u32 %p, %r9, {plan.clusters * plan.threads};", "@%p bra LOOP;")
        yield from ("mul.wide.u32 %a9, %r2, 4;", "add.s64 %a9, %a2, %a9;", "st.global.u32 [%a9], %r10;")
    if plan.resets:
        yield from ("setp.ne.u32 %p, %r2, 0;", "@%p bra DONE;", *plan.resets)


def launch_of(plan: Plan) -> dict[str, Any]:
    """The launch of a plan."""
    size = 4 * plan.clusters * plan.threads
    word = plan.initial.to_bytes(4, "little").hex()
    return {
        "grid": plan.clusters, "block": plan.threads,
        "params": {
            "data": {"buffer": plan.size or size} | ({"init": {"hex": "00" * size}} if plan.given else {}),
            "out": {"buffer": size},
            "count": {"buffer": 8, "init": {"hex": word + "00000000"}},
            "other": {"buffer": 4, "init": {"hex": "00000000"}},
        },
    }  # fmt: skip


# --- the generator ----------------------------------------------------------------------------------------------------

BRANCH = ("ld.global.u32 %r18, [%a1];", "setp.eq.u32 %q, %r18, 0;", "@%q bra DONE;")
"""A branch on what another CTA has stored."""
CHANGES: dict[str, tuple[Any, ...]] = {
    "initial": (1,),
    "store": (
        "st.global.u32 [%a1], 1;", "st.relaxed.gpu.global.u32 [%a6], 1;", "st.global.u32 [%a6+4], 1;",
        "red.global.add.u32 [%a6], 1;", "red.global.add.u32 [%a1], 1;", "st.global.u8 [%a6+1], 1;",
    ),
    "barrier": (False,),
    "fence": ("", "fence.acq_rel.cta;", "membar.gl;", "fence.sc.gpu;"),
    "unfenced": ("%r4", "0"),
    "count": (
        "atom.relaxed.cta.global.add.u32 %r6, [%a3], 1;", "atom.acq_rel.gpu.global.add.u32 %r6, [%a3], 1;",
        "atom.relaxed.gpu.global.add.u32 %r6, [%a3], 2;", "atom.relaxed.gpu.global.inc.u32 %r6, [%a3], %r4;",
        "atom.relaxed.gpu.global.inc.u32 %r6, [%a3], 1;", "atom.relaxed.gpu.global.add.u32 %r6, [%a4], 1;",
        "ld.relaxed.gpu.global.u32 %r6, [%a3];\nadd.u32 %r13, %r6, 1;\nst.relaxed.gpu.global.u32 [%a3], %r13;",
        "atom.relaxed.gpu.global.add.u32 %r6, [%a4], 1;\natom.relaxed.gpu.global.add.u32 %r6, [%a3], 1;",
        "atom.release.gpu.global.add.u32 %r6, [%a3], 1;", "atom.relaxed.sys.global.add.u32 %r6, [%a3], 1;",
        "atom.relaxed.gpu.global.add.u32 %r6, [%a3+4], 1;",
        "red.relaxed.gpu.global.add.u32 [%a3], 1;\nmov.u32 %r6, 0;",
    ),
    "counts_twice": (True,),
    "skipped": (0, 1),
    "ask": (
        "setp.ge.u32 %p, %r6, %r4;", "setp.gt.s32 %p, %r6, 0;", "setp.eq.u32 %p, %r6, 0;", "setp.eq.u32 %p, %r6, %r1;",
        "sub.u32 %r14, %r3, 2;\nsetp.eq.u32 %p, %r6, %r14;", "add.u32 %r6, %r6, 1;\nsetp.eq.u32 %p, %r6, %r3;",
        "and.b32 %r6, %r6, 1;\nsetp.eq.u32 %p, %r6, 1;",
    ),
    "fence_after": ("", "fence.acq_rel.cta;", "fence.sc.gpu;"),
    "barrier_after": (False,),
    "by_number": (True,),
    "early": (
        ("st.global.u32 [%a3], 0;",), ("ld.relaxed.gpu.global.u32 %r15, [%a3];",), ("ld.global.u32 %r15, [%a1];",),
    ),
    "resets": (
        ("st.global.u32 [%a3], 0;",), ("atom.relaxed.gpu.global.exch.b32 %r16, [%a3], 0;",),
        ("st.relaxed.gpu.global.u32 [%a3], 0;",), ("st.global.u32 [%a6], 0;",),
    ),
    "tail": (("st.global.u32 [%a3], 0;",), ("bar.sync 0;",), ("st.global.u32 [%a1], 7;",), BRANCH),
    "offset": (4, -4),
    "given": (True,),
    "poll": ("ld.relaxed.gpu.global.u32 %r7, [%a3];", "ld.acquire.cta.global.u32 %r7, [%a3];"),
    "until": ("setp.ne.u32 %p, %r7, %r3;", "setp.lt.u32 %p, %r7, %r4;", "setp.eq.u32 %p, %r7, 0;"),
    "more": (
        ("ld.global.u32 %r17, [%a1];",), ("st.global.u32 [%a4], 1;",), ("st.global.u32 [%a6], 3;",),
        ("ld.acquire.gpu.global.u32 %r17, [%a3];",),
        ("mul.wide.u32 %a10, %r6, 4;", "add.s64 %a10, %a10, %a2;", "st.global.u32 [%a10], 1;"),
    ),
}  # fmt: skip
"""What may be in the place of a part of a right plan."""


def generate(random: Random) -> Plan:
    """A plan with up to three changes."""
    plan = Plan(
        clusters=random.choice((2, 3, 3)), threads=random.choice((1, 2)), waits=random.random() < 0.35,
        cooperative=random.random() < 0.8,
    )  # fmt: skip
    changes = {
        name: random.choice(CHANGES[name]) for name in random.sample(sorted(CHANGES), random.choice((0, 1, 1, 2, 3)))
    }
    return replace(plan, **changes)


# --- the answers ------------------------------------------------------------------------------------------------------


def read(plan: Plan) -> tuple[Module, Launch]:
    """The module and the launch of a plan."""
    return build(write(plan), launch_of(plan), cooperative=plan.cooperative)


def answer_by_pairs(module: Module, launch: Launch, seconds: float) -> tuple[Answer | None, str]:
    """The answer of the argument about pairs, or why there is none."""
    return say_why(lambda: answer_counted(module, launch, partial(follow_pair, module), Limit(seconds)))


def compare(plan: Plan, seconds: float = 12.0) -> Compared[Plan]:
    """Both answers about a plan."""
    module, launch = read(plan)
    assert prod(launch.cluster_counts) <= 8  # so that all clusters are followed together
    pairs, why = answer_by_pairs(module, launch, seconds)
    whole = answer_launch(module, launch, model_of(DEFAULT_MODEL), Question(timeout=seconds))
    return Compared(plan, pairs, why, whole, contradiction(pairs, whole))


if __name__ == "__main__":
    sys.exit(compare_random(__doc__, generate, compare))
