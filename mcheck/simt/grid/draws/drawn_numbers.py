"""The numbers that a cluster draws from a word of global memory, as long as there are any: its tiles."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from mcheck.base.budget import Limit
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module, constant_of
from mcheck.ir.scopes import GRID_SCOPES
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.simt.execution.cluster import Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import Mask
from mcheck.simt.execution.loop_visits import BeforeStep, statements, with_action
from mcheck.simt.grid.counters.grid_counter import COUNTED_TYPES
from mcheck.simt.grid.pairs.known_words import KnownWord, known_word
from mcheck.simt.grid.pairs.reduction import NotReducible, check_statements
from mcheck.simt.instructions.access_operands import to_generic
from mcheck.simt.trace_extraction import follow_paths

LEAST = 2
"""How many numbers a cluster draws at least: of those that draw one, other arguments tell."""
MAX_DEPTH = 12
"""How many instructions may compute the address, one from the other."""
DRAWN_BY = frozenset(
    (*COUNTED_TYPES, "atom", "global", "add", "relaxed", "acquire", "release", "acq_rel", *GRID_SCOPES)
)
"""What may be written of an atomic that draws: it adds at a scope of the grid."""


@dataclass(frozen=True, slots=True)
class Draws:
    """The word from which clusters draw numbers, and the atomics that do so, by their indices in the code of the entry:
    all that have this address, which is one number for all threads, clusters and rounds.
    """

    word: KnownWord
    statements: frozenset[int]


def find_draws(module: Module, launch: Launch, limit: Limit) -> Draws:
    """The word from which the first cluster draws several numbers. Raises ``NotReducible``."""
    entry = module.functions[launch.entry]
    places = {k: _fixed(entry, s.place) for k, s in enumerate(entry.body) if _may_draw(entry, s)}
    found = frozenset(k for k, place in places.items() if place is not None)
    if not found:
        raise NotReducible("no cluster draws numbers", applies=False)
    check_statements(module)
    one = replace(launch, group=(launch.executed_clusters[0],))
    try:
        for _ in follow_paths(module, one, limit, lambda: _DrawWatch(entry.name, found)):
            break
    except _Found as drawn:
        return Draws(drawn.word, frozenset(k for k in found if places[k] == places[drawn.statement]))
    raise NotReducible("no cluster draws numbers from a word whose initial value is given", applies=False)


def _may_draw(entry: ptx.Function, statement: ptx.Statement) -> bool:
    """Whether an instruction draws a number: adds one, and keeps what was there."""
    if statement.kind is not Kind.ATOMIC or not set(statement.opcode.parts) <= DRAWN_BY:
        return False
    target, _, *given = statement.operands
    return isinstance(target, ptx.Register) and len(given) == 1 and constant_of(entry, given[0]) == 1


def _fixed(entry: ptx.Function, operand: ptx.Operand | None, depth: int = 0) -> object:
    """How an operand is computed from parameters and constants alone, so that it is always the same; ``None`` if it may
    be computed in another way.
    """
    match operand:
        case ptx.Immediate() | ptx.Symbol():
            return operand
        case ptx.Address(base, offset, ()):
            made = 0 if base is None else _fixed(entry, base, depth)
            return None if made is None else (made, offset)
        case ptx.Register():
            writers = [s for s in entry.body if operand in s.defs]
            if len(writers) != 1 or depth > MAX_DEPTH:
                return None
            (one,) = writers
            loads = one.kind is Kind.LOAD and "param" in one.opcode.spaces
            if one.guard is not None or len(one.defs) != 1 or not (one.only_computes or loads):
                return None
            given = tuple(_fixed(entry, o, depth + 1) for o in one.operands[1:])
            return None if None in given else (one.opcode.text, given)
    return None


class _Found(Exception):
    """A cluster draws once more from a word, by the atomic at this index."""

    def __init__(self, word: KnownWord, statement: int) -> None:
        super().__init__()
        self.word, self.statement = word, statement


@dataclass(slots=True)
class _DrawWatch:
    """The watch that raises ``_Found``."""

    entry: str
    found: frozenset[int]
    drawn: dict[KnownWord, int] = field(default_factory=dict)
    """How many numbers have been drawn."""

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the atomics."""
        out = list(steps)
        for at, statement, unit in statements(compiler):
            if unit.function.name == self.entry and at - unit.start in self.found:
                size = type_size(statement.opcode.type)
                before = self._count(compiler, compiler.fetch(unit, statement.place), size, at - unit.start)
                out[at] = with_action(compiler, unit, statement, before, steps[at])
        return out

    def _count(self, compiler: Compiler, fetch: Fetch, size: int, number: int) -> BeforeStep:
        def before(_: Cluster, mine: Mask) -> None:
            places = to_generic(np.broadcast_to(fetch()[0], mine.shape)[mine]).astype(np.int64)
            for at in places.tolist():
                word = known_word(compiler.places, at, size)
                if word is None:
                    continue
                self.drawn[word] = self.drawn.get(word, 0) + 1
                if self.drawn[word] == LEAST:
                    raise _Found(word, number)

        return before
