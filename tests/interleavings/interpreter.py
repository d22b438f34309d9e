"""What the threads of a program may do in a state, one instruction at a time, sequentially consistent.

Every interleaving of these steps is an execution of the PTX model (chapter 8): the model allows more, never less. What
needs no memory (arithmetic, branches, fences) is done at once, since nobody sees when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mcheck.ir import ops
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.ir.program import Program
from tests.interleavings import barriers, copies, mbarriers
from tests.interleavings.arithmetic import brought, combined, compares, evaluate, known, local, size_of
from tests.interleavings.issue import Issue
from tests.interleavings.memory import MAP, Store
from tests.interleavings.state import NOWHERE, Copy, Misuse, NotCovered, State, Thread, Token, Unclear, Value

NOTHING = (ops.Label, ops.Fence, ops.ProxyFence, ops.Prefetch, ops.WgmmaFence)
"""What an interleaving does not show."""
SHARED = (
    *(ops.Load, ops.Store, ops.Fill, ops.Atomic, ops.Await, ops.Barrier, ops.ClusterBarrier, ops.WarpSync),
    *(ops.MbarrierInit, ops.MbarrierInval, ops.MbarrierTx, ops.MbarrierArrive, ops.MbarrierWait),
    *(ops.CpAsync, ops.WaitGroup, ops.CpAsyncArrive, ops.BulkCopy, ops.TensorCopy, ops.AsyncStore, ops.Wgmma),
    *(ops.TensormapReplace, ops.TensormapCopyFence),
)
"""What others may see, or wait for."""
LOCAL = (*NOTHING, ops.Alu, ops.Branch, ops.Exit, ops.Commit, ops.MbarrierPending)


@dataclass(frozen=True, slots=True)
class Step:
    """What may come next: the state behind it, or why there is none."""

    text: str
    after: State | Misuse | None


class Machine:
    """A program and its steps; raises ``NotCovered``."""

    def __init__(self, program: Program) -> None:
        self.declared = program.threads
        self.store = Store(program.memory)
        self.names: list[dict[str, int]] = []
        for t in program.threads:
            names = {
                name: k for k, name in enumerate(sorted(set(t.init) | {r for op in t.code for r in _registers(op)}))
            }
            self.names.append(names)
        self._check(program)
        self.commits = [
            any(isinstance(op, ops.Commit) and op.family == "wgmma" for op in t.code) for t in program.threads
        ]
        kinds = {type(op) for t in program.threads for op in t.code}
        asynchronous = {ops.BulkCopy, ops.TensorCopy, ops.Wgmma} & kinds
        self.unfenced = bool(asynchronous) and not {ops.ProxyFence, ops.TensormapCopyFence} & kinds
        """Whether there are operations of the async proxy and no fence leads to them from the generic one: what threads
        have accessed by then is not ordered before what these access (9.7.9.25.2; open questions Q1, Q5).
        """
        self.initial = {k: t.init for k, t in enumerate(program.threads)}
        self.dialect = program.dialect

    def _check(self, program: Program) -> None:
        warps = [(t.place.own_warp, t.place.cta) for t in program.threads]
        lanes = len(set(warps)) < len(warps)
        for op in (op for t in program.threads for op in t.code):
            inner = ops.performed_operation(op)
            if not isinstance(inner, SHARED + LOCAL):
                raise NotCovered(type(inner).__name__)
            if isinstance(inner, ops.BulkCopy) and inner.is_strong:
                raise NotCovered("strong copies")
            if lanes and isinstance(inner, ops.Barrier | ops.WarpSync | ops.ClusterBarrier):
                raise NotCovered("barriers of warps")
            if isinstance(inner, ops.Barrier) and inner.instance is not None:
                raise NotCovered("barriers of the table dialect")
            if getattr(inner, "proxy", "generic") != "generic":
                raise NotCovered("other proxies")
            if isinstance(op, ops.Await) and op.followed:
                raise NotCovered("code of one way")

    def first(self) -> State | Misuse:
        """The state before anything but local instructions."""
        threads = []
        for k, names in enumerate(self.names):
            start = 0 if self.dialect else None
            threads.append(Thread(0, tuple(self.initial[k].get(name, start) for name in names)))
        state = State(tuple(threads), self.store.first)
        try:
            for k in range(len(threads)):
                state = self.settled(state, k)
            return barriers.complete(state, self.declared, self._release)
        except Misuse as wrong:
            return wrong
        except Unclear:
            raise NotCovered("a start that nobody knows") from None

    # --- registers ----------------------------------------------------------------------------------------

    def _read(self, thread: Thread, index: int) -> Callable[[str], Value]:
        names = self.names[index]
        return lambda name: thread.registers[names[name]]

    def _set(self, thread: Thread, index: int, register: Reg | None, value: Value) -> Thread:
        if register is None:
            return thread
        at = self.names[index][register.name]
        return thread._replace(registers=(*thread.registers[:at], value, *thread.registers[at + 1 :]))

    def number(self, state: State, index: int, expr: Expr) -> int:
        """An operand whose value has to be known."""
        return known(evaluate(expr, self._read(state.threads[index], index)))

    # --- what nobody sees ---------------------------------------------------------------------------------

    def settled(self, state: State, index: int) -> State:
        """The state with a thread before its next instruction that others may see or wait for."""
        thread = state.threads[index]
        seen = set()
        while not thread.over:
            code = self.declared[index].code
            if thread.at >= len(code):
                thread = thread._replace(over=True)
                break
            op = code[thread.at]
            if isinstance(op, ops.Branch):
                if (thread.at, thread.registers) in seen:
                    thread = thread._replace(waits=("spin",))
                    break
                seen.add((thread.at, thread.registers))
            if op.guard is not None:
                holds = known(self._read(thread, index)(op.guard.reg.name)) != 0
                if holds == op.guard.negated:
                    thread = thread._replace(at=thread.at + 1)
                    continue
            if not isinstance(op, LOCAL):
                break
            thread = self._local(thread, index, op)
        if thread.over:
            kept = {
                "registers": thread.registers,
                "plain": thread.plain,
                "bulk": thread.bulk,
                "loose": thread.loose,
                "wgmma": thread.wgmma,
            }
            thread = Thread(len(self.declared[index].code), over=True, signals=thread.signals, **kept)
        return state.with_thread(index, thread)

    def _local(self, thread: Thread, index: int, op: ops.Op) -> Thread:
        read = self._read(thread, index)
        on = thread._replace(at=thread.at + 1)
        match op:
            case ops.Alu():
                for dst, value in zip(op.dsts, local(op, read), strict=False):
                    on = self._set(on, index, dst, value)
            case ops.Branch():
                taken = op.condition is None or known(evaluate(op.condition, read)) != 0
                return thread._replace(at=self.declared[index].labels[op.target]) if taken else on
            case ops.Exit():
                return thread._replace(over=True)
            case ops.Commit(family="cp.async"):
                return on._replace(plain=copies.committed(thread.plain), written=())
            case ops.Commit(family="bulk"):
                return on._replace(bulk=copies.committed(thread.bulk))
            case ops.Commit(family="wgmma"):
                return on._replace(wgmma=(*thread.wgmma, ()))
            case ops.Commit():
                raise NotCovered(op.family)
            case ops.MbarrierPending():
                return self._set(on, index, op.dst, mbarriers.pending(evaluate(op.state, read)))
        return on

    def _release(self, state: State, index: int, result: int | None) -> State:
        thread = state.threads[index]
        op = self.declared[index].code[thread.at]
        assert isinstance(op, ops.Barrier)
        if result is not None:
            everybody = len([t for t in self.declared if t.place.cta == self.declared[index].place.cta])
            if op.red_op != "popc" and everybody > 2:
                raise NotCovered("bar.red.and and .or")
            thread = self._set(thread, index, op.dst, result)
        return self.settled(state.with_thread(index, thread._replace(at=thread.at + 1, waits=None)), index)

    # --- steps --------------------------------------------------------------------------------------------

    def steps(self, state: State) -> Iterator[Step]:
        """All that may come next; a step whose outcome nobody knows leads nowhere."""
        for index, thread in enumerate(state.threads):
            for text, _, after in copies.steps(self.store, self.declared, state, index):
                yield Step(text, after)
            if thread.over or thread.waits is not None:
                continue
            op = self.declared[index].code[thread.at]
            text = f"{self.declared[index].name}: {op.text}"
            try:
                new = self._step(state, index, op)
                if new is not None:
                    new = barriers.complete(self.settled(new, index), self.declared, self._release)
                    yield Step(text, new)
            except Misuse as wrong:
                yield Step(text, wrong)
            except Unclear:
                yield Step(text, None)

    def _step(self, state: State, index: int, op: ops.Op) -> State | None:
        """One instruction; nothing if it waits."""
        thread = state.threads[index]
        on = state.with_thread(index, thread._replace(at=thread.at + 1))
        match op:
            case ops.Await():
                return self._await(state, on, index, op)
            case ops.Barrier():
                return self._barrier(state, index, op)
            case ops.ClusterBarrier(kind="arrive"):
                return barriers.arrive_in_cluster(on, index)
            case ops.ClusterBarrier():
                if not thread.arrived:
                    raise Misuse("UB306")
                left = on.threads[index]._replace(arrived=0)
                return on.with_thread(index, left) if thread.arrived == 2 else None
            case ops.WarpSync():
                return on
            case ops.WaitGroup():
                return self._wait_group(state, on, index, op)
            case ops.CpAsync() | ops.BulkCopy() | ops.TensorCopy() | ops.AsyncStore() | ops.Wgmma():
                return self._issue(state, on, index, op)
            case ops.TensormapReplace() | ops.TensormapCopyFence():
                return self._map(state, on, index, op)
            case ops.Load() | ops.Store() | ops.Fill() | ops.Atomic():
                return self._access(state, on, index, op)
        return self._mbarrier(state, on, index, op)

    def _await(self, state: State, on: State, index: int, op: ops.Await) -> State | None:
        """A wait goes on once it finds what it waits for; an atomic does its work in vain too (interface, `await`)."""
        inner = op.inner
        if isinstance(inner, ops.MbarrierWait):
            new, passed = self._look(on, index, inner)
            return new if passed else None
        if op.compare is None or not isinstance(inner, ops.Load | ops.Atomic):
            raise NotCovered("await of something else")
        after = self._access(state, on, index, inner)
        dst = inner.dsts[0] if isinstance(inner, ops.Load) else inner.dst
        if dst is None:
            raise NotCovered("await without a register")
        found = known(self._read(after.threads[index], index)(dst.name))
        sign, right = op.compare
        if compares(sign, found, self.number(state, index, right)):
            return after
        if after.memory == state.memory:
            return None
        return after.with_thread(index, after.threads[index]._replace(at=state.threads[index].at))

    def _barrier(self, state: State, index: int, op: ops.Barrier) -> State:
        if op.barrier is None:
            raise NotCovered("a barrier without a number")
        number = self.number(state, index, op.barrier)
        count = None if op.count is None else self.number(state, index, op.count)
        brings = None
        if op.kind == "red":
            assert op.src is not None
            if op.red_op != "popc":
                raise NotCovered("bar.red.and and .or")
            brings = int(self.number(state, index, op.src) != 0)
        waits = op.kind != "arrive"
        new = barriers.arrive(state, self.declared, index, (number, count), brings, waits=waits)
        thread = new.threads[index]
        return new if waits else new.with_thread(index, thread._replace(at=thread.at + 1))

    # --- memory -------------------------------------------------------------------------------------------

    def _near(self, state: State, index: int, address: int) -> None:
        """Shared memory of a CTA is gone when all of its threads are (open question Q18)."""
        mine = self.declared[index].place.cta.number
        if (address - SHARED_BASE) // SHARED_WINDOW != mine and copies.gone(self.declared, state, address):
            raise Misuse("UB502")

    def _access(self, state: State, on: State, index: int, op: ops.Op) -> State:
        new = self._accessed(state, on, index, op)
        if not self.unfenced or not isinstance(op, ops.Load | ops.Store | ops.Fill | ops.Atomic):
            return new
        if isinstance(op, ops.Fill):
            size = self.number(state, index, op.size)
        else:
            count = len(op.dsts) if isinstance(op, ops.Load) else len(op.srcs) if isinstance(op, ops.Store) else 1
            size = size_of(op.type) * count
        start = self.number(state, index, op.address)
        touched = frozenset(range(start, start + size))
        if isinstance(op, ops.Load):
            return new._replace(loaded=new.loaded | touched)
        return new._replace(stored=new.stored | touched)

    def _accessed(self, state: State, on: State, index: int, op: ops.Op) -> State:
        match op:
            case ops.Load():
                return self._load(state, on, index, op)
            case ops.Store():
                size = size_of(op.type)
                at = self._at(state, index, op.address, size * len(op.srcs), size * len(op.srcs))
                read = self._read(state.threads[index], index)
                for k, src in enumerate(op.srcs):
                    value = evaluate(src, read)
                    if isinstance(value, Token):
                        raise NotCovered("a state operand in memory")
                    on = self.store.write(on, at + k * size, size, value)
                return on
            case ops.Fill():
                size = self.number(state, index, op.size)
                if size % 8:
                    raise Misuse("UB110")
                at = self._at(state, index, op.address, size, 8)
                return self.store.put(on, at, (0,) * size)
            case ops.Atomic():
                size = size_of(op.type)
                at = self._at(state, index, op.address, size, size)
                old = self.store.read(state, at, size)
                on = on.with_thread(index, self._set(on.threads[index], index, op.dst, _typed(op.type, old)))
                operands = [self.number(state, index, src) for src in op.srcs]
                if op.op == "exch":
                    return self.store.write(on, at, size, operands[0])
                if old is None:
                    raise Unclear
                return self.store.write(on, at, size, combined(op.op, op.type, brought(op.type, old), operands))
        raise NotCovered(type(op).__name__)

    def _load(self, state: State, on: State, index: int, op: ops.Load) -> State:
        size = size_of(op.type)
        at = self._at(state, index, op.address, size * len(op.dsts), size * len(op.dsts))
        if self.store.maps and any(start <= at < start + length for start, length in self.store.opaque):
            raise NotCovered("a tensor map as a number")
        thread = on.threads[index]
        for k, dst in enumerate(op.dsts):
            thread = self._set(thread, index, dst, _typed(op.type, self.store.read(state, at + k * size, size)))
        return on.with_thread(index, thread)

    def _at(self, state: State, index: int, address: Expr, size: int, alignment: int) -> int:
        place = self.number(state, index, address)
        self._near(state, index, place)
        return self.store.access(state, place, size, alignment)

    # --- mbarriers ----------------------------------------------------------------------------------------

    def _object(self, state: State, index: int, address: Expr, *, own: bool = False) -> int:
        place = self.number(state, index, address)
        if place % 8:
            raise Misuse("UB102", "UB103", "UB108")
        if place < SHARED_BASE:
            raise Misuse("UB108", "UB204")
        self._near(state, index, place)
        self.store.place(place, 8)
        if own and (place - SHARED_BASE) // SHARED_WINDOW != self.declared[index].place.cta.number:
            raise Misuse("UB204", "UB108")
        return place

    def _look(self, state: State, index: int, op: ops.MbarrierWait) -> tuple[State, bool]:
        place = self._object(state, index, op.address, own=True)
        parity = None if op.parity is None else self.number(state, index, op.parity)
        token = None if op.state is None else evaluate(op.state, self._read(state.threads[index], index))
        return mbarriers.look(state, place, parity, token)

    def _mbarrier(self, state: State, on: State, index: int, op: ops.Op) -> State:
        match op:
            case ops.MbarrierInit():
                place = self._object(state, index, op.address, own=True)
                new = mbarriers.init(on, place, self.number(state, index, op.count))
                return self.store.put(new, self.store.place(place, 8), (None,) * 8)
            case ops.MbarrierInval():
                return mbarriers.inval(on, self._object(state, index, op.address, own=True))
            case ops.MbarrierTx():
                change = mbarriers.expect if op.kind == "expect" else mbarriers.complete
                return change(on, self._object(state, index, op.address), self.number(state, index, op.tx))
            case ops.MbarrierArrive():
                place = self._object(state, index, op.address)
                count = 1 if op.count is None else self.number(state, index, op.count)
                tx = None if op.tx is None else self.number(state, index, op.tx)
                new, token = mbarriers.arrive(on, place, count, tx, drop=op.drop, partial=op.no_complete)
                return new.with_thread(index, self._set(new.threads[index], index, op.state, token))
            case ops.MbarrierWait():
                new, passed = self._look(on, index, op)
                return new.with_thread(index, self._set(new.threads[index], index, op.dst, int(passed)))
            case ops.CpAsyncArrive():
                place = self._object(state, index, op.address, own=True)
                new = on if op.noinc else mbarriers.announce(on, place)
                thread = new.threads[index]
                prior = frozenset(c.name for group in thread.plain for c in group)
                signals = tuple(sorted((*thread.signals, (place, prior))))
                return new.with_thread(index, thread._replace(signals=signals, written=()))
        raise NotCovered(type(op).__name__)

    # --- copies -------------------------------------------------------------------------------------------

    def _wait_group(self, state: State, on: State, index: int, op: ops.WaitGroup) -> State | None:
        pending = self.number(state, index, op.pending)
        if op.family == "wgmma":
            return on if self._products_over(state, index, pending) else None
        if op.family not in ("cp.async", "bulk"):
            raise NotCovered(op.family)
        thread = state.threads[index]
        groups = thread.plain if op.family == "cp.async" else thread.bulk
        groups = copies.committed(groups) if op.commits else groups
        if not copies.over(groups, pending, read=op.read):
            return None
        new = on.threads[index]
        if op.commits:
            new = new._replace(plain=groups, written=())
        return on.with_thread(index, new)

    def _products_over(self, state: State, index: int, pending: int) -> bool:
        """A group is that of the warpgroup: the n-th of each of its threads is the n-th of all (open question Q21).

        Of a thread that commits none, or no more, no group is waited for: nobody says what fewer warps than four do.
        """
        mine = self.declared[index].place.warpgroup
        count = max(0, len(state.threads[index].wgmma) - 1 - pending)
        members = [t.index for t in self.declared if t.place.warpgroup == mine and self.commits[t.index]]
        threads = [state.threads[k] for k in members]
        return all((t.over or len(t.wgmma) > count) and not any(t.wgmma[:count]) for t in threads)

    def _issue(self, state: State, on: State, index: int, op: ops.Op) -> State:
        for made in Issue(self.store, self.declared, index, self._read(state.threads[index], index)).copies(op):
            for address in (a for a, _ in made.target[:1] if a != NOWHERE):
                self._near(state, index, address)
            on = on.with_thread(index, self._in_flight(on.threads[index], op, made))
        return on

    def _in_flight(self, thread: Thread, op: ops.Op, made: Copy) -> Thread:
        made = made._replace(name=copies.fresh(thread), text=op.text)
        if isinstance(op, ops.Wgmma):
            return thread._replace(wgmma=copies.added(thread.wgmma, made))
        if isinstance(op, ops.CpAsync):
            address, size = made.target[0]
            if any(a < address + size and address < a + s for a, s in thread.written):
                raise Misuse("UB106")
            written = tuple(sorted((*thread.written, (address, size))))
            return thread._replace(plain=copies.added(thread.plain, made), written=written)
        if made.mbarrier is not None:
            return thread._replace(loose=tuple(sorted((*thread.loose, made))))
        return thread._replace(bulk=copies.added(thread.bulk, made))

    # --- tensor maps --------------------------------------------------------------------------------------

    def _map(self, state: State, on: State, index: int, op: ops.TensormapReplace | ops.TensormapCopyFence) -> State:
        if isinstance(op, ops.TensormapReplace):
            if op.field_name != "global_address":
                raise NotCovered(f"tensormap.replace of {op.field_name}")
            at = self._at(state, index, op.address, MAP, 64)
            return self.store.write(on, at, 8, self.number(state, index, op.value))
        target = self._at(state, index, op.dst, MAP, 64)
        source = self._at(state, index, op.src, MAP, 64)
        return self.store.put(on, target, state.memory[source : source + MAP])


def _typed(type_name: str, value: int | None) -> int | None:
    return None if value is None else brought(type_name, value)


def _registers(op: object) -> Iterator[str]:
    """The registers that an operation names."""
    match op:
        case Reg(name):
            yield name
        case Const() | str() | int() | None:
            return
        case Unary() | Binary() | ops.Guard():
            for part in op.__slots__:
                yield from _registers(getattr(op, part))
        case tuple():
            for part in op:
                yield from _registers(part)
        case ops.Op():
            for part in op.__dataclass_fields__:
                yield from _registers(getattr(op, part))
