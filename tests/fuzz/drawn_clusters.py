"""Random persistent kernels whose clusters of one or two CTAs draw tiles, with asynchronous copies and tiles in two
dimensions, and two answers about each.

    python -m tests.fuzz.drawn_clusters --programs 200 --seed 1

One answer is from a cluster that is given one tile again and again (``mcheck.checking.modules.pairs.drawn_grid``). The
other one is by executing the plan here, for each way in which the tiles may be dealt to the clusters: threads and
copies have vector clocks, which barriers, mbarriers and waits for groups join. Draws order nothing, and clusters
nothing among themselves. Fences of the async proxy stand wherever they are wanted: the judge knows none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random

from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from tests.fuzz.drawn_answers import Compared, compare_with, run
from tests.fuzz.draws import answer_by_one
from tests.fuzz.pair_answers import build

THREADS = 2
WORDS = 512
"""The words of the buffer ``out``; ``in`` has as many, and nobody writes them."""
HEAD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .u64 count, .param .u32 tiles)
.reqntid {threads}, 1, 1
.reqnctapercluster {ctas}, 1, 1
{{
.reg .pred %p, %q, %z, %lead;
.reg .b32 %r<30>;
.reg .b64 %a<12>;
.shared .align 16 .b8 sh[64];
.shared .align 16 .b8 stages[64];
.shared .align 16 .b8 made[32];
.shared .align 8 .b64 full[2];
.shared .align 8 .b64 told;
ld.param.u64 %a1, [out];
ld.param.u64 %a2, [in];
ld.param.u64 %a3, [count];
ld.param.u32 %r0, [tiles];
mov.u32 %r1, %clusterid.x;
mov.u32 %r2, %tid.x;
mov.u32 %r3, %cluster_ctarank;
mov.u32 %r4, 0;
mov.u32 %r20, 0;
mov.u32 %r21, 0;
mov.u32 %r9, sh;
mov.u32 %r13, told;
setp.eq.u32 %z, %r2, 0;
or.b32 %r10, %r2, %r3;
setp.eq.u32 %lead, %r10, 0;
mov.u32 %r22, stages;
mov.u32 %r23, full;
mov.u32 %r24, made;
xor.b32 %r25, %r3, 1;
mad.lo.u32 %r26, %r3, {threads}, %r2;
"""
MBARRIERS = """@!%z bra INITIALISED;
mbarrier.init.shared.b64 [full], 1;
mbarrier.init.shared.b64 [full+8], 1;
mbarrier.init.shared.b64 [told], 1;
fence.mbarrier_init.release.cluster;
INITIALISED:
"""
NAMES = {
    "cluster": "%r1", "thread": "%r2", "rank": "%r3", "round": "%r4", "tile": "%r5", "x": "%r6", "y": "%r7",
}  # fmt: skip
MET = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"
FENCE = "fence.proxy.async;"
SLOT = 15
"""The word of the slot in which the number is handed over."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a plan. ``what`` is

    * "store" or "load" in ``space``: "global", "shared", or "peer" (shared memory of the other CTA); the word is the
      sum of ``place``, each variable times a number;
    * "fill": the first thread of each CTA copies four words of ``in`` to a stage, all wait for it and load a word of
      it; with two ``stages`` they take turns;
    * "flush": each thread stores a word, and behind a barrier the first one copies them to ``out``; it waits for that
      as ``wait`` says;
    * "barrier", of the CTA; "meet", of the cluster.

    ``who`` is the thread, ``rank`` the CTA that does it, if not all; ``mask`` a comparison on which it is done.
    """

    what: str
    place: tuple[tuple[str, int], ...] = ()
    space: str = "global"
    who: int | None = None
    rank: int | None = None
    mask: tuple[str, str, int] | None = None
    stages: int = 2
    wait: str = "all"


@dataclass(frozen=True, slots=True)
class Plan:
    """A kernel: what is done in each round behind the draw, and what behind the last one. ``hands`` says how the number
    comes to the other CTA: by a store and a barrier of the cluster, or by ``st.async``. ``meets``: whether the cluster
    meets when all have taken it.
    """

    body: tuple[Line, ...]
    behind: tuple[Line, ...] = ()
    ctas: int = 2
    clusters: int = 2
    width: int = 2
    hands: str = "store"
    met: bool = True
    meets: bool = True


