"""Random scans in which one thread of a CTA looks back and hands what it finds to all others, as modules and as state
machines.

One answer is that of ``mcheck.checking.modules.pairs.looking_grid``. The other one shares nothing with it: it runs all
interleavings of two threads of each CTA, the one that looks and another one, of 1, 2, ... CTAs that have begun. It
keeps of each thread which accesses come before what it does, by barriers, releases and acquires. No program that is
``proved`` may get stuck there, or have a race.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.looking_grid import answer_looking
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from tests.fuzz.pair_answers import follow_pair, say_why

CTAS = 2
EMPTY, PART, WHOLE = 0, 1, 2


@dataclass(frozen=True)
class Plan:
    """What a CTA does: publish its sum, look at those before its own, and publish that of all."""

    part: bool = True
    """Whether a sum is published before that of all."""
    releases: bool = True
    acquires: str = "load"
    """What acquires: the ``load``, a ``fence`` of all threads behind it, or ``none``."""
    before: bool = True
    """Whether a barrier comes before each round, and between what is handed on and its loads (``between``)."""
    between: bool = True
    late: bool = False
    """Whether the value of the whole is stored behind its status."""
    parts: bool = False
    """Whether the other thread goes on where the one that looks does so again."""
    reads: bool = True
    """Whether all threads load the value that is published."""
    behind: str = "barrier"
    """What comes before the other thread writes the word by which it was told: a ``barrier``, ``nothing``; or it
    ``skips`` that.
    """


RIGHT = Plan()
ODD: dict[str, tuple[object, ...]] = {
    "releases": (False,), "acquires": ("fence", "none"), "before": (False,), "between": (False,), "late": (True,),
    "parts": (True,), "behind": ("nothing",),
}  # fmt: skip


def generate(rng: random.Random) -> Plan:
    """A plan that differs from a right one in some places."""
    plan = Plan(part=rng.random() < 0.7, reads=rng.random() < 0.7, behind=rng.choice(("barrier", "skips")))
    chosen = rng.sample(sorted(ODD), rng.choice((0, 1, 1, 1, 2)))
    return replace(plan, **{name: rng.choice(ODD[name]) for name in chosen})  # type: ignore[arg-type]


# --- the module -------------------------------------------------------------------------------------------------------


def write(plan: Plan) -> str:
    """The module, for CTAs of two warps."""
    barrier = "  bar.sync 0;\n"
    acquire = "acquire" if plan.acquires == "load" else "relaxed"
    value = "  ld.global.u32 %value, [%from];\n  add.u32 %sum, %sum, %value;\n" if plan.reads else ""
    fence = "  fence.acq_rel.gpu;\n" if plan.acquires == "fence" else ""
    again = "  @%odd bra TOLD;\n" if plan.parts else ""
    word = "" if plan.behind == "skips" else "  @%odd st.shared.u32 [sh], 7;\n"
    return f""".version 8.8
