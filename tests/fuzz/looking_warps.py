"""Random scans whose warps look back, as modules and as state machines:

    python -m tests.fuzz.looking_warps --programs 100 --seed 1

Lanes look at one tile each and vote, or wait each for itself. Status and value are one word, a vector, or lie apart:
then which value is loaded depends on the flag that was found. One answer is that of
``mcheck.checking.modules.pairs.looking_grid``. The other one shares nothing with it: it runs all interleavings of the
CTAs and their lanes as state machines, of 1, 2, ... of them that have begun, and keeps of each lane which writes come
before what it does. A look finds any status that none of these hides. No program that is ``proved`` may get stuck
there, or have a race.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.looking_grid import answer_looking
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.grid.looks.looking_clusters import WAITS_FOR_LATER
from tests.fuzz.judged_answers import compare_judged, judged
from tests.fuzz.pair_answers import follow_pair, say_why

EMPTY, PART, WHOLE, OUTSIDE = 0, 1, 2, 3
"""The statuses of a tile: nothing yet, its sum, the sum of all up to it, and that there is none."""
PAD = 4
"""The number of words before the first tile, and behind the last one."""


@dataclass(frozen=True)
class Plan:
    """What a CTA does: publish its sum, look at windows of as many tiles before its own as it has lanes, publish that
    of all.
    """

    ctas: int = 3
    lanes: int = 2
    form: str = "apart"
    """How a tile tells: by a ``word``, a ``pair``, or a flag and values ``apart``."""
    waits: str = "vote"
    """Lanes wait together (``vote``), each for itself (``alone``), or ``never``."""
    first: bool = True
    """Whether tiles but the first one publish their sums before they look."""
    last: int = WHOLE
    """The status that is published at the end."""
    store: str = "relaxed.gpu"
    load: str = "relaxed.gpu"
    releases: str = "fence"
    """What comes between a value and its flag: a ``fence``, a ``narrow`` one, ``none``; ``late``: the flag is first."""
    acquires: str = "fence"
    """What comes between a flag and its value: a ``fence``, a ``narrow`` one, ``none``; ``early``: before the look."""
    reads: str = "right"
    """The value that is loaded: the ``right`` one, the other one (``wrong``), the ``whole`` sum, or none."""
    selects: bool = False
    """Whether the address of the value is selected instead of branched on."""
    again: bool = False
    """Whether the sum of the tile is stored once more at the end."""
    start: int = -1
    reverse: bool = False
    """Whether tiles are in the reverse order of tickets."""


ODD: dict[str, tuple[object, ...]] = {
    "first": (False,), "last": (PART,), "store": ("relaxed.cta", "weak", "release.gpu", "relaxed.sys"),
    "load": ("relaxed.cta", "weak", "acquire.gpu"), "releases": ("narrow", "none", "late"),
    "acquires": ("narrow", "none", "early"), "reads": ("wrong", "whole", "none"), "again": (True,), "start": (-2, 1),
    "reverse": (True,), "waits": ("never",),
}  # fmt: skip
FENCES = {"fence": "  fence.acq_rel.gpu;\n", "narrow": "  fence.acq_rel.cta;\n"}


def generate(rng: random.Random) -> Plan:
    """A plan that differs from a right one in some places."""
    plan = Plan(
        ctas=rng.randint(2, 3), lanes=rng.choice((1, 2, 2, 3)), form=rng.choice(("word", "pair", "apart", "apart")),
        waits=rng.choice(("vote", "alone")), selects=rng.random() < 0.3,
    )  # fmt: skip
    chosen = rng.sample(sorted(ODD), rng.choice((0, 0, 1, 1, 2, 3)))
    given = {name: rng.choice(ODD[name]) for name in chosen}
    return replace(plan, **given)  # type: ignore[arg-type]


# --- the module -------------------------------------------------------------------------------------------------------


def write(plan: Plan) -> str:
    """The module."""
    mask = (1 << plan.lanes) - 1
    load = "ld.weak" if plan.load == "weak" else f"ld.{plan.load}"
    look = {
        "word": f"  {load}.global.u64 %word, [%there];\n  mov.b64 {{%value, %status}}, %word;\n",
        "pair": f"  {load}.global.v2.u32 {{%status, %value}}, [%there];\n",
        "apart": f"  {load}.global.u32 %status, [%there];\n",
    }[plan.form]
    again = "  setp.eq.u32 %e, %status, 0;\n"
    wait = {
        "vote": f"{again}  vote.sync.any.pred %u, %e, {mask};\n  @%u bra LOOK;\n",
        "alone": f"{again}  @%e bra AGAIN;\n", "never": "",
    }[plan.waits]  # fmt: skip
    inner, outer = (wait, "") if plan.waits == "alone" else ("", wait)
    early = FENCES["fence"] if plan.acquires == "early" else ""
    fence = FENCES.get(plan.acquires, "")
    tile = f"  sub.u32 %tile, {plan.ctas - 1}, %tile;\n" if plan.reverse else ""
    stores = f"{_publish(plan, PART)}" if plan.first else ""
    second = "  st.global.u32 [%part], %sum;\n" if plan.again and plan.form == "apart" else ""
    return f""".version 8.0
