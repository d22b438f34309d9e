"""Running one thread on concrete values, its reads returning whatever any write may have left there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, product

from mcheck.ir import ops
from mcheck.ir.expr import Binary, Const, Expr, Reg, Unary
from mcheck.ir.program import Program, Thread

Cell = tuple[int, int]
"""(physical address, bytes)"""

PROXY = {"generic": "GEN", "texture": "TEX", "surface": "SUR", "constant": "CON", "async": "ASYNC", "alias": "ALIAS"}
STRENGTH = {"weak": "WEAK", "relaxed": "RLX", "acquire": "ACQ", "release": "REL", "acq_rel": "ACQ_REL", "sc": "SC"}


class TooMany(Exception):
    """More executions than are worth trying."""


@dataclass(frozen=True, slots=True)
class Access:
    """An event of one thread; ``key`` is its place in the thread's list of events."""

    key: int
    place: int  # in program order; equal places are unordered
    instruction: int
    tags: frozenset[str]
    scope: str | None = None
    address: int = 0
    virtual: int = 0
    size: int = 0
    value: int = 0
    addr: frozenset[int] = frozenset()
    data: frozenset[int] = frozenset()
    ctrl: frozenset[int] = frozenset()
    reader: int | None = None  # of a write that ends a read-modify-write: the key of its read
    barrier: tuple[object, ...] | None = None
    barrier_op: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """One run of a thread."""

    events: tuple[Access, ...]
    registers: dict[str, int]