.target sm_90
.address_size 64
.visible .entry scan(.param .u64 states, .param .u64 sums, .param .u64 ticket)
{{
  .reg .pred %first, %p, %odd;
  .reg .b32 %me, %tile, %other, %status, %got, %s, %sum, %value;
  .reg .b64 %states, %sums, %ticket, %off, %mine, %there, %from, %own;
  .shared .align 4 .b8 sh[4];
  ld.param.u64 %states, [states];
  ld.param.u64 %sums, [sums];
  ld.param.u64 %ticket, [ticket];
  mov.u32 %me, %tid.x;
  setp.eq.u32 %first, %me, 0;
  setp.eq.u32 %odd, %me, 32;
  mov.u32 %s, sh;
  @%first atom.relaxed.gpu.global.add.u32 %tile, [%ticket], 1;
  @%first st.shared.u32 [%s], %tile;
  bar.sync 0;
  ld.shared.u32 %tile, [sh];
  bar.sync 0;
  mul.wide.u32 %off, %tile, 4;
  add.u64 %mine, %states, %off;
  add.u64 %own, %sums, %off;
  add.u64 %own, %own, %off;
  mov.u32 %sum, %tile;
{_publish(plan, PART) if plan.part else ""}  sub.u32 %other, %tile, 1;
NEXT:
  setp.lt.s32 %p, %other, 0;
  @%p bra DONE;
  mul.wide.s32 %off, %other, 4;
  add.u64 %there, %states, %off;
AGAIN:
{barrier if plan.before else ""}  @%first ld.{acquire}.gpu.global.u32 %status, [%there];
  @%first st.shared.u32 [%s], %status;
{barrier if plan.between else ""}  ld.shared.u32 %got, [sh];
{again}  setp.eq.u32 %p, %got, 0;
  @%p bra AGAIN;
TOLD:
  mul.wide.s32 %off, %other, 8;
  add.u64 %from, %sums, %off;
  mad.wide.u32 %from, %got, 4, %from;
{fence}{value.replace("[%from]", "[%from+-4]")}  sub.u32 %other, %other, 1;
  setp.ne.u32 %p, %got, 2;
  @%p bra NEXT;
DONE:
{_publish(plan, WHOLE)}{barrier if plan.behind == "barrier" else ""}{word}  ret;
}}
"""


def _publish(plan: Plan, status: int) -> str:
    release = "release" if plan.releases else "relaxed"
    value = f"  @%first st.global.u32 [%own+{4 * status - 4}], %sum;\n"
    flag = f"  @%first st.{release}.gpu.global.u32 [%mine], {status};\n"
    return flag + value if plan.late and status == WHOLE else value + flag


def answer(module: str) -> str:
    """``proved``, or why not."""
    parsed = parse_module(module)
    words = {"buffer": 4 * CTAS, "init": {"hex": "00000000" * CTAS}}
    params = [words, {"buffer": 8 * CTAS}, {"buffer": 4, "init": {"hex": "00000000"}}]
    given = {"grid": [CTAS], "block": [64], "params": {str(k): one for k, one in enumerate(params)}}
    launch = build_launch(parsed, from_object(given))
    found, why = say_why(lambda: answer_looking(parsed, launch, partial(follow_pair, parsed), Limit(20)))
    return why if found is None else "proved" if found.verdict is Verdict.PROVED else "not proved"


# --- the state machines -----------------------------------------------------------------------------------------------

Access = tuple[str, int, int, int, int]
"""An access: ``word`` or ``value``, of a tile, of a thread, and which: a number, or a status."""
Known = frozenset[Access]


@dataclass(frozen=True)
class Thread:
    """A thread: the place where it is, the tile that it looks at, what it was told, and what comes before."""

    at: str
    other: int
    status: int = EMPTY
    count: int = 0
    known: Known = frozenset()
    seen: Known = frozenset()
    """What a fence would acquire."""


@dataclass(frozen=True)
class Cta:
    """A CTA: the thread that looks and another one, the word that hands on, and how it was accessed."""

    threads: tuple[Thread, Thread]
    word: int = EMPTY
    accesses: tuple[tuple[bool, Access], ...] = ()


World = tuple[tuple[Cta, ...], tuple[tuple[int, Known], ...]]
"""The CTAs that have begun, by ticket, and the status of each tile with what it hands on."""


class Race(Exception):
    """Two accesses that nothing orders."""


def judge(plan: Plan) -> str:
    """``fine``, or what is wrong: by all interleavings of the CTAs that have begun."""
    for begun in range(1, CTAS + 1):
        start = tuple(Cta((Thread("part", k - 1), Thread("next", k - 1))) for k in range(begun))
        first: World = (start, ((EMPTY, frozenset[Access]()),) * CTAS)
        todo, nexts = [first], dict[World, list[World]]()
        while todo:
            world = todo.pop()
            if world not in nexts:
                try:
                    nexts[world] = list(_moves(plan, world))
                except Race:
                    return "race"
                todo += nexts[world]
        if not _all_may_end(nexts):
            return "stuck"
    return "fine"


def _all_may_end(nexts: dict[World, list[World]]) -> bool:
    good = {w for w in nexts if all(t.at == "ended" for c in w[0] for t in c.threads)}
    while True:
        more = {w for w, after in nexts.items() if w not in good and any(one in good for one in after)}
        if not more:
            return len(good) == len(nexts)
        good |= more


def _moves(plan: Plan, world: World) -> Iterator[World]:
    ctas, flags = world
    for k, cta in enumerate(ctas):
        for number in (0, 1):
            for made, told in _step(plan, k, cta, number, flags):
                yield (*ctas[:k], made, *ctas[k + 1 :]), told
        both = cta.threads
        waits = {t.at for t in both} - {"ended"}
        if waits and waits <= _BEHIND.keys():
            known = both[0].known | both[1].known
            one, other = (replace(t, at=_BEHIND.get(t.at, t.at), known=known) for t in both)
            yield (*ctas[:k], replace(cta, threads=(one, other)), *ctas[k + 1 :]), flags


_BEHIND = {"bar before": "look", "bar between": "get", "bar behind": "last"}


def _step(
    plan: Plan, tile: int, cta: Cta, one: int, flags: tuple[tuple[int, Known], ...]
) -> Iterator[tuple[Cta, tuple[tuple[int, Known], ...]]]:
    """The steps of a thread, but for barriers."""
    me = cta.threads[one]

    def go(at: str, thread: Thread = me, within: Cta = cta) -> Cta:
        threads = list(within.threads)
        threads[one] = replace(thread, at=at)
        return replace(within, threads=(threads[0], threads[1]))

    match me.at:
        case "part" | "whole" if one == 0:
            status = PART if me.at == "part" else WHOLE
            after = "next" if status == PART else "bar behind" if plan.behind == "barrier" else "last"
            if status == PART and not plan.part:
                yield go("next"), flags
                return
            mine: Access = ("value", tile, 0, status, 0)
            known = me.known if plan.late and status == WHOLE else me.known | {mine}
            handed = frozenset(a for a in known if plan.releases and a[0] == "value")
            told = (*flags[:tile], (status, handed), *flags[tile + 1 :])
            yield go(after, replace(me, known=me.known | {mine})), told
        case "whole":
            yield go("bar behind" if plan.behind == "barrier" else "last"), flags
        case "next":
            at = "whole" if me.other < 0 else "bar before" if plan.before else "look"
            yield go(at), flags
        case "look" if one == 0:
            status, handed = flags[me.other]
            known = me.known | handed if plan.acquires == "load" else me.known
            yield go("put", replace(me, status=status, known=known, seen=handed)), flags
        case "look":
            yield go("bar between" if plan.between else "get"), flags
        case "put":
            made, thread = _access(cta, tile, one, me, writes=True)
            yield go("bar between" if plan.between else "get", thread, replace(made, word=me.status)), flags
        case "get":
            made, thread = _access(cta, tile, one, me, writes=False)
            thread = replace(thread, status=cta.word)
            if cta.word == EMPTY and not (plan.parts and one == 1):
                yield go("bar before" if plan.before else "look", thread, made), flags
            else:
                yield go("read", thread, made), flags
        case "read":
            known = me.known | me.seen if plan.acquires == "fence" and one == 0 else me.known
            if plan.reads and ("value", me.other, 0, me.status, 0) not in known:
                raise Race
            yield go("next" if me.status != WHOLE else "whole", replace(me, other=me.other - 1, known=known)), flags
        case "last" if one == 1 and plan.behind != "skips":
            made, thread = _access(cta, tile, one, me, writes=True)
            yield go("ended", thread, made), flags
        case "last":
            yield go("ended"), flags


def _access(cta: Cta, tile: int, one: int, me: Thread, *, writes: bool) -> tuple[Cta, Thread]:
    """A thread accesses the word that hands on. Of each thread the last access of each kind is kept."""
    for wrote, access in cta.accesses:
        if access[2] != one and (wrote or writes) and access not in me.known:
            raise Race
    mine: Access = ("word", tile, one, me.count, int(writes))
    old = {access for wrote, access in cta.accesses if wrote == writes and access[2] == one}
    kept = tuple(sorted((w, a) for w, a in cta.accesses if a not in old))
    first, second = (replace(t, known=t.known - old) for t in cta.threads)
    made = replace(cta, threads=(first, second), accesses=(*kept, (writes, mine)))
    return made, replace(me, known=me.known - old | {mine}, count=(me.count + 1) % 2)