.target sm_90
.address_size 64
.visible .entry scan(.param .u64 in, .param .u64 out, .param .u64 states, .param .u64 parts, .param .u64 wholes,
    .param .u64 ticket)
{{
  .reg .pred %p, %q, %e, %u, %v, %zero, %other;
  .reg .b32 %me, %tile, %sum, %value, %status, %base, %look;
  .reg .b64 %in, %out, %states, %parts, %wholes, %ticket, %off, %mine, %part, %whole, %word, %there, %from, %to;
  .shared .align 4 .b8 drawn[4];
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  ld.param.u64 %states, [states];
  ld.param.u64 %parts, [parts];
  ld.param.u64 %wholes, [wholes];
  ld.param.u64 %ticket, [ticket];
  mov.u32 %me, %tid.x;
  setp.ne.u32 %other, %me, 0;
  @%other bra DRAWN;
  atom.global.add.u32 %tile, [%ticket], 1;
  st.shared.u32 [drawn], %tile;
DRAWN:
  bar.sync 0;
  ld.shared.u32 %tile, [drawn];
{tile}  mul.wide.u32 %off, %tile, 4;
  add.u64 %in, %in, %off;
  ld.global.u32 %sum, [%in];
  add.u64 %out, %out, %off;
  add.u64 %part, %parts, %off;
  add.u64 %whole, %wholes, %off;
  mul.wide.u32 %off, %tile, 8;
  add.u64 %states, %states, {8 * PAD};
  add.u64 %mine, %states, %off;
  setp.eq.u32 %zero, %tile, 0;
  @%zero bra DONE;
  @%other bra FOLLOW;
{stores}FOLLOW:
  bar.warp.sync {mask};
  add.s32 %base, %tile, {plan.start};
NEXT:
  setp.lt.s32 %p, %base, 0;
  @%p bra DONE;
  sub.s32 %look, %base, %me;
  mul.wide.s32 %off, %look, 8;
  add.s64 %there, %states, %off;
LOOK:
  mov.u32 %value, 0;
AGAIN:
{early}{look}{inner}  bar.warp.sync {mask};
{outer}{fence}{_load_value(plan)}  add.u32 %sum, %sum, %value;
  shfl.sync.bfly.b32 %value, %sum, 1, 31, {mask};
  add.u32 %sum, %sum, %value;
  setp.eq.u32 %q, %status, {WHOLE};
  vote.sync.any.pred %v, %q, {mask};
  @%v bra DONE;
  sub.s32 %base, %base, {plan.lanes};
  bra NEXT;
DONE:
  @%other bra END;
  st.global.u32 [%out], %sum;
{_publish(plan, plan.last)}{second}END:
  ret;
}}
"""


def _publish(plan: Plan, status: int) -> str:
    """The code that publishes the sum of the tile, or that of all."""
    store = "st.weak" if plan.store == "weak" else f"st.{plan.store}"
    if plan.form == "word":
        return f"  mov.b64 %word, {{%sum, {status}}};\n  {store}.global.u64 [%mine], %word;\n"
    if plan.form == "pair":
        return f"  {store}.global.v2.u32 [%mine], {{{status}, %sum}};\n"
    value = f"  st.global.u32 [{'%part' if status == PART else '%whole'}], %sum;\n"
    flag = f"  {store}.global.u32 [%mine], {status};\n"
    if plan.releases == "late":
        return f"{flag}{FENCES['fence']}{value}"
    return f"{value}{FENCES.get(plan.releases, '')}{flag}"


def _load_value(plan: Plan) -> str:
    if plan.form != "apart" or plan.reads == "none":
        return ""
    value = "  mul.wide.s32 %off, %look, 4;\n  add.s64 %from, %parts, %off;\n  add.s64 %to, %wholes, %off;\n"
    load, outside = "  ld.global.u32 %value, [{}];\n", f"  setp.eq.u32 %q, %status, {OUTSIDE};\n  @%q bra HAVE;\n"
    if plan.reads == "whole":
        body = load.format("%to")
    else:
        body = f"  setp.eq.u32 %q, %status, {PART if plan.reads == 'right' else WHOLE};\n"
        if plan.selects:
            body += "  selp.b64 %from, %from, %to, %q;\n" + load.format("%from")
        else:
            body += f"  @%q bra PARTS;\n{load.format('%to')}  bra HAVE;\nPARTS:\n{load.format('%from')}"
    return f"{value}{outside}{body}HAVE:\n  bar.warp.sync {(1 << plan.lanes) - 1};\n"


def answer(plan: Plan, seconds: float = 20.0) -> str:
    """``proved``, or why not."""
    module = parse_module(write(plan))
    values, size = {"buffer": 4 * plan.ctas}, 8
    word = bytes([0, 0, 0, 0, OUTSIDE, 0, 0, 0] if plan.form == "word" else [OUTSIDE, 0, 0, 0, 0, 0, 0, 0])
    states = PAD * word + bytes(size * plan.ctas) + PAD * word
    params = [
        values, values, {"buffer": len(states), "init": {"hex": states.hex()}}, values, values,
        {"buffer": 4, "init": {"hex": "00000000"}},
    ]  # fmt: skip
    given = {"grid": [plan.ctas], "block": [plan.lanes], "params": {str(k): one for k, one in enumerate(params)}}
    launch = build_launch(module, from_object(given))
    found, why = say_why(lambda: answer_looking(module, launch, partial(follow_pair, module), Limit(seconds)))
    return why if found is None else "proved" if found.verdict is Verdict.PROVED else "not proved"


# --- the state machines -----------------------------------------------------------------------------------------------

Write = tuple[int, str, int]
"""A write: whose, of the ``part`` or ``whole`` or ``flag``, and which of these."""
Known = frozenset[Write]
"""Writes that come before."""
Word = tuple[tuple[int, Known], ...]
"""The statuses of a tile, one after the other, and what each hands on."""


@dataclass(frozen=True)
class Lane:
    """A lane in a window: the status that it has found, ``None`` if it has to look; the writes that come before what it
    does, those that have come before its last fence, and those that a fence would acquire.
    """

    found: int | None = None
    known: Known = frozenset()
    fenced: Known = frozenset()
    seen: Known = frozenset()
    read: Known = frozenset()
    """The writes of flags that it has read from."""

    def with_fence(self) -> Lane:
        """The lane behind a fence."""
        known = self.known | self.seen
        return replace(self, known=known, fenced=known)


@dataclass(frozen=True)
class Cta:
    """A CTA: what it still publishes, one micro-step after the other, and where its lanes look."""

    todo: tuple[tuple[str, int], ...]
    phase: str
    base: int
    lanes: tuple[Lane, ...]


@dataclass(frozen=True)
class World:
    """The CTAs that have begun, by ticket, and the words of all tiles."""

    ctas: tuple[Cta, ...]
    words: tuple[Word, ...]


class Race(Exception):
    """Two accesses that nothing orders."""


def judge(plan: Plan) -> str:
    """``fine``, or what is wrong: by all interleavings of the CTAs that have begun."""
    for begun in range(1, plan.ctas + 1):
        first = World(
            tuple(_first_state(plan, _tile(plan, k)) for k in range(begun)),
            (((EMPTY, frozenset[Write]()),),) * plan.ctas,
        )
        todo, nexts = [first], dict[World, list[World]]()
        while todo:
            world = todo.pop()
            if world in nexts:
                continue
            try:
                nexts[world] = [one for k in range(begun) for one in _moves(plan, world, k)]
            except Race:
                return "race"
            todo += nexts[world]
        good = {w for w in nexts if all(c.phase == "ended" for c in w.ctas)}
        before: dict[World, list[World]] = {}
        for world, after in nexts.items():
            for one in after:
                before.setdefault(one, []).append(world)
        spread = list(good)
        while spread:
            for one in before.get(spread.pop(), ()):
                if one not in good:
                    good.add(one)
                    spread.append(one)
        if len(good) < len(nexts):
            return "stuck"
    return "fine"


def _tile(plan: Plan, ticket: int) -> int:
    return plan.ctas - 1 - ticket if plan.reverse else ticket


def _steps(plan: Plan, status: int) -> tuple[tuple[str, int], ...]:
    """The micro-steps that publish a status."""
    if plan.form != "apart":
        return (("flag", status),)
    between = {"fence": (("fence", 0),)}.get(plan.releases, ())
    if plan.releases == "late":
        return ("flag", status), ("fence", 0), ("value", status)
    return ("value", status), *between, ("flag", status)


def _first_state(plan: Plan, tile: int) -> Cta:
    looks = tile > 0
    todo = _steps(plan, PART) if plan.first and looks else ()
    return Cta(todo, "window" if looks else "end", tile + plan.start, (Lane(),) * plan.lanes)


def _writes(plan: Plan, tile: int) -> Known:
    """All values that a tile ever writes."""
    if plan.form != "apart":
        return frozenset()
    count = Counter("part" if s == PART else "whole" for s in ([PART] if plan.first and tile else []) + [plan.last])
    count["part"] += plan.again
    return frozenset((tile, name, k) for name, most in count.items() for k in range(most))


def _narrow(plan: Plan) -> bool:
    return "weak" in (plan.store, plan.load) or "cta" in plan.store + plan.load


def _moves(plan: Plan, world: World, ticket: int) -> list[World]:
    """The states after the next step of a CTA."""
    cta, tile = world.ctas[ticket], _tile(plan, ticket)

    def becomes(cta: Cta, words: tuple[Word, ...] = world.words) -> World:
        return World((*world.ctas[:ticket], cta, *world.ctas[ticket + 1 :]), words)

    if cta.todo:
        (what, status), *rest = cta.todo
        first = cta.lanes[0]
        after, words = replace(cta, todo=tuple(rest)), list(world.words)
        if what == "value":
            name = "part" if status == PART else "whole"
            number = sum(w[:2] == (tile, name) for w in first.known)
            first = replace(first, known=first.known | {(tile, name, number)})
        elif what == "fence":
            first = first.with_fence()
        else:
            mine = frozenset({(tile, "flag", len(words[tile]))})
            released = first.known if plan.store == "release.gpu" else first.fenced
            words[tile] = (*words[tile], (status, released | mine))
            first = replace(first, known=first.known | mine)
        return [becomes(replace(after, lanes=(first, *cta.lanes[1:])), tuple(words))]
    if cta.phase == "window":
        return [becomes(one) for one in _look(plan, cta, tile, world.words)]
    if cta.phase == "end":
        more = (("value", PART),) if plan.again and plan.form == "apart" else ()
        return [becomes(replace(cta, todo=(*_steps(plan, plan.last), *more), phase="ended"))]
    return []


def _look(plan: Plan, cta: Cta, tile: int, words: tuple[Word, ...]) -> list[Cta]:
    """The states after the next step in a window."""
    if cta.base < 0:
        return [replace(cta, phase="end")]
    found: list[Cta] = []
    for k, lane in enumerate(cta.lanes):
        other = cta.base - k
        if lane.found is not None:
            continue
        if 0 <= other < plan.ctas and _narrow(plan) and other != tile:
            raise Race
        lane = lane.with_fence() if plan.acquires == "early" else lane
        least = max((w[2] for w in lane.known | lane.read if w[:2] == (other, "flag")), default=0)
        for status, released in words[other][least:] if 0 <= other < plan.ctas else [(OUTSIDE, frozenset[Write]())]:
            read = frozenset(w for w in released if w[:2] == (other, "flag"))
            one = replace(lane, seen=lane.seen | released, read=lane.read | read)
            one = replace(one, known=lane.known | released) if plan.load == "acquire.gpu" else one
            one = replace(one, found=None if plan.waits == "alone" and status == EMPTY else status)
            found.append(replace(cta, lanes=(*cta.lanes[:k], one, *cta.lanes[k + 1 :])))
    if found:
        return found
    if plan.waits == "vote" and any(lane.found == EMPTY for lane in cta.lanes):
        return [replace(cta, lanes=tuple(replace(lane, found=None) for lane in cta.lanes))]
    lanes = cta.lanes
    if plan.acquires == "fence":
        lanes = tuple(lane.with_fence() for lane in lanes)
    for k, lane in enumerate(lanes):
        _check_value(plan, tile, cta.base - k, lane)
    if any(lane.found == WHOLE for lane in lanes):
        return [replace(cta, phase="end", lanes=lanes)]
    return [replace(cta, base=cta.base - plan.lanes, lanes=tuple(replace(lane, found=None) for lane in lanes))]


def _check_value(plan: Plan, tile: int, other: int, lane: Lane) -> None:
    """Check that all writes of the value that a lane loads come before. Raises ``Race``."""
    if plan.form != "apart" or plan.reads == "none" or not 0 <= other < plan.ctas or other == tile:
        return
    part = lane.found == (PART if plan.reads == "right" else WHOLE) and plan.reads != "whole"
    wanted = {w for w in _writes(plan, other) if w[1] == ("part" if part else "whole")}
    if not wanted <= lane.known:
        raise Race


def is_wrong(found: str, right: str) -> bool:
    """Whether an answer says of a scan that it is right, or gets stuck, which is not so."""
    return right != "fine" if found == "proved" else found == WAITS_FOR_LATER and right == "fine"


def main() -> int:
    """Compare the answers about random plans."""
    return compare_judged(__doc__, partial(judged, generate, answer, judge), is_wrong)


if __name__ == "__main__":
    sys.exit(main())
