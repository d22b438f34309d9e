"""Lanes of a warp that look at words of another CTA, executed one look at a time, each of which may find anything.

A look finds any value that is ever stored to the word, in any order, and from some time on the last one. Lanes go their
ways until all that have not ended come to the same vote, shuffle or barrier. Of each lane is kept which stores of bytes
come before what it does: those that a store which a look has found released, once it has acquired them.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

WORDS, CELLS, VALUES, PREDICATES = 3, 16, 5, 4
"""Words of 8 bytes at most, bytes that may be published, registers of a lane."""
GRID_FENCES = ("fence.acq_rel.gpu", "fence.sc.gpu", "membar.gl", "fence.acq_rel.sys", "membar.sys")
FULL = (1 << 32) - 1
MAX_STEPS = 4000

Op = tuple[Any, ...]
"""An operation: what it does, and its operands."""
Write = tuple[int, int]
"""A store of bytes that may be published: by which lane, and its place in what that does."""


@dataclass(frozen=True)
class Program:
    """What the lanes of the CTA that publishes do, and those of the one that looks."""

    lanes: int
    forms: tuple[str, ...]
    """How each word is accessed: ``u32``, ``u64``, or ``v2`` of ``u32``."""
    writers: tuple[tuple[Op, ...], ...]
    reader: tuple[Op, ...]


class Wrong(Exception):
    """What is wrong with an execution."""


@dataclass(frozen=True)
class Stored:
    """A store to 4 bytes of a word: by which lane, the value, and the stores that come before, for who acquires."""

    lane: int
    value: int
    released: frozenset[Write]


def _publish(program: Program, data: int) -> tuple[dict[tuple[int, int], list[Stored]], dict[Write, range]]:
    """The stores to each half of each word, and the bytes of each store of data."""
    words: dict[tuple[int, int], list[Stored]] = {}
    bytes_of: dict[Write, range] = {}
    for lane, ops in enumerate(program.writers):
        done, fenced = frozenset[Write](), frozenset[Write]()
        for place, op in enumerate(ops):
            match op:
                case ("data", at, size):
                    bytes_of[lane, place] = range(at, at + size)
                    done |= {(lane, place)}
                case ("fence", text) if text in GRID_FENCES:
                    fenced = done
                case ("flag", word, value, mixed, sem, _):
                    released = done if sem in ("release.gpu", "release.sys") else fenced
                    form = program.forms[word]
                    low = value | (data << 8 & FULL if mixed and form == "u32" else 0)
                    halves = (low,) if form == "u32" else (low, data if mixed else value)
                    for half, held in enumerate(halves):
                        words.setdefault((word, half), []).append(Stored(lane, held, released))
    return words, bytes_of


@dataclass
class _Lane:
    """A lane that is executed: its registers, and which stores come before, or would behind a fence."""

    program: Program
    number: int
    words: dict[tuple[int, int], list[Stored]]
    bytes_of: dict[Write, range]
    rng: random.Random
    free: int
    """How many looks find any value."""
    values: list[int] = field(default_factory=lambda: [0] * VALUES)
    predicates: list[bool] = field(default_factory=list)
    seen: frozenset[Write] = frozenset()
    known: frozenset[Write] = frozenset()
    steps: int = 0

    def look(self, word: int, half: int) -> Stored:
        stores = self.words.get((word, half), [])
        first = Stored(-1, 0, frozenset())
        if self.free > 0:
            return self.rng.choice([first, *stores])
        last = {one.lane: one for one in stores}
        return self.rng.choice([*last.values()] or [first])

    def load(self, at: int, size: int) -> int:
        for one, written in self.bytes_of.items():
            if one not in self.known and set(written) & set(range(at, at + size)):
                raise Wrong("race")
        return self.rng.choice((0, 1, 2, 7, self.rng.getrandbits(32))) & (1 << 8 * size) - 1

    def run(self, body: tuple[Op, ...]) -> Generator[tuple[Op, Any], Any, None]:
        """Execute operations; yields at those that lanes do together, and is sent the result."""
        v, q = self.values, self.predicates
        for op in body:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise Wrong("stuck")
            match op:
                case ("look", first, second, word, mine, acquires, guard):
                    if guard is not None and not q[guard]:
                        continue
                    at = self.number if mine else word
                    self.free -= 1
                    form = self.program.forms[0 if mine else word]
                    found = [self.look(at, half) for half in range(1 if form == "u32" else 2)]
                    if form == "u64" and self.free >= 0 and len(stores := self.words.get((at, 0), [])) > 0:
                        which = self.rng.randint(-1, len(stores) - 1)
                        if which >= 0:
                            found = [self.words[at, half][which] for half in (0, 1)]
                        else:
                            found = [Stored(-1, 0, frozenset())] * 2
                    elif form == "u64" and self.free < 0 and len(found) == 2 and found[0].lane != found[1].lane:
                        found[1] = next(one for one in reversed(self.words[at, 1]) if one.lane == found[0].lane)
                    for to, one in zip((first, second), found, strict=False):
                        v[to] = one.value
                        self.seen |= one.released
                    if acquires:
                        for one in found:
                            self.known |= one.released
                case ("fence", text):
                    if text in GRID_FENCES:
                        self.known |= self.seen
                case ("alu", name, to, one, other):
                    b = v[other] if other >= 0 and name[:2] != "sh" else abs(other)
                    v[to] = {
                        "and": v[one] & b, "or": v[one] | b, "xor": v[one] ^ b, "add": v[one] + b,
                        "shl": v[one] << b, "shr": v[one] >> b,
                    }[name] & FULL  # fmt: skip
                case ("setp", to, test, one, value):
                    q[to] = {"eq": v[one] == value, "ne": v[one] != value, "lt": v[one] < value, "gt": v[one] > value}[
                        test
                    ]
                case ("select", to, one, other, by):
                    v[to] = v[one] if q[by] else v[other]
                case ("load", to, at, size):
                    v[to] = self.load(at, size)
                case ("selected", to, one, other, size, by):
                    v[to] = self.load(one if q[by] else other, size)
                case ("bad",):
                    raise Wrong("race")
                case ("out", _):
                    pass
                case ("if", by, negated, yes, no):
                    yield from self.run(yes if q[by] is not negated else no)
                case ("wait", by, inner):
                    yield from self.run(inner)
                    while q[by]:
                        yield from self.run(inner)
                case ("repeat", count, inner):
                    for _ in range(count):
                        yield from self.run(inner)
                case ("vote", to, _, one, negated):
                    q[to] = yield op, q[one] is not negated
                case ("ballot", to, one):
                    v[to] = yield op, q[one]
                case ("shuffle", _, to, one, _) | ("sum", to, one):
                    v[to] = yield op, v[one]
                case ("meet",):
                    self.known = yield op, self.known
                case _:
                    raise AssertionError(op)


def _together(op: Op, given: list[Any], rng: random.Random) -> list[Any]:
    """What each lane that is there gets from an operation that all of them do; ``None``: a lane that has ended."""
    here = [k for k, one in enumerate(given) if one is not None]
    there = [given[k] for k in here]
    match op:
        case ("vote", _, mode, _, _):
            result = {"any": any(there), "all": all(there), "uni": len(set(there)) == 1}[mode]
            return [result] * len(there)
        case ("ballot", _, _):
            return [sum(1 << k for k in here if given[k])] * len(there)
        case ("sum", _, _):
            return [sum(there) & FULL] * len(there)
        case ("meet",):
            return [frozenset[Write]().union(*there)] * len(there)
        case ("shuffle", mode, _, _, by):
            found = []
            for lane in here:
                source = {"idx": by, "up": lane - by, "down": lane + by, "bfly": lane ^ by}[mode]
                source = lane if source < 0 else source
                found.append(given[source] if source in here else rng.getrandbits(2))
            return found
    raise AssertionError(op)


def execute(program: Program, rng: random.Random) -> str:
    """What is wrong with one execution, or ``fine``."""
    words, bytes_of = _publish(program, rng.choice((0, 1, 2, 3, rng.getrandbits(24))))
    lanes = [
        _Lane(
            program, k, words, bytes_of, rng, rng.choice((0, 1, 2, 3, 6, 12)),
            predicates=[k != other for other in range(PREDICATES)],
        )
        for k in range(program.lanes)
    ]  # fmt: skip
    running = [lane.run(program.reader) for lane in lanes]
    sent: list[Any] = [None] * len(running)
    try:
        while True:
            at: list[tuple[Op, Any] | None] = []
            for one, result in zip(running, sent, strict=True):
                try:
                    at.append(one.send(result))  # of a lane that has ended: StopIteration
                except StopIteration:
                    at.append(None)
            met = [one for one in at if one is not None]
            if not met:
                return "fine"
            if any(one[0] is not met[0][0] for one in met):
                return "stuck"
            results = iter(_together(met[0][0], [None if one is None else one[1] for one in at], rng))
            sent = [next(results) if one is not None else None for one in at]
    except Wrong as error:
        return str(error)


def judge(program: Program, executions: int = 300, seed: int = 1) -> str:
    """What is wrong with any of so many executions, or ``fine``."""
    rng = random.Random(seed)
    for _ in range(executions):
        found = execute(program, rng)
        if found != "fine":
            return found
    return "fine"
