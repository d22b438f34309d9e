"""Random scans with look-back, as modules and as state machines:

    python -m tests.fuzz.looking_grids --programs 100 --seed 1

One answer is that of ``mcheck.checking.modules.pairs.looking_grid``. The other one shares nothing with it: it runs all
interleavings of the CTAs as state machines, of 1, 2, ... of them that have begun. No program that is ``proved`` may get
stuck there, or have a race.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from functools import partial
from itertools import count

from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.looking_grid import answer_looking
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.grid.looks.looking_clusters import WAITS_FOR_LATER
from tests.fuzz.judged_answers import compare_judged, judged
from tests.fuzz.pair_answers import follow_pair, say_why

PART, WHOLE = 1, 2
"""The status of a word that holds the sum of a tile, or of all tiles up to it; 0 at first."""


@dataclass(frozen=True)
class Plan:
    """What a CTA of tile ``t`` does: store ``first``, look back from ``t + start`` by ``step``, store ``last``."""

    ctas: int = 3
    first: int | None = PART
    """The status that it stores before it looks; of tile 0 ``WHOLE`` with ``knows_zero``."""
    last: int | None = WHOLE
    """The status that it stores at the end."""
    knows_zero: bool = True
    start: int = -1
    step: int = -1
    waits: str = "any"
    """What ends a wait: ``any`` status but 0, ``whole`` for that one alone, ``never``: it looks once."""
    stops: int | None = WHOLE
    """The status at which it stops to look."""
    reverse: bool = False
    """Whether tiles are in the reverse order of tickets."""
    store: str = "relaxed.gpu"
    load: str = "relaxed.gpu"
    shares: bool = False
    """Whether all CTAs store their results to one place."""
    early: bool = False
    """Whether it stores ``last`` before it looks."""
    decides: bool = False
    """Whether it stores its result only if it has stopped at a word."""
    tickets: bool = True
    """Whether CTAs draw their numbers; else those are their coordinates."""
    patient: int | None = None
    """A tile of which the CTA waits for ``WHOLE`` wherever others wait."""
    special: tuple[str, int] | None = None
    """What one tile does otherwise (``SPECIAL_TILES``), or all at some words (``SPECIAL_LOOKS``), and which."""

    def at_tile(self, name: str, tile: int) -> bool:
        """Whether a tile does something otherwise."""
        return self.special == (name, tile)

    def at_look(self, name: str, tile: int, look: int) -> bool:
        """Whether a tile does something otherwise at a word."""
        if self.special is None or self.special[0] != name:
            return False
        return look == self.special[1] if name in SPECIAL_WORDS else tile - look >= self.special[1]


SPECIAL_TILES = ("silent", "quiet", "again", "ahead", "weak")
"""A tile stores nothing at the end, or before it looks; it stores ``first`` again at last; it begins to look two tiles
later; its stores are weak.
"""
SPECIAL_WORDS = ("skips", "waits")
"""At a word all step twice as far, or wait for ``WHOLE``."""
SPECIAL_LOOKS = (*SPECIAL_WORDS, "patient", "stubborn", "hurries")
"""At words so far away all wait for ``WHOLE``, or do not stop, or do not wait."""


def generate(rng: random.Random) -> Plan:
    """A plan that differs from a right one in some places."""
    odd: dict[str, tuple[object, ...]] = {
        "first": (PART, PART, WHOLE, None), "last": (WHOLE, PART, None), "knows_zero": (True, False),
        "start": (-1, -1, -2, 0, 1), "step": (-1, -1, -2, 1), "waits": ("any", "whole", "never"),
        "stops": (WHOLE, PART, None), "reverse": (False, True), "store": ("relaxed.gpu", "relaxed.cta", "weak"),
        "load": ("relaxed.gpu", "relaxed.cta", "weak", "acquire.sys"), "shares": (False, True), "early": (False, True),
        "decides": (False, True), "patient": (None, 1, 2, 3),
    }  # fmt: skip
    chosen = rng.sample(sorted(odd), rng.randint(0, 3))
    given = {name: rng.choice(odd[name]) for name in chosen}
    special = (rng.choice((*SPECIAL_TILES, *SPECIAL_LOOKS)), rng.randint(0, 3)) if rng.random() < 0.5 else None
    return Plan(ctas=rng.randint(2, 5 if special else 4), special=special, **given)  # type: ignore[arg-type]


# --- the module -------------------------------------------------------------------------------------------------------


def write(plan: Plan) -> str:
    """The module."""
    store = "st.weak" if plan.store == "weak" else f"st.{plan.store}"
    load = "ld.weak" if plan.load == "weak" else f"ld.{plan.load}"
    numbers = count()

    special, which = plan.special or ("", 0)
    lanes = dict.fromkeys(SPECIAL_TILES, f"  setp.eq.u32 %s, %tile, {which};\n")
    lanes |= dict.fromkeys(SPECIAL_WORDS, f"  setp.eq.s32 %s, %look, {which};\n")
    far = f"  sub.s32 %away, %tile, %look;\n  setp.ge.s32 %s, %away, {which};\n"

    def only(name: str, *, text: str, other: str = "") -> str:
        """Code for where something is done otherwise, and for elsewhere, which does not depend on that."""
        if special != name:
            return other
        one, end = next(numbers), next(numbers)
        test = lanes.get(name, far)
        return f"{test}  @!%s bra L{one}_usual;\n{text}  bra L{end}_met;\nL{one}_usual:\n{other}L{end}_met:\n"

    def publish(status: int | None) -> str:
        if status is None:
            return ""
        text = f"  mov.b64 %word, {{%sum, {status}}};\n"
        if plan.knows_zero:
            text += f"  mov.b64 %other, {{%sum, {WHOLE}}};\n  selp.b64 %word, %other, %word, %zero;\n"
        usual = f"  {store}.global.u64 [%mine], %word;\n"
        return text + only("weak", text="  st.weak.global.u64 [%mine], %word;\n", other=usual)

    at = next(numbers)
    wait = {
        "any": f"  setp.eq.u32 %p, %status, 0;\n  @%p bra L{at}_look;\n",
        "whole": f"  setp.ne.u32 %p, %status, {WHOLE};\n  @%p bra L{at}_look;\n", "never": "",
    }[plan.waits]  # fmt: skip
    if plan.patient is not None and plan.waits != "never":
        wait += f"  setp.eq.u32 %p, %tile, {plan.patient};\n  setp.ne.and.u32 %p, %status, {WHOLE}, %p;\n"
        wait += f"  @%p bra L{at}_look;\n"
    whole = f"  setp.ne.u32 %p, %status, {WHOLE};\n  @%p bra L{at}_look;\n"
    if plan.waits != "never":
        wait = only("waits", text=whole, other=only("patient", text=whole, other=only("hurries", text="", other=wait)))
    stop = "" if plan.stops is None else f"  setp.eq.u32 %p, %status, {plan.stops};\n  @%p bra L{at}_stopped;\n"
    stop = only("stubborn", text="", other=stop)
    step = f"  add.s32 %look, %look, {plan.step};\n"
    step += only("skips", text=step)
    tile = f"  sub.u32 %tile, {plan.ctas - 1}, %tile;\n" if plan.reverse else ""
    number = "  atom.global.add.u32 %tile, [%ticket], 1;\n" if plan.tickets else "  mov.u32 %tile, %ctaid.x;\n"
    result = "" if plan.shares else "  mul.wide.u32 %off, %tile, 4;\n  add.u64 %out, %out, %off;\n"
    unless = f"  bra L{at}_end;\n" if plan.decides else ""
    last = plan.first if plan.last is None else plan.last
    return f""".version 8.0
