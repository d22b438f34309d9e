"""Clusters that count themselves: what each cluster of a grid does if it is the last one to count, and if it is not.

Every cluster is executed alone, with the word that it counts in as the others leave it. Those that do the same but for
the places of their weak accesses of global memory are alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.launch import Extent as Coordinates
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.memory_layout import MemoryLayout
from mcheck.frontend.ptx.module import Module
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.scopes import GRID_SCOPES
from mcheck.ir.type_sizes import type_size
from mcheck.simt.grid.counters.count_uses import ASKS_MORE, CountUses
from mcheck.simt.grid.counters.grid_counter import COUNTED_TYPES, is_count
from mcheck.simt.grid.pairs.class_executions import Both, MakeWatch
from mcheck.simt.grid.pairs.cluster_accesses import Access, AccessReader, Execution, lanes_of
from mcheck.simt.grid.pairs.global_places import Numbers
from mcheck.simt.grid.pairs.known_words import KnownWord, with_value
from mcheck.simt.grid.pairs.only_path import LEARNED, follow_only_path
from mcheck.simt.grid.pairs.reduction import NotReducible, clusters_of
from mcheck.simt.trace_extraction import ClusterTrace

OTHERWISE = "the counter is accessed otherwise than by one atomic of each cluster"


@dataclass(slots=True)
class Counted(Execution):
    """What a cluster does that counts itself."""

    waits: bool
    """Whether it waits until all have counted themselves."""
    left: int | None
    """What the counter holds in the end if it is the last one; ``None`` if that is not known."""
    otherwise: tuple[int, ...] = ()
    """Numbers before the last one with which it does something else: one for each results of its comparisons."""

    @property
    def alike(self) -> object:
        """What is the same in two clusters that do the same but for the places of weak accesses."""
        return self.shape, self.waits, self.left, self.otherwise


# --- executions -----------------------------------------------------------------------------------------------------


def execute_counted(
    module: Module, launch: Launch, cluster: Coordinates, counter: KnownWord, drawn: int, shapes: dict[object, int],
    limit: Limit, grid: MakeWatch | None = None,
) -> Counted:  # fmt: skip
    """What a cluster does if the counter holds ``drawn`` when it counts itself. ``shapes`` numbers operations; with a
    ``grid`` the cluster stands for its class. Raises ``NotReducible``.
    """
    one = replace(with_value(launch, counter, drawn), group=(cluster,))
    runner, executed, watch = follow_only_path(module, one, limit, lambda: _watch(grid))
    uses = watch.own
    if any(seen.address != counter.address for seen in executed.recorded.observations().values()):
        raise NotReducible(LEARNED)
    if uses.misuse is not None:
        raise NotReducible(*uses.misuse)
    last = counter.first + len(clusters_of(launch)) - 1
    if any(c.bits != 8 * counter.size for c in uses.comparisons):
        raise NotReducible(ASKS_MORE)
    trace = runner.cluster_trace(executed, whole=True)
    made = _execution(cluster, trace, runner.places, counter, last, drawn == last, shapes)
    if made.waits and uses.is_drawn:
        raise NotReducible("clusters both wait for the counter and ask for the number drawn")
    made.otherwise = _unlike(uses, drawn, range(counter.first, last)) if drawn != last else ()
    return made


def _unlike(uses: CountUses, drawn: int, others: range) -> tuple[int, ...]:
    """Those of these numbers of which comparisons have other results than of that which is drawn: the first of each
    results.
    """
    if not uses.comparisons:
        return ()
    numbers = np.array([drawn, *others])
    results = np.stack([c.results(drawn, numbers) for c in uses.comparisons])
    _, firsts = np.unique(results, axis=1, return_index=True)
    return tuple(numbers[sorted(firsts)][1:].tolist())


def _watch(make: MakeWatch | None) -> Both[CountUses]:
    grid = None if make is None else make()
    return Both(CountUses(None if grid is None else grid.varies), grid)


def _execution(
    cluster: Coordinates, trace: ClusterTrace, places: MemoryLayout, counter: KnownWord, last: int, is_last: bool,
    shapes: dict[object, int],
) -> Counted:  # fmt: skip
    if trace.gaps:
        raise NotReducible(trace.gaps[0].reason, trace.gaps[0].span)
    reader = _Reader(memory=trace.program.memory, shapes=shapes, counter=counter, last=last, is_last=is_last)
    made = reader.read_program(trace.program)
    if reader.counted != 1:
        raise NotReducible("a cluster does not count itself exactly once", reader.span)
    if reader.waits and reader.ends:
        raise NotReducible(OTHERWISE, reader.span)
    return Counted(cluster, made, reader.accesses(), lanes_of(trace.program), places, reader.waits, reader.left)


@dataclass(slots=True, kw_only=True)
class _Reader(AccessReader):
    """Collects the accesses of one execution."""

    counter: KnownWord
    last: int
    is_last: bool
    has_counted: bool = False
    """Whether the code that is read has counted the cluster."""
    counted: int = 0
    waits: bool = False
    ends: bool = False
    """Whether the last cluster accesses the counter after it has counted itself."""
    span: Span | None = None
    left: int | None = None
    """What the counter holds, from the last number on: by coherence the thread that has drawn it comes last."""

    def read(self, code: Sequence[Op], threads: Numbers, lanes: list[int]) -> tuple[int, ...]:
        """The accesses of threads of one warp with equal code; returns its shape."""
        self.has_counted = False
        return AccessReader.read(self, code, threads, lanes)

    def is_ordering(self, op: Op, inner: Access, at: Numbers, size: int, threads: Numbers) -> bool:
        """Whether an access counts the cluster. Others of the counter have to be waits, or the last cluster's."""
        word = self.counter
        counts = False
        if ((at < word.address + word.size) & (at + size > word.address)).any():
            counts = self._count(op, inner, at, size, threads)
            if not counts and not self._is_wait(op, inner, at, size):
                if not (self.has_counted and self.is_last) or op is not inner:
                    raise NotReducible(OTHERWISE, op.span)
                self.ends = True
                self.left = value_after(inner, word, self.left, at)
        self.has_counted |= counts
        return counts

    def check_copied(self, op: Op, at: Numbers, size: int) -> None:
        """Check that copies leave the counter alone. Raises ``NotReducible``."""
        if ((at < self.counter.address + self.counter.size) & (at + size > self.counter.address)).any():
            raise NotReducible(OTHERWISE, op.span)

    def is_waited_for(self, at: Numbers, size: int) -> bool:
        """Whether it is the counter."""
        return size == self.counter.size and bool((at == self.counter.address).all())

    def _count(self, op: Op, inner: Op, at: Numbers, size: int, threads: Numbers) -> bool:
        """Whether an operation counts its cluster, by one thread."""
        if not isinstance(inner, ops.Atomic) or op is not inner or not is_count(inner) or len(threads) != 1:
            return False
        amount = inner.srcs[0]
        if size != self.counter.size or int(at[0]) != self.counter.address or not isinstance(amount, Const):
            return False
        fits = amount.value == 1 if inner.op == "add" else amount.value >= self.last
        if not fits or inner.scope not in GRID_SCOPES:
            return False
        self.counted += 1
        self.span = op.span
        self.left = value_after(inner, self.counter, self.last, at)
        return True

    def _is_wait(self, op: Op, inner: Op, at: Numbers, size: int) -> bool:
        """Whether an operation waits until all have counted themselves."""
        if not (isinstance(op, ops.Await) and isinstance(inner, ops.Load) and op.compare is not None) or op.followed:
            return False
        test, bound = op.compare
        if not isinstance(bound, Const) or inner.type[0] == "f" or len(inner.dsts) != 1:
            return False
        if size != self.counter.size or (at != self.counter.address).any() or inner.scope not in GRID_SCOPES:
            return False
        holds = {
            "==": int.__eq__,
            ">=": int.__ge__,
            ">": int.__gt__,
            "!=": int.__ne__,
            "<": int.__lt__,
            "<=": int.__le__,
        }
        numbers = range(self.counter.first, self.last + 2)
        ends = [bool(holds[test](n, bound.value)) for n in numbers] if test in holds else [True]
        if any(ends[:-1]) or not ends[-1]:
            return False
        self.waits = True
        return True


def value_after(access: Access, word: KnownWord, held: int | None, at: Numbers) -> int | None:
    """What a word that held a value holds after an access of one thread; ``None`` if that is not known."""
    if isinstance(access, ops.Load):
        return held
    whole = type_size(access.type) == word.size and access.scalar_count == 1 and at.tolist() == [word.address]
    operand = access.srcs[0]
    if not whole or len(access.srcs) != 1 or not isinstance(operand, Const) or access.type not in COUNTED_TYPES:
        return None
    value, top = operand.value, 1 << 8 * word.size
    match access.op if isinstance(access, ops.Atomic) else "exch":
        case "exch":
            return value % top
        case "add" if held is not None:
            return (held + value) % top
        case "inc" if held is not None:
            return 0 if held >= value else held + 1
        case _:
            return None
