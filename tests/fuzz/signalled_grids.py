"""Random grids whose clusters wait for each other's signals, right and wrong, and two answers about each.

    python -m tests.fuzz.signalled_grids --programs 100 --seed 1

One answer is that of ``mcheck.checking.modules.pairs.signalled_grid``, which follows pairs of clusters; the other one
is about all clusters of the grid, followed together as one cluster: so they are resident, as in a cooperative launch,
and numbers stand for tickets. Whether a grid ends that is not cooperative is asked besides.

A plan is a turn that goes from one cluster to the next, once or several times, or a flag for each cluster that the next
ones wait for; its clusters go by their coordinates or by tickets. It is changed in a few places: orders, scopes,
fences, barriers, values, words, which bytes are accessed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from random import Random
from typing import Any

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.modules.pairs.signalled_grid import answer_signalled
from mcheck.checking.policy.question import Question
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.grid.pairs.idle_atomics import without_idle_atomics
from tests.fuzz.differential import DEFAULT_MODEL, model_of
from tests.fuzz.pair_answers import Compared, build, compare_random, follow_pair, say_why

HEAD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 words, .param .u64 ticket)
.reqntid {threads}, 1, 1
{{
.reg .pred %p, %q, %z;
.reg .b32 %r<40>;
.reg .b64 %a<20>;
.reg .b64 %v<9>;
.shared .align 4 .b32 drawn;
ld.param.u64 %a1, [data];
ld.param.u64 %a2, [words];
ld.param.u64 %a3, [ticket];
mov.u32 %r2, %tid.x;
mov.u32 %r3, {clusters};
setp.eq.u32 %z, %r2, 0;
"""


POLL = r"ld\.[a-z.]+\.global\.u(\d+) (%\w+), \[%a4\];"
"""A load of the word that is waited for."""


@dataclass(frozen=True)
class Plan:
    """A grid in which clusters go by their number ``%r1``. In each of ``rounds``, thread 0 waits, all threads access
    the data, and thread 0 signals. ``%r4`` is what a turn has to be, ``%r5`` the number of the cluster before, if there
    is one, and ``%r6`` that of the next one.
    """

    clusters: int = 3
    threads: int = 2
    kind: str = "turn"
    """``turn``, or ``flags``."""
    rounds: int = 1
    tickets: bool = False
    kept: bool = False
    """Whether thread 0 loads its ticket again each time it looks at the turn."""
    cooperative: bool = True
    plane: bool = False
    """Whether the grid has two dimensions."""
    initial: int = 0
    wide: bool = False
    """Whether words are of 64 bits."""
    distance: int = 1
    """Of flags: which cluster before is waited for."""
    poll: str = "ld.acquire.gpu"
    idle: str = ""
    """The order of additions of 0 in the places of these loads, if there are any."""
    until: str = ""
    """The comparison that goes on polling, of a value with what it has to be."""
    fence_after: str = ""
    around: bool = False
    """Whether a barrier that hands on what thread 0 has found stands in the loop."""
    early: bool = False
    """Whether thread 0 looks at the word once before ``before``."""
    look: str = ""
    """How it does that; as it polls if this is empty."""
    barrier: bool = True
    before: tuple[str, ...] = ()
    """Places that all threads access before the wait, or instructions."""
    work: tuple[str, ...] = ("load common", "store common")
    barrier_after: bool = True
    fence: str = ""
    signal: str = "st.release.gpu"
    offset: int = 0
    """What is added to the value that is signalled."""
    after: tuple[str, ...] = ()
    """Places that all threads access behind the signal."""
    signals_first: bool = False
    skips: int = -1
    """A cluster that does not wait."""
    unordered: int = -1
    """A cluster that signals by a relaxed store without a fence."""
    resets: str = ""
    """What thread 0 of the last cluster does at its end."""
    more: tuple[str, ...] = ()
    """What thread 0 does before its first wait."""


def write(plan: Plan) -> str:
    """The module of a plan."""
    head = HEAD.format(threads=plan.threads, clusters=plan.clusters)
    text = "\n".join([head, *_body(plan), "ret;", "}", ""])
    if not plan.idle:
        return text
    return re.sub(POLL, rf"atom.{plan.idle}.gpu.global.add.u\1 \2, [%a4], 0;", text)