# --- as a module ------------------------------------------------------------------------------------------------------


def write(plan: Plan) -> str:
    """The module."""
    labels = iter(range(1000))
    two = plan.ctas == 2
    copies = {line.what for line in (*plan.body, *plan.behind)} & {"fill", "flush"}
    asked = MBARRIERS if copies or (two and plan.hands != "store") else ""
    lines = [HEAD.format(threads=THREADS, ctas=plan.ctas), asked, MET if two else "bar.sync 0;", "L:"]
    lines += _draw(plan, labels)
    lines += ["setp.ge.u32 %p, %r5, %r0;", "@%p bra E;"]
    lines += [f"rem.u32 %r6, %r5, {plan.width};", f"div.u32 %r7, %r5, {plan.width};"]
    for line in plan.body:
        lines += _written(line, labels)
    lines += ["add.u32 %r4, %r4, 1;", "bra L;", "E:"]
    lines += ["mov.u32 %r6, 0;", "mov.u32 %r7, 0;"]
    for line in plan.behind:
        lines += _written(line, labels)
    if two:
        lines.append(MET)
    return "\n".join((*lines, "ret;", "}", ""))


def _draw(plan: Plan, labels: Iterator[int]) -> list[str]:
    skip, again = f"N{next(labels)}", f"N{next(labels)}"
    drawn = [f"@!%lead bra {skip};", "atom.relaxed.gpu.global.add.u32 %r8, [%a3], 1;"]
    take = f"ld.shared.u32 %r5, [%r9+{4 * SLOT}];"
    meet = [MET if plan.ctas == 2 else "bar.sync 0;"] if plan.meets else []
    if plan.ctas == 1:
        return [*drawn, f"st.shared.u32 [%r9+{4 * SLOT}], %r8;", f"{skip}:", *(["bar.sync 0;"] if plan.met else []),
                take, *meet]  # fmt: skip
    if plan.hands == "store":
        told = [f"mapa.shared::cluster.u32 %r11, %r9, {rank};\nst.shared::cluster.u32 [%r11+{4 * SLOT}], %r8;"
                for rank in range(2)]  # fmt: skip
        return [*drawn, *told, f"{skip}:", *([MET] if plan.met else []), take, *meet]
    told = [
        f"mapa.shared::cluster.u32 %r11, %r9, {rank};\nmapa.shared::cluster.u32 %r12, %r13, {rank};\n"
        f"add.u32 %r11, %r11, {4 * SLOT};\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r11], %r8, [%r12];" for rank in range(2)
    ]  # fmt: skip
    expect = [f"@!%z bra {again};", "mbarrier.arrive.expect_tx.shared.b64 _, [%r13], 4;", f"{again}:"]
    wait = [f"W{skip}:", "mbarrier.try_wait.parity.shared.b64 %p, [%r13], %r20;", f"@!%p bra W{skip};"]
    return [*expect, *drawn, *told, f"{skip}:", *wait, "xor.b32 %r20, %r20, 1;", take, *meet]


