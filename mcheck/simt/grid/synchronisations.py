"""Signals of clusters and waits for them: which operations of a trace are one, and the draw of a ticket.

A signal is a strong store of a known value, or an atomic that exchanges it or adds it; a wait is a load that is
repeated until its value compares with a known one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mcheck.base.errors import Span
from mcheck.base.records import dataclass as record
from mcheck.ir import ops
from mcheck.ir.expr import Const, apply_binary
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.type_sizes import type_size
from mcheck.simt.execution.value_tests import as_number
from mcheck.simt.grid.cluster_accesses import Access, AccessReader, Numbers, places_of
from mcheck.simt.grid.grid_counter import Counter, NotCounted
from mcheck.simt.trace_extraction import ClusterTrace

WIDE = ("gpu", "sys")
"""The scopes at which clusters of a grid are morally strong (8.7)."""
INTEGERS = frozenset(f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64))
"""The types of words of signals: additions of ``.bf16`` round."""


@record(frozen=True, slots=True)
class Synchronisation:
    """A signal, or a wait for one, of a thread: the word, and the value that is stored, added (``adds``) or compared
    with by ``test``.

    ``point`` is the place in the code of the thread up to which a signal releases what comes before it, or from which
    on a wait acquires: its own, or that of a fence; ``None`` if there is none (8.9.1).
    """

    address: int
    type: str
    value: int
    test: str = ""
    place: int = 0
    point: int | None = None
    adds: bool = False
    span: Span | None = None

    @property
    def size(self) -> int:
        """The bytes of the word."""
        return type_size(self.type)

    @property
    def waits(self) -> bool:
        """Whether it is a wait."""
        return bool(self.test)

    def accepts(self, value: int) -> bool:
        """Whether a wait ends with this value of the word."""
        return bool(apply_binary(self.test, as_number(value, self.type), as_number(self.value, self.type)))


def synchronisation_of(op: Op, ticket: Counter | None) -> Synchronisation | None:
    """The signal or wait that an operation is, without its place."""
    inner = performed_operation(op)
    if not isinstance(inner, Access) or inner.sem == "weak" or inner.type not in INTEGERS:
        return None
    if not isinstance(inner.address, Const) or places_of(inner.address, [0]) is None or inner.scope not in WIDE:
        return None
    if ticket is not None and inner.address.value == ticket.address:
        return None
    if isinstance(inner, ops.Store | ops.Atomic):
        value = inner.srcs[0]
        if op is not inner or len(inner.srcs) != 1 or not isinstance(value, Const):
            return None
        if isinstance(inner, ops.Atomic) and (inner.dst is not None or inner.op not in ("exch", "add")):
            return None
        adds = isinstance(inner, ops.Atomic) and inner.op == "add"
        return Synchronisation(inner.address.value, inner.type, value.value, adds=adds, span=op.span)
    if not isinstance(op, ops.Await) or op.followed or op.compare is None or len(inner.dsts) != 1:
        return None
    test, bound = op.compare
    if not isinstance(bound, Const):
        return None
    return Synchronisation(inner.address.value, inner.type, bound.value, test, span=op.span)


def read_synchronisation(code: Sequence[Op], ticket: Counter | None) -> Iterator[Synchronisation]:
    """The signals and waits of a thread."""
    fences = [k for k, op in enumerate(code) if isinstance(op, ops.Fence) and _is_full(op)]
    for place, op in enumerate(code):
        found = synchronisation_of(op, ticket)
        if found is None:
            continue
        inner = performed_operation(op)
        assert isinstance(inner, Access)
        point = place if inner.sem in (("acquire",) if found.waits else ("release", "acq_rel")) else None
        if point is None and found.waits:
            point = next((k for k in fences if k > place), None)
        elif point is None:
            point = next((k for k in reversed(fences) if k < place), None)
        yield replace(found, place=place, point=point)


def _is_full(fence: ops.Fence) -> bool:
    return fence.sem in ("acq_rel", "sc") and fence.scope in WIDE and fence.restrict is None


@dataclass(slots=True, kw_only=True)
class SynchronisationReader(AccessReader):
    """Collects the accesses of one execution, the draw of its ticket, its signals and its waits."""

    ticket: Counter | None
    drawn: int = 0
    thread: int | None = None
    """The thread that signals and waits."""
    span: Span | None = None

    def is_ordering(self, op: Op, inner: Access, at: Numbers, size: int, threads: Numbers) -> bool:
        """Whether an access draws the ticket, signals or waits."""
        word = self.ticket
        if word is not None and ((at < word.address + word.size) & (at + size > word.address)).any():
            if not _is_draw(op, inner, at, size, word) or len(threads) != 1:
                raise NotCounted("tickets are accessed otherwise than by one atomic of each cluster", op.span)
            self.drawn += 1
            self.span = op.span
            return True
        found = synchronisation_of(op, self.ticket)
        if found is None or (len(threads) != 1 and not found.waits):
            return False
        if len(threads) != 1 or self.thread not in (None, int(threads[0])):
            raise NotCounted("several threads of a cluster signal or wait", op.span)
        self.thread = int(threads[0])
        return True

    def number(self, op: Op, inner: Access, at: Numbers) -> int:
        """The number of an access; of a signal or wait its word and value do not count."""
        found = synchronisation_of(op, self.ticket)
        if found is None or (len(at) != 1 and not found.waits):
            return AccessReader.number(self, op, inner, at)
        key = (type(op), inner.span, inner.text, inner.type, inner.sem, inner.scope)
        return self.shapes.setdefault(key, len(self.shapes))

    def synchronisation(self, trace: ClusterTrace) -> tuple[Synchronisation, ...]:
        """The signals and waits."""
        return (
            ()
            if self.thread is None
            else tuple(read_synchronisation(trace.program.threads[self.thread].code, self.ticket))
        )


def _is_draw(op: Op, inner: Access, at: Numbers, size: int, word: Counter) -> bool:
    if not isinstance(inner, ops.Atomic) or op is not inner or inner.op != "add" or inner.scope not in WIDE:
        return False
    return size == word.size and int(at[0]) == word.address and inner.srcs == (Const(1),)