def _body(plan: Plan) -> Iterator[str]:
    if plan.tickets:
        yield from ("@!%z bra DRAWN;", "atom.relaxed.gpu.global.add.u32 %r1, [%a3], 1;", "st.shared.u32 [drawn], %r1;")
        yield from ("DRAWN:", "bar.sync 0;", "ld.shared.u32 %r1, [drawn];", "bar.sync 0;")
    elif plan.plane:
        yield from ("mov.u32 %r7, %ctaid.x;", "mov.u32 %r8, %ctaid.y;", "mov.u32 %r9, %nctaid.x;")
        yield "mad.lo.u32 %r1, %r8, %r9, %r7;"
    else:
        yield "mov.u32 %r1, %ctaid.x;"
    if plan.kept and not plan.tickets:
        yield "@%z st.shared.u32 [drawn], %r1;"
    yield from (f"sub.s32 %r5, %r1, {plan.distance};", "add.u32 %r6, %r1, 1;")
    for name, register, first in (("own", "%r1", 11), ("before", "%r5", 12), ("next", "%r6", 13)):
        yield f"// {name}"
        yield f"mad.lo.s32 %r20, {register}, {plan.threads}, %r2;"
        yield from ("mul.wide.s32 %a9, %r20, 4;", f"add.s64 %a{first}, %a1, %a9;", f"add.s64 %a{first}, %a{first}, 64;")
    yield from ("mul.wide.u32 %a9, %r2, 4;", "add.s64 %a10, %a1, %a9;", "add.s64 %a10, %a10, 32;")
    for what in plan.more:
        yield f"@%z {what}"
    for k in range(plan.rounds):
        yield from _round(plan, k)
    if plan.resets:
        yield from (f"setp.eq.u32 %q, %r1, {plan.clusters - 1};", "and.pred %q, %q, %z;", f"@%q {plan.resets}")


def _round(plan: Plan, k: int) -> Iterator[str]:
    bits, size = (64, 8) if plan.wide else (32, 4)
    value, wanted = ("%v1", "%v2") if plan.wide else ("%r10", "%r4")
    turn = plan.kind == "turn"
    if plan.around or plan.early:
        yield f"mov.b{bits} {value}, {-1 if (plan.until or ('ne' if turn else 'lt')) == 'ne' else 0};"
    if plan.early:
        yield from _word(plan, size)
        yield from (f"@!%z bra LOOKED{k};", f"{plan.look or plan.poll}.global.u{bits} {value}, [%a4];", f"LOOKED{k}:")
    for number, place in enumerate(plan.before):
        yield _access(place, number)
    yield f"mad.lo.u32 %r4, {k if turn else 0}, %r3, {'%r1' if turn else k + 1};"
    yield f"add.s32 %r14, {'%r4' if turn else k + 1}, {plan.offset + turn};"
    if plan.wide:
        yield from ("cvt.u64.u32 %v2, %r4;", "cvt.u64.u32 %v3, %r14;")
    yield from _word(plan, size)
    yield f"mul.wide.u32 %a5, {0 if turn else '%r1'}, {size};"
    yield "add.s64 %a5, %a2, %a5;"
    if plan.signals_first:
        yield from _signal(plan, k)
    if not plan.around:
        yield f"@!%z bra WAITED{k};"
    if plan.skips >= 0:
        yield from (f"setp.eq.u32 %q, %r1, {plan.skips};", f"@%q bra WAITED{k};")
    if not turn:
        yield from ("setp.lt.s32 %q, %r5, 0;", f"@%q bra WAITED{k};")
    until = plan.until or ("ne" if turn else "lt")
    if plan.around:
        yield from (f"POLL{k}:", f"setp.{until}.u{bits} %p, {value}, {wanted};", "bar.red.and.pred %q, 0, %p;")
        yield from (f"@!%q bra WAITED{k};", f"@!%z bra POLL{k};")
        yield from (f"{plan.poll}.global.u{bits} {value}, [%a4];", f"bra POLL{k};")
    elif plan.early:
        yield from (f"setp.{until}.u{bits} %p, {value}, {wanted};", f"@!%p bra WAITED{k};")
    if not plan.around:
        yield from _poll(plan, k, until, value, wanted)
    yield from (f"WAITED{k}:", plan.fence_after) if plan.around else (plan.fence_after, f"WAITED{k}:")
    if plan.barrier:
        yield "bar.sync 0;"
    for number, place in enumerate(plan.work):
        yield _access(place, 5 + number)
    if plan.barrier_after:
        yield "bar.sync 0;"
    if not plan.signals_first:
        yield from _signal(plan, k)
    for number, place in enumerate(plan.after):
        yield _access(place, 10 + number)


def _word(plan: Plan, size: int) -> Iterator[str]:
    """The address of the word that is waited for."""
    yield from (f"mul.wide.s32 %a4, {0 if plan.kind == 'turn' else '%r5'}, {size};", "add.s64 %a4, %a2, %a4;")