.target sm_90
.address_size 64
.visible .entry scan(.param .u64 in, .param .u64 out, .param .u64 states, .param .u64 ticket)
{{
  .reg .pred %p, %zero, %s;
  .reg .b32 %tile, %sum, %value, %status, %look, %away;
  .reg .b64 %in, %out, %states, %ticket, %off, %mine, %word, %other, %there;
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  ld.param.u64 %states, [states];
  ld.param.u64 %ticket, [ticket];
{number}{tile}  mul.wide.u32 %off, %tile, 4;
  add.u64 %in, %in, %off;
  ld.global.u32 %sum, [%in];
  mul.wide.u32 %off, %tile, 8;
  add.u64 %mine, %states, %off;
  setp.eq.u32 %zero, %tile, 0;
{only("quiet", text="", other=publish(last if plan.early else plan.first))}  add.s32 %look, %tile, {plan.start};
{only("ahead", text="  add.s32 %look, %look, 2;" + chr(10))}L{at}_next:
  setp.lt.s32 %p, %look, 0;
  @%p bra L{at}_done;
  setp.ge.s32 %p, %look, {plan.ctas};
  @%p bra L{at}_done;
  mul.wide.s32 %off, %look, 8;
  add.s64 %there, %states, %off;
L{at}_look:
  {load}.global.u64 %other, [%there];
  mov.b64 {{%value, %status}}, %other;
{wait}  add.u32 %sum, %sum, %value;
{stop}{step}  bra L{at}_next;
L{at}_done:
{unless}L{at}_stopped:
{result}  st.global.u32 [%out], %sum;
L{at}_end:
{"" if plan.early else only("silent", text="", other=publish(plan.last))}{only("again", text=publish(plan.first))}  ret;
}}
"""


def answer(plan: Plan, seconds: float = 20.0) -> str:
    """``proved``, or why not."""
    module = parse_module(write(plan))
    zero = {"hex": "00" * 8 * plan.ctas}
    params = [
        {"buffer": 4 * plan.ctas}, {"buffer": 4 * plan.ctas}, {"buffer": 8 * plan.ctas, "init": zero},
        {"buffer": 4, "init": {"hex": "00000000"}},
    ]  # fmt: skip
    given = {"grid": [plan.ctas], "block": [1], "params": {str(k): one for k, one in enumerate(params)}}
    launch = build_launch(module, from_object(given))
    found, why = say_why(lambda: answer_looking(module, launch, partial(follow_pair, module), Limit(seconds)))
    return why if found is None else "proved" if found.verdict is Verdict.PROVED else "not proved"


# --- the state machines -----------------------------------------------------------------------------------------------

Cta = tuple[str, int, bool]
"""What a CTA does next, at which tile it looks, and whether it has stopped at one."""
State = tuple[tuple[Cta, ...], tuple[int, ...]]
"""The CTAs that have begun, by ticket, and the statuses of the words."""


def judge(plan: Plan) -> str:
    """``fine``, or what is wrong: by all interleavings of the CTAs that have begun."""
    for begun in range(1, plan.ctas + 1):
        first: State = tuple(("first", _start(plan, _tile(plan, k)), False) for k in range(begun)), (0,) * plan.ctas
        todo, nexts = [first], dict[State, list[State]]()
        while todo:
            state = todo.pop()
            if state in nexts:
                continue
            nexts[state] = [_move(plan, state, k) for k in range(begun) if state[0][k][0] != "ended"]
            todo += nexts[state]
            if _races(plan, state):
                return "race"
        good = {state for state, after in nexts.items() if not after}
        while more := {state for state, after in nexts.items() if state not in good and not good.isdisjoint(after)}:
            good |= more
        if len(good) < len(nexts):
            return "stuck"
    return "fine"


def _tile(plan: Plan, ticket: int) -> int:
    return plan.ctas - 1 - ticket if plan.reverse else ticket


def _start(plan: Plan, tile: int) -> int:
    return tile + plan.start + 2 * plan.at_tile("ahead", tile)


def _races(plan: Plan, state: State) -> bool:
    """Whether a CTA looks at a word that another one has stored to in a way that is a race, or two have stored their
    results to one place. Every race shows so in some order.
    """
    ctas, words = state
    narrow = "weak" in (plan.store, plan.load) or "cta" in plan.store + plan.load
    for ticket, (what, look, _) in enumerate(ctas):
        weak = narrow or (what == "look" and plan.at_tile("weak", look))
        if weak and what == "look" and look != _tile(plan, ticket) and words[look]:
            return True
    after = [what in ("last", "again", "ended") and (stopped or not plan.decides) for what, _, stopped in ctas]
    return plan.shares and sum(after) > 1


def _move(plan: Plan, state: State, ticket: int) -> State:
    """The state after the next step of a CTA."""
    ctas, words = state
    what, look, stopped = ctas[ticket]
    tile, stored = _tile(plan, ticket), list(words)

    def publish(status: int | None) -> None:
        if status is not None:
            stored[tile] = WHOLE if plan.knows_zero and tile == 0 else status

    if what == "first":
        if not plan.at_tile("quiet", tile):
            publish((plan.first if plan.last is None else plan.last) if plan.early else plan.first)
        what = "next"
    elif what == "next":
        what = "look" if 0 <= look < plan.ctas else "result"
    elif what == "look":
        status = words[look]
        waits = "whole" if tile == plan.patient and plan.waits == "any" else plan.waits
        if plan.waits != "never":
            if plan.at_look("waits", tile, look) or plan.at_look("patient", tile, look):
                waits = "whole"
            elif plan.at_look("hurries", tile, look):
                waits = "never"
        again = {"any": status == 0, "whole": status != WHOLE, "never": False}[waits]
        if not again:
            stops = not plan.at_look("stubborn", tile, look)
            stopped = stops and plan.stops is not None and status == plan.stops
            step = plan.step * (2 if plan.at_look("skips", tile, look) else 1)
            what, look = ("result", look) if stopped else ("next", look + step)
    elif what == "result":
        what = "last"
    elif what == "last":
        if not plan.early and not plan.at_tile("silent", tile):
            publish(plan.last)
        what = "again" if plan.at_tile("again", tile) else "ended"
    else:
        publish(plan.first)
        what = "ended"
    return (*ctas[:ticket], (what, look, stopped), *ctas[ticket + 1 :]), tuple(stored)


def is_wrong(found: str, right: str) -> bool:
    """Whether an answer says of a scan that it is right, or gets stuck, which is not so."""
    return right != "fine" if found == "proved" else found == WAITS_FOR_LATER and right == "fine"


def main() -> int:
    """Compare the answers about random plans."""
    return compare_judged(__doc__, partial(judged, generate, answer, judge), is_wrong)


if __name__ == "__main__":
    sys.exit(main())
