"""Loads, stores, matrix loads and stores: the memory they access, and the values they return where those matter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx import lane_arithmetic, taint
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, truncate
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.frontend.ptx.memory_layout import PARAM_BASE
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir import ops
from mcheck.ir.expr import Expr, Reg
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import Kind
from mcheck.isa.opcode import READONLY, read_opcode
from mcheck.simt.execution.cluster import YIELD_AFTER, Cluster, Step
from mcheck.simt.execution.compiler import Compiler, Fetch, FindBarrierWait, FindWaits, compiles, no_effect
from mcheck.simt.execution.lanes import WARP, Mask, Quality
from mcheck.simt.execution.strong_writes import STORE
from mcheck.simt.execution.value_numbering import hash_number, number_warp
from mcheck.simt.execution.waits.assumed_failures import detach
from mcheck.simt.execution.waits.polling_loops import PollingLoop
from mcheck.simt.execution.waits.value_tests import AwaitedValue
from mcheck.simt.instructions.access_operands import (
    Indices,
    fetch_lanes,
    to_generic,
    visible_accesses,
)
from mcheck.simt.instructions.awaited_values import await_load, find_waits
from mcheck.simt.instructions.barrier_polls import find_barrier_waits, lone_lanes
from mcheck.simt.instructions.joint_stores import distinct_stores
from mcheck.simt.instructions.looping_loads import LoopFinder, enter_loops, find_loop, note_loaded

# --- ld and st -----------------------------------------------------------------------------------------------


@compiles(Kind.LOAD)
def load_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``ld``: weak loads return the value in the order of this run."""
    if statement.opcode.has(READONLY):
        operation_template(unit.function, statement)  # raises, for it has no model
    target, place = statement.operands[:2]
    assert isinstance(place, ptx.Address)
    space, kind = statement.opcode.space, statement.opcode.type
    size = type_size(kind)
    wanted = k.is_needed(unit, statement)
    rows = k.destination_rows(unit, target) if wanted else []
    op: ops.Load | None = None
    if space in ("param", "local", "const"):
        if not wanted:
            return no_effect
    else:
        plain = read_opcode(("ld", *statement.opcode.parts[1:])).without("nc")
        made = operation_template(unit.function, statement, plain)
        assert isinstance(made, ops.Load)
        op = replace(made, dsts=(None,) * len(made.dsts))
    strong = op is not None and op.sem != "weak"
    may_wait = strong and len(rows) == 1
    may_spin = op is not None and not strong and len(rows) == 1
    may_spin = may_spin and PollingLoop(unit.function, at - unit.start).may_return({})
    return _Load(
        k=k,
        statement=statement,
        at=at,
        op=op,
        size=size,
        fetch=k.fetch(unit, place),
        rows=rows,
        widths=[lane_arithmetic.type_bits(r.type) or 64 for r in operand_registers(target)],
        signed=kind[0] == "s" and size < 8,
        strong=strong,
        waits=find_waits(k, unit, at, size) if may_wait else None,
        spins=find_waits(k, unit, at, size) if may_spin else None,
        barrier_waits=find_barrier_waits(k, unit, at, size) if may_wait else None,
        unit=unit,
        loops=find_loop(k, unit, at) if may_wait else None,
    ).run


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """An ``ld`` of a module, with the code that executes it."""

    k: Compiler
    statement: ptx.Statement
    at: int
    op: ops.Load | None
    """What it is to other threads; ``None`` in memory that is the thread's own, or constant."""
    size: int
    """The bytes of an element."""
    fetch: Fetch
    """Gives the address."""
    rows: list[int | None]
    """The registers that it writes, if those are needed."""
    widths: list[int]
    """Their bits."""
    signed: bool
    """Whether the sign is extended into a wider register."""
    strong: bool
    waits: FindWaits | None
    spins: FindWaits | None
    """The same for a weak load. That orders nothing, so the loop is followed, but it may be one without an end."""
    barrier_waits: FindBarrierWait | None
    unit: Unit
    loops: LoopFinder | None
    """The loops of several loads that begin here."""

    def run(self, c: Cluster, mask: Mask) -> Mask | None:
        """Execute the load for the lanes of the mask, but for those that have to wait."""
        if not self.strong or not c.follows_load_loops or (self.loops is None and not c.looping):
            return self._run(c, mask)
        looping = self._load_in_loop(c, mask)
        rest = mask & ~looping
        if not rest.any():
            return mask
        done = self._run(c, rest)
        if not looping.any():
            return done
        return looping if done is None else looping | done

    def _load_in_loop(self, c: Cluster, mask: Mask) -> Mask:
        """Execute the load for those lanes that are in a loop of several; returns which those are."""
        place = self.at - self.unit.start
        inside, again = enter_loops(c, mask, self.unit, place, self.loops)
        if not inside.any():
            return inside
        (row,) = self.rows
        assert row is not None
        c.check_assumed_failures(inside)
        lanes = np.flatnonzero(inside)
        address = to_generic(fetch_lanes(self.fetch, inside, lanes)[0])
        value, known = c.store.load(address, self.size, lanes)
        if self.signed:
            value = lane_arithmetic.to_signed(value, 8 * self.size).astype(np.uint64)
        value = lane_arithmetic.truncate(value, self.widths[0])
        self.k.lanes.values[row][lanes] = value
        self.k.lanes.quality[row][lanes] = known & ~np.uint8(taint.ORDER)
        c.polls.note_loads(lanes, c.current_pc, address, value)
        for lane, loaded in zip(lanes.tolist(), value.tolist(), strict=True):
            note_loaded(c, lane, place, row - self.unit.frame, loaded)
        c.note_failed_polls(np.array([lane for lane in again if lane in c.looping], np.int64))
        return inside

    def _run(self, c: Cluster, mask: Mask) -> Mask | None:
        if self.strong and c.forced.wanted:
            address = to_generic(fetch_lanes(self.fetch, mask, np.flatnonzero(mask))[0])
            mask = c.hold_back(mask, address, self.size, writes=False)
            if not mask.any():
                return None
        held = np.zeros_like(mask)
        for some, wait in ((mask, None),) if self.waits is None else self.waits(mask):
            if self.barrier_waits is not None and wait is None and c.meetings.followed:
                some = some & ~self._poll_around_barrier(c, some, held, self.barrier_waits)
                if not some.any():
                    continue
            self._execute(c, some, wait)
        if self.spins is not None:
            self._note_spins(c, mask, self.spins)
        if not held.any():
            return mask
        c.pc[held] = c.current_pc
        c.iterations[held] += YIELD_AFTER
        mask = mask & ~held
        return mask if mask.any() else None

    def _note_spins(self, c: Cluster, mask: Mask, spins: FindWaits) -> None:
        """Record weak loads whose values let nothing happen but that the load is repeated: other lanes run first."""
        (row,) = self.rows
        if row is None:
            return
        for some, wait in spins(mask):
            if wait is None:
                continue
            lanes = np.flatnonzero(some)
            values = self.k.lanes.values[row][lanes]
            failed = np.array([not wait.holds(v) for v in values.tolist()], np.bool_)
            c.polls.idle[lanes[~failed]] = 0
            if failed.any():
                address = to_generic(fetch_lanes(self.fetch, some, lanes)[0])
                c.polls.note_loads(lanes[failed], c.current_pc, address[failed], values[failed])

    def _poll_around_barrier(self, c: Cluster, mask: Mask, held: Mask, find: FindBarrierWait) -> Mask:
        """The lanes that poll around a barrier, each the only one of its CTA; those whose attempt fails are ``held``
        here, for failed rounds are not followed.
        """
        out = np.zeros_like(mask)
        for lane in lone_lanes(c, mask):
            one = np.zeros_like(mask)
            one[lane] = True
            address, sure = fetch_lanes(self.fetch, one, np.array([lane]))
            if sure[0] or c.store.load(to_generic(address), self.size, np.array([lane]))[1][0] & ~np.uint8(taint.ORDER):
                continue
            found = find(lane)
            if found is None:
                continue
            out[lane] = True
            c.meetings.begin(lane, found[1])
            self._execute(c, one, found[0])
            (row,) = self.rows
            assert row is not None
            held[lane] = not found[0].holds(int(self.k.lanes.values[row][lane]))
            if held[lane]:
                c.meetings.failed_polls.add(lane)
            else:
                c.iterations[lane] = 0
        return out

    def _execute(self, c: Cluster, mask: Mask, wait: AwaitedValue | None) -> None:
        """Record the load of these lanes, which ends with ``wait`` if it is repeated, and write their registers."""
        lanes = np.flatnonzero(mask)
        address, sure = fetch_lanes(self.fetch, mask, lanes)
        followed = False
        if self.op is not None:
            c.check_assumed_failures(mask)
            address = to_generic(address)
            followed = self._record(c, self.op, mask, lanes, address, sure, wait)
        elif self.statement.opcode.space == "param":
            address = np.where(address < PARAM_BASE, address + np.uint64(PARAM_BASE), address)
        order = np.uint8(taint.ORDER if _depends_on_order(c, self.op, wait, address, self.size) else 0)
        for j, row in enumerate(self.rows):
            if row is not None:
                self._write_register(c, j, row, lanes, address, sure, wait, order=order, followed=followed)

    def _record(
        self, c: Cluster, op: ops.Load, mask: Mask, lanes: Indices, address: Word, sure: Quality,
        wait: AwaitedValue | None,
    ) -> bool:  # fmt: skip
        """Record the load of lanes; returns whether the addresses of all of them are followed."""
        if self.statement.opcode.has("nc"):  # PTX ISA 9.7.9.9: the memory is read only
            c.recorded.assumptions["no thread writes what ld.global.nc reads while the kernel runs"] = None
        found, those = visible_accesses(c, self.statement, address, sure, lanes)
        if len(those):
            if not self.strong:
                c.note_effect(mask)
            if wait is not None:
                c.recorded.record(
                    (self.at, wait), [found], those, lambda v: await_load(op, wait, v[0]), spread=False, again=True
                )
            else:
                proxy = "async" if c.tensor.holds_results(found) else op.proxy
                c.recorded.record(
                    (self.at, proxy), [found], those, lambda v: replace(op, address=v[0], proxy=proxy),
                    spread=not self.strong, again=self.strong,
                )  # fmt: skip
        return len(found) == len(lanes)

    def _write_register(
        self, c: Cluster, j: int, row: int, lanes: Indices, address: Word, sure: Quality, wait: AwaitedValue | None,
        *, order: np.uint8, followed: bool,
    ) -> None:  # fmt: skip
        """Write element ``j`` of what lanes load to their registers; ``order`` says whether it depends on the order of
        the threads.
        """
        values, known, size = self.k.lanes.values, self.k.lanes.quality, self.size
        value, q = c.store.load(address + np.uint64(j * size), min(size, 8), lanes)
        if self.strong and c.forced.wanted:
            value = c.take_forced(lanes, value)
        if self.k.code.atomics_decide:
            c.counters.record_load(address, q)
        if size > 8:  # of 128 bits the lower half is followed
            q = q | c.store.load(address + np.uint64(j * size + 8), 8, lanes)[1]
        if self.signed:
            value = lane_arithmetic.to_signed(value, 8 * size).astype(np.uint64)
        value = lane_arithmetic.truncate(value, self.widths[j])
        values[row][lanes] = value
        if self.strong and wait is None and j == 0:
            c.polls.note_loads(lanes, c.current_pc, address, value)
        failed = [wait is not None and not wait.holds(v) for v in value.tolist()]
        if wait is not None:
            c.note_failed_polls(lanes[failed])
        known[row][lanes] = q | (sure & ~np.uint8(taint.MISSING)) | order
        if c.meetings.receives:
            _receive(c, lanes, self.at, known[row])
        if order and self.strong and followed and len(self.rows) == 1:
            c.recorded.record_loaded(lanes, address, value, (q & ~np.uint8(taint.ORDER)) == 0, failed)
            for lane, where in zip(lanes.tolist(), address.tolist(), strict=True):
                c.strong_writes.add_read(lane, where, size, (lane, len(c.recorded.code[lane]) - 1))
        elif (known[row][lanes] & taint.ORDER).any() and (
            order or c.meetings.are_handed_on(address, size * len(self.rows))
        ):
            c.recorded.has_unbound_values = True


