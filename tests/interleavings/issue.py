"""The copies that an instruction starts: what they read and write, and what is wrong with their operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcheck.ir import ops
from mcheck.ir.expr import Expr
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.ir.program import Thread as Declared
from tests.interleavings import tensors
from tests.interleavings.arithmetic import evaluate, known, size_of
from tests.interleavings.copies import pieces
from tests.interleavings.memory import MAP, Store
from tests.interleavings.state import Box, Copy, Misuse, NotCovered, Unclear, Value


def _cta(address: int) -> int:
    return (address - SHARED_BASE) // SHARED_WINDOW


class Issue:
    """What one thread starts in a state: its number and its registers."""

    def __init__(self, store: Store, declared: tuple[Declared, ...], index: int, read: Callable[[str], Value]) -> None:
        self.store = store
        self.place = declared[index].place
        mine = self.place.cta
        cluster = {t.place.cta for t in declared if (t.place.cta.gpu, t.place.cta.cluster) == (mine.gpu, mine.cluster)}
        self.cluster = {cta.rank: cta.number for cta in cluster}
        self.read = read

    def copies(self, op: ops.Op) -> Iterator[Copy]:
        """All of them, a multicast being one for each of its CTAs."""
        match op:
            case ops.CpAsync():
                yield self._plain(op)
            case ops.BulkCopy():
                yield from self._bulk(op)
            case ops.TensorCopy():
                yield from self._tensor(op)
            case ops.AsyncStore():
                yield self._store(op)
            case ops.Wgmma():
                ranges = tuple((self.number(a), self.number(n)) for a, n in op.reads)
                self._inside(ranges)
                for one in ranges:
                    yield Copy(0, "", (one,))
            case _:
                raise NotCovered(type(op).__name__)

    def number(self, expr: Expr) -> int:
        """An operand whose value has to be known."""
        return known(evaluate(expr, self.read))

    def _inside(self, ranges: tuple[tuple[int, int], ...]) -> None:
        for address, size in ranges:
            if size:
                self.store.place(address, size)

    def _mbarrier(self, expr: Expr, target: int) -> int:
        """The object of a copy, which is taken to be in the CTA of what it writes."""
        place = self.number(expr)
        if place % 8:
            raise Misuse("UB102", "UB103", "UB108")
        if place < SHARED_BASE:
            raise Misuse("UB108", "UB204")
        self.store.place(place, 8)
        if _cta(place) != _cta(target):
            raise Unclear
        return place

    def _into(self, target: int, space: str) -> None:
        """A destination in shared memory is of the own CTA, or of one of the cluster (9.7.9.25.4.1)."""
        if target < SHARED_BASE:
            raise Misuse("UB108", "UB105")
        mine = _cta(target) == self.place.cta.number
        if (space == "shared::cta" and not mine) or _cta(target) not in self.cluster.values():
            raise Misuse("UB105", "UB108")

    def _plain(self, op: ops.CpAsync) -> Copy:
        target, source, size = self.number(op.dst), self.number(op.src), self.number(op.size)
        taken = size if op.src_size is None else self.number(op.src_size)
        if op.ignore_src is not None and self.number(op.ignore_src):
            taken = 0
        wrong = []
        if target % size or source % size:
            wrong += ["UB102", "UB103", "UB108"]
        if taken > size:
            wrong.append("UB104")
        if target < SHARED_BASE or source >= SHARED_BASE or _cta(target) != self.place.cta.number:
            wrong += ["UB108", "UB105"]
        if wrong:
            raise Misuse(*wrong)
        self._inside(((source, taken), (target, size)))
        return Copy(0, "", ((source, taken),) if taken else (), ((target, size),))

    def _bulk(self, op: ops.BulkCopy) -> Iterator[Copy]:
        target, source, size = self.number(op.dst), self.number(op.src), self.number(op.size)
        wrong = []
        if size % 16:
            wrong.append("UB101")
        if target % 16 or source % 16:
            wrong += ["UB102", "UB103", "UB108"]
        for address, space in ((target, op.dst_space), (source, op.src_space)):
            if (address >= SHARED_BASE) != space.startswith("shared"):
                wrong += ["UB108", "UB105"]
        if wrong:
            raise Misuse(*wrong)
        if size == 0:
            raise Unclear
        if op.src_space.startswith("shared") and _cta(source) != self.place.cta.number:
            raise Misuse("UB105", "UB108")
        if target >= SHARED_BASE:
            self._into(target, op.dst_space)
            if not op.reduce and source >= SHARED_BASE and _cta(target) == self.place.cta.number:
                raise Misuse("UB105", "UB108")  # strictly remote
        self._inside(((source, size), (target, size)))
        mbar = None if op.mbar is None else self._mbarrier(op.mbar, target)
        ranges = ((target, size),)
        if op.byte_mask is not None:
            ranges = pieces(target, size, self.number(op.byte_mask))
        copy = Copy(0, "", ((source, size),), ranges, op.reduce or "", op.type or "", mbar)
        if op.reduce:
            size_of(copy.type)
        yield from self._cast(copy, op.cta_mask)

    def _cast(self, copy: Copy, mask: Expr | None) -> Iterator[Copy]:
        """To the same place in each CTA of a mask, with its signal there."""
        if mask is None:
            yield copy
            return
        bits = self.number(mask)
        wanted = [k for k in range(16) if bits >> k & 1]
        if not wanted or any(rank not in self.cluster for rank in wanted):
            raise Misuse("UB107")
        if bits >> 16:
            raise Unclear
        for rank in wanted:
            ((address, size),) = copy.target
            by = (self.cluster[rank] - _cta(address)) * SHARED_WINDOW
            assert copy.mbarrier is not None
            yield copy._replace(target=((address + by, size),), mbarrier=copy.mbarrier + by)

    def _tensor(self, op: ops.TensorCopy) -> Iterator[Copy]:
        if op.mode != "tile" or op.cta_group != 1:
            raise NotCovered("tensor copies of other modes")
        if not all(map(tensors.covered, self.store.maps)):
            raise NotCovered("tensor maps of other kinds")
        shared = self.number(op.shared)
        if shared % 16:
            raise Misuse("UB102", "UB103", "UB108")
        if shared % 128:
            raise Unclear
        address = self.number(op.tensor_map)
        if address >= SHARED_BASE or address % 64:
            raise Misuse("UB102", "UB108", "UB103", "UB404")
        self.store.place(address, MAP)
        box = Box(address, tuple(map(self.number, op.coords)), op.kind == "store")
        if op.kind == "store":
            if _cta(shared) != self.place.cta.number:
                raise Misuse("UB105", "UB108")
            yield Copy(0, "", ((shared, 16),), (), op.reduce or "", box=box)
            return
        self._into(shared, op.dst_space)
        assert op.mbar is not None
        mbar = self._mbarrier(op.mbar, shared)
        yield from self._cast(Copy(0, "", (), ((shared, 16),), mbarrier=mbar, box=box), op.cta_mask)

    def _store(self, op: ops.AsyncStore) -> Copy:
        if op.mbar is None:
            raise NotCovered("st.async to global memory")
        target, size = self.number(op.address), size_of(op.type)
        whole = size * len(op.srcs)
        if target % whole:
            raise Misuse("UB102", "UB103", "UB108")
        self._into(target, "shared::cluster")
        self.store.place(target, whole)
        if op.reduce and _cta(target) == self.place.cta.number:
            raise Unclear
        held: list[int | None] = []
        for src in op.srcs:
            value = evaluate(src, self.read)
            held += [None] * size if value is None else (known(value) % (1 << 8 * size)).to_bytes(size, "little")
        mbar = self._mbarrier(op.mbar, target)
        place = self.place if op.reduce else None
        return Copy(0, "", (), ((target, whole),), op.reduce or "", op.type, mbar, tuple(held), place=place)
