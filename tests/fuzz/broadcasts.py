"""Random grids whose CTAs wait by one thread that hands on what it reads, right and wrong, and what interleavings show.

    python -m tests.fuzz.broadcasts --programs 500 --seed 1

A program is one list of instructions for all threads, written as PTX for mcheck and run here thread by thread in random
orders, rounds and all. Clocks tell which accesses are ordered (PTX ISA 8.8 to 8.10); each order is an execution of the
model. What mcheck proves must show neither a race nor an order that does not end. Programs in which
mcheck takes no look for a wait are left out.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.simt.trace_extraction import PathChoices, PathRules, Runner
from tests.fuzz.differential import DEFAULT_MODEL, model_of

STEPS = 6_000
"""Steps after which an order counts as one that does not end."""
COMPARE = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
HEAD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 words, .param .u64 data)
{
.reg .pred %p<12>;
.reg .b32 %r<24>;
.reg .b64 %a<8>;
.shared .align 4 .b32 word;
.shared .align 4 .b32 spare;
ld.param.u64 %a0, [words];
ld.param.u64 %a1, [data];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mad.wide.u32 %a2, %r1, 4, %a1;
"""
ADDRESSES = {"lock": "%a0", "flag": "%a0+4", "data": "%a1", "more": "%a2+4", "word": "word", "spare": "spare"}
SHARED = ("word", "spare")
"""``more`` is a word for each number of a thread in its CTA."""


@dataclass(frozen=True)
class Step:
    """An instruction: what it does, with its operands, if its guard holds (``p3``, ``!p3``)."""

    what: str
    args: tuple[Any, ...] = ()
    guard: str = ""

    def text(self) -> str:
        """The instruction as PTX."""
        guard = f"@{'!' if self.guard[0] == '!' else ''}%{self.guard.lstrip('!')} " if self.guard else ""
        return guard + self._text()

    def _text(self) -> str:
        match self.what, self.args:
            case "label", (name,):
                return f"{name}:"
            case "bra", (name,):
                return f"bra {name};"
            case "bar", (number,):
                return f"bar.sync {number};"
            case "ret", ():
                return "ret;"
            case "mov", (r, v):
                return f"mov.u32 %{r}, {_operand(v)};"
            case "add", (r, a, v):
                return f"add.s32 %{r}, %{a}, {_operand(v)};"
            case "set", (p, op, a, v):
                return f"setp.{op}.s32 %{p}, %{a}, {_operand(v)};"
            case "sel", (r, p):
                return f"selp.b32 %{r}, 1, 0, %{p};"
            case "shfl", (r, a, lane):
                return f"shfl.sync.idx.b32 %{r}, %{a}, {lane}, 31, -1;"
            case "ld", (r, place, sem):
                return f"ld.{_space(place)}{sem}b32 %{r}, [{ADDRESSES[place]}];"
            case "st", (place, v, sem):
                return f"st.{_space(place)}{sem}b32 [{ADDRESSES[place]}], {_operand(v)};"
            case "fence", (scope,):
                return f"fence.acq_rel.{scope};"
            case "atom", (r, op, place, sem, *given):
                kind = "u32" if op == "add" else "b32"
                return f"atom.global.{sem}{op}.{kind} %{r}, [{ADDRESSES[place]}], {', '.join(map(_operand, given))};"
        raise ValueError(self)


def _operand(value: Any) -> str:
    return f"%{value}" if isinstance(value, str) else str(value)


def _space(place: str) -> str:
    return "shared." if place in SHARED else "global."


# --- interleavings ----------------------------------------------------------------------------------------------------

Clock = dict[int, int]


def _join(a: Clock, b: Clock) -> None:
    for k, v in b.items():
        if a.get(k, -1) < v:
            a[k] = v


@dataclass
class Thread:
    """A thread while it runs."""

    number: int
    cta: int
    tid: int
    at: int = 0
    registers: dict[str, int] = field(default_factory=dict)
    clock: Clock = field(default_factory=dict)
    released: dict[str, Clock] = field(default_factory=dict)
    """By scope, what the last fence has put before later writes."""
    seen: list[tuple[Clock, str, int]] = field(default_factory=list)
    """What relaxed loads have read since, which a fence acquires."""
    waits: tuple[Any, ...] | None = None
    ended: bool = False