def _written(line: Line, labels: Iterator[int]) -> list[str]:
    if line.what in ("barrier", "meet"):
        return ["bar.sync 0;" if line.what == "barrier" else MET]
    skip, out = f"N{next(labels)}", ["mov.u32 %r10, 0;"]
    for name, times in line.place:
        out.append(
            f"add.u32 %r10, %r10, {times};" if name == "one" else f"mad.lo.u32 %r10, {NAMES[name]}, {times}, %r10;"
        )
    if line.what == "fill":
        out += ["mul.wide.u32 %a5, %r10, 4;", "add.u64 %a5, %a2, %a5;"]
        out.append("and.b32 %r14, %r21, 1;" if line.stages == 2 else "mov.u32 %r14, 0;")
        out += ["mad.lo.u32 %r15, %r14, 16, %r22;", "mad.lo.u32 %r16, %r14, 8, %r23;"]
        out.append("shr.u32 %r17, %r21, 1;" if line.stages == 2 else "mov.u32 %r17, %r21;")
        out += ["and.b32 %r17, %r17, 1;", f"@!%z bra {skip};", "mbarrier.arrive.expect_tx.shared.b64 _, [%r16], 16;"]
        out.append("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r15], [%a5], 16, [%r16];")
        out += [f"{skip}:", f"W{skip}:", "mbarrier.try_wait.parity.shared.b64 %p, [%r16], %r17;", f"@!%p bra W{skip};"]
        return [*out, "mad.lo.u32 %r15, %r2, 4, %r15;", "ld.shared.u32 %r18, [%r15];", FENCE, "add.u32 %r21, %r21, 1;"]
    if line.what == "flush":
        out += ["mad.lo.u32 %r15, %r2, 8, %r24;", "st.shared.v2.u32 [%r15], {%r26, %r26};", FENCE, "bar.sync 0;"]
        out += ["mul.wide.u32 %a5, %r10, 4;", "add.u64 %a5, %a1, %a5;", f"@!%z bra {skip};"]
        out.append("cp.async.bulk.global.shared::cta.bulk_group [%a5], [%r24], 16;\ncp.async.bulk.commit_group;")
        if line.wait != "never":
            out.append(f"cp.async.bulk.wait_group{'.read' if line.wait == 'read' else ''} 0;")
        return [*out, f"{skip}:", "bar.sync 0;"]
    for register, one in (("%r2", line.who), ("%r3", line.rank)):
        if one is not None:
            out += [f"setp.ne.u32 %p, {register}, {one};", f"@%p bra {skip};"]
    if line.mask is not None:
        name, holds, number = line.mask
        holds = {"==": "eq", "!=": "ne", "<": "lt", ">=": "ge"}[holds]
        out += [f"setp.{holds}.u32 %p, {NAMES[name]}, {number};", f"@!%p bra {skip};"]
    if line.space == "global":
        out += ["mul.wide.u32 %a4, %r10, 4;", "add.u64 %a4, %a1, %a4;"]
        out.append("st.global.u32 [%a4], %r26;" if line.what == "store" else "ld.global.u32 %r18, [%a4];")
        return [*out, f"{skip}:"]
    space = "shared" if line.space == "shared" else "shared::cluster"
    out.append("mad.lo.u32 %r11, %r10, 4, %r9;")
    if line.space == "peer":
        out.append("mapa.shared::cluster.u32 %r11, %r11, %r25;")
    out.append(f"st.{space}.u32 [%r11], %r26;" if line.what == "store" else f"ld.{space}.u32 %r18, [%r11];")
    return [*out, f"{skip}:"]


def read(plan: Plan, tiles: int) -> tuple[Module, Launch]:
    """The module and its launch."""
    params = {
        "out": {"buffer": 4 * WORDS}, "in": {"buffer": 4 * WORDS},
        "count": {"buffer": 4, "init": {"hex": "00000000"}}, "tiles": tiles,
    }  # fmt: skip
    return build(write(plan), {"grid": plan.ctas * plan.clusters, "params": params}, cooperative=False)


# --- the judge --------------------------------------------------------------------------------------------------------

Clock = dict[object, int]
Word = tuple[str, int, int]
"""A space, the rank of the CTA, and the number of a word."""


def _join(one: Clock, other: Clock) -> None:
    for actor, time in other.items():
        one[actor] = max(one.get(actor, 0), time)


@dataclass
class _Mbarrier:
    arrived: bool = False
    pending: int = 0
    told: Clock = field(default_factory=dict)
    done: list[Clock] = field(default_factory=list)
    """By phase that is over, what is known then."""

    def add(self, clock: Clock, *, arrives: bool, more: int) -> None:
        """An arrival, or so many bytes more that are expected."""
        _join(self.told, clock)
        self.arrived |= arrives
        self.pending += more
        if self.arrived and not self.pending:
            self.arrived = False
            self.done.append(dict(self.told))


