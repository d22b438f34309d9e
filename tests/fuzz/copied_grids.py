"""Random grids whose clusters synchronise by a counter, and access memory by asynchronous copies and between barriers,
right and wrong, and two answers about each.

    python -m tests.fuzz.copied_grids --programs 100 --seed 1

One answer follows pairs of clusters, by the argument about counters or that about signals; the other one is about all
clusters of the grid, followed together. Accesses stand at random places: before the clusters meet, in the thread that
counts, in a loop behind it; their own thread waits for copies, or waits too late, or never.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.modules.pairs.counted_grid import answer_counted
from mcheck.checking.modules.pairs.signalled_grid import answer_signalled
from mcheck.checking.policy.question import Question
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from tests.fuzz.differential import DEFAULT_MODEL, model_of
from tests.fuzz.pair_answers import Compared, build, compare_random, contradiction, follow_pair, say_why

HEAD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 other, .param .u64 count)
.reqntid {threads}, 1, 1
{{
.reg .pred %p, %q, %act, %second;
.reg .b32 %r<30>;
.reg .b64 %a<20>;
.shared .align 128 .b8 tile[512];
.shared .align 8 .b64 full;
.shared .align 4 .b32 said;
ld.param.u64 %a1, [data];
ld.param.u64 %a2, [other];
ld.param.u64 %a3, [count];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
setp.ge.u32 %second, %r2, 32;
setp.eq.u32 %p, %r2, 32;
setp.lt.u32 %act, %r2, {narrow};
or.pred %act, %act, %p;
selp.b32 %r2, 1, %r2, %p;
mov.u32 %r3, %nctaid.x;
mov.u32 %r20, 0;
mov.u32 %r21, tile;
mov.u32 %r22, full;
mad.lo.u32 %r23, %r2, 16, %r21;
setp.ne.u32 %q, %r2, 0;
@%q bra INITIALISED;
mbarrier.init.shared.b64 [%r22], 1;
fence.mbarrier_init.release.cluster;
INITIALISED:
setp.eq.u32 %p, %r1, {odd};
selp.b64 %a16, %a1, %a2, %p;
bar.sync 0;
"""
TILES = {
    "own": "mov.u32 %r10, %r1;",
    "next": "add.u32 %r10, %r1, 1;\nrem.u32 %r10, %r10, %r3;",
    "first": "mov.u32 %r10, 0;",
    "turning": "add.u32 %r10, %r1, %r20;\nrem.u32 %r10, %r10, %r3;",
}
WAITS = {"now": "cp.async.wait_group 0;", "late": "cp.async.wait_group 1;", "never": ""}
BULK_WAITS = {"now": "cp.async.bulk.wait_group 0;", "late": "cp.async.bulk.wait_group.read 0;", "never": ""}
BLOCK = 64
"""The threads of a CTA of two warps, of which the first of each accesses memory."""
MEETINGS = {
    "": "bar.sync 0;",
    "all": "bar.sync 0;",
    "named": "bar.sync 3;",
    "two": "bar.sync 3;\nbar.sync 4;",
    "reduced": "setp.eq.u32 %p, %r2, %r2;\nbarrier.red.popc.u32 %r19, 2, %p;",
    "forth": "@%second bra M{label};\nbar.arrive 3, 64;\nbra N{label};\nM{label}:\nbar.sync 3, 64;\nN{label}:",
    "back": "@%second bra M{label};\nbar.sync 3, 64;\nbra N{label};\nM{label}:\nbar.arrive 3, 64;\nN{label}:",
    "both": (
        "@%second bra M{label};\nbar.arrive {one}, 64;\nbar.sync {other}, 64;\nbra N{label};\n"
        "M{label}:\nbar.arrive {other}, 64;\nbar.sync {one}, 64;\nN{label}:"
    ),
    "in warps": "bar.warp.sync 0xffffffff;",
}
"""How the threads of a CTA meet: all, or one warp tells the other one, or no warp the other one."""
PLACES = ("start", "stored", "met", "counting", "fenced", "counted", "gone on", "looping", "end")


@dataclass(frozen=True)
class Work:
    """An access by each thread of the 16 bytes of a thread in a tile, or of a whole tile by thread 0."""

    place: str
    how: str
    """``load``, ``store``, ``copy``, ``bulk load``, ``bulk store``."""
    tile: str
    memory: str = "%a1"
    """``%a1``, ``%a2``, or ``%a16``: the first one in the odd cluster, the second one in all others."""
    turned: bool = False
    """Whether it is of the bytes of another thread."""
    wait: str = "now"
    fence: bool = True
    """Whether a fence of the async proxy stands before it, in every thread, and behind it."""