@dataclass
class Place:
    """A word: its value, what whoever acquires it learns, and by thread the last access of each kind."""

    value: int = 0
    hands: list[tuple[Clock, str, int]] = field(default_factory=list)
    accesses: dict[tuple[int, bool, str], int] = field(default_factory=dict)


def interleave(steps: list[Step], ctas: int, threads: int, random: Random) -> set[str]:
    """What one random order shows: ``race``, ``hang``."""
    labels = {s.args[0]: k for k, s in enumerate(steps) if s.what == "label"}
    all_ = [Thread(c * threads + t, c, t, registers={"r1": t, "r2": c}) for c in range(ctas) for t in range(threads)]
    for one in all_:
        one.clock[one.number] = 1
    memory: dict[tuple[str, int], Place] = {}
    found: set[str] = set()
    weights = [random.choice((1, 1, 4, 20)) for _ in all_]
    for _ in range(STEPS):
        ready = [t for t in all_ if not t.ended and t.waits is None]
        if not ready:
            break
        one = random.choices(ready, [weights[t.number] for t in ready])[0]
        if random.random() < 0.02:
            weights[one.number] = random.choice((1, 1, 4, 20))
        for _ in range(random.choice((1, 1, 3, 12))):
            if one.ended or one.waits is not None:
                break
            _run(one, steps, labels, all_, memory, found)
    if not all(t.ended for t in all_):
        found.add("hang")
    return found


def _run(
    t: Thread, steps: list[Step], labels: dict[str, int], all_: list[Thread], memory: dict[tuple[str, int], Place],
    found: set[str],
) -> None:  # fmt: skip
    step, reg = steps[t.at], t.registers
    t.at += 1
    if step.guard and (reg.get(step.guard.lstrip("!"), 0) != 0) is (step.guard[0] == "!"):
        return
    args = step.args

    def value(v: Any) -> int:
        return reg.get(v, 0) if isinstance(v, str) else v

    match step.what:
        case "bra":
            t.at = labels[args[0]]
        case "ret":
            t.ended = True
            _meet(all_, t)
        case "mov":
            reg[args[0]] = value(args[1])
        case "add":
            reg[args[0]] = value(args[1]) + value(args[2])
        case "set":
            reg[args[0]] = int(COMPARE[args[1]](value(args[2]), value(args[3])))
        case "sel":
            reg[args[0]] = value(args[1])
        case "bar":
            t.waits = ("bar", args[0])
            _meet(all_, t)
        case "shfl":
            t.waits = ("shfl", t.at, *args)
            _meet(all_, t)
        case "fence":
            t.released[args[0]] = dict(t.clock)
            for clock, scope, cta in t.seen:
                if _reach(scope, args[0], cta, t.cta):
                    _join(t.clock, clock)
            t.clock[t.number] += 1
        case "ld" | "st" | "atom":
            _access(t, step, memory, found, value)


def _reach(a: str, b: str, x: int, y: int) -> bool:
    """Whether two scopes include the CTAs of each other."""
    return x == y or (a != "cta" and b != "cta")


def _access(t: Thread, step: Step, memory: dict[tuple[str, int], Place], found: set[str], value: Any) -> None:
    args = step.args
    name = {"ld": 1, "st": 0, "atom": 2}[step.what]
    where, sem = args[name], args[3 if step.what == "atom" else 2]
    order, scope = ([*sem.split("."), "", ""][:2]) if sem else ("", "")
    whose = t.cta if where in SHARED else t.tid if where == "more" else 0
    place = memory.setdefault((where, whose), Place())
    old = place.value
    writes = step.what == "st" or (step.what == "atom" and not (args[1] == "cas" and old != value(args[4])))
    reads = step.what != "st"
    for (other, wrote, theirs), when in place.accesses.items():
        strong = bool(order) and bool(theirs) and _reach(scope, theirs.split(":")[0], t.cta, int(theirs.split(":")[1]))
        if other != t.number and (writes or wrote) and not strong and t.clock.get(other, 0) < when:
            found.add("race")
    if reads and order:
        for clock, its, cta in place.hands:
            if order in ("acquire", "acq_rel") and _reach(scope, its, cta, t.cta):
                _join(t.clock, clock)
            t.seen.append((clock, scope if _reach(scope, its, cta, t.cta) else "cta", cta))
    kind = f"{scope}:{t.cta}" if order else ""
    place.accesses[t.number, writes, kind] = t.clock[t.number]
    if writes:
        given = value(args[1]) if step.what == "st" else value(args[-1])
        place.value = old + given if step.what == "atom" and args[1] == "add" else given
        if step.what == "st":
            place.hands = []
        if order in ("release", "acq_rel"):
            place.hands = [*place.hands, (dict(t.clock), scope, t.cta)]
            t.clock[t.number] += 1
        elif order:
            for fence, clock in t.released.items():
                place.hands = [*place.hands, (dict(clock), scope if _reach(fence, scope, 0, 1) else "cta", t.cta)]
    if reads:
        t.registers[args[0]] = old