class _Cluster:
    """The execution of one cluster that draws these numbers; ``error`` says what is wrong with it."""

    def __init__(self, plan: Plan, number: int, drawn: Iterator[int], tiles: int) -> None:
        self.plan, self.number, self.drawn, self.tiles = plan, number, drawn, tiles
        self.error = ""
        self.touched: dict[Word, list[tuple[object, int, bool]]] = {}
        self.shared: dict[Word, int] = {}
        self.clocks: list[Clock] = [{k: 1} for k in range(plan.ctas * THREADS)]
        self.bars: dict[object, _Mbarrier] = {}
        self.meetings: dict[object, list[int]] = {}
        self.ended: dict[object, int] = {}
        self.copies = 0
        threads = {k: self.thread(k) for k in range(len(self.clocks))}
        waits: dict[int, Callable[[], bool]] = {k: (lambda: True) for k in threads}
        while threads and not self.error:
            moved = False
            for k in list(threads):
                if not waits[k]():
                    continue
                moved = True
                try:
                    waits[k] = next(threads[k])
                except StopIteration:
                    del threads[k]
                except RuntimeError:
                    self.error = "numbers"
                    return
            if not moved:
                self.error = "stuck"

    def access(self, actor: object, clock: Clock, word: Word, *, writes: bool) -> None:
        for other, time, also in self.touched.setdefault(word, []):
            if (writes or also) and clock.get(other, 0) < time:
                self.error = self.error or f"race at {word}"
        self.touched[word].append((actor, clock[actor], writes))
        if word[0] in ("out", "in") and not 0 <= word[2] < WORDS:
            self.error = self.error or "outside"

    def mine(self, k: int, word: Word, *, writes: bool) -> None:
        clock = self.clocks[k]
        clock[k] += 1
        self.access(k, clock, word, writes=writes)

    def copy(self, k: int, reads: list[Word], writes: list[Word]) -> Clock:
        """A copy that a thread issues; returns what is known when it is complete."""
        self.copies += 1
        actor = ("copy", self.copies)
        clock = {**self.clocks[k], actor: 1}
        for word in reads:
            self.access(actor, clock, word, writes=False)
        for word in writes:
            self.access(actor, clock, word, writes=True)
        return clock

    def meet(self, k: int, key: object, count: int) -> Iterator[Callable[[], bool]]:
        here = self.meetings.setdefault(key, [])
        here.append(k)
        if len(here) < count:
            yield lambda: self.meetings.get(key) is not here
            return
        del self.meetings[key]
        joint: Clock = {}
        for member in here:
            _join(joint, self.clocks[member])
        for member in here:
            _join(self.clocks[member], joint)

    def wait(self, k: int, bar: _Mbarrier, phase: int) -> Iterator[Callable[[], bool]]:
        if len(bar.done) <= phase:
            yield lambda: len(bar.done) > phase
        _join(self.clocks[k], bar.done[phase])

    def thread(self, k: int) -> Iterator[Callable[[], bool]]:
        plan = self.plan
        rank, me = divmod(k, THREADS)
        two = plan.ctas == 2
        state = {"cluster": self.number, "thread": me, "rank": rank, "round": 0, "tile": 0, "x": 0, "y": 0, "one": 1}
        fills = 0

        def all_meet() -> Iterator[Callable[[], bool]]:
            yield from self.meet(k, "cluster" if two else ("cta", 0), plan.ctas * THREADS)

        def bar(name: object) -> _Mbarrier:
            return self.bars.setdefault((name, rank), _Mbarrier())

        def run(line: Line) -> Iterator[Callable[[], bool]]:
            nonlocal fills
            place = sum(state[name] * times for name, times in line.place)
            if line.what == "barrier":
                yield from self.meet(k, ("cta", rank), THREADS)
            elif line.what == "meet":
                yield from self.meet(k, "cluster", plan.ctas * THREADS)
            elif line.what == "fill":
                stage = fills % 2 if line.stages == 2 else 0
                words: list[Word] = [("stage", rank, 4 * stage + j) for j in range(4)]
                mbarrier, phase = bar(("full", stage)), fills // 2 if line.stages == 2 else fills
                if me == 0:
                    mbarrier.add(self.clocks[k], arrives=True, more=16)
                    mbarrier.add(self.copy(k, [("in", 0, place + j) for j in range(4)], words), arrives=False, more=-16)
                yield from self.wait(k, mbarrier, phase)
                self.mine(k, words[me], writes=False)
                fills += 1
            elif line.what == "flush":
                for j in range(2):
                    self.mine(k, ("made", rank, 2 * me + j), writes=True)
                yield from self.meet(k, ("cta", rank), THREADS)
                if me == 0:
                    made: list[Word] = [("made", rank, j) for j in range(4)]
                    out: list[Word] = [("out", 0, place + j) for j in range(4)]
                    if line.wait == "all":
                        _join(self.clocks[k], self.copy(k, made, out))
                    elif line.wait == "read":  # the reads are a copy of their own
                        _join(self.clocks[k], self.copy(k, made, []))
                        self.copy(k, [], out)
                    else:
                        self.copy(k, made, out)
                yield from self.meet(k, ("cta", rank), THREADS)
            else:
                touch(line, place)

        def touch(line: Line, place: int) -> None:
            if line.who not in (None, me) or line.rank not in (None, rank):
                return
            if line.mask is not None:
                x, y = state[line.mask[0]], line.mask[2]
                if not {"==": x == y, "!=": x != y, "<": x < y, ">=": x >= y}[line.mask[1]]:
                    return
            where: Word = ("out", 0, place)
            if line.space != "global":
                where = ("sh", rank if line.space == "shared" else 1 - rank, place)
            self.mine(k, where, writes=line.what == "store")
            if line.what == "store":
                self.shared[where] = me

        yield from all_meet()
        while not self.error:
            slots: list[Word] = [("sh", r, SLOT) for r in range(plan.ctas)]
            by_copy = two and plan.hands != "store"
            if by_copy and me == 0:
                bar("told").add(self.clocks[k], arrives=True, more=4)
            if k == 0:
                number = next(self.drawn)
                for r, slot in enumerate(slots):
                    self.shared[slot] = number
                    if by_copy:
                        told = self.bars.setdefault(("told", r), _Mbarrier())
                        told.add(self.copy(k, [], [slot]), arrives=False, more=-4)
                    else:
                        self.mine(k, slot, writes=True)
            if by_copy:
                yield from self.wait(k, bar("told"), state["round"])
            elif plan.met:
                yield from all_meet()
            self.mine(k, slots[rank], writes=False)
            state["tile"] = self.shared.get(slots[rank], 0)
            if plan.meets:
                yield from all_meet()
            if state["tile"] >= self.tiles:
                break
            state["x"], state["y"] = state["tile"] % plan.width, state["tile"] // plan.width
            for line in plan.body:
                yield from run(line)
            state["round"] += 1
        state["x"] = state["y"] = 0
        for line in plan.behind:
            yield from run(line)
        if two:
            yield from all_meet()


