"""Atomics: the words they access, and the values they return where those matter."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, is_floating, is_packed
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir import ops
from mcheck.ir.expr import Const, Reg
from mcheck.ir.memory import SHARED_WINDOW
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.isa.opcode import read_opcode
from mcheck.semantics.reductions import atomic
from mcheck.simt.execution.cluster import YIELD_AFTER, Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch, FindBarrierWait, FindWaits, compiles
from mcheck.simt.execution.forced_values import Observation
from mcheck.simt.execution.lanes import WARP, Lanes, Mask, Quality
from mcheck.simt.execution.strong_writes import written_by_atomic
from mcheck.simt.execution.waits.counters import ASSUMED
from mcheck.simt.execution.waits.two_valued_locks import TwoValuedLock
from mcheck.simt.execution.waits.value_tests import AwaitedValue, as_number
from mcheck.simt.instructions.access_operands import (
    Indices,
    fetch_expression,
    fetch_lanes,
    to_generic,
    visible_accesses,
)
from mcheck.simt.instructions.awaited_values import find_waits
from mcheck.simt.instructions.barrier_polls import find_barrier_waits, lone_lanes

OBSERVED = Reg("taken")
"""The value returned by a swap that is repeated until it succeeds."""


@compiles(Kind.ATOMIC, Kind.REDUCTION)
def atomic_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``atom`` and ``red``; the returned values depend on the order of the threads."""
    one, elements = _scalar_operation(statement)
    op = operation_template(unit.function, one)
    assert isinstance(op, ops.Atomic)
    place, size = statement.place, type_size(op.type)
    wanted = statement.kind is Kind.ATOMIC and k.is_needed(unit, statement)
    rows = k.destination_rows(unit, statement.operands[0]) if wanted else []
    stores = k.code.stores_decide and size <= 8 and elements == 1
    swaps = stores and wanted and op.op == "cas"
    takes = (swaps or (stores and wanted and op.op == "exch")) and len(rows) == 1
    return _Atomic(
        statement=statement,
        at=at,
        op=op,
        size=size,
        elements=elements,
        fetch=k.fetch(unit, place),
        sources=[fetch_expression(s, k, unit) for s in op.srcs],
        lanes=k.lanes,
        rows=rows,
        wanted=wanted,
        stores=stores,
        forgets=k.code.stores_decide and not stores,
        swaps=swaps,
        variable=None if k.code.stores_named else cache(lambda: shared_variable_range(k, unit, place)),
        compared=wanted and statement.operands[0] in k.compared_registers(unit),
        waits=find_waits(k, unit, at, size) if takes else None,
        barrier_waits=find_barrier_waits(k, unit, at, size) if takes else None,
    ).run