def _meet(all_: list[Thread], t: Thread) -> None:
    """Let the threads of a CTA go on if all of them that have not ended have come."""
    mine = [x for x in all_ if x.cta == t.cta and not x.ended]
    if not mine or any(x.waits != mine[0].waits for x in mine) or mine[0].waits is None:
        return
    what, *rest = mine[0].waits
    if what == "bar":
        whole: Clock = {}
        for x in mine:
            _join(whole, x.clock)
        for x in mine:
            x.clock = dict(whole)
    else:
        _, target, source, lane = rest
        given = next((x.registers.get(source, 0) for x in mine if x.tid == lane), None)
        for x in mine:
            x.registers[target] = given if given is not None else x.registers.get(source, 0)
    for x in mine:
        x.clock[x.number] = x.clock.get(x.number, 0) + 1
        x.waits = None


# --- programs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A program, for so many CTAs of so many threads, and what was changed in it."""

    steps: tuple[Step, ...]
    ctas: int
    threads: int
    changes: tuple[str, ...]

    def text(self) -> str:
        """The module."""
        return HEAD + "\n".join(s.text() for s in self.steps) + "\n}\n"


CHANGES = (
    *("no meeting", "no barrier behind", "scope cta", "relaxed look", "relaxed release", "no barrier before release"),
    *("other writes in round", "other writes before", "other writes behind", "early thread", "early thread signals"),
    *("reader leaves", "reader tests otherwise", "leader counts", "effect in round", "two words", "part of the CTA"),
    *("reads twice", "stale read", "value is used", "reader counts", "other barrier", "loads before meeting"),
    *("poll twice", "never released", "spare written", "second round changes"),
)


def draw(random: Random) -> Made:
    """A random program, mostly with a change or two."""
    chosen = random.sample(CHANGES, random.choices((0, 1, 2, 3), (2, 5, 2, 1))[0])
    return _Writer(random, set(chosen)).made(tuple(chosen))