def _poll(plan: Plan, k: int, until: str, value: str, wanted: str) -> Iterator[str]:
    bits = 64 if plan.wide else 32
    yield from (f"POLL{k}:", f"{plan.poll}.global.u{bits} {value}, [%a4];")
    if plan.kept and plan.kind == "turn" and not (plan.wide or k):
        yield "ld.shared.u32 %r4, [drawn];"
    yield from (f"setp.{until}.u{bits} %p, {value}, {wanted};", f"@%p bra POLL{k};")


def _signal(plan: Plan, k: int) -> Iterator[str]:
    bits, signalled = (64, "%v3") if plan.wide else (32, "%r14")
    yield f"@!%z bra SIGNALLED{k};"
    if plan.unordered >= 0:
        yield from (f"setp.eq.u32 %q, %r1, {plan.unordered};", f"@%q bra UNORDERED{k};")
    atomic = ATOMICS.get(plan.signal)
    signal = (
        f"{plan.signal}.global.u{bits} [%a5], {signalled};"
        if atomic is None
        else atomic.format(bits, signalled, "%v8" if plan.wide else "%r39")
    )
    yield from (plan.fence, signal)
    if plan.unordered >= 0:
        yield from (f"bra SIGNALLED{k};", f"UNORDERED{k}:", f"st.relaxed.gpu.global.u{bits} [%a5], {signalled};")
    yield f"SIGNALLED{k}:"


ATOMICS = {
    "atom.exch": "atom.release.gpu.global.exch.b{0} {2}, [%a5], {1};",
    "red.add": "red.release.gpu.global.add.u{0} [%a5], 1;",
    "red.two": "red.release.gpu.global.add.u{0} [%a5], 2;",
    "atom.add.relaxed": "red.relaxed.gpu.global.add.u{0} [%a5], 1;",
}
"""Signals that are atomics."""
PLACES = {"common": "%a10", "own": "%a11", "before": "%a12", "next": "%a13", "first": "%a1"}


def _access(place: str, number: int) -> str:
    if place.endswith(";"):
        return place
    what, where = place.split()
    register = f"%r{20 + number}"
    return f"ld.global.u32 {register}, [{PLACES[where]}];" if what == "load" else f"st.global.u32 [{PLACES[where]}], 1;"