def _receive(c: Cluster, lanes: Indices, at: int, known: Quality) -> None:
    """Lanes that load what a wait hands on learn only that it has ended (``waits.broadcast_waits``)."""
    heard = c.meetings.receives.intersection((lane, at) for lane in lanes.tolist())
    known[[lane for lane, _ in heard]] &= ~np.uint8(taint.ORDER)
    c.meetings.receives -= heard


def _depends_on_order(
    c: Cluster, op: ops.Load | None, wait: AwaitedValue | None, address: Word, size: int
) -> bool:  # fmt: skip
    """Whether the values of a load depend on the order of the threads: those of a strong one, unless it waits for
    exactly that, those of words that threads have written in some order, and, where they have taken locks in some
    order, those of any load.
    """
    if op is None:
        return False
    if op.sem != "weak":
        return wait is None or not wait.condition_only
    written = c.strong_writes
    reach = size * len(op.dsts)
    return c.lock_taken or (
        bool(written.disordered) and any(written.are_disordered(a, reach) for a in address.tolist())
    )


@compiles(Kind.STORE)
def store_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``st``."""
    place, source = statement.operands[:2]
    assert isinstance(place, ptx.Address)
    space, size = statement.opcode.space, type_size(statement.opcode.type)
    fetch = k.fetch(unit, place)
    items = source.items if isinstance(source, ptx.Vector) else (source,)
    keeps = k.code.stores_decide or space in ("param", "local")
    sources = [k.fetch(unit, x) for x in items] if keeps and size <= 8 else []
    op: ops.Store | None = None
    if space not in ("param", "local"):
        made = operation_template(unit.function, statement)
        assert isinstance(made, ops.Store)
        op = made
    data = tuple(Reg("data") for _ in items)

    def run(c: Cluster, mask: Mask) -> Mask | None:
        lanes = np.flatnonzero(mask)
        address, sure = fetch_lanes(fetch, mask, lanes)
        if keeps and op is not None and c.forced.wanted:
            mask = c.hold_back(mask, to_generic(address), size, writes=True)
            if not mask.any():
                return None
            lanes = np.flatnonzero(mask)
            address, sure = fetch_lanes(fetch, mask, lanes)
        given = [fetch_lanes(s, mask, lanes) for s in sources]
        if c.meetings.hands_on and not c.meetings.hands_on.isdisjoint((lane, at) for lane in lanes.tolist()):
            given = [(v, q | np.uint8(taint.ORDER)) for v, q in given]
            c.meetings.hands_on.difference_update((lane, at) for lane in lanes.tolist())
        if op is not None:
            c.check_assumed_failures(mask)
            c.note_effect(mask)
            address = to_generic(address)
            c.tensor.record_stores(address, size * len(items))
            found, those = visible_accesses(c, statement, address, sure, lanes)
            exact = (
                (op.sem != "weak" or k.code.stores_needed)
                and len(given) == len(items)
                and not any(q.any() for _, q in given)
            )
            leaves = [found, *((v for v, _ in given) if exact and len(those) == len(lanes) else ())]
            if op.sem == "weak" and len(those):
                stored = given
                if len(those) < len(lanes):  # of the others the address is not known
                    placed = np.isin(lanes, those)
                    stored = [(v[placed], q[placed]) for v, q in given]
                one = distinct_stores(c, statement, found, size * len(items), stored, those)
                those, leaves = those[one], [leaf[one] for leaf in leaves]
            if len(those):
                c.recorded.record(
                    at, leaves, those,
                    lambda v: replace(op, address=v[0], srcs=tuple(v[1:]) or data), spread=op.sem == "weak",
                )  # fmt: skip
            if not exact and op.sem != "weak" and len(given) == len(items) and len(those) == len(lanes):
                c.recorded.record_stored(lanes, given)
        step = min(size, 8)
        if keeps and size > 8:  # the halves of 128 bits
            given = [(np.zeros(len(lanes), np.uint64), np.full(len(lanes), taint.UNKNOWN_NAMELESS, np.uint8))] * 2
        if op is not None and keeps and (op.sem != "weak" or c.strong_writes.latest):
            _note_writes(c, op, address, lanes, given, step)
        for j, (value, q) in enumerate(given):
            c.store.save(address + np.uint64(j * step), step, lanes, value, detach(q))
        if space == "local" and sure.any():
            c.store.blur(lanes[sure != 0], sure[sure != 0])
        return mask

    return run


def _note_writes(
    c: Cluster, op: ops.Store, address: Word, lanes: Indices, given: list[tuple[Word, Quality]], size: int
) -> None:  # fmt: skip
    """Note which stores may come in several orders."""
    for j, (value, q) in enumerate(given):
        at = (address + np.uint64(j * size)).tolist()
        if op.sem == "weak":
            c.strong_writes.add_weak(at, size)
            continue
        for lane, where, stored, unsure in zip(lanes.tolist(), at, value.tolist(), q.tolist(), strict=True):
            told = -1 - c.strong_writes.now if unsure else stored
            c.strong_writes.add_write(lane, where, size, (STORE, told))


# --- matrices -----------------------------------------------------------------------------------------------


@compiles(Kind.MATRIX_LOAD, Kind.MATRIX_STORE)
def matrix_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``ldmatrix`` and ``stmatrix``: lane k accesses the row that its address names, as many lanes as there
    are rows (9.7.15.5.15, 9.7.15.5.16).
    """
    loads = statement.kind is Kind.MATRIX_LOAD
    place = statement.place
    fetch = k.fetch(unit, place)
    count = int((statement.opcode.choice(("x1", "x2", "x4")) or "x1")[1:])
    rows = count * (8 if statement.opcode.has("m8n8") else 16)
    section = "9.7.15.5.15" if loads else "9.7.15.5.16"
    space = "shared::cta" if statement.opcode.space == "shared" else "generic"
    common = {"span": statement.span, "text": statement.text, "section": section, "type": "b32", "space": space}
    if statement.opcode.has("m16n8"):
        rows = count * 8
    opaque = _loaded_names(k, unit, statement) if loads and k.is_needed(unit, statement) else None
    sources = (
        [k.fetch(unit, r) for r in operand_registers(statement.operands[1])]
        if not loads and k.code.stores_decide
        else []
    )

    def made(address: Expr) -> ops.Op:
        if loads:
            return ops.Load(dsts=(None,) * 4, address=address, **common)  # type: ignore[arg-type]
        return ops.Store(srcs=(Reg("data"),) * 4, address=address, **common)  # type: ignore[arg-type]

    def run(c: Cluster, mask: Mask) -> Mask:
        c.check_assumed_failures(mask)
        c.note_effect(mask)
        lanes = np.flatnonzero(mask)
        lanes = lanes[lanes % 32 < rows]
        address, sure = fetch_lanes(fetch, mask, lanes)
        address = to_generic(address)
        found, those = visible_accesses(c, statement, address, sure, lanes)
        if not loads:
            c.tensor.record_stores(address, 16)
            name, state = _row_names(sources, mask)
            if len(those) == len(lanes):
                given = [(name[lanes], state[lanes])] if k.code.stores_named else []
                one = distinct_stores(c, statement, found, 16, given, lanes)
                found, those = found[one], those[one]
            for j in range(2 if sources else 0):
                c.store.save(
                    address + np.uint64(8 * j), 8, lanes, hash_number(name + np.uint64(j))[lanes], state[lanes]
                )
        if len(those):
            c.recorded.record(at, [found], those, lambda v: made(v[0]), spread=True)
        if opaque is not None:
            opaque(c, mask, address, lanes)
        return mask

    return run