class _Writer:
    def __init__(self, random: Random, changes: set[str]) -> None:
        self.random, self.changes = random, changes
        self.shuffles = random.random() < 0.15
        self.threads = 32 if self.shuffles else random.choice((2, 2, 3))
        self.leader = random.choice((0, 0, 1))
        self.kind = random.choice(("cas", "cas", "exch", "turn", "count", "own"))
        """``own``: another thread of the only CTA ends the wait."""
        self.ctas = 1 if self.kind == "own" else 2
        self.told = random.random() < 0.25
        """Whether the result of a comparison is handed on, not the value."""
        self.by_branch = random.random() < 0.3
        self.barrier_at_head = random.random() < 0.7
        self.scope = "cta" if self.has("scope cta") else "gpu"

    def has(self, change: str) -> bool:
        return change in self.changes

    def made(self, changes: tuple[str, ...]) -> Made:
        steps = list(self._program())
        return Made(tuple(steps), self.ctas, self.threads, changes)

    def _program(self) -> Iterator[Step]:
        other = 1 - self.leader
        yield Step("set", ("p1", "eq", "r1", self.leader))
        yield Step("set", ("p2", "eq", "r1", other))
        yield Step("mov", ("r10", 0))
        yield Step("mov", ("r5", 0))
        if self.has("early thread") or self.has("early thread signals"):
            yield Step("bra", ("MAIN",), "!p2")
            yield Step("st", ("word", 7, ""))
            if self.has("early thread signals"):
                yield Step("atom", ("r9", "exch", "flag", f"release.{self.scope}.", 1))
            yield Step("ret")
            yield Step("label", ("MAIN",))
        if self.kind == "count":
            yield Step("add", ("r11", "r1", "r2"))  # 0 for one thread of the grid
            yield Step("set", ("p4", "eq", "r11", 0))
            yield Step("st", ("data", 3, ""), "p4")
            yield Step("bar", (0,))
            if not self.has("never released"):
                sem = "relaxed" if self.has("relaxed release") else "release"
                yield Step("atom", ("r9", "add", "lock", f"{sem}.{self.scope}.", 1), "p1")
        if self.has("other writes before"):
            yield Step("st", ("word", 5, ""), "p2")
            if self.random.random() < 0.5:
                yield Step("bar", (0,))
        if self.kind == "own":
            where = self.random.choice(("word", "word", "spare"))
            yield self.random.choice((Step("st", (where, 7, ""), "p2"), Step("ld", ("r8", where, ""), "p2")))
            if self.random.random() < 0.3:
                yield Step("bar", (0,))
            yield Step("st", ("data", 3, ""), "p2")
            sem = "relaxed" if self.has("relaxed release") else "release"
            yield Step("st", ("lock", 1, f"{sem}.{self.scope}."), "p2")
        for number in range(self.random.choice((1, 1, 1, 2))):
            yield from self._wait(number)
            yield from self._critical(number)
            if self.kind in ("turn", "count", "own"):
                break
        yield Step("ret")

    def _look(self) -> Iterator[Step]:
        guard = "" if self.by_branch else "p1"
        sem = ("relaxed" if self.has("relaxed look") else "acquire") + f".{self.scope}."
        match self.kind:
            case "cas":
                yield Step("atom", ("r5", "cas", "lock", sem, 0, 1), guard)
            case "exch":
                yield Step("atom", ("r5", "exch", "lock", sem, 1), guard)
            case _:
                yield Step("ld", ("r5", "lock", sem), guard)

    def _test(self, p: str, register: str) -> Step:
        """The comparison that holds if the look has failed."""
        match self.kind:
            case "cas" | "exch":
                return Step("set", (p, *self.random.choice((("ne", register, 0), ("eq", register, 1)))))
            case "turn":
                return Step("set", (p, "ne", register, "r2"))
            case "own":
                return Step("set", (p, "ne", register, 1))
            case _:
                return Step("set", (p, *self.random.choice((("lt", register, self.ctas), ("ne", register, self.ctas)))))

    def _wait(self, n: int) -> Iterator[Step]:
        has, barrier = self.has, 1 if self.random.random() < 0.2 else 0
        yield Step("label", (f"AGAIN{n}",))
        behind = not has("no barrier behind")
        if self.barrier_at_head and behind and not self.shuffles:
            yield Step("bar", (barrier,))
        if has("effect in round"):
            yield Step("st", ("more", 1, ""), "p1")
        if has("other writes in round") and not self.shuffles:
            yield Step("st", ("word", 3, ""), "p2")
        if has("leader counts"):
            yield Step("add", ("r10", "r10", 1), "p1")
        if has("reader counts"):
            yield Step("add", ("r10", "r10", 1), "p2")
        register = "r5"
        if self.by_branch:
            yield Step("bra", (f"MEET{n}",), "!p1")
        yield from self._look()
        if has("poll twice"):
            yield from self._look()
        if self.told:
            yield self._test("p5", "r5")
            yield Step("sel", ("r6", "p5"))
            register = "r6"
        if not self.shuffles:
            yield Step("st", ("word", register, ""), "" if self.by_branch else "p1")
            if has("two words"):
                yield Step("st", ("spare", register, ""), "" if self.by_branch else "p1")
        if self.by_branch:
            yield Step("label", (f"MEET{n}",))
        if self.shuffles:
            yield Step("shfl", ("r7", register, self.leader))
            if self.random.random() < 0.5:
                yield Step("bar", (0,))
        else:
            if has("loads before meeting"):
                yield Step("ld", ("r8", "word", ""), "p2")
            if not has("no meeting"):
                yield Step("bar", (barrier if has("other barrier") else 0,), "!p2" if has("part of the CTA") else "")
            yield Step("ld", ("r7", "word", ""))
            if has("reads twice"):
                yield Step("ld", ("r8", "word", ""))
            if has("two words"):
                yield Step("ld", ("r7", "spare", ""), "p2")
        if self.told:
            yield Step("set", ("p6", "ne", "r7", 0))
        else:
            yield self._test("p6", "r7")
        if has("reader tests otherwise"):
            yield Step("set", ("p6", *self.random.choice((("ne", "r7", 3), ("gt", "r7", 0), ("eq", "r7", 0)))), "p2")
        if has("reader leaves"):
            yield Step("bra", (f"OUT{n}",), "p2")
        if not self.barrier_at_head and behind and not self.shuffles:
            yield Step("bar", (barrier,))
        if has("spare written"):
            yield Step("st", ("spare", 1, ""), "p2")
        if has("second round changes"):
            yield Step("mov", ("r10", 1))
        yield Step("bra", (f"AGAIN{n}",), "p6")
        yield Step("label", (f"OUT{n}",))

    def _critical(self, n: int) -> Iterator[Step]:
        has = self.has
        if has("other writes behind"):
            yield Step("st", ("word", 9, ""), "p2")
        if has("stale read"):
            yield Step("ld", ("r8", "word", ""))
            yield Step("set", ("p7", "eq", "r8", self.random.choice((0, 1, 2))))
            yield Step("st", ("more", 1, ""), "p7")
        if has("value is used"):
            yield Step("set", ("p7", "eq", "r7", 1))
            yield Step("st", ("more", 1, ""), "p7")
        if has("leader counts") or has("reader counts") or has("second round changes"):
            yield Step("set", ("p8", "ge", "r10", self.random.choice((1, 2))))
            yield Step("st", ("more", 1, ""), "p8")
        who = self.random.choice(("p1", "p2"))
        yield Step("ld", ("r4", "data", ""), who)
        if self.kind in ("count", "own"):
            return
        yield Step("add", ("r4", "r4", 1))
        yield Step("st", ("data", "r4", ""), who)
        if not has("no barrier before release"):
            yield Step("bar", (0,))
        if has("never released"):
            return
        sem = ("relaxed" if has("relaxed release") else "release") + f".{self.scope}."
        if self.random.random() < 0.1:
            yield Step("fence", (self.scope,), "p1")
        if self.kind == "turn":
            yield Step("add", ("r4", "r2", 1))
            yield Step("st", ("lock", "r4", sem), "p1")
        elif self.random.random() < 0.5:
            yield Step("st", ("lock", 0, sem), "p1")
        else:
            yield Step("atom", ("r9", "exch", "lock", sem, 0), "p1")