@dataclass(frozen=True)
class Plan:
    """A grid whose last cluster goes on, or whose clusters wait for each other ``rounds`` times."""

    clusters: int = 3
    threads: int = 2
    rounds: int = 0
    works: tuple[Work, ...] = ()
    barrier: bool = True
    fence: str = "fence.acq_rel.gpu;"
    fence_after: str = "fence.acq_rel.gpu;"
    barrier_after: bool = True
    barrier_in_loop: bool = True
    odd: int = -1
    """The number of the odd cluster."""
    meets: str = ""
    """How threads meet, of two warps then; "" if they are of one warp (``MEETINGS``)."""

    @property
    def block(self) -> int:
        """The threads of a CTA."""
        return BLOCK if self.meets else self.threads


class _Writer:
    """Writes the module of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.labels, self.lines, self.phase, self.met = plan, 0, list[str](), 0, 0

    def write(self) -> str:
        plan = self.plan
        self.works("start")
        for number in range(plan.rounds or 1):
            self.round(number)
        self.works("end")
        head = HEAD.format(threads=plan.block, odd=plan.odd, narrow=1 if plan.meets else plan.threads)
        return "\n".join([head, *self.lines, "DONE:", "ret;", "}", ""])

    def round(self, number: int) -> None:
        plan, out = self.plan, self.lines
        self.works("stored")
        if plan.barrier:
            self.meet()
        self.works("met")
        out.extend(["setp.ne.u32 %q, %r2, 0;", f"@%q bra COUNTED{number};"])
        self.works("counting", alone=True)
        out.append(plan.fence)
        self.works("fenced", alone=True)
        out.append("atom.relaxed.gpu.global.add.u32 %r6, [%a3], 1;")
        if plan.rounds:
            bound = plan.clusters * (number + 1)
            out.extend([f"POLL{number}:", "ld.relaxed.gpu.global.u32 %r7, [%a3];", f"setp.lt.u32 %p, %r7, {bound};"])
            out.extend([f"@%p bra POLL{number};", plan.fence_after])
        else:
            out.extend([plan.fence_after, f"setp.eq.u32 %p, %r6, {plan.clusters - 1};", "selp.u32 %r8, 1, 0, %p;"])
            out.append("st.shared.u32 [said], %r8;")
        self.works("counted", alone=True)
        out.append(f"COUNTED{number}:")
        if plan.barrier_after:
            self.meet()
        if not plan.rounds:
            out.extend(["ld.shared.u32 %r8, [said];", "setp.eq.u32 %p, %r8, 0;", "@%p bra DONE;"])
        self.works("gone on")
        if any(work.place == "looping" for work in plan.works):
            for turn in range(plan.clusters):
                out.append(f"mov.u32 %r20, {turn};")
                self.works("looping")
                if plan.barrier_in_loop:
                    self.meet()

    def meet(self) -> None:
        """The threads of a CTA meet."""
        self.labels += 1
        self.met += 1
        one, other = (3, 4) if self.met % 2 else (5, 6)  # a warp may arrive once more before the other one waits
        if "arrive" in MEETINGS[self.plan.meets]:
            self.lines.append(MEETINGS["in warps"])  # those of a warp arrive as one
        self.lines.append(MEETINGS[self.plan.meets].format(label=self.labels, one=one, other=other))

    def works(self, place: str, *, alone: bool = False) -> None:
        for work in self.plan.works:
            if work.place == place:
                self.lines.extend(self.work(work, alone=alone))

    def work(self, work: Work, *, alone: bool) -> Iterator[str]:
        plan = self.plan
        turned = "xor.b32 %r12, %r2, 1;" if work.turned and plan.threads > 1 else "mov.u32 %r12, %r2;"
        whole = work.how.startswith("bulk")
        yield from (TILES[work.tile], "mov.u32 %r12, 0;" if whole else turned)
        yield from (f"mad.lo.u32 %r13, %r10, {plan.threads}, %r12;", "mul.wide.u32 %a10, %r13, 16;")
        yield f"add.s64 %a11, {work.memory}, %a10;"
        match work.how:
            case "load":
                yield "@%act ld.global.u32 %r14, [%a11];"
            case "store":
                yield "@%act st.global.u32 [%a11], 1;"
            case "copy":
                yield from (
                    "@%act cp.async.cg.shared.global [%r23], [%a11], 16;",
                    "cp.async.commit_group;",
                    WAITS[work.wait],
                )
            case "bulk store":
                yield from self.by_first("cp.async.bulk.global.shared::cta.bulk_group [%a11], [%r21+256], "
                                         f"{16 * plan.threads};\ncp.async.bulk.commit_group;\n"
                                         f"{BULK_WAITS[work.wait]}", work, alone=alone)  # fmt: skip
            case "bulk load":
                yield from self.by_first(
                    f"mbarrier.arrive.expect_tx.shared.b64 _, [%r22], {16 * plan.threads};\n"
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r21+128], [%a11], "
                    f"{16 * plan.threads}, [%r22];", work, alone=alone,
                )  # fmt: skip
                self.labels += 1
                parity = self.phase % 2
                yield f"WAIT{self.labels}:"
                yield f"mbarrier.try_wait.parity.shared.b64 %p, [%r22], {parity};"
                yield f"@!%p bra WAIT{self.labels};"
                self.phase += 1

    def by_first(self, code: str, work: Work, *, alone: bool) -> Iterator[str]:
        """Code of thread 0."""
        self.labels += 1
        if work.fence:
            yield "fence.proxy.async;"
        if not alone:
            yield from ("setp.ne.u32 %q, %r2, 0;", f"@%q bra SKIP{self.labels};")
        yield code
        yield f"SKIP{self.labels}:"


def write(plan: Plan) -> str:
    """The module of a plan."""
    return _Writer(plan).write()


def launch_of(plan: Plan) -> dict[str, Any]:
    """The launch of a plan."""
    size = 16 * plan.clusters * plan.threads
    return {
        "grid": plan.clusters, "block": plan.block,
        "params": {
            "data": {"buffer": size}, "other": {"buffer": size}, "count": {"buffer": 4, "init": {"hex": "00000000"}},
        },
    }  # fmt: skip


# --- the generator ----------------------------------------------------------------------------------------------------


def generate(random: Random, *, warps: bool = False) -> Plan:
    """A plan: tiles are written and then read, mostly in a right way, and up to two other accesses; ``warps``: mostly
    by threads of two warps.
    """
    rounds = random.choice((0, 0, 1, 2))
    stores = random.choice(("store", "store", "bulk store"))
    loads = random.choice(("load", "copy", "copy", "bulk load"))
    works = [
        Work(
            random.choice(("start", "stored", "stored", "met")), stores, "own",
            wait=_usually(random, "now", "late", "never"), fence=random.random() < 0.9,
        ),
        Work(random.choice(("gone on", "looping", "looping", "counted", "end")), loads,
             random.choice(("next", "turning", "first", "own")), turned=random.random() < 0.3,
             wait=_usually(random, "now", "late", "never"), fence=random.random() < 0.9),
    ]  # fmt: skip
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        works.append(Work(
            random.choice(PLACES), random.choice(("load", "store", "copy", "copy", "bulk load", "bulk store")),
            random.choice(tuple(TILES)), random.choice(("%a1", "%a2", "%a2", "%a16")), turned=random.random() < 0.4,
            wait=random.choice(("now", "now", "late", "never")), fence=random.random() < 0.8,
        ))  # fmt: skip
    threads, meets = random.choice((1, 2, 2)), ""
    if threads == 2 and warps:
        meets = random.choice(("all", "named", "two", "reduced", "forth", "back", "both", "both", "in warps"))
    return Plan(
        clusters=random.choice((2, 3, 3)), threads=threads, rounds=rounds, works=tuple(works), meets=meets,
        barrier=random.random() < 0.93, barrier_after=random.random() < 0.95,
        fence=_usually(random, "fence.acq_rel.gpu;", "", "fence.acq_rel.cta;"),
        fence_after=_usually(random, "fence.acq_rel.gpu;", "", "fence.sc.gpu;"), barrier_in_loop=random.random() < 0.7,
        odd=random.choice((-1, 0, 1, 2)),
    )  # fmt: skip


def _usually(random: Random, right: str, *others: str) -> str:
    return right if random.random() < 0.85 else random.choice(others)


# --- the answers ------------------------------------------------------------------------------------------------------


def read(plan: Plan) -> tuple[Module, Launch]:
    """The module and the launch of a plan."""
    return build(write(plan), launch_of(plan), cooperative=bool(plan.rounds))


def answer_by_pairs(module: Module, launch: Launch, seconds: float, *, signals: bool) -> tuple[Answer | None, str]:
    """The answer of the argument about pairs, or why there is none."""
    follow = partial(follow_pair, module)
    answer = answer_signalled if signals else answer_counted
    return say_why(lambda: answer(module, launch, follow, Limit(seconds)))


def compare(plan: Plan, seconds: float = 12.0) -> Compared[Plan]:
    """Both answers about a plan."""
    module, launch = read(plan)
    found, why = answer_by_pairs(module, launch, seconds, signals=bool(plan.rounds))
    whole = answer_launch(module, launch, model_of(DEFAULT_MODEL), Question(timeout=seconds))
    return Compared(plan, found, why, whole, contradiction(found, whole))


if __name__ == "__main__":
    sys.exit(compare_random(__doc__, generate, compare))
