"""Random threads that take locks, swap words and set flags, and whether what is proved of them holds.

    python -m tests.fuzz.lock_orders --programs 300 --seed 1

Two or three threads take locks one after the other or within each other, wait for values by swaps, and look at words
between these; at the end they race where they have read certain values, so that there is a race if the model allows
the values together. Semantics, scopes, values and returns are right mostly, and wrong now and then. The explicit engine
lists the executions; the protocol engine follows interleavings, and says when these are not all.
"""

from __future__ import annotations

import sys
from random import Random
from typing import TypeVar

from mcheck.base.budget import processor_time
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse
from tests.engine_findings import EngineFindings, engine_findings
from tests.fuzz.differential import DEFAULT_MODEL, model_of
from tests.fuzz.draft import Draft, Role
from tests.fuzz.judged_answers import seed_parser, tell_outcomes

LOCKS = ("l", "m")
FLAGS = ("x", "y")
Lines = tuple[str, ...]
T = TypeVar("T")


def generate(random: Random) -> Draft:
    """A random program; all of its threads are in CTAs of their own."""
    right = random.choice((0.8, 0.92, 1.0))
    threads = random.choices((2, 3), (3, 1))[0]
    exchanges = random.random() < 0.2
    roles = []
    crossed = random.random() if random.random() < 0.5 else None
    for k in range(threads):
        body = _Body(random, right, threads, exchanges)
        roles.append(
            Role(f"P{k}", f"cta {k}", body.write(k) if crossed is None or k > 1 else body.write_crossed(k, crossed))
        )
    first = {name: random.choice((0, 1)) if random.random() > right else 0 for name in (*LOCKS, *FLAGS)}
    objects = [f".global .u32 {name} = {value};" for name, value in first.items()]
    return Draft("locks", DEFAULT_MODEL, (*objects, ".global .u32 d = 0;", ".global .u32 e = 0;"), tuple(roles))


