"""Atomic words: global words whose writes are all strong, of the whole word, and morally strong with each other.

The coherence order of such a word is total (PTX ISA 9.0 section 8.10.1), and an atomic reads the write right in front
of its own (8.10.3, 8.10.5). Nothing else may write to the bytes: no weak store, vector, asynchronous copy, grid in
front, or access by another name.

A thread that leaves the path that its code follows may write anything, so a program in which one can has no such words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from mcheck.base.records import dataclass
from mcheck.effects.site import Objects
from mcheck.effects.unwritten_objects import find_written_places, places_of, stores_by_a_changed_map
from mcheck.engines.protocol.analysis.shared_words import word_of
from mcheck.engines.protocol.state.sync_objects import Placement
from mcheck.events.structure import initial_bytes
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr
from mcheck.ir.ops import Op
from mcheck.ir.program import Program, Thread
from mcheck.ir.scopes import scopes_are_mutual
from mcheck.ir.type_sizes import type_size

WIDEST = 16
"""The bytes of the widest scalar."""


@dataclass(frozen=True, slots=True)
class WordWrite:
    """A write to an atomic word: ``value`` is what it leaves there, ``None`` if that is not known; an atomic that is
    repeated until it reads a value has ``awaited`` that one; a compare-and-swap writes if it has read ``expected``.
    """

    thread: Thread
    pc: int
    op: ops.Store | ops.Atomic
    value: int | None
    awaited: int | None
    expected: int | None = None

    @property
    def place(self) -> Placement:
        """The place of its thread."""
        cta = self.thread.place.cta
        return cta.gpu, cta.cluster, cta.number


AtomicWords = Mapping[int, tuple[int | None, tuple[WordWrite, ...]]]
"""Atomic words by their addresses: what they hold at first, ``None`` if that is not known, and the writes to them."""


def find_atomic_words(program: Program) -> AtomicWords:
    """Return the atomic words for whose values some atomic waits."""
    if any(_may_leave(op) for op in program.operations):
        return {}
    objects = Objects(program.memory)
    sizes = {word: size for word, size in _find_awaited_words(program).items() if _is_plain(objects, word)}
    if not sizes or any(i.object.copies or i.object.alias_of or i.base != i.physical for i in objects.instances):
        return {}
    if stores_by_a_changed_map(program):
        return {}
    words, places = set(sizes), sorted(sizes)
    for op in program.operations:
        written = _written_ranges(program, objects, op)
        if written is None:
            return {}
        for start, size, whole in written:
            for word in places[bisect_left(places, start - WIDEST) : bisect_left(places, start + size)]:
                if word + sizes[word] > start and not (whole and (start, size) == (word, sizes[word])):
                    words.discard(word)
    found: dict[int, list[WordWrite]] = {word: [] for word in words}
    known: dict[int, list[tuple[int, int, ops.Store | ops.Atomic]]] = {}
    for thread in program.threads if words else ():
        if id(thread.code) not in known:
            known[id(thread.code)] = list(_writes_in(thread, words))
        for word, pc, op in known[id(thread.code)]:
            found[word].append(_word_write(thread, pc, op))
    first = {word: initial_bytes(program, word, sizes[word]) for word in words}
    return {
        word: (value if isinstance(value := first[word], int) else None, tuple(writes))
        for word, writes in found.items()
        if are_scopes_mutual((w.op.scope, w.place) for w in writes)
    }


def _may_leave(op: Op) -> bool:
    """Return whether the thread may do something behind an operation that its code does not say."""
    return isinstance(op, ops.AssumedValue | ops.UnknownContinuation) or (isinstance(op, ops.Await) and op.followed)


def _find_awaited(op: Op) -> tuple[int, int, int] | None:
    """Return the word, the value and the size if an operation is an atomic that is repeated until it reads a value."""
    if not isinstance(op, ops.Await) or not isinstance(op.inner, ops.Atomic) or op.compare is None:
        return None
    operator, value = op.compare
    if operator != "==" or not isinstance(value, Const) or not isinstance(op.inner.address, Const):
        return None
    return op.inner.address.value, _modulo(op.inner, value.value), type_size(op.inner.type)


def _find_awaited_words(program: Program) -> dict[int, int]:
    """Return the words for whose values some atomic waits, and their sizes; those that have one size."""
    found: dict[int, set[int]] = {}
    for op in program.operations:
        waits = _find_awaited(op)
        if waits is not None:
            found.setdefault(waits[0], set()).add(waits[2])
    return {word: max(sizes) for word, sizes in found.items() if len(sizes) == 1}


def _is_plain(objects: Objects, word: int) -> bool:
    """Return whether a word is one of global memory that belongs to this grid."""
    instance = objects.at(word)
    return (
        instance is not None
        and instance.cta is None
        and instance.object.space == "global"
        and instance.object.earlier_grid is None
        and not instance.object.tensor_map
    )


def _written_ranges(program: Program, objects: Objects, op: Op) -> list[tuple[int, int, bool]] | None:
    """Return the bytes outside shared memory that an operation may write, and whether as a whole word by a strong
    access; ``None`` if they are not known.
    """
    inner = ops.performed_operation(op)
    if isinstance(inner, ops.ScalarWrite):
        if getattr(inner, "space", "").startswith("shared"):
            return []
        size = type_size(inner.type) * inner.scalar_count
        whole = isinstance(inner.address, Const) and _is_strong(inner) and op.guard is None
        places = places_of(inner.address)
        return None if None in places else [(at, size, whole) for at in places if at is not None]
    objects_written = [None if at is None else objects.at(at) for at in find_written_places(program, inner)]
    if None in objects_written:
        return None
    return [(i.base, i.object.size, False) for i in objects_written if i is not None]


def _is_strong(op: ops.ScalarWrite) -> bool:
    """Return whether an access is strong, of one scalar, and always executed."""
    return (
        isinstance(op, ops.Store | ops.Atomic)
        and op.sem != "weak"
        and op.scalar_count == 1
        and op.guard is None
        and op.proxy == "generic"
        and op.multimem is None
    )


def _writes_in(thread: Thread, words: set[int]) -> Iterator[tuple[int, int, ops.Store | ops.Atomic]]:
    for pc, op in enumerate(thread.code):
        inner = ops.performed_operation(op)
        if isinstance(inner, ops.Store | ops.Atomic):
            word = word_of(inner.address)
            if word in words:
                yield word, pc, inner


def _word_write(thread: Thread, pc: int, op: ops.Store | ops.Atomic) -> WordWrite:
    waits = _find_awaited(thread.code[pc])
    awaited = None if waits is None else waits[1]
    left: Expr | None = None
    if isinstance(op, ops.Store) or op.op == "exch":
        left = op.srcs[0]
    elif op.op == "cas" and waits is not None:  # if not awaited, a failing one stores what it finds by some models
        left = op.srcs[1]
    expected = op.srcs[0] if isinstance(op, ops.Atomic) and op.op == "cas" else None
    return WordWrite(thread, pc, op, _known(op, left), awaited, _known(op, expected))


def _known(op: ops.Store | ops.Atomic, value: Expr | None) -> int | None:
    return _modulo(op, value.value) if isinstance(value, Const) else None


def _modulo(op: ops.Store | ops.Atomic, value: int) -> int:
    return value % (1 << 8 * type_size(op.type))


def are_scopes_mutual(scopes: Iterable[tuple[str | None, Placement]]) -> bool:
    """Return whether scopes of threads at these places include each other (8.7)."""
    known = set(scopes)
    return all(scopes_are_mutual(s or "sys", a, t or "sys", b) for s, a in known for t, b in known)