def launch_of(made: Made) -> tuple[Module, Launch]:
    """The module of a program, and its launch."""
    read = parse_module(made.text())
    zeros = {"buffer": 256, "init": {"hex": "00" * 256}}
    given = {
        "grid": [made.ctas], "block": [made.threads], "cooperative": True, "params": {"words": zeros, "data": zeros},
    }  # fmt: skip
    return read, build_launch(read, from_object(given))


def ask(made: Made, timeout: float = 60) -> Answer:
    """The answer of mcheck about all CTAs of a program."""
    question = Question(about=Completeness.FINDINGS, timeout=timeout)
    return answer_launch(*launch_of(made), model_of(DEFAULT_MODEL), question)


def leaves_out_rounds(made: Made) -> bool:
    """Whether mcheck follows a look of a program as a wait."""
    runner = Runner(*launch_of(made), Limit(None), PathRules(barrier_waits=True, two_valued_locks=True))
    executed = runner.run(PathChoices(), max_steps=2_000)
    waits = any(isinstance(op, ops.Await) for op in executed.recorded.distinct_operations())
    return waits and runner.next_rules(executed, set()).barrier_waits


def shown(made: Made, seed: int, orders: int) -> set[str]:
    """What random orders of a program show."""
    random, found = Random(seed), set[str]()
    for _ in range(orders if made.threads < 8 else orders // 8):
        found |= interleave(list(made.steps), made.ctas, made.threads, random)
        if len(found) == 2:
            break
    return found


def main(argv: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--orders", type=int, default=120)
    parser.add_argument("--timeout", type=float, default=20)
    args = parser.parse_args(argv)
    told, wrong, number = Counter[str](), 0, 0
    while told.total() < args.programs:
        number += 1
        made = draw(Random(args.seed * 100_000 + number))
        if not leaves_out_rounds(made):
            continue
        seen = shown(made, number, args.orders)
        if told.total() % 50 == 0:
            print(f"{told.total()} of {number}", flush=True)
        found = ask(made, args.timeout)
        key = f"{found.verdict} {'+'.join(sorted(seen)) or 'nothing'}"
        told[key] += 1
        if found.verdict == "proved" and seen:
            wrong += 1
            print(f"WRONG {args.seed} {number} {made.changes} {seen}", flush=True)
        elif found.verdict == "finding" and not seen:
            print(f"more {args.seed} {number} {made.changes} {[f.code for f in found.findings]}", flush=True)
    for key, count in sorted(told.items()):
        print(f"{count:5} {key}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
