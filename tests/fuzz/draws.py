"""Random persistent kernels whose CTAs draw tiles from a counter, and two answers about each.

    python -m tests.fuzz.draws --programs 300 --seed 1 [--tiles 8]

One answer is from a cluster that is given one tile again and again (``mcheck.checking.modules.pairs.drawn_grid``). The
other one is by following the lines of the plan here, for each way in which the tiles may be dealt to the CTAs: accesses
of one CTA are ordered by its barriers alone, those of different ones not at all. Draws order nothing that a proof may
rest on, so they are relaxed here whatever is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.checking.modules.answer import follow_clusters
from mcheck.checking.modules.any_parameter import prove_every
from mcheck.checking.modules.followed_clusters import without_scope
from mcheck.checking.modules.pairs.drawn_grid import answer_drawn
from mcheck.checking.policy.question import Question
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from tests.fuzz.differential import DEFAULT_MODEL, model_of
from tests.fuzz.drawn_answers import Compared, compare_with, run
from tests.fuzz.pair_answers import build, say_why

THREADS = 2
END = object()
WORDS = 512
"""The words of the buffer."""
HEAD = f""".version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 count, .param .u32 tiles)
.reqntid {THREADS}, 1, 1
{{
.reg .pred %p, %z;
.reg .b32 %r<20>;
.reg .b64 %a<9>;
.shared .align 4 .b8 sh[64];
ld.param.u64 %a1, [out];
ld.param.u64 %a2, [count];
ld.param.u32 %r0, [tiles];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
mov.u32 %r3, 0;
mov.u32 %r4, 0;
setp.eq.u32 %z, %r2, 0;
"""
NAMES = {"cta": "%r1", "thread": "%r2", "round": "%r3", "before": "%r4", "tile": "%r5", "next": "%r6", "slot": "%r7"}
HOLDS = {"==": "eq", "!=": "ne", "<": "lt", ">=": "ge"}
DRAWS = ("relaxed.gpu", "relaxed.gpu", "acq_rel.gpu", "relaxed.sys")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a plan: ``what`` is "draw", "barrier", "take" (what was drawn), "leave" (behind the tiles), "store" or
    "load", in ``space``, of the word whose number is the sum of ``place``, each variable times a number. ``who`` is the
    thread that does it, if not all; ``mask`` a comparison on which it is done.
    """

    what: str
    place: tuple[tuple[str, int], ...] = ()
    space: str = "global"
    who: int | None = None
    mask: tuple[str, str, int] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A kernel: what is done in each round, and what behind the last one. The number that is drawn is handed over in
    one of so many ``slots``, by turns; with ``ahead`` it is that of the next round.
    """

    body: tuple[Line, ...]
    behind: tuple[Line, ...] = ()
    slots: int = 1
    ahead: bool = False
    draw: str = DRAWS[0]
    ctas: int = 2


# --- as a module ------------------------------------------------------------------------------------------------------


def write(plan: Plan) -> str:
    """The module."""
    labels = iter(range(1000))
    first = [*_draw_lines(plan, labels), "bar.sync 0;", *_take_lines("tile"), "bar.sync 0;"] if plan.ahead else []
    lines = [HEAD, "mov.u32 %r7, 32;", *first, "L:"]
    for line in plan.body:
        lines += _write(plan, line, labels)
    lines += ["mov.u32 %r4, %r5;", "mov.u32 %r5, %r6;" if plan.ahead else "", "add.u32 %r3, %r3, 1;", *_turn(plan)]
    lines += ["bra L;", "E:"]
    for line in plan.behind:
        lines += _write(plan, line, labels)
    return "\n".join((*(text for text in lines if text), "ret;", "}", ""))


def _turn(plan: Plan) -> tuple[str, ...]:
    """The next slot."""
    return ("xor.b32 %r7, %r7, 4;",) if plan.slots == 2 else ()


def _draw_lines(plan: Plan, labels: Iterator[int]) -> list[str]:
    label = f"N{next(labels)}"
    drawn = f"atom.{plan.draw}.global.add.u32 %r8, [%a2], 1;"
    at = "mov.u32 %r9, sh;\nadd.u32 %r9, %r9, %r7;"
    return [f"@!%z bra {label};", drawn, at, "st.shared.u32 [%r9], %r8;", f"{label}:"]


def _take_lines(to: str) -> list[str]:
    return ["mov.u32 %r9, sh;\nadd.u32 %r9, %r9, %r7;", f"ld.shared.u32 {NAMES[to]}, [%r9];"]


def _write(plan: Plan, line: Line, labels: Iterator[int]) -> list[str]:
    if line.what == "draw":
        return _draw_lines(plan, labels)
    if line.what == "barrier":
        return ["bar.sync 0;"]
    if line.what == "take":
        return _take_lines("next" if plan.ahead else "tile")
    if line.what == "leave":
        return ["setp.ge.u32 %p, %r5, %r0;", "@%p bra E;"]
    return write_access(line, labels)


def write_access(line: Line, labels: Iterator[int]) -> list[str]:
    """A store or a load."""
    skip, made = f"N{next(labels)}", ["mov.u32 %r10, 0;"]
    for name, times in line.place:
        made.append(
            f"add.u32 %r10, %r10, {times};" if name == "one" else f"mad.lo.u32 %r10, {NAMES[name]}, {times}, %r10;"
        )
    if line.who is not None:
        made += [f"setp.ne.u32 %p, %r2, {line.who};", f"@%p bra {skip};"]
    if line.mask is not None:
        name, holds, number = line.mask
        made += [f"setp.{HOLDS[holds]}.u32 %p, {NAMES[name]}, {number};", f"@!%p bra {skip};"]
    if line.space == "shared":
        made += ["shl.b32 %r11, %r10, 2;", "mov.u32 %r9, sh;", "add.u32 %r9, %r9, %r11;"]
    else:
        made += ["mul.wide.u32 %a3, %r10, 4;", "add.s64 %a3, %a1, %a3;"]
    at = "[%r9]" if line.space == "shared" else "[%a3]"
    made.append(f"st.{line.space}.u32 {at}, %r2;" if line.what == "store" else f"ld.{line.space}.u32 %r12, {at};")
    return [*made, f"{skip}:"]


def read(plan: Plan, tiles: int) -> tuple[Module, Launch]:
    """The module and its launch."""
    params = {"out": {"buffer": 4 * WORDS}, "count": {"buffer": 4, "init": {"hex": "00000000"}}, "tiles": tiles}
    return build(write(plan), {"grid": plan.ctas, "params": params}, cooperative=False)


# --- the judge --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Access:
    """An access of a word by a thread, after so many barriers."""

    space: str
    word: int
    writes: bool
    thread: int
    barriers: int


def follow(plan: Plan, cta: int, numbers: tuple[int, ...], tiles: int) -> list[Access] | None:
    """What a CTA accesses that draws these numbers; ``None`` if they are too few. Its threads are followed one after
    the other between barriers: where that makes a difference, they race.
    """
    drawn = iter(numbers)
    shared: dict[int, int] = {}
    done: list[Access] = []

    def run(me: int) -> Iterator[None]:
        state = {"cta": cta, "thread": me, "round": 0, "before": 0, "tile": 0, "next": 0, "slot": 8, "one": 1}
        barriers = 0

        def access(space: str, word: int, *, writes: bool) -> None:
            done.append(Access(space, word, writes, me, barriers))

        def draw() -> None:
            if me == 0:
                access("shared", state["slot"], writes=True)
                shared[state["slot"]] = next(drawn)

        def take(to: str) -> None:
            access("shared", state["slot"], writes=False)
            state[to] = shared.get(state["slot"], 0)

        def touch(line: Line) -> None:
            mask = line.mask
            fits = mask is None or {
                "==": state[mask[0]] == mask[2], "!=": state[mask[0]] != mask[2],
                "<": state[mask[0]] < mask[2], ">=": state[mask[0]] >= mask[2],
            }[mask[1]]  # fmt: skip
            if line.who in (None, me) and fits:
                word = sum(state[name] * times for name, times in line.place)
                access(line.space, word, writes=line.what == "store")
                if line.space == "shared" and line.what == "store":
                    shared[word] = me

        if plan.ahead:
            draw()
            yield
            barriers += 1
            take("tile")
            yield
            barriers += 1
        while state["round"] < len(numbers) + 2:  # one that is not told of the end goes on for ever, and races
            for line in plan.body:
                if line.what == "draw":
                    draw()
                elif line.what == "barrier":
                    yield
                    barriers += 1
                elif line.what == "take":
                    take("next" if plan.ahead else "tile")
                elif line.what == "leave":
                    if state["tile"] >= tiles:
                        break
                else:
                    touch(line)
            else:
                state["before"] = state["tile"]
                if plan.ahead:
                    state["tile"] = state["next"]
                state["round"] += 1
                state["slot"] ^= 1 if plan.slots == 2 else 0
                continue
            break
        for line in plan.behind:
            if line.what == "barrier":
                yield
                barriers += 1
            else:
                touch(line)

    threads = [run(me) for me in range(THREADS)]
    try:
        while END not in [next(thread, END) for thread in threads]:
            pass  # what waits for one that has ended does no more
    except RuntimeError:  # no number is left
        return None
    return done


def judge(plan: Plan, tiles: int) -> str:
    """The error that a kernel has: "race", "outside", "stuck" (or it goes on for long); "" if it has none."""
    known: dict[tuple[int, tuple[int, ...]], list[Access]] = {}
    for dealt in product(range(plan.ctas), repeat=tiles):
        every: list[list[Access]] = []
        for cta in range(plan.ctas):
            numbers = tuple(k for k, owner in enumerate(dealt) if owner == cta)
            if (cta, numbers) not in known:
                found = _follow_to_the_end(plan, cta, numbers, tiles)
                if found is None:
                    return "stuck"
                known[cta, numbers] = found
            every.append(known[cta, numbers])
        for k, done in enumerate(every):
            if _races(done):
                return "race"
            if any(a.space == "global" and not 0 <= a.word < WORDS for a in done):
                return "outside"
            for other in every[:k]:
                if _meets(done, other):
                    return "race"
    return ""


def _follow_to_the_end(plan: Plan, cta: int, numbers: tuple[int, ...], tiles: int) -> list[Access] | None:
    more: tuple[int, ...] = ()
    while (done := follow(plan, cta, (*numbers, *more), tiles)) is None:
        more = (*more, tiles + cta + plan.ctas * len(more))
        if len(more) > tiles + 4:
            return None
    return done


def _races(done: list[Access]) -> bool:
    """Whether two threads of one CTA access a word between the same barriers."""
    found: dict[tuple[str, int, int], tuple[set[int], set[int]]] = {}
    for a in done:
        threads, writers = found.setdefault((a.space, a.word, a.barriers), (set(), set()))
        threads.add(a.thread)
        if a.writes:
            writers.add(a.thread)
    return any(writers and len(threads) > 1 for threads, writers in found.values())


def _meets(one: list[Access], other: list[Access]) -> bool:
    """Whether two CTAs access a word of global memory, and one writes it."""
    mine, written = ({a.word for a in one if a.space == "global" and a.writes >= w} for w in (False, True))
    theirs, also = ({a.word for a in other if a.space == "global" and a.writes >= w} for w in (False, True))
    return not mine.isdisjoint(also) or not written.isdisjoint(theirs)


# --- plans ------------------------------------------------------------------------------------------------------------

Place = tuple[tuple[str, int], ...]
OWN: Place = (("tile", THREADS), ("thread", 1))
PLACES: tuple[Place, ...] = (
    (("tile", THREADS), ("thread", 1), ("one", 64)), (("tile", 4), ("thread", 1), ("one", 128)),
    (("tile", 4), ("thread", 2), ("one", 130)), (("before", THREADS), ("thread", 1)), (("tile", 1), ("before", 2)),
    (("cta", THREADS), ("thread", 1), ("one", 300)), (("cta", 8), ("round", 2), ("thread", 1), ("one", 320)),
    (("round", 2), ("thread", 1)), (("tile", 2), ("one", 1)), (("thread", 1), ("one", 400)), (("one", 401),),
    (("tile", 2), ("cta", 1)), (("tile", 4), ("round", 1), ("one", 200)), (("tile", 3), ("thread", 1), ("one", 20)),
    (("next", 2), ("thread", 1)), (("tile", 63), ("thread", 1)),
)  # fmt: skip
MASKS = (
    None, None, ("tile", "==", 0), ("tile", "!=", 0), ("tile", "<", 2), ("tile", ">=", 1), ("round", "==", 1),
    ("round", "<", 1), ("tile", "!=", 1), ("before", "==", 0), ("round", ">=", 1), ("tile", "<", 100),
)  # fmt: skip


def make_plan(*touches: Line, slots: int = 1, ahead: bool = False, behind: tuple[Line, ...] = ()) -> Plan:
    """A right frame around some accesses."""
    barrier = Line("barrier")
    frame = (Line("draw"), barrier, Line("take"), *([] if slots == 2 and not ahead else [barrier]))
    if ahead:
        return Plan((Line("leave"), *frame[:1], *touches, *frame[1:]), behind, slots, ahead)
    return Plan((*frame, Line("leave"), *touches), behind, slots, ahead)


def _touch(random: Random) -> Line:
    if random.random() < 0.3:
        mine = random.choice(((("thread", 1),), (("thread", 1), ("one", 1)), (("one", 2),), (("one", 8),)))
        return Line(random.choice(("store", "load")), mine, "shared", random.choice((None, 0, 1)))
    place = random.choice((OWN, OWN, OWN, *PLACES))
    mask = random.choice(MASKS) if random.random() < 0.4 else None
    return Line(random.choice(("store", "store", "load")), place, "global", random.choice((None, None, 0, 1)), mask)


def generate(random: Random) -> Plan:
    """A plan with up to two damaged lines."""
    touches = [_touch(random) for _ in range(random.choice((1, 1, 2, 3)))]
    if random.random() < 0.3:
        touches.insert(random.randrange(len(touches) + 1), Line("barrier"))
    behind = tuple(
        replace(line, mask=line.mask or random.choice((None, ("round", "==", random.randint(0, 4)))))
        for line in (_touch(random) for _ in range(random.choice((0, 0, 0, 1, 1))))
    )
    slots, ahead = random.choice((1, 1, 2)), random.random() < 0.35
    plan = make_plan(*touches, slots=slots, ahead=ahead, behind=behind)
    plan = replace(plan, draw=random.choice(DRAWS), ctas=random.choice((2, 2, 3)))
    for _ in range(random.choice((0, 0, 1))):
        barriers = [k for k, line in enumerate(plan.body) if line.what == "barrier"]
        if barriers and random.random() < 0.6:
            k = random.choice(barriers)
            plan = replace(plan, body=plan.body[:k] + plan.body[k + 1 :])
        else:
            k, to = (random.choice([k for k, x in enumerate(plan.body) if x.what in ("store", "load")] or [0]),
                     random.randrange(len(plan.body)))  # fmt: skip
            rest = plan.body[:k] + plan.body[k + 1 :]
            if plan.body[k].what in ("store", "load"):
                plan = replace(plan, body=(*rest[:to], plan.body[k], *rest[to:]))
    return plan


# --- the comparison ---------------------------------------------------------------------------------------------------


def answer_by_one(module: Module, launch: Launch, seconds: float) -> tuple[Answer | None, str]:
    """The answer from a cluster that is given one tile again and again, or why there is none."""
    model = model_of(DEFAULT_MODEL)

    def follow_one(given: Module, one: Launch, limit: Limit) -> Answer | None:
        question = Question(timeout=limit.left())
        return without_scope(follow_clusters(given, one, model, question, "auto", limit, alone=True, apart=True))

    def every(given: Module, one: Launch, limit: Limit) -> tuple[Answer, Sequence[int]]:
        return prove_every(given, one, model, Question(timeout=limit.left()), "auto")

    return say_why(lambda: answer_drawn(module, launch, follow_one, every, Limit(seconds)))


def compare(plan: Plan, tiles: int, seconds: float = 20.0) -> Compared:
    """The answer and the error that is there, by ``compare_with``."""
    return compare_with(*answer_by_one(*read(plan, tiles), seconds), judge(plan, tiles))


if __name__ == "__main__":
    sys.exit(run("CTAs", 3, generate, compare, judge))