@dataclass(frozen=True, slots=True)
class _Attempts:
    """Swaps that are repeated until the value that they return satisfies ``wait``, until when they change nothing: if
    ``values`` is given, as long as the word holds no others.
    """

    wait: AwaitedValue
    values: TwoValuedLock | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Atomic:
    """An ``atom`` or ``red`` of a module, with the code that executes it."""

    statement: ptx.Statement
    at: int
    op: ops.Atomic
    size: int
    elements: int
    fetch: Fetch
    """Gives the address."""
    sources: list[Fetch]
    lanes: Lanes
    rows: list[int | None]
    """The registers of the values that it returns, if those are needed."""
    wanted: bool
    """Whether they are needed."""
    stores: bool
    """Whether the contents of the word are followed."""
    forgets: bool
    """Whether they matter, and are not followed: those of vectors, pairs and words of 128 bits."""
    swaps: bool
    """Whether it is a compare-and-swap of such a word, and its result is needed."""
    compared: bool
    """Whether the values that it returns are only compared with others."""
    variable: Callable[[], tuple[int, int] | None] | None
    """The range of the variable from which the address is computed, if one that depends on data can be placed in it."""
    waits: FindWaits | None
    barrier_waits: FindBarrierWait | None

    def run(self, c: Cluster, mask: Mask) -> Mask | None:
        """Execute the atomic for the lanes of the mask, but for those that have to wait."""
        for some, wait in ((mask, None),) if self.waits is None else self.waits(mask):
            if self.barrier_waits is not None and wait is None and c.meetings.followed:
                asked, held = self._attempt_for_others(c, some, self.barrier_waits)
                some = some & ~asked
                mask = mask & ~held
                if not some.any():
                    continue
            lock = None
            if wait is not None:
                lanes = np.flatnonzero(some)
                lock = self._find_lock(c, wait, [fetch_lanes(f, some, lanes) for f in self.sources])
            now = some & ~self._put_off(c, some) if self.swaps and lock is None else some
            if self.stores and c.forced.wanted and now.any():
                address = to_generic(fetch_lanes(self.fetch, now, np.flatnonzero(now))[0])
                now = c.hold_back(now, address, self.size, writes=True)
            if now.any():
                self._execute(c, now, lock)
            mask = mask & (now | ~some)
        return mask if mask.any() else None

    def _find_lock(self, c: Cluster, wait: AwaitedValue, given: list[tuple[Word, Quality]]) -> _Attempts | None:
        """What these swaps are attempts at, if the execution follows such locks."""
        lock = _find_lock(wait, self.op, given, self.size)
        return None if lock is not None and lock.values is not None and not c.follows_two_valued_locks else lock

    def _attempt_for_others(self, c: Cluster, mask: Mask, find: FindBarrierWait) -> tuple[Mask, Mask]:
        """The lanes that attempt to take a lock for others, each the only one of its CTA, and those of them whose
        attempt fails: they stay here, for failed rounds are not followed.
        """
        asked, held = np.zeros_like(mask), np.zeros_like(mask)
        for lane in lone_lanes(c, mask):
            one = np.arange(len(mask)) == lane
            place = fetch_lanes(self.fetch, one, np.array([lane]))
            given = [fetch_lanes(f, one, np.array([lane])) for f in self.sources]
            if c.forced.wanted or any(q.any() for _, q in (place, *given)) or (found := find(lane)) is None:
                continue
            lock = self._find_lock(c, found[0], given)
            if lock is None:
                continue
            asked[lane] = True
            c.meetings.begin(lane, found[1])
            self._execute(c, one, lock)
            c.meetings.hold &= isinstance(c.recorded.code[lane][-1], ops.Await)
            held[lane] = lane in c.lock_requests
            c.iterations[lane] = c.iterations[lane] + YIELD_AFTER if held[lane] else 0
            if held[lane]:
                c.meetings.failed_polls.add(lane)
        c.pc[held] = c.current_pc
        return asked, held

    def _put_off(self, c: Cluster, mask: Mask) -> Mask:
        """The lanes that let others go first: their swap would fail, or fails when one of these lanes has done its."""
        lanes, out, taken = np.flatnonzero(mask), np.zeros_like(mask), set[int]()
        (address, q), (expected, r), (new, s) = (fetch_lanes(f, mask, lanes) for f in (self.fetch, *self.sources))
        told = zip(
            lanes.tolist(), to_generic(address).tolist(), expected.tolist(), (new != expected).tolist(), strict=True
        )
        for (lane, where, old, changes), unsure in zip(told, (q | r | s).tolist(), strict=True):
            if unsure or not changes:
                continue
            out[lane] = c.defer_swap(lane, where, self.size, old, taken=where in taken)
            if not out[lane]:
                taken.add(where)
        return out

    def _execute(self, c: Cluster, mask: Mask, lock: _Attempts | None) -> None:
        """Record the atomic of these lanes, and update the word and their registers."""
        lanes = np.flatnonzero(mask)
        address, sure = fetch_lanes(self.fetch, mask, lanes)
        address = to_generic(address)
        given = [fetch_lanes(s, mask, lanes) for s in self.sources]
        c.check_assumed_failures(mask)
        sure, kept = self._place_unknown(c, lanes, address, sure)
        c.tensor.record_stores(address, self.size * self.elements)
        found, those = visible_accesses(c, self.statement, address[kept], sure[kept], lanes[kept])
        exact = self.stores and not any(q.any() for _, q in given) and len(those) == len(lanes)
        leaves = [found, *((v for v, _ in given) if exact else ())]
        if lock is not None and exact:
            self._take_lock(c, lanes, found, leaves, given, lock)
            return
        c.note_effect(mask)
        data = tuple(Reg("data") for _ in self.op.srcs)
        for element in range(self.elements if len(those) else 0):
            c.recorded.record(
                (self.at, element), [leaves[0] + np.uint64(element * self.size), *leaves[1:]], those,
                lambda v: replace(self.op, dst=None, address=v[0], srcs=tuple(v[1:]) or data), spread=False,
            )  # fmt: skip
        bound = exact and self.elements == 1
        if not bound:
            c.recorded.unknown_atomics.update(found.tolist())
        elif any(row is not None for row in self.rows):
            c.recorded.decisive_atomics.update(found.tolist())
        if self.stores:
            self._update(c, lanes, address, sure, given, found, bound=bound)
            return
        for lane, at in zip(lanes.tolist(), address.tolist(), strict=True) if self.forgets else ():
            c.store.forget(at, self.size * self.elements)
            what = written_by_atomic(self.op.op, self.op.type, c.strong_writes.now)
            c.strong_writes.add_write(lane, at, self.size * self.elements, what)
        for row in self.rows:
            if row is not None:
                self.lanes.quality[row][lanes] = taint.UNKNOWN_NAMELESS

    def _place_unknown(
        self, c: Cluster, lanes: Indices, address: Word, sure: Quality
    ) -> tuple[Quality, NDArray[np.bool_]]:
        """What is known of the addresses, and which lanes are followed, where addresses depend on data: those that are
        in the one variable from which they are computed count as known.
        """
        kept = np.ones(len(lanes), np.bool_)
        if self.variable is None or not (sure & taint.UNKNOWN).any() or (bounds := self.variable()) is None:
            return sure, kept
        offset = address % np.uint64(SHARED_WINDOW)
        inside = (offset >= bounds[0]) & (offset < bounds[1]) & (offset % self.size == 0)
        zero = (sure == taint.UNKNOWN_NAMELESS) & inside
        if zero.any():  # by one lane of each warp: atomics do not race with each other
            c.recorded.note_gap("the address depends on data: the one for zeros was followed", self.statement.span)
            last = lanes[zero][np.append(np.diff(lanes[zero] // WARP) != 0, True)]
            sure = np.where(np.isin(lanes, last), np.uint8(0), sure)
            kept = ~zero | np.isin(lanes, last)
        return sure, kept

    def _update(
        self, c: Cluster, lanes: Indices, address: Word, sure: Quality, given: list[tuple[Word, Quality]], found: Word,
        *, bound: bool,
    ) -> None:  # fmt: skip
        """Update the words and the registers of the lanes, one after the other; ``bound``: the values that they return
        are those of recorded operations.
        """
        op, size, needed = self.op, self.size, any(row is not None for row in self.rows)
        counted = taint.ORDER
        if not c.counters.sizes.keys().isdisjoint(found.tolist()):
            assumed = ASSUMED.format("counter", c.counters.start)
            c.recorded.note_gap(assumed, self.statement.span, assumes_contents=True)
            counted |= taint.COUNTED
        for j, lane in enumerate(lanes.tolist()):
            one = np.array([lane])
            old, q = c.store.load(address[j : j + 1], size, one)
            forced = c.forced.take(lane, len(c.recorded.code[lane]) - 1)
            if forced is not None:
                old = np.array([forced], np.uint64)
            new, r = updated_value(op, int(old[0]), [int(v[j]) for v, _ in given])
            if op.op == "cas":
                c.recorded.record_swap(lane, self.at)
            place = lane, len(c.recorded.code[lane]) - 1
            if self.compared:
                # What is said of the initial value of a counter goes by the number itself.
                c.recorded.told_apart.draw(self.rows, place, size, sure=bound and not q[0] and counted == taint.ORDER)
            if bound and not q[0]:
                c.recorded.returned[place] = Observation(int(address[j]), int(old[0]))
            elif bound:
                c.recorded.unknown_atomics.add(int(address[j]))
            elif not q[0] and needed:
                c.recorded.has_unbound_values = True
            if not sure[j]:
                known = not any(x[j] for _, x in given)
                c.counters.record_atomic(
                    op, int(address[j]), size, int(given[0][0][j]), held=not q[0], wanted=self.wanted, known=known
                )
            state = q | np.bitwise_or.reduce([x[j] for _, x in given]) | np.uint8(taint.UNKNOWN_NAMELESS if r else 0)
            c.store.save(address[j : j + 1], size, one, np.array([new], np.uint64), state)
            c.strong_writes.add_write(
                lane, int(address[j]), size, written_by_atomic(op.op, op.type, c.strong_writes.now)
            )
            for row in self.rows:
                if row is not None:
                    self.lanes.values[row][lane] = old[0]
                    self.lanes.quality[row][lane] = q[0] | counted

    def _take_lock(
        self, c: Cluster, lanes: Indices, address: Word, leaves: list[Word], given: list[tuple[Word, Quality]],
        lock: _Attempts,
    ) -> None:  # fmt: skip
        """One of the lanes takes the lock, if it is free; the others are to ask again."""
        op, wait = self.op, lock.wait
        compare = wait.operator, Const(wait.right)
        new = np.array([lane not in c.lock_requests for lane in lanes.tolist()])
        if new.any():
            c.recorded.record(
                (self.at, wait), [leaf[new] for leaf in leaves], lanes[new],
                lambda v: ops.Await(
                    inner=replace(op, dst=OBSERVED, address=v[0], srcs=tuple(v[1:])), compare=compare, span=op.span,
                    text=op.text, section=op.section, settled=True,
                ),
                spread=False,
            )  # fmt: skip
        c.lock_requests.update(lanes.tolist())
        c.lock_taken = True
        (row,) = self.rows
        assert row is not None
        for j, lane in enumerate(lanes.tolist()):
            one = np.array([lane])
            old, q = c.store.load(address[j : j + 1], self.size, one)
            self.lanes.values[row][lane], self.lanes.quality[row][lane] = old[0], q[0]
            if lock.values is not None:
                c.note_two_valued_lock(int(address[j]), lock.values)
            first = int(given[0][0][j])
            c.counters.record_atomic(op, int(address[j]), self.size, first, held=not q[0], wanted=True, known=True)
            if q[0] or not wait.holds(int(old[0])):
                c.note_failed_polls(one)
                continue
            c.lock_requests.discard(lane)
            c.note_effect(np.arange(len(c.pc)) == lane)
            c.store.save(address[j : j + 1], self.size, one, given[-1][0][j : j + 1], np.zeros(1, np.uint8))


def _find_lock(
    wait: AwaitedValue, op: ops.Atomic, given: list[tuple[Word, Quality]], size: int
) -> _Attempts | None:  # fmt: skip
    """What swaps of these operands, which are repeated until ``wait``, are attempts at; ``None`` if failed ones may
    change something.

    A compare-and-swap that does not find what it expects changes nothing. An exchange does not if it finds what it
    writes. The words of locks hold two values, so that whoever does not find the one finds the other.
    """
    if not _is_one_number(*given[0]):
        return None
    top = (1 << 8 * size) - 1
    right = wait.right & top
    free = int(given[0][0][0]) & top if op.op == "cas" else right if wait.operator == "==" else 0
    if wait.operator == "==" and right == free and op.op == "cas":
        return _Attempts(wait)
    if not _is_one_number(*given[-1]):
        return None
    taken = int(given[-1][0][0]) & top
    if free == taken or (wait.operator, right) not in (("==", free), ("!=", taken)):
        return None
    succeeds = replace(wait, operator="==", right=as_number(free, wait.type))
    return _Attempts(succeeds, TwoValuedLock(size, free, taken, op.scope))


def _is_one_number(values: Word, known: Quality) -> bool:
    """Whether an operand is the same known number in all lanes."""
    return not known.any() and not (values != values[:1]).any()


def shared_variable_range(k: Compiler, unit: Unit, place: ptx.Address) -> tuple[int, int] | None:
    """The range, in a CTA's shared memory, of the one variable from which an address is computed.

    An address that depends on data is that variable's plus an index: unknown data reads as zero, so the address with
    index zero is in it, one of those that other data would give. Atomics may well all have the same one.
    """
    todo, known, named = list(operand_registers(place)), set[ptx.Register](), set[str]()
    if isinstance(place.base, ptx.Symbol):
        named.add(place.base.name)
    while todo:
        register = todo.pop()
        if register in known:
            continue
        known.add(register)
        for statement in unit.function.body:
            if register in statement.defs and statement.only_computes:
                named |= {o.name for o in statement.operands if isinstance(o, ptx.Symbol)}
                todo += statement.uses
    shared = [key for name in named for key in ((unit.function.name, name), ("", name)) if key in k.places.shared]
    if len(shared) != 1:
        return None
    start = k.places.symbols[shared[0]]
    item = unit.function.variables.get(shared[0][1]) or k.module.variables[shared[0][1]]
    return start, k.places.shared_size if item.size is None else start + item.size


def _scalar_operation(statement: ptx.Statement) -> tuple[ptx.Statement, int]:
    """The operation on one element of a vector or pair, and the number of elements: each is atomic on its own, in any
    order (9.7.13.5). The results of floating-point operations do not matter; ``add`` stands in for all of them.
    """
    count, (*front, kind) = statement.opcode.vector, statement.opcode.parts
    if count == 1 and not kind.endswith("x2") and kind not in ("f16", "bf16"):
        return statement, 1
    words = ("add" if part in ("min", "max") else part for part in front)
    opcode = read_opcode((*words, kind.removesuffix("x2"))).without(f"v{count}")
    operands = tuple(o.items[0] if isinstance(o, ptx.Vector) else o for o in statement.operands)
    scalar = replace(statement, opcode=opcode, operands=operands)
    return scalar, count * (2 if kind.endswith("x2") else 1)


def updated_value(op: ops.Atomic, old: int, given: list[int]) -> tuple[int, bool]:
    """The value that an atomic leaves, and whether it is unknown."""
    if is_floating(op.type) or is_packed(op.type):
        return 0, True
    try:
        return atomic(op.op, op.type, old, given), False
    except KeyError:
        return 0, True