def judge(plan: Plan, tiles: int) -> str:
    """The error that a kernel has; "" if it has none."""
    known: dict[tuple[int, tuple[int, ...]], _Cluster] = {}
    for dealt in product(range(plan.clusters), repeat=tiles):
        every = []
        for number in range(plan.clusters):
            mine = tuple(k for k, owner in enumerate(dealt) if owner == number)
            if (number, mine) not in known:
                drawn = (*mine, *(tiles + number + plan.clusters * k for k in range(4)))
                known[number, mine] = _Cluster(plan, number, iter(drawn), tiles)
            every.append(known[number, mine])
            if every[-1].error:
                return every[-1].error
        for k, one in enumerate(every):
            for other in every[:k]:
                for word in one.touched.keys() & other.touched.keys():
                    writes = any(w for _, _, w in (*one.touched[word], *other.touched[word]))
                    if word[0] in ("out", "in") and writes:
                        return f"race of clusters at {word}"
    return ""


# --- plans ------------------------------------------------------------------------------------------------------------

Place = tuple[tuple[str, int], ...]
OWN: Place = (("tile", 4), ("rank", 2), ("thread", 1))
BY_ROWS: Place = (("y", 8), ("x", 4), ("rank", 2), ("thread", 1))
PLACES: tuple[Place, ...] = (
    OWN, OWN, BY_ROWS, BY_ROWS, (*BY_ROWS, ("one", 200)),
    (("x", 8), ("y", 64), ("rank", 2), ("thread", 1), ("one", 100)),
    (("y", 8), ("x", 2), ("rank", 2), ("thread", 1)), (("x", 4), ("rank", 2), ("thread", 1)),
    (("tile", 2), ("thread", 1)), (("tile", 2), ("rank", 1), ("one", 64)),
    (("cluster", 4), ("rank", 2), ("thread", 1), ("one", 300)),
    (("round", 4), ("rank", 2), ("thread", 1)), (("y", 4), ("rank", 2), ("thread", 1), ("one", 400)),
    (("tile", 63), ("thread", 1)), (("one", 500),), (("thread", 1), ("one", 480)),
    (("tile", 4), ("rank", 2), ("thread", -1), ("one", 1)), (("tile", 4), ("rank", -2), ("thread", 1), ("one", 2)),
)  # fmt: skip
TILES: tuple[Place, ...] = (
    (("tile", 8), ("rank", 4)), (("tile", 8), ("rank", 4)), (("y", 16), ("x", 8), ("rank", 4)), (("tile", 4),),
    (("x", 8), ("rank", 4)), (("tile", 4), ("rank", 4)), (("round", 8), ("rank", 4), ("one", 256)),
    (("tile", 8), ("rank", 4), ("one", 256)),
)  # fmt: skip
MASKS = (
    None, ("tile", "==", 0), ("tile", "!=", 0), ("x", "==", 0), ("x", "!=", 1), ("y", "<", 1), ("y", ">=", 1),
    ("round", "==", 1), ("tile", "<", 2), ("rank", "==", 0), ("thread", "==", 1),
)  # fmt: skip


