"""Signals, waits for them, and looks at them: what a thread does by which clusters are ordered.

A *draw* is a signal, too: an atomic of which the thread asks whether it is the last one. If it is the last one, a wait
for all others stands behind it: the value that it returns says that they were before. A *look* is a load that is not
repeated, of whose value something depends: a wait that may not wait. Who *takes* a lock waits for the value of a free
one, and leaves another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.ir import ops
from mcheck.ir.expr import Const, apply_binary
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.scopes import GRID_SCOPES, is_grid_fence
from mcheck.ir.type_sizes import type_size
from mcheck.simt.execution.waits.value_tests import as_number
from mcheck.simt.grid.pairs.cluster_accesses import Access
from mcheck.simt.grid.pairs.global_places import places_of
from mcheck.simt.grid.pairs.known_words import KnownWord

INTEGERS = frozenset(f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64))
"""The types of words of signals: additions of ``.bf16`` round."""


@dataclass(frozen=True, slots=True)
class Sign:
    """The sign bit of a number that is drawn, of which nothing else is asked."""

    is_set: bool


Told = Mapping[int, int | Sign | None]
"""What a thread is told, by place: by a look the value, by a draw the sign, by the last one what it leaves, by others
``None``.
"""


@dataclass(frozen=True, slots=True)
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
    updates: bool = False
    """Whether a signal is an atomic."""
    looks: bool = False
    """Whether a wait is a look."""
    draws: bool = False
    """Whether it is a draw, or the wait behind the last one."""
    acquired: int | None = None
    """Of a draw, from where on it acquires."""
    sign: Sign | None = None
    """Of an atomic of whose result the sign is asked, that sign."""
    taken: int | None = None
    """Of a wait that takes a lock, what it leaves."""
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


def synchronisation_of(op: Op, ticket: KnownWord | None) -> Synchronisation | None:
    """The signal or wait that an operation is, without its place."""
    inner = performed_operation(op)
    if not isinstance(inner, Access) or not _is_strong(inner) or not isinstance(inner.address, Const):
        return None
    if ticket is not None and inner.address.value == ticket.address:
        return None
    if isinstance(op, ops.Await) and isinstance(inner, ops.Atomic):
        return _take_of(op, inner)
    if isinstance(inner, ops.Store | ops.Atomic):
        value = inner.srcs[0]
        if op is not inner or len(inner.srcs) != 1 or not isinstance(value, Const):
            return None
        if isinstance(inner, ops.Atomic) and (inner.dst is not None or inner.op not in ("exch", "add")):
            return None
        adds = isinstance(inner, ops.Atomic) and inner.op == "add"
        updates = isinstance(inner, ops.Atomic)
        return Synchronisation(inner.address.value, inner.type, value.value, adds=adds, updates=updates, span=op.span)
    if not isinstance(op, ops.Await) or op.followed or op.compare is None or len(inner.dsts) != 1:
        return None
    test, bound = op.compare
    if not isinstance(bound, Const):
        return None
    return Synchronisation(inner.address.value, inner.type, bound.value, test, span=op.span)


def _take_of(op: ops.Await, inner: ops.Atomic) -> Synchronisation | None:
    """The taking of a lock that an atomic is which is repeated until it succeeds, without its place."""
    if op.followed or op.compare is None or inner.op not in ("cas", "exch"):
        return None
    (test, free), taken, found = op.compare, inner.srcs[-1], inner.srcs[0]
    if test != "==" or not isinstance(free, Const) or not isinstance(taken, Const) or not isinstance(found, Const):
        return None
    top = 1 << 8 * type_size(inner.type)
    if (inner.op == "cas" and (found.value - free.value) % top) or (taken.value - free.value) % top == 0:
        return None
    assert isinstance(inner.address, Const)
    return Synchronisation(
        inner.address.value, inner.type, free.value % top, test, updates=True, taken=taken.value % top, span=op.span
    )


def _is_strong(inner: Access) -> bool:
    """Whether an access of global memory may be a signal or a wait for one."""
    if inner.sem == "weak" or inner.type not in INTEGERS or inner.scope not in GRID_SCOPES:
        return False
    return isinstance(inner.address, Const) and places_of(inner.address, [0]) is not None


def look_of(op: Op, value: int) -> Synchronisation | None:
    """The look that a load is which returns this value, without its place."""
    if not isinstance(op, ops.Load) or not _is_strong(op) or len(op.dsts) != 1 or not isinstance(op.address, Const):
        return None
    return Synchronisation(op.address.value, op.type, value, "==", looks=True, span=op.span)


def synchronisations_at(
    code: Sequence[Op], place: int, ticket: KnownWord | None, told: Told
) -> tuple[Synchronisation, ...]:
    """What the operation at a place of the code of a thread is, without where it releases or acquires: a last draw is
    a signal and a wait.
    """
    op, value = code[place], told.get(place)
    found = synchronisation_of(op, ticket)
    if isinstance(value, Sign) and found is not None:
        return (replace(found, sign=value),)
    if place not in told:
        return () if found is None else (found,)
    if found is None:
        look = look_of(op, value) if isinstance(value, int) else None
        return () if look is None else (look,)
    draw = replace(found, draws=True)
    if not isinstance(value, int):
        return (draw,)
    return draw, Synchronisation(found.address, found.type, value, "==", draws=True, span=found.span)


def read_synchronisation(code: Sequence[Op], ticket: KnownWord | None, told: Told) -> Iterator[Synchronisation]:
    """The signals and waits of a thread."""
    fences = [k for k, op in enumerate(code) if is_grid_fence(op)]
    for place, op in enumerate(code):
        for found in synchronisations_at(code, place, ticket, told):
            inner = performed_operation(op)
            assert isinstance(inner, Access)
            acquired = place if inner.sem in ("acquire", "acq_rel") else next((k for k in fences if k > place), None)
            released = place if inner.sem in ("release", "acq_rel") else None
            if released is None:
                released = next((k for k in reversed(fences) if k < place), None)
            point = acquired if found.waits else released
            yield replace(
                found, place=place, point=point, acquired=acquired if found.draws and not found.waits else None
            )