@dataclass(slots=True)
class Runner:
    """Runs one thread with every combination of values that its reads may return."""

    program: Program
    thread: Thread
    classic: bool
    values: Callable[[int, int], Iterable[int]]
    traces: list[Trace] = field(default_factory=list)

    def run(self) -> list[Trace]:
        registers = {name: (value, frozenset[int]()) for name, value in self.thread.init.items()}
        self.step(0, registers, (), frozenset(), 0, 0)
        return self.traces

    def step(
        self,
        pc: int,
        registers: dict[str, tuple[int, frozenset[int]]],
        events: tuple[Access, ...],
        ctrl: frozenset[int],
        place: int,
        count: int,
    ) -> None:
        while pc < len(self.thread.code):
            op = self.thread.code[pc]
            if op.guard is not None:
                value, source = registers.get(op.guard.reg.name, (0, frozenset[int]()))
                ctrl |= source
                if bool(value) is op.guard.negated:
                    pc += 1
                    continue
            if isinstance(op, ops.Exit):
                break
            if isinstance(op, ops.Label):
                pc += 1
                continue
            count += 1
            if isinstance(op, ops.Branch):
                taken = True
                if op.condition is not None:
                    value, source = self.evaluate(op.condition, registers)
                    ctrl |= source
                    taken = bool(value)
                target = self.thread.labels[op.target]
                assert target > pc, "no loops here"
                pc = target if taken else pc + 1
                continue
            if isinstance(op, ops.Alu):
                operands = [self.evaluate(x, registers) for x in op.srcs]
                sources = frozenset(chain.from_iterable(s for _, s in operands))
                (dst,) = op.dsts
                assert dst is not None
                registers = {**registers, dst.name: (self.alu(op, [v for v, _ in operands]), sources)}
                pc += 1
                continue
            for more, written in self.events(op, registers, len(events), ctrl, place, count):
                new = dict(registers)
                new.update(written)
                self.step(pc + 1, new, events + more, ctrl, place + 10, count)
            return
        self.traces.append(Trace(events, {name: value for name, (value, _) in registers.items()}))

    def evaluate(self, e: Expr, registers: dict[str, tuple[int, frozenset[int]]]) -> tuple[int, frozenset[int]]:
        match e:
            case Const(value):
                return value, frozenset()
            case Reg(name):
                return registers.get(name, (0, frozenset()))
            case Unary("-", a):
                x, s = self.evaluate(a, registers)
                return -x, s
            case Binary(op, a, b):
                (x, s), (y, t) = self.evaluate(a, registers), self.evaluate(b, registers)
                return arithmetic(op, x, y), s | t
        raise AssertionError(f"not for the oracle: {e}")

    def alu(self, op: ops.Alu, args: list[int]) -> int:
        name, _, mode = op.op.partition(".")
        if name == "mov":
            return fit(op.type, args[0])
        if name == "setp":
            return int(arithmetic({"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}[mode], *args))
        return fit(
            op.type, arithmetic({"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "mul": "*"}[name], *args)
        )

    def events(
        self,
        op: ops.Op,
        registers: dict[str, tuple[int, frozenset[int]]],
        key: int,
        ctrl: frozenset[int],
        place: int,
        count: int,
    ) -> Iterator[tuple[tuple[Access, ...], dict[str, tuple[int, frozenset[int]]]]]:
        def access(more: int, tags: Iterable[str], at: int, **rest: object) -> Access:
            return Access(key + more, at, count, frozenset(tags), ctrl=ctrl, **rest)  # type: ignore[arg-type]

        def memory(more: int, kind: str, sem: str, at: int, address: int, size: int, **rest: object) -> Access:
            assert isinstance(op, ops.Load | ops.Store | ops.Atomic)
            tags = {kind, "M", STRENGTH[sem], PROXY[op.proxy], "GLOBAL", *rest.pop("extra", ())}  # type: ignore[misc]
            return access(
                more,
                tags,
                at,
                scope=op.scope,
                address=physical(self.program, address),
                virtual=address,
                size=size,
                **rest,
            )

        match op:
            case ops.Load():
                base, size = self.constant(op.address), bytes_of(op.type)
                places = [physical(self.program, base + k * size) for k in range(len(op.dsts))]
                for values in product(*(self.values(p, size) for p in places)):
                    reads = tuple(
                        memory(k, "R", op.sem, place, base + k * size, size, value=v) for k, v in enumerate(values)
                    )
                    yield (
                        reads,
                        {
                            dst.name: (fit(op.type, v), frozenset({key + k}))
                            for k, (dst, v) in enumerate(zip(op.dsts, values, strict=True))
                            if dst is not None
                        },
                    )
            case ops.Store():
                base, size = self.constant(op.address), bytes_of(op.type)
                writes = []
                for k, src in enumerate(op.srcs):
                    v, s = self.evaluate(src, registers)
                    writes.append(memory(k, "W", op.sem, place, base + k * size, size, value=unsigned(size, v), data=s))
                yield tuple(writes), {}
            case ops.Atomic():
                base, size = self.constant(op.address), bytes_of(op.type)
                operands = [self.evaluate(x, registers) for x in op.srcs]
                sources = frozenset(chain.from_iterable(s for _, s in operands))
                kinds = ("RMW", "ATOM", "RED") if op.is_red else ("RMW", "ATOM")
                first = "acquire" if op.sem in ("acquire", "acq_rel") else "relaxed"
                second = "release" if op.sem in ("release", "acq_rel") else "relaxed"
                for old in self.values(physical(self.program, base), size):
                    read = memory(0, "R", first, place, base, size, value=old, extra=kinds)
                    new = self.updated(op, size, old, [v for v, _ in operands])
                    registers_after = {} if op.dst is None else {op.dst.name: (fit(op.type, old), frozenset({key}))}
                    if new is None:
                        yield (read,), registers_after
                        continue
                    data = sources if op.op == "exch" else sources | {key}
                    write = memory(1, "W", second, place + 1, base, size, value=new, data=data, reader=key, extra=kinds)
                    yield (read, write), registers_after
            case ops.Fence():
                assert op.restrict is None
                yield (access(0, ("F", STRENGTH[op.sem], "GEN"), place, scope=op.scope),), {}
            case ops.ProxyFence():
                assert op.half is None
                assert op.address is None
                yield (access(0, ("F", "PROXYFENCE", "BOTH", PROXY[op.kind]), place),), {}
            case ops.Barrier():
                yield self.barrier(op, access, place), {}
            case _:
                raise AssertionError(f"not for the oracle: {op}")

    def barrier(self, op: ops.Barrier, access: Callable[..., Access], place: int) -> tuple[Access, ...]:
        assert op.count is None
        number = None if op.barrier is None else self.constant(op.barrier)
        key = (self.thread.place.cta.number, op.instance, number)
        arrive = ("BARRIVE",) if op.kind == "arrive" else ()
        if self.classic and self.program.dialect:
            return (access(0, ("F", "B", *arrive), place, barrier=key, barrier_op=id(op)),)
        first = access(0, ("B", "BARRIVE"), place, barrier=key, barrier_op=id(op))
        if op.kind == "arrive":
            return (first,)
        return (first, access(1, ("B", "BWAIT"), place + 1, barrier=key))

    def updated(self, op: ops.Atomic, size: int, old: int, operands: list[int]) -> int | None:
        x = unsigned(size, operands[0])
        if op.op == "cas":
            if old == x:
                return unsigned(size, operands[1])
            return old if self.classic else None
        if op.op == "exch":
            return x
        return unsigned(size, arithmetic({"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}[op.op], old, x))

    def constant(self, e: Expr) -> int:
        value, sources = self.evaluate(e, {})
        assert not sources
        return value


def arithmetic(op: str, a: int, b: int) -> int:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "==":
            return int(a == b)
        case "!=":
            return int(a != b)
        case "<":
            return int(a < b)
        case ">":
            return int(a > b)
        case "<=":
            return int(a <= b)
        case ">=":
            return int(a >= b)
    raise AssertionError(op)


def bytes_of(type_name: str) -> int:
    return int(type_name[1:]) // 8


def unsigned(size: int, value: int) -> int:
    return value % (1 << 8 * size)


def fit(type_name: str, value: int) -> int:
    if type_name == "pred":
        return int(bool(value))
    size = bytes_of(type_name)
    value = unsigned(size, value)
    return value - (1 << 8 * size) if type_name[0] == "s" and value >> (8 * size - 1) else value


def physical(program: Program, address: int) -> int:
    for i in program.memory.instances:
        if i.base <= address < i.base + i.object.size:
            return address - i.base + i.physical
    raise AssertionError("an access outside every object")


def initial(program: Program, address: int, size: int) -> int:
    for i in program.memory.instances:
        if i.base == i.physical and i.base <= address < i.base + i.object.size:
            assert i.object.init is not None
            return int.from_bytes(i.object.init[address - i.base : address - i.base + size], "little")
    raise AssertionError("no object here")


# --- values --------------------------------------------------------------------------------------------


def all_traces(program: Program, classic: bool, limit: int) -> list[list[Trace]]:
    """The traces of each thread, its reads returning any value that can be put together from bytes written there.

    Where all accesses have the same size the values are whole; else each byte is followed by itself.
    """
    places = touched(program)
    whole = all(a == b or a[0] + a[1] <= b[0] or b[0] + b[1] <= a[0] for a in places for b in places)
    cells = sorted(places) if whole else sorted({(a + k, 1) for a, size in places for k in range(size)})
    held: dict[Cell, set[int]] = {c: {initial(program, *c)} for c in cells}

    def values(address: int, size: int) -> Iterable[int]:
        parts = [c for c in cells if address <= c[0] < address + size]
        found = []
        for combination in product(*(sorted(held[c]) for c in parts)):
            value = shift = 0
            for (_, width), v in zip(parts, combination, strict=True):
                value |= v << shift
                shift += 8 * width
            found.append(value)
        return found

    while True:
        traces = [Runner(program, t, classic, values).run() for t in program.threads]
        if sum(len(t) for t in traces) > limit or any(len(v) > 8 for v in held.values()):
            raise TooMany
        before = sum(len(v) for v in held.values())
        for trace in chain.from_iterable(traces):
            for e in trace.events:
                if "W" in e.tags:
                    for address, size in cells:
                        if e.address <= address < e.address + e.size:
                            held[address, size].add(unsigned(size, e.value >> 8 * (address - e.address)))
        if sum(len(v) for v in held.values()) == before:
            return traces


def touched(program: Program) -> set[Cell]:
    found = set()
    for t in program.threads:
        for op in t.code:
            if isinstance(op, ops.Load | ops.Store | ops.Atomic):
                assert isinstance(op.address, Const)
                size = bytes_of(op.type)
                parts = len(op.dsts) if isinstance(op, ops.Load) else len(op.srcs) if isinstance(op, ops.Store) else 1
                for k in range(parts):
                    found.add((physical(program, op.address.value + k * size), size))
    return found