class _Body:
    """The code of a thread as it is written; registers that were read decide at its end.

    Where locks are taken by ``exchanges``, all words hold 0 or 1: those that fail leave what they have found.
    """

    def __init__(self, random: Random, right: float, threads: int, exchanges: bool) -> None:
        self.random, self.right, self.threads, self.exchanges = random, right, threads, exchanges
        self.read: list[tuple[int, Lines]] = []
        self.register = 0

    def write(self, number: int) -> Lines:
        """The lines of a thread."""
        lines: list[str] = []
        shape = self.random.random()
        locks = self.random.sample(LOCKS, 2)
        if shape < 0.45:  # one lock after the other
            for lock in locks[: 1 if self.threads == 3 and self.random.random() < 0.5 else 2]:
                lines += [*self.section(lock, self.inner()), *self.outside()]
        elif shape < 0.6:  # within each other, in one order mostly
            nested = sorted(locks) if self.pick(True, False) else locks
            lines += self.section(nested[0], [*self.inner(), *self.section(nested[1], self.inner())])
        elif shape < 0.8:  # a flag for the other, and a swap that waits for its flag
            mine, other = FLAGS if number % 2 == 0 else FLAGS[::-1]
            lines += [*self.inner(), self.exchange(mine), *self.outside(), self.swap(other), *self.inner()]
        else:
            lines += [*self.outside(), *self.section(locks[0], self.inner()), *self.outside(), *self.outside()]
        if self.random.random() > self.right:
            lines.insert(self.random.randrange(len(lines) + 1), self.store(self.random.choice((*LOCKS, *FLAGS))))
        return (*lines, *self.race(number))

    def write_crossed(self, number: int, shape: float) -> Lines:
        """The lines of one of two threads, of which each leaves a word behind what it does with another one; the locks
        in between, or around them, forbid that both come before the other thread.
        """
        mine, other = FLAGS if number == 0 else FLAGS[::-1]
        locks = LOCKS if number == 0 else LOCKS[::-1]
        look = self.load(mine, 1) if self.random.random() < 0.7 else self.store(mine, number + 1)
        leave = self.store(other, 1)
        if shape < 0.45:
            lines = [*self.section(locks[0], [look]), *self.outside(), *self.section(locks[1], [leave])]
        elif number == 0:
            lines = [look, *self.outside(), *self.section("l", [leave])]
        else:
            lines = [*self.section("l", [look]), *self.outside(), leave]
        if not look.startswith("ld") or self.random.random() < 0.2:
            lines.append(self.load(mine))
        return (*lines, *self.race(number))

    def section(self, lock: str, inner: list[str]) -> list[str]:
        """What a thread does under a lock."""
        taken = 1 if self.exchanges else self.random.choices((1, 2), (9, 1))[0]
        op = f"cas.b32 r9, [{lock}], 0, {taken}" if self.swaps() else f"exch.b32 r9, [{lock}], {taken}"
        sem, fenced = self.pick("acquire", "relaxed"), self.random.random() < 0.2
        sem = "relaxed" if fenced else self.pick(sem, "acq_rel")
        lines = [f"await atom.{sem}.{self.scope()}.global.{op} == 0;", *inner]
        if fenced and self.pick(True, False):
            lines.insert(1 if self.pick(True, False) else len(lines), f"fence.acq_rel.{self.scope()};")
        sem = self.pick("release", "relaxed")
        if self.random.random() < 0.2:
            sem = "relaxed"
            lines.insert(len(lines) if self.pick(True, False) else 1, f"fence.{self.pick('acq_rel', 'acquire')}.gpu;")
        back, scope = self.pick(0, 1 if self.exchanges else self.random.choice((1, 3))), self.scope()
        store = f"st.{sem}.{scope}.global.u32 [{lock}], {back};"
        exchange = f"atom.{sem}.{scope}.global.exch.b32 r9, [{lock}], {back};"
        leave = [store if self.random.random() < 0.7 else exchange]
        if self.random.random() > self.right:
            leave = self.random.choice(([], leave * 2, [f"if (r{max(self.register - 1, 0)} == 0) {{", *leave, "}"]))
        if self.random.random() > self.right:  # what belongs under the lock comes behind it
            return [*lines[:1], *leave, *lines[1:]]
        return [*lines, *leave]

    def inner(self) -> list[str]:
        """None or one access of a word."""
        return self.access() if self.random.random() < 0.6 else []

    def outside(self) -> list[str]:
        return self.access() if self.random.random() < 0.4 else []

    def access(self) -> list[str]:
        word, kind = self.random.choice((*FLAGS, *FLAGS, *LOCKS)), self.random.random()
        if word in LOCKS or kind < 0.5:
            return [self.load(word)]
        if kind < 0.6:
            return ["ld.global.u32 r8, [e];" if self.random.random() < 0.5 else "st.global.u32 [e], 1;"]
        return [self.store(word) if kind < 0.9 else self.exchange(word)]

    def load(self, word: str, guess: int | None = None) -> str:
        k, self.register = self.register, self.register + 1
        value = self.random.choice((0, 1, 1, 2)) if guess is None else guess
        self.read.append((k, (f"if (r{k} == {value}) {{",)))
        return f"ld.{self.random.choice(('relaxed', 'relaxed', 'acquire'))}.gpu.global.u32 r{k}, [{word}];"

    def store(self, word: str, value: int | None = None) -> str:
        sem = self.random.choice(("relaxed", "relaxed", "release"))
        value = self.random.choice((1, 0) if self.exchanges else (1, 2, 0)) if value is None else value
        return f"st.{sem}.{self.scope()}.global.u32 [{word}], {value};"

    def exchange(self, word: str) -> str:
        sem, value = self.pick("release", "relaxed"), self.pick(1, 0 if self.exchanges else 2)
        return f"atom.{sem}.{self.scope()}.global.exch.b32 r9, [{word}], {value};"

    def swap(self, word: str) -> str:
        value = self.pick(1, 0)
        op = f"cas.b32 r9, [{word}], {value}, 0" if self.swaps() or not value else f"exch.b32 r9, [{word}], 0"
        return f"await atom.{self.pick('acquire', 'relaxed')}.{self.scope()}.global.{op} == {value};"

    def race(self, number: int) -> Lines:
        """A store to the data where all that was read is as guessed."""
        tests = [test for _, test in self.read]
        return (*(line for test in tests for line in test), f"st.global.u32 [d], {number};", *("}" for _ in tests))

    def swaps(self) -> bool:
        return not self.exchanges or self.random.random() < 0.5

    def scope(self) -> str:
        return str(self.pick("gpu", self.random.choice(("cta", "sys"))))

    def pick(self, right: T, wrong: T) -> T:
        """The right one, mostly."""
        return right if self.random.random() < self.right else wrong


# --- the comparison ---------------------------------------------------------------------------------------------------


def compare(draft: Draft, seconds: float) -> tuple[str, EngineFindings | None]:
    """What came of a program, in a word or two, and what the judge says of those that are proved or have findings."""
    model = model_of(DEFAULT_MODEL)
    with processor_time():
        found = check(parse(draft.text(), "locks.litmus"), model, timeout=seconds)
        if found.verdict not in ("proved", "finding"):
            return found.verdict, None
        judge = engine_findings("explicit", parse(draft.text(), "locks.litmus"), model, timeout=seconds)
    if judge.kinds:  # some execution has them, whether or not all were listed
        return ("missed" if found.verdict == "proved" else "finding"), judge
    if not judge.complete:
        return f"{found.verdict}, the judge left it open", judge
    return ("proved" if found.verdict == "proved" else "invented"), judge


def main() -> int:
    about = "compares what is said of random threads with locks and swaps"
    chosen = seed_parser(about, programs=300, seconds=10.0, limited="engine").parse_args()

    def one(seed: int) -> tuple[str, str]:
        draft = generate(Random(seed))
        outcome, judge = compare(draft, chosen.seconds)
        if outcome not in ("missed", "invented"):
            return outcome, ""
        return outcome, f"{outcome} {sorted(judge.codes) if judge is not None else ''}\n{draft.text()}"

    return tell_outcomes(chosen, one, ("missed", "invented"))


if __name__ == "__main__":
    sys.exit(main())