def _touch(random: Random, ctas: int) -> list[Line]:
    kind = random.random()
    if kind < 0.2:
        return [Line("fill", random.choice(TILES), stages=random.choice((1, 2, 2)))]
    if kind < 0.4:
        return [Line("flush", random.choice(TILES), wait=random.choice(("all", "all", "all", "read", "never")))]
    who, rank = random.choice((None, None, 0, 1)), random.choice((None, None, 0, 1)) if ctas == 2 else None
    if kind < 0.65:
        space = random.choice(("shared", "peer", "peer")) if ctas == 2 else "shared"
        place: Place = random.choice(
            ((("thread", 1),), (("thread", 1), ("one", 1)), (("one", 2),), (("thread", -1), ("one", 1)))
        )
        some = [Line(random.choice(("store", "store", "load")), place, space, who, rank)]
        if random.random() < 0.6:
            some += [Line(random.choice(("meet", "meet", "barrier") if ctas == 2 else ("barrier",)))]
            some += [Line("load", place, random.choice(("shared", space)), random.choice((who, None)))]
        return some
    mask = random.choice(MASKS) if random.random() < 0.35 else None
    return [Line(random.choice(("store", "store", "load")), random.choice(PLACES), "global", who, rank, mask)]


def generate(random: Random) -> Plan:
    """A plan with up to one thing missing."""
    ctas = random.choice((1, 2, 2))
    body = [line for _ in range(random.choice((1, 1, 2, 3))) for line in _touch(random, ctas)]
    if random.random() < 0.25:
        body.insert(random.randrange(len(body) + 1), Line("meet" if ctas == 2 and random.random() < 0.6 else "barrier"))
    behind = _touch(random, ctas) if random.random() < 0.2 else []
    stages = random.choice((1, 2, 2))
    body = [replace(line, stages=stages) for line in body]
    return Plan(
        body=tuple(body), behind=tuple(replace(line, stages=stages) for line in behind), ctas=ctas,
        clusters=random.choice((2, 2, 3) if ctas == 2 else (2, 3, 3, 4)), width=random.choice((1, 2, 2, 3)),
        hands="async" if random.random() < 0.08 else "store", met=random.random() < 0.97,
        meets=random.random() < 0.95,
    )  # fmt: skip


# --- the comparison ---------------------------------------------------------------------------------------------------


def compare(plan: Plan, tiles: int, seconds: float = 20.0) -> Compared:
    """The answer and the error that is there, by ``compare_with``."""
    return compare_with(*answer_by_one(*read(plan, tiles), seconds), judge(plan, tiles))


if __name__ == "__main__":
    sys.exit(run("clusters", 4, generate, compare, judge))
