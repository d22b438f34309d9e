"""Random warps that look at words of another CTA, as modules and as lanes that are executed one look at a time:

    python -m tests.fuzz.looking_ways --programs 100 --seed 1

One CTA publishes bytes by flags. The lanes of the other one look, compute, vote, shuffle, go different ways, and load
what is published; a store that races may depend on all that. One answer is that of
``mcheck.checking.modules.pairs.looking_grid``. The other one shares nothing with it: it executes the lanes many times
(``tests.fuzz.looking_lanes``). No program that is ``proved`` may race there, or fail to end.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.looking_grid import answer_looking
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from tests.fuzz.judged_answers import compare_judged
from tests.fuzz.looking_lanes import CELLS, GRID_FENCES, PREDICATES, VALUES, WORDS, Op, Program, judge
from tests.fuzz.looking_module import LAUNCH, write
from tests.fuzz.pair_answers import follow_pair, say_why

NARROW_FENCES = ("fence.acq_rel.cta", "membar.cta", "fence.acq_rel.cluster", "fence.acquire.gpu", "fence.release.gpu")
SEMANTICS = ("relaxed.gpu", "relaxed.gpu", "release.gpu", "release.sys", "relaxed.sys")
WEIGHED = ("load", "selected", "fence", "if", "bad", "shuffle", "vote", "repeat")
KEPT, LONGEST = 60, 25
"""How many programs that are proved are mutated further, and how many operations they have at most."""


def generate(rng: random.Random) -> Program:
    """A program of which some are right."""
    lanes = rng.choice((1, 2, 2, 3))
    one = rng.choice(("u32", "u32", "u64", "v2"))
    same = rng.random() < 0.6
    forms = tuple(one if same else rng.choice(("u32", "u32", "u64", "v2")) for _ in range(WORDS))
    writers = [_writer(rng)]
    if lanes > 1 and rng.random() < 0.2:
        writers.append(_writer(rng, most=2))
    cells = [one[1:] for ops in writers for one in ops if one[0] == "data"] or [(0, 4)]
    make = _Reader(rng, lanes, cells, same)
    return Program(lanes, forms, tuple(writers), (*make.wait(), *make.body(0, rng.randint(1, 5))))


def _writer(rng: random.Random, most: int = 4) -> tuple[Op, ...]:
    """The operations of a lane that publishes."""
    found: list[Op] = []
    for _ in range(rng.randint(1, most)):
        if rng.random() < 0.7:
            size = rng.choice((1, 2, 4, 4, 8))
            found.append(("data", rng.randrange(0, CELLS, size), size))
        if rng.random() < 0.6:
            found.append(("fence", rng.choice(GRID_FENCES if rng.random() < 0.8 else NARROW_FENCES)))
        sem = rng.choice(SEMANTICS)
        found.append(
            ("flag", rng.randrange(WORDS), rng.choice((1, 1, 2, 2, 3)), rng.random() < 0.3, sem, rng.random() < 0.15)
        )
        if rng.random() < 0.1:
            size = rng.choice((1, 4))
            found.append(("data", rng.randrange(0, CELLS, size), size))
    return tuple(found)


@dataclass(frozen=True)
class _Reader:
    """Makes what lanes do that look; ``cells`` are the bytes that may be published: where they begin, and how many."""

    rng: random.Random
    lanes: int
    cells: list[tuple[int, int]]
    same: bool
    """Whether all words have one form, so that each lane may look at another one."""

    def body(self, depth: int, count: int) -> Iterator[Op]:
        for _ in range(count):
            yield from self.operations(depth)

    def value(self) -> int:
        return self.rng.randrange(VALUES)

    def predicate(self) -> int:
        return self.rng.randrange(PREDICATES)

    def operations(self, depth: int) -> Iterator[Op]:
        rng, v, p = self.rng, self.value, self.predicate
        kinds = [
            "look",
            "wait",
            "wait",
            "fence",
            "alu",
            "setp",
            "select",
            "load",
            "load",
            "selected",
            "bad",
            "bad",
            "out",
        ]
        if depth < 3:
            kinds += ["if", "if", "if", "repeat"]
        if self.lanes > 1 and (depth < 1 or rng.random() < 0.3):
            kinds += ["vote", "vote", "ballot", "shuffle", "meet", "sum"]
        match kind := rng.choice(kinds):
            case "look":
                yield self.look()
            case "wait":
                yield from self.wait()
            case "fence":
                yield "fence", rng.choice((*GRID_FENCES, *NARROW_FENCES))
            case "alu":
                name = rng.choice(("and", "or", "xor", "add", "shl", "shr"))
                yield "alu", name, v(), v(), rng.choice((v(), -1, -2, -3, -4))
            case "setp":
                yield "setp", p(), rng.choice(("eq", "eq", "ne", "lt", "gt")), v(), rng.randint(0, 3)
            case "select":
                yield "select", v(), v(), v(), p()
            case "load":
                yield "load", v(), *self.cell()
            case "selected":
                (one, size), (other, least) = self.cell(), self.cell()
                size = min(size, least, 4)
                yield "selected", v(), one, other, size, p()
            case "bad":
                yield "setp", (at := p()), rng.choice(("eq", "gt", "ne")), v(), rng.randint(0, 4)
                yield "if", at, False, (("bad",),), ()
            case "if":
                yes, no = (tuple(self.body(depth + 1, rng.randint(k, 3 - k))) for k in (1, 0))
                yield "if", p(), rng.random() < 0.5, yes, no
            case "repeat":
                yield "repeat", rng.randint(1, 3), tuple(self.body(depth + 1, rng.randint(1, 2)))
            case "vote":
                yield "vote", p(), rng.choice(("any", "all", "uni")), p(), rng.random() < 0.3
            case "ballot":
                yield "ballot", v(), p()
            case "shuffle":
                yield "shuffle", rng.choice(("idx", "up", "down", "bfly")), v(), v(), rng.randint(0, 2)
            case "sum":
                yield "sum", v(), v()
            case "meet":
                yield ("meet",)
            case "out":
                yield "out", v()
            case _:
                raise AssertionError(kind)

    def wait(self) -> Iterator[Op]:
        """A loop that looks, and what mostly comes behind it."""
        rng, look, at = self.rng, self.look(), self.predicate()
        again: list[Op] = [look, *self.body(3, rng.choice((0, 0, 0, 1)))]
        again.append(("setp", at, rng.choice(("eq", "eq", "lt")), look[1], rng.choice((0, 0, 0, 1, 2))))
        if self.lanes > 1 and rng.random() < 0.4:
            again.append(("vote", at, rng.choice(("any", "any", "all")), at, rng.random() < 0.1))
        yield "wait", at, tuple(again)
        if rng.random() < 0.7:
            yield "fence", rng.choice(GRID_FENCES if rng.random() < 0.9 else NARROW_FENCES)
        if rng.random() < 0.6:
            yield "setp", (q := self.predicate()), "eq", look[1], rng.choice((1, 2, 3))
            if rng.random() < 0.5:
                yield "if", q, rng.random() < 0.5, (("load", self.value(), *self.cell()),), tuple(self.body(2, 1))

    def look(self) -> Op:
        """A look: two registers, the word, whether it is that of the lane, whether it acquires, the predicate that
        guards it.
        """
        rng = self.rng
        first, second = rng.sample(range(VALUES), 2)
        guard = self.predicate() if rng.random() < 0.1 else None
        return "look", first, second, rng.randrange(WORDS), self.same and rng.random() < 0.3, rng.random() < 0.25, guard

    def cell(self) -> tuple[int, int]:
        """Bytes to load: mostly some that are published as a whole."""
        if self.rng.random() < 0.1:
            return self.rng.randrange(0, CELLS, 4), 4
        at, size = self.rng.choice(self.cells)
        return at, min(size, 4)


def mutate(rng: random.Random, program: Program) -> Program:
    """The program with one operation more, one less, or another one."""
    if rng.random() < 0.4:
        number = rng.randrange(len(program.writers))
        changed = _changed(rng, program.writers[number], lambda: list(_writer(rng, most=1)))
        writers = (*program.writers[:number], changed, *program.writers[number + 1 :])
        return replace(program, writers=writers)
    cells = [one[1:] for ops in program.writers for one in ops if one[0] == "data"] or [(0, 4)]
    make = _Reader(rng, program.lanes, cells, len(set(program.forms)) == 1)
    return replace(program, reader=_changed(rng, program.reader, lambda: list(make.operations(2))))


def _changed(rng: random.Random, body: tuple[Op, ...], make: Callable[[], list[Op]]) -> tuple[Op, ...]:
    """Operations of which one has been changed, or one within them."""
    at = rng.randrange(len(body) + 1)
    if at < len(body):
        inner = [k for k, one in enumerate(body[at]) if isinstance(one, tuple)]
        if inner and rng.random() < 0.7:
            k = rng.choice(inner)
            op = (*body[at][:k], _changed(rng, body[at][k], make), *body[at][k + 1 :])
            return (*body[:at], op, *body[at + 1 :])
    what = rng.choice(("insert", "insert", "drop", "replace", "swap"))
    made = make() if what in ("insert", "replace") else []
    if what == "swap" and at + 1 < len(body):
        made = [body[at + 1], body[at]]
    kept = at + {"insert": 0, "drop": 1, "replace": 1, "swap": 2 if made else 0}[what]
    return (*body[:at], *made, *body[kept:])


# --- both answers -----------------------------------------------------------------------------------------------------


def answer(program: Program, seconds: float = 20.0) -> str:
    """``proved``, or why not."""
    module = parse_module(write(program))
    launch = build_launch(module, from_object({**LAUNCH, "block": [program.lanes]}))
    found, why = say_why(lambda: answer_looking(module, launch, partial(follow_pair, module), Limit(seconds)))
    return why if found is None else "proved" if found.verdict is Verdict.PROVED else "not proved"


def sampled(seed: int, programs: int) -> Iterator[tuple[Program, str, str]]:
    """Programs and both answers: mostly what mutations make of those that are proved; what is not is not judged."""
    rng, proved = random.Random(seed), list[tuple[int, Program]]()
    for _ in range(programs):
        if proved and rng.random() < 0.7:
            program = mutate(rng, rng.choices([one for _, one in proved], [weight for weight, _ in proved])[0])
        else:
            program = generate(rng)
        found = answer(program)
        right = judge(program, seed=rng.getrandbits(30)) if found == "proved" else ""
        if right == "fine" and (weight := _weight(program)):
            proved = [*proved[-KEPT:], (weight, program)]
        yield program, found, right


def _weight(program: Program) -> int:
    """How much there is in a program that may be got wrong; nothing if it is long."""
    counts = Counter(one[0] for one in _operations(program.reader))
    if counts.total() > LONGEST:
        return 0
    return sum(min(counts[name], 2) for name in WEIGHED) ** (3 if counts["load"] and counts["fence"] else 1)


def _operations(body: tuple[Op, ...]) -> Iterator[Op]:
    for op in body:
        yield op
        for inner in op:
            if isinstance(inner, tuple):
                yield from _operations(inner)


def main() -> int:
    """Compare the answers about random plans."""
    return compare_judged(__doc__, sampled)


if __name__ == "__main__":
    sys.exit(main())