def launch_of(plan: Plan) -> dict[str, Any]:
    """The launch of a plan."""
    size = 8 if plan.wide else 4
    words = plan.initial.to_bytes(size, "little").hex() + "00" * (size * (plan.clusters + 1))
    return {
        "grid": [2, plan.clusters // 2] if plan.plane else plan.clusters, "block": plan.threads,
        "params": {
            "data": {"buffer": 64 + 4 * plan.threads * (plan.clusters + 2)},
            "words": {"buffer": size * (plan.clusters + 2), "init": {"hex": words}},
            "ticket": {"buffer": 8, "init": {"hex": "0000000000000000"}},
        },
    }  # fmt: skip


# --- the generator ----------------------------------------------------------------------------------------------------

WORKS = (
    ("load common", "store common"), ("store own",), ("store own", "load before"), ("store common",),
    ("store own", "load before", "store common"), ("store own", "load next"), ("store next", "load own"),
    ("load before", "store own", "load common"),
)  # fmt: skip
CHANGES: dict[str, tuple[Any, ...]] = {
    "initial": (1, 7),
    "poll": ("ld.relaxed.gpu", "ld.acquire.cta", "ld.acquire.sys", "ld.volatile", "ld.weak"),
    "until": ("ne", "lt", "le", "gt", "eq"),
    "fence_after": ("fence.acq_rel.gpu;", "fence.acq_rel.cta;", "fence.sc.gpu;"),
    "barrier": (False,),
    "before": (
        ("store own",), ("load before",), ("load common",), ("store common",), ("@!%z st.shared.u32 [drawn], 0;",),
        ("st.shared.u32 [drawn], 1;",),
    ),
    "barrier_after": (False,),
    "fence": ("fence.acq_rel.gpu;", "fence.acq_rel.cta;"),
    "signal": (
        "atom.exch", "red.add", "red.two", "atom.add.relaxed", "st.relaxed.gpu", "st.release.cta", "st.weak",
        "st.release.sys", "st.volatile",
    ),
    "offset": (1, -1),
    "after": (("load common",), ("store own",), ("load before",), ("store common",), ("store next",)),
    "signals_first": (True,),
    "skips": (0, 1, 2),
    "unordered": (0, 1, 2),
    "resets": (
        "st.relaxed.gpu.global.u32 [%a2], 0;", "st.weak.global.u32 [%a2], 0;", "st.release.gpu.global.u32 [%a2], 1;",
        "st.relaxed.gpu.global.u32 [%a3], 0;",
    ),
    "more": (
        ("ld.relaxed.gpu.global.u32 %r30, [%a2];",), ("st.relaxed.gpu.global.u32 [%a2+4], 0;",),
        ("red.relaxed.gpu.global.add.u32 [%a3+4], 1;",), ("atom.relaxed.gpu.global.add.u32 %r31, [%a3+4], 1;",),
        ("st.relaxed.gpu.global.u32 [%a2], 1;",), ("ld.global.u32 %r30, [%a2];",),
    ),
}  # fmt: skip
"""What may be in the place of a part of a right plan."""
RELAXED: dict[str, Any] = {"poll": "ld.relaxed.gpu", "signal": "st.relaxed.gpu", "fence_after": "fence.acq_rel.gpu;",
           "fence": "fence.acq_rel.gpu;"}  # fmt: skip
"""A right plan with fences."""


def generate(random: Random) -> Plan:
    """A plan with up to three changes."""
    clusters = random.choice((2, 3, 3, 4))
    plan = Plan(
        clusters=clusters, threads=random.choice((1, 2)), kind=random.choice(("turn", "flags")),
        rounds=random.choice((1, 1, 2)), tickets=random.random() < 0.4, kept=random.random() < 0.3,
        cooperative=random.random() < 0.8, wide=random.random() < 0.2,
        distance=random.choice((1, 1, 1, 2)), work=random.choice(WORKS),
    )  # fmt: skip
    if clusters == 4 and not plan.tickets:
        plan = replace(plan, plane=random.random() < 0.5)
    if random.random() < 0.3:
        plan = replace(plan, **RELAXED)
    if random.random() < 0.4:
        plan = replace(plan, around=random.random() < 0.7, early=random.random() < 0.6)
    if random.random() < 0.1:
        plan = replace(plan, idle=random.choice(("relaxed", "acquire", "release", "acq_rel")))
    if random.random() < 0.2:
        plan = replace(plan, look=random.choice(CHANGES["poll"]))
    names = random.sample(sorted(CHANGES), random.choice((0, 1, 1, 1, 2, 3)))
    plan = replace(plan, **{name: random.choice(CHANGES[name]) for name in names})
    if plan.early and plan.threads > 1 and plan.before == ("st.shared.u32 [drawn], 1;",):
        return replace(plan, before=())  # lanes that have come apart store twice, which is a race; together, once
    return plan


# --- the answers ------------------------------------------------------------------------------------------------------


def read(plan: Plan) -> tuple[Module, Launch]:
    """The module and the launch of a plan."""
    return build(write(plan), launch_of(plan), cooperative=plan.cooperative)


def answer_by_pairs(module: Module, launch: Launch, seconds: float) -> tuple[Answer | None, str]:
    """The answer of the argument about pairs, or why there is none."""
    plain = without_idle_atomics(module)
    found, why = say_why(lambda: answer_signalled(plain, launch, partial(follow_pair, plain), Limit(seconds)))
    if plain is not module and found is not None and found.verdict is not Verdict.PROVED:
        return None, "there is a race without atomics that leave what they find"
    return found, why


def answer_whole(plan: Plan, seconds: float) -> Answer:
    """The answer about all clusters of a plan, by their numbers, as one cluster."""
    module, launch = read(replace(plan, tickets=False))
    one = replace(launch, cluster=launch.grid, cooperative=False)
    return answer_launch(module, one, model_of(DEFAULT_MODEL), Question(timeout=seconds))


def compare(plan: Plan, seconds: float = 12.0) -> Compared[Plan]:
    """Both answers about a plan."""
    module, launch = read(plan)
    assert prod(launch.cluster_counts) <= 8  # so that all clusters are followed together
    pairs, why = answer_by_pairs(module, launch, seconds)
    whole = answer_whole(plan, seconds)
    if pairs is not None and not plan.cooperative and whole.verdict is not Verdict.FINDING:
        whole = answer_launch(module, launch, model_of(DEFAULT_MODEL), Question(timeout=seconds))
    return Compared(plan, pairs, why, whole, _fault(pairs, whole))


def _fault(pairs: Answer | None, whole: Answer) -> str:
    """What is wrong with the answer of the pairs."""
    if pairs is None:
        return ""
    if pairs.verdict is Verdict.FINDING:
        return "false alarm" if whole.verdict is Verdict.PROVED else ""
    return "missed" if whole.verdict is Verdict.FINDING else ""


if __name__ == "__main__":
    sys.exit(compare_random(__doc__, generate, compare))
