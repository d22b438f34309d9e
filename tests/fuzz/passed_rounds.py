"""Random kernels that pass values through shared memory in a loop of any number of rounds, and two answers about each.

    python -m tests.fuzz.passed_rounds --programs 200 --seed 1

One answer is the proof for every number of rounds (``mcheck.simt.parametric``). The other one is by executing the plan
with many numbers here, thread by thread from barrier to barrier, and shares nothing with it: accesses of a word by two
threads between the same barriers race. Warps may run loops of their own, one ahead of the other by some barriers.

Of lanes that store to one word by one instruction mcheck takes one for all (``mcheck.simt.instructions.joint_stores``).
So there are two readings of a race: with these stores, and without them. What is proved must have no race in the
second one, and a finding must be a race in the first one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from mcheck import ptx
from mcheck.base.verdicts import Verdict

WARP = 32
EARLY, LATE = 50, 130
"""Rounds in which something may happen for the first time: within and behind those that the proof runs."""
NUMBERS = (*range(14), 20, EARLY - 1, EARLY, EARLY + 1, EARLY + 2, LATE - 1, *range(LATE, LATE + 5), 171)
"""The numbers of rounds that are executed here."""
WORDS, OWN = 6, 8
"""Words that threads share; the first one of those that each thread has for itself."""
REGISTERS = 3
HEAD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u32 rounds)
.reqntid {threads}, 1, 1
{{
.reg .pred %p, %q, %w;
.reg .b32 %r<12>;
.reg .b32 %v<4>;
.shared .align 16 .b8 sh[1024];
ld.param.u32 %r0, [rounds];
mov.u32 %r1, %tid.x;
shr.u32 %r8, %r1, 5;
mov.u32 %r9, sh;
mov.u32 %r2, 0;
"""
COMPARE = {"==": "eq", "!=": "ne", "<": "lt", ">=": "ge"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of a variable with a number; of the bits of ``mask`` alone, if given."""

    name: str
    holds: str
    number: int
    mask: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a plan: ``what`` is "store", "load", "set" or "barrier".

    ``word`` is a number, or the first of two words by turns of a variable (``turn``). ``value`` is a number or a
    variable, times ``times`` and plus ``more``, and of that the bits of ``mask``; ``to`` the register that is loaded or
    set. It is done by all threads of the code, by the thread ``who`` ("first": the first one of each warp), and where
    ``test`` and ``also`` hold.
    """

    what: str
    word: int = 0
    turn: str = ""
    value: int | str = 0
    times: int = 1
    more: int = 0
    mask: int = 0
    to: int = 0
    who: int | str | None = None
    test: Comparison | None = None
    also: Comparison | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """What some warps do: before the loop, in each round, and behind it."""

    before: tuple[Line, ...]
    body: tuple[Line, ...]
    behind: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A kernel: the first contents of its words, and the code of each warp, or of all if it is one."""

    threads: int
    first: tuple[int | None, ...]
    codes: tuple[Code, ...]


# --- as a module ------------------------------------------------------------------------------------------------------


def write(plan: Plan) -> str:
    """The module."""
    labels = iter(range(1000))
    lines = [HEAD.format(threads=plan.threads)]
    lines += [f"mov.u32 %v{k}, 0;" for k in range(REGISTERS)]
    for k, value in enumerate(plan.first):
        if value is not None:
            lines += _written(Line("store", k, value=value, who=0), labels)
    lines.append("bar.sync 0;")
    for k in range(1, len(plan.codes)):
        lines += [f"setp.eq.u32 %p, %r8, {k};", f"@%p bra W{k};"]
    for k, code in enumerate(plan.codes):
        lines.append(f"W{k}:")
        for line in code.before:
            lines += _written(line, labels)
        lines += [f"L{k}:", "setp.ge.u32 %p, %r2, %r0;", f"@%p bra E{k};"]
        for line in code.body:
            lines += _written(line, labels)
        lines += ["add.u32 %r2, %r2, 1;", f"bra L{k};", f"E{k}:"]
        for line in code.behind:
            lines += _written(line, labels)
        lines.append("ret;")
    return "\n".join((*lines, "}", ""))


def _register(name: str) -> str:
    return {"round": "%r2", "thread": "%r1", "warp": "%r8", "rounds": "%r0"}.get(name) or f"%{name}"


def _variable(name: str, to: str) -> list[str]:
    if name == "left":
        return [f"sub.u32 {to}, %r0, %r2;"]
    return [f"mov.u32 {to}, {_register(name)};"]


def _written(line: Line, labels: Iterator[int]) -> list[str]:
    skip = f"N{next(labels)}"
    out = []
    if isinstance(line.who, int):
        out += [f"setp.ne.u32 %p, %r1, {line.who};", f"@%p bra {skip};"]
    elif line.who == "first":
        out += [f"and.b32 %r3, %r1, {WARP - 1};", "setp.ne.u32 %p, %r3, 0;", f"@%p bra {skip};"]
    tests = [test for test in (line.test, line.also) if test is not None]
    for to, test in zip(("%p", "%q"), tests, strict=False):
        out += _variable(test.name, "%r3")
        if test.mask:
            out.append(f"and.b32 %r3, %r3, {test.mask};")
        out.append(f"setp.{COMPARE[test.holds]}.u32 {to}, %r3, {test.number};")
    if len(tests) > 1:
        out.append("and.pred %p, %p, %q;")
    if tests:
        out.append(f"@!%p bra {skip};")
    if line.what == "barrier":
        out.append("bar.sync 0;")
    if line.what in ("store", "set"):
        out += [f"mov.u32 %r4, {line.value};"] if isinstance(line.value, int) else _variable(line.value, "%r4")
        if line.times != 1:
            out.append(f"mul.lo.u32 %r4, %r4, {line.times};")
        if line.more:
            out.append(f"add.u32 %r4, %r4, {line.more};")
        if line.mask:
            out.append(f"and.b32 %r4, %r4, {line.mask};")
    if line.what == "set":
        out.append(f"mov.u32 %v{line.to}, %r4;")
    if line.what in ("store", "load"):
        out.append(f"add.u32 %r5, %r9, {4 * line.word};")
        if line.word >= OWN:
            out.append("mad.lo.u32 %r5, %r1, 4, %r5;")
        if line.turn:
            out += [*_variable(line.turn, "%r6"), "and.b32 %r6, %r6, 1;", "mad.lo.u32 %r5, %r6, 4, %r5;"]
        out.append("st.shared.u32 [%r5], %r4;" if line.what == "store" else f"ld.shared.u32 %v{line.to}, [%r5];")
    return [*out, f"{skip}:"]


# --- the judge --------------------------------------------------------------------------------------------------------

LOW = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Access:
    """An access of a word by a thread; of a store its line and its value."""

    thread: int
    line: int
    writes: bool
    value: int


class _Unknown(Exception):
    """A value that nobody has stored decides something."""


def _thread(plan: Plan, me: int, rounds: int, memory: dict[int, int], done: dict[int, list[Access]]) -> Iterator[None]:
    """A thread from barrier to barrier: what it accesses is added to ``done``, by word."""
    state: dict[str, int | None] = {
        "thread": me, "warp": me // WARP, "rounds": rounds, "round": 0, "left": rounds,
        **{f"v{k}": 0 for k in range(REGISTERS)},
    }  # fmt: skip

    def know(value: int | None) -> int:
        if value is None:
            raise _Unknown
        return value

    def run(line: Line) -> Iterator[None]:
        if (isinstance(line.who, int) and me != line.who) or (line.who == "first" and me % WARP):
            return
        for test in (line.test, line.also):
            if test is None:
                continue
            x, y = know(state[test.name]), test.number
            x = x & test.mask if test.mask else x
            if not {"==": x == y, "!=": x != y, "<": x < y, ">=": x >= y}[test.holds]:
                return
        if line.what == "barrier":
            yield
            return
        value: int | None = None
        if line.what in ("store", "set"):
            value = line.value if isinstance(line.value, int) else state[line.value]
            if value is not None:
                value = (value * line.times + line.more) & LOW & (line.mask or LOW)
        if line.what == "set":
            state[f"v{line.to}"] = value
            return
        word = line.word + (me if line.word >= OWN else 0) + (know(state[line.turn]) & 1 if line.turn else 0)
        done.setdefault(word, []).append(Access(me, id(line), line.what == "store", value if value is not None else -1))
        if line.what == "load":
            state[f"v{line.to}"] = memory.get(word)
        elif value is None:
            memory.pop(word, None)
        else:
            memory[word] = value

    for k, first in enumerate(plan.first):
        if first is not None:
            yield from run(Line("store", k, value=first, who=0))
    yield
    code = plan.codes[min(me // WARP, len(plan.codes) - 1)]
    for line in code.before:
        yield from run(line)
    for k in range(rounds):
        state["round"], state["left"] = k, rounds - k
        for line in code.body:
            yield from run(line)
    state["round"], state["left"] = rounds, 0
    for line in code.behind:
        yield from run(line)


def judge(plan: Plan, rounds: int) -> set[str]:
    """What happens first: "race"; "joint", a race only if each lane stores for itself; "stuck", with threads at a
    barrier to which others do not come; "open", a value that is not known decides; or nothing.
    """
    memory: dict[int, int] = {}
    threads = {}
    done: dict[int, list[Access]] = {}
    for me in range(plan.threads):
        threads[me] = _thread(plan, me, rounds, memory, done)
    said: set[str] = set()
    while threads:
        done.clear()
        ended = []
        for me, thread in threads.items():
            try:
                next(thread)
            except StopIteration:
                ended.append(me)
            except _Unknown:
                return said | {"open"}
        for accesses in done.values():
            said |= _races(accesses)
        if said & {"race", "open"}:
            return said
        for me in ended:
            del threads[me]
        if ended and threads:
            return said | {"stuck"}
    return said


def _races(accesses: list[Access]) -> set[str]:
    """The races at a word between two barriers."""
    stores = [a for a in accesses if a.writes]
    if not stores or len({a.thread for a in accesses}) == 1:
        return set()
    together: dict[tuple[int, int], list[Access]] = {}
    for a in stores:
        together.setdefault((a.line, a.value), []).append(a)
    for group in together.values():
        members = {a.thread for a in group}
        for b in accesses:
            same_warp = b.writes and b.line == group[0].line and {t // WARP for t in members} == {b.thread // WARP}
            theirs = {a.thread for a in together[b.line, b.value]} if b.writes else {b.thread}
            if not same_warp and members.isdisjoint(theirs):
                return {"race"}
    values = {a.value for a in stores}
    return {"joint", "open"} if len(values) > 1 else {"joint"}


# --- plans ------------------------------------------------------------------------------------------------------------

NUMBERS_COMPARED = (0, 1, 2, 3, 5, EARLY, EARLY, LATE, LATE, LATE)


def _value(random: Random) -> tuple[int | str, int, int, int]:
    """A value that is stored: what, times, plus, and which bits."""
    what = random.choice((
        random.randint(0, 3), random.randint(0, 3), "v0", "v0", "v1", "v1", "v2", "round", "left", "rounds", "warp",
    ))  # fmt: skip
    if isinstance(what, int):
        return what, 1, 0, 0
    times = random.choice((1, 1, 1, 1, 0, 2))
    return what, times, random.choice((0, 0, 1, 1, 3, LOW)), random.choice((0, 0, 0, 1, 3))


def _test(random: Random) -> Comparison:
    name = random.choice(("v0", "v0", "v0", "v1", "v1", "v2", "round", "left", "warp"))
    holds = random.choice(("==", "!=", "<", ">=", "=="))
    if name == "warp":
        return Comparison(name, holds, random.randint(0, 1))
    mask = random.choice((0, 0, 0, 1, 3))
    return Comparison(name, holds, random.randint(0, 2) if mask else random.choice(NUMBERS_COMPARED), mask)


def _place(random: Random) -> tuple[int, str]:
    if random.random() < 0.2:
        return random.choice((2, 4)), random.choice(("round", "round", "v0", "v1", "left"))
    return random.choice((0, 0, 1, 1, 2, 3, OWN, OWN + 40)), ""


def _store(random: Random, who: int | str | None) -> Line:
    word, turn = _place(random)
    value, times, more, mask = _value(random)
    test = _test(random) if random.random() < 0.35 else None
    return Line("store", word, turn, value, times, more, mask, who=who, test=test)


def _load(random: Random) -> Line:
    word, turn = _place(random)
    test = _test(random) if random.random() < 0.15 else None
    return Line("load", word, turn, to=random.randrange(REGISTERS), test=test)


def _set(random: Random) -> Line:
    to = random.randrange(REGISTERS)
    test = _test(random) if random.random() < 0.4 else None
    if random.random() < 0.5:
        return Line("set", value=f"v{to}", more=1, to=to, test=test)
    value, times, more, mask = _value(random)
    return Line("set", value=value, times=times, more=more, mask=mask, to=to, test=test)


def _phase(random: Random, warp: int | None) -> list[Line]:
    """Lines between two barriers: mostly one thread stores, or all load."""
    mine = random.choice((0, 0, 1, WARP)) if warp is None else warp * WARP
    if random.random() < 0.5:
        some = [_store(random, mine) for _ in range(random.choice((1, 1, 2)))]
    else:
        some = [_load(random) for _ in range(random.choice((1, 1, 2)))]
    if random.random() < 0.4:
        some.insert(random.randrange(len(some) + 1), _set(random))
    if random.random() < 0.06:
        some.append(_store(random, random.choice((None, "first", 0, 1, WARP))))
    if random.random() < 0.1:
        some.append(_load(random))
    return some


def _code(random: Random, warp: int | None, phases: int, ahead: int, behind: int) -> Code:
    barrier = Line("barrier")
    parts = []
    for count in (ahead, phases, behind):
        lines = []
        for _ in range(count):
            lines += [*_phase(random, warp), barrier]
        parts.append(lines)
    before, body, after = parts
    if random.random() < 0.3:
        after += _phase(random, warp)
    if random.random() < 0.3:
        body += _phase(random, warp)
    return Code(tuple(before), tuple(body), tuple(after))


def _error(random: Random, warp: int | None) -> list[Line]:
    """A race of two threads in a round in which something holds."""
    test, word = _test(random), 7
    also = Comparison("round", ">=", LATE) if random.random() < 0.5 else None
    one, other = (0, WARP) if warp is None else (warp * WARP, warp * WARP + 1)
    return [
        Line("store", word, value=1, who=one, test=test, also=also),
        Line("load", word, to=2, who=other, test=test, also=also),
    ]


def _lagging(random: Random) -> Plan:
    """Two warps, one far behind the other: what the first one stores depends on the rounds that are left, and the other
    one loads it before its own; or what the other one stores before its rounds the first one loads behind its own.
    """
    barrier, lag, left = Line("barrier"), random.randint(1, 9), random.randint(1, 5)
    pair = (barrier, barrier)
    values = random.sample((1, 2, 3), 2)
    also = Comparison("round", ">=", LATE) if random.random() < 0.7 else None
    test = Comparison("v0", random.choice(("==", "!=")), random.choice(values))
    stores = tuple(
        Line("store", 0, value=value, who=0, test=Comparison("left", holds, left))
        for holds, value in zip((">=", "<"), values, strict=True)
    )
    racing = Line("store", 7, value=2, who=WARP, test=test, also=also)
    if random.random() < 0.6:
        some = (barrier, Line("load", 0, to=0), barrier)
        one = Code((), (*stores, Line("store", 7, value=1, who=0), *pair), pair * lag)
        other = Code((*(pair * (lag - 1)), *some), (racing, *pair), ())
    else:
        first = random.randrange(lag)
        told = Line("store", 0, value=values[0], who=WARP)
        racing = replace(racing, who=0, also=also and Comparison("rounds", ">=", LATE))
        one = Code((), pair, (barrier, Line("load", 0, to=0), barrier, racing, *pair, *(pair * (lag - 1))))
        before = (*(pair * first), told, *(pair * (lag - first)), *pair)
        other = Code(before, (Line("store", 7, value=1, who=WARP), *pair), ())
    return Plan(WARP + 2, (random.choice(values), *([0] * (WORDS - 1))), (one, other))


def generate(random: Random) -> Plan:
    """A plan: its lines are mostly apart by barriers, and what races hangs on a value."""
    if random.random() < 0.15:
        return _lagging(random)
    first = tuple(random.choice((0, 0, 0, 1, 2, None)) for _ in range(WORDS))
    threads, phases = WARP + 2, random.choice((1, 2, 2, 3))
    if random.random() < 0.6:
        codes: tuple[Code, ...] = (_code(random, None, phases, random.choice((0, 0, 1)), random.choice((0, 0, 1))),)
    else:
        lag, more = random.choice((0, 1, 1, 2, 3, 8, 8)), random.choice((0, 0, 1))
        codes = (_code(random, 0, phases, more, lag), _code(random, 1, phases, lag, more))
        if random.random() < 0.5:
            codes = codes[::-1]
    if random.random() < 0.6:
        k = random.randrange(len(codes))
        code = codes[k]
        lines = _error(random, None if len(codes) == 1 else k)
        at = random.randrange(len(code.body) + 1)
        code = replace(code, body=(*code.body[:at], *lines, *code.body[at:]))
        codes = (*codes[:k], code, *codes[k + 1 :])
    if random.random() < 0.25:
        k = random.randrange(len(codes))
        body = [line for line in codes[k].body if line.what != "barrier" or random.random() < 0.6]
        if len(codes) == 1 and body:
            codes = (replace(codes[0], body=tuple(body)),)
    return Plan(threads, first, codes)


# --- the comparison ---------------------------------------------------------------------------------------------------


def judge_all(plan: Plan) -> dict[int, set[str]]:
    """What the numbers of rounds show."""
    return {rounds: judge(plan, rounds) for rounds in NUMBERS}


def compare(plan: Plan) -> tuple[str, str, str]:
    """What mcheck answers, what is wrong with it ("missed", "invented", or nothing), and the judge's word."""
    found = ptx.check(write(plan), {"grid": [1], "block": [plan.threads], "params": {"rounds": "any"}})
    seen = judge_all(plan)
    races = [n for n, said in seen.items() if "race" in said and "open" not in said]
    any_races = [n for n, said in seen.items() if said & {"race", "joint", "open", "stuck"}]
    wrong = ""
    if found.verdict is Verdict.PROVED and races:
        wrong = "missed"
    if found.verdict is Verdict.FINDING and not any_races:
        wrong = "invented"
    said = "race" if races else "unclear" if any_races else "right"
    return f"{found.verdict.value}", wrong, said


def main() -> int:
    parser = argparse.ArgumentParser(description="compares answers about random kernels with any number of rounds")
    parser.add_argument("--programs", type=int, default=200, help="how many programs (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first program (%(default)s)")
    parser.add_argument("--verbose", action="store_true", help="print each answer")
    chosen = parser.parse_args()
    tally: Counter[str] = Counter()
    for seed in range(chosen.seed, chosen.seed + chosen.programs):
        plan = generate(Random(seed))
        answer, wrong, said = compare(plan)
        tally[f"{said}: {answer} {wrong}".strip()] += 1
        if chosen.verbose:
            print(f"seed {seed}: {said}: {answer}", flush=True)
        if wrong:
            print(f"seed {seed}: {wrong}: {plan}", flush=True)
    for what, number in tally.most_common():
        print(f"{number:5} {what}")
    return int(any("missed" in what or "invented" in what for what in tally))


if __name__ == "__main__":
    sys.exit(main())