def _row_names(sources: list[Fetch], mask: Mask) -> tuple[Word, Quality]:
    """The name, in each lane, of the row that a warp stores at the lane's address."""
    given = [source() for source in sources]
    name = number_warp([value for value, _ in given], mask)
    state = np.bitwise_or.reduce([np.zeros(len(mask), np.uint8), *(q for _, q in given)])
    lost = ((state & ~np.uint8(taint.UNKNOWN)) != 0) & mask
    whole = np.repeat(lost.reshape(-1, WARP).any(axis=1), WARP)
    return name, np.where(whole, np.uint8(taint.UNKNOWN_NAMELESS), np.uint8(taint.UNKNOWN))


def _loaded_names(k: Compiler, unit: Unit, statement: ptx.Statement) -> Callable[[Cluster, Mask, Word, Indices], None]:
    """Set the results of ``ldmatrix``: names computed from the contents of the rows, or unknown."""
    rows = k.register_rows(unit, statement.defs)
    values, known = k.lanes.values, k.lanes.quality

    def run(c: Cluster, mask: Mask, address: Word, lanes: Indices) -> None:
        words = np.zeros((2, len(mask)), np.uint64)
        state = np.zeros(len(mask), np.uint8)
        for j in range(2):
            words[j, lanes], q = c.store.load(address + np.uint64(8 * j), 8, lanes)
            state[lanes] |= q
        lost = np.repeat((state.reshape(-1, WARP) & ~np.uint8(taint.UNKNOWN)).any(axis=1), WARP)
        name = number_warp([*words], mask)
        for j, row in enumerate(rows):
            np.copyto(values[row], truncate(hash_number(name + np.uint64(j)), 32), where=mask)
            known[row][mask] = np.where(lost, taint.UNKNOWN_NAMELESS, taint.UNKNOWN)[mask]

    return run
