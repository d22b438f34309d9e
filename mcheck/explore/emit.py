"""From operations to events: what each instruction adds to a thread's path.

Generic memory operations and fences stand in program order. Barriers are in ``mcheck.explore.emit_barrier``,
asynchronous operations in ``mcheck.explore.emit_async``, mbarrier operations in ``mcheck.explore.emit_mbarrier``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mcheck.errors import InternalError
from mcheck.explore.semantics import Semantics
from mcheck.explore.state import State
from mcheck.graph.event import NO_UIDS, Event, MbarrierStep, Misstep
from mcheck.graph.terms import Term, Uid, alu, expression, raw, reads_of, rmw, scalar_kind, type_size, typed
from mcheck.program import ops
from mcheck.program.expr import Const, Expr, Reg
from mcheck.program.memory import GLOBAL_BASE, SHARED_BASE, SHARED_WINDOW, Instance
from mcheck.program.ops import Exit, Op
from mcheck.program.program import Program, Thread

PROXY_TAG = {
    "generic": "GEN",
    "texture": "TEX",
    "surface": "SUR",
    "constant": "CON",
    "async": "ASYNC",
    "tensormap": "TMAP",
}
SEM_TAG = {"weak": "WEAK", "relaxed": "RLX", "acquire": "ACQ", "release": "REL"}
FENCE_TAG = {"sc": "SC", "acq_rel": "ACQ_REL", "acquire": "ACQ", "release": "REL"}
SPACE_TAG = {"global": "GLOBAL", "shared": "SHARED", "const": "CONSTANT", "param": "PARAM"}

KNOWN_OPERANDS: dict[type[Op], tuple[str, ...]] = {
    ops.Load: ("address",),
    ops.Store: ("address",),
    ops.Atomic: ("address",),
    ops.ProxyFence: ("address", "size"),
    ops.Barrier: ("barrier", "count"),
    ops.WarpSync: ("mask",),
    ops.MbarrierInit: ("address", "count"),
    ops.MbarrierInval: ("address",),
    ops.MbarrierTx: ("address", "tx"),
    ops.MbarrierArrive: ("address", "count", "tx"),
    ops.MbarrierWait: ("address", "parity"),
    ops.CpAsync: ("dst", "src", "size", "src_size", "ignore_src"),
    ops.WaitGroup: ("pending",),
    ops.CpAsyncArrive: ("address",),
    ops.BulkCopy: ("dst", "src", "size", "mbar", "cta_mask", "byte_mask"),
    ops.Prefetch: ("src", "size", "tensor_map"),
    ops.TensorCopy: ("shared", "tensor_map", "coords", "mbar", "im2col_info", "cta_mask"),
    ops.AsyncStore: ("address", "mbar"),
    ops.TensormapReplace: ("address", "value", "ordinal"),
    ops.TensormapCopyFence: ("dst", "src", "size"),
    ops.Wgmma: ("reads",),
}
"""Operands that decide which bytes or objects an operation touches: the path forks over their values."""

Handler = Callable[["Emitter", Op, State], list[State]]
HANDLERS: dict[type[Op], Handler] = {}


def handles(*kinds: type[Op]) -> Callable[[Handler], Handler]:
    """Registers the function that turns operations of these kinds into events."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            HANDLERS[kind] = handler
        return handler

    return register


def widened(address: int) -> int:
    """A shared address of 32 bits as one of the flat map (``mcheck.program.memory``)."""
    return address + SHARED_BASE if 0 <= address < GLOBAL_BASE else address


class Stop(Exception):
    """Undefined behaviour that ends the path."""

    def __init__(self, misstep: Misstep) -> None:
        super().__init__(misstep.message)
        self.misstep = misstep


@dataclass(slots=True)
class Emitter:
    """Executes the operations of one thread on a ``State``."""

    program: Program
    thread: Thread
    semantics: Semantics
    domain: Callable[[Uid, State], tuple[int, ...] | None] = lambda _uid, _state: None
    unroll: int = 0
    bases: list[int] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.instances = sorted(self.program.memory.instances, key=lambda i: i.base)
        self.bases = [i.base for i in self.instances]

    def start(self) -> State:
        """The state before the first instruction."""
        registers: dict[str, Term] = {}
        default = 0 if self.program.dialect else None
        for name in self.thread.types:
            registers[name] = ("?", (self.thread.index, name)) if default is None else default
        registers.update(self.thread.init)
        state = State(_Registers(registers, self.thread.index, default))
        if self.program.clustered:
            self.event(state, self.thread.code[0] if self.thread.code else Exit(), ("START",))
            state.order += 1
        return state

    # --- operands -----------------------------------------------------------------------------------

    def term(self, expr: Expr, state: State) -> Term:
        """The value of an operand."""
        if isinstance(expr, Const):
            return expr.value
        return state.settle(expression(expr, state.registers))

    def number(self, expr: Expr, state: State) -> int:
        """The value of an operand that ``needs`` has made known."""
        value = self.term(expr, state)
        if not isinstance(value, int):
            raise InternalError(f"operand {expr!r} has no known value")
        return value

    def address(self, expr: Expr, state: State) -> int:
        """``number`` of an address; one that went through a 32-bit register is an offset into the shared windows."""
        return widened(self.number(expr, state))

    def maybe(self, expr: Expr | None, state: State) -> int | None:
        """``number`` of an operand that may be missing."""
        return None if expr is None else self.number(expr, state)

    def needs(self, op: Op, state: State) -> Term | None:
        """The first operand that must be known and is not."""
        if isinstance(op, ops.Await):
            return self.needs(op.inner, state)
        names = KNOWN_OPERANDS.get(type(op), ())
        if isinstance(op, ops.Alu) and op.op == "mapa":
            names = ("srcs",)
        for name in names:
            for expr in _flatten(getattr(op, name)):
                value = self.term(expr, state)
                if not isinstance(value, int):
                    return value
        return None

    def origin(self, expr: Expr, state: State) -> frozenset[Uid]:
        """The events that an operand depends on, also where the path has fixed its value."""
        if isinstance(expr, Const):
            return NO_UIDS
        return reads_of(expression(expr, state.registers))

    # --- execution ------------------------------------------------------------------------------------

    def execute(self, op: Op, state: State) -> list[State]:
        """The states after ``op``, each one instruction further unless it ended."""
        handler = HANDLERS.get(type(op))
        if handler is None:
            raise InternalError(f"no events for {type(op).__name__}")
        state.instruction += 1
        before = len(state.events)
        try:
            out = handler(self, op, state)
        except Stop as stop:
            del state.events[before:]  # the thread stops before it
            state.misstep = stop.misstep
            state.ended = "undefined"
            return [state]
        for s in out:
            if not s.ended:
                s.pc += 1
        return out

    def stop(self, code: str, message: str, op: Op) -> Stop:
        """Undefined behaviour of ``op``."""
        return Stop(Misstep(code, message, op, op.section))

    def instance_at(self, address: int) -> Instance | None:
        """The object instance that holds a byte."""
        k = bisect_right(self.bases, address) - 1
        if k < 0:
            return None
        instance = self.instances[k]
        return instance if address < instance.base + instance.object.size else None

    def locate(self, address: int, size: int, op: Op, align: int | None = None) -> Instance:
        """The instance that holds ``size`` bytes from ``address``; undefined behaviour if there is none or it is
        misaligned.
        """
        instance = self.instance_at(address)
        if instance is None or address + size > instance.base + instance.object.size:
            where = f"object {instance.label}" if instance is not None else "every object"
            raise self.stop("UB103", f"an access of {size} bytes leaves {where}", op)
        if align and address % align:
            raise self.stop("UB102", f"the address is not a multiple of {align} bytes", op)
        return instance

    def in_rank(self, op: Op, address: int, rank: int, code: str) -> int:
        """The address at the same offset in the shared memory of the CTA of ``rank`` in this cluster.

        ``code`` is the finding if there is none.
        """
        here = self.thread.place.cta
        for t in self.program.threads:
            cta = t.place.cta
            if (cta.gpu, cta.cluster, cta.rank) == (here.gpu, here.cluster, rank):
                return SHARED_BASE + cta.number * SHARED_WINDOW + (address - SHARED_BASE) % SHARED_WINDOW
        alone = "" if self.program.clustered else ": no role gives a cluster, so every CTA is one by itself"
        raise self.stop(code, f"the cluster has no CTA of rank {rank}{alone}", op)

    def event(self, state: State, op: Op, tags: tuple[str, ...], *, ordered: bool = True, **more: Any) -> Event:
        """Adds an event; ``ordered`` puts it next in program order."""
        event = Event(
            uid=(self.thread.index, len(state.events)),
            op=op,
            tags=frozenset(tags),
            order=state.order if ordered else None,
            instruction=state.instruction,
            block=more.pop("block", self.thread.place.cta.number),
            ctrl=state.ctrl,
            **more,
        )
        state.events.append(event)
        return event

    def memory(
        self,
        state: State,
        op: Op,
        kind: str,
        address: int,
        size: int,
        sem: str,
        proxy: str,
        scope: str | None,
        *,
        value: Term = 0,
        extra: tuple[str, ...] = (),
        align: bool = True,
        **more: Any,
    ) -> Event:
        """A read (``kind`` ``R``) or write (``W``) of one scalar or run of bytes."""
        instance = self.locate(address, size, op, size if align else None)
        tags = (kind, "M", SEM_TAG[sem], PROXY_TAG[proxy], SPACE_TAG[instance.object.space], *extra)
        if proxy == "async" and instance.cta is not None:
            more["block"] = instance.cta.number
        physical = instance.physical + (address - instance.base)
        return self.event(
            state, op, tags, address=physical, virtual=address, size=size, value=value, scope=scope, **more
        )

    def set_register(self, state: State, reg: Reg | None, value: Term) -> None:
        """Assigns a destination register, ``None`` being the sink."""
        if reg is not None:
            state.registers[reg.name] = value


class _Registers(dict[str, Term]):
    """Registers that nothing has written are 0 in the table dialect and unknown constants elsewhere."""

    def __init__(self, values: dict[str, Term], thread: int, default: int | None) -> None:
        super().__init__(values)
        self.thread = thread
        self.default = default

    def copy(self) -> _Registers:
        return _Registers(self, self.thread, self.default)

    def __missing__(self, name: str) -> Term:
        return ("?", (self.thread, name)) if self.default is None else self.default


def _flatten(value: object) -> list[Expr]:
    if value is None:
        return []
    if isinstance(value, tuple):
        return [x for item in value for x in _flatten(item)]
    return [value]  # type: ignore[list-item]


# --- local computation -------------------------------------------------------------------------------


@handles(ops.Alu)
def _alu(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.Alu)
    args = tuple(expression(s, state.registers) for s in op.srcs)  # not settled: a result keeps what it depends on
    if op.op in ("elect", "mapa"):
        args = tuple(state.settle(a) for a in args)
    if op.op == "elect":
        lanes = [
            t.place.lane
            for t in e.program.threads
            if t.place.cta == e.thread.place.cta and t.place.warp == e.thread.place.warp
        ]
        mask = args[0] if isinstance(args[0], int) else 0xFFFFFFFF
        leader = min((lane for lane in lanes if mask >> lane & 1), default=0)
        results: tuple[Term, ...] = (leader, int(leader == e.thread.place.lane))
        dsts = op.dsts if len(op.dsts) > 1 else (None, *op.dsts)
    elif op.op == "nop":
        return [state]
    elif op.op == "mapa":
        address, rank = args
        assert isinstance(address, int) and isinstance(rank, int)
        dsts, results = op.dsts, (e.in_rank(op, widened(address), rank, "UB108"),)
    elif op.op == "mov" and op.type.startswith("b"):
        dsts, results = op.dsts, args
    else:
        dsts, results = op.dsts, alu(op.op, op.type, op.src_type, args, len(op.dsts))
    for reg, value in zip(dsts, results, strict=False):
        e.set_register(state, reg, value)
    return [state]


# --- generic memory ------------------------------------------------------------------------------------


def _check_space(e: Emitter, op: Op, address: int, space: str) -> None:
    instance = e.instance_at(address)
    if instance is None or space in ("generic", "local"):
        return
    actual = instance.object.space
    wanted = space.partition("::")[0]
    if actual != wanted:
        raise e.stop("UB108", f"{instance.label} is in .{actual}, not in .{space}", op)
    if space in ("shared", "shared::cta") and instance.cta != e.thread.place.cta:
        raise e.stop("UB108", f"{instance.label} is in the shared memory of another CTA", op)
    if instance.cta is not None and not _same_cluster(e, instance):
        raise e.stop("UB108", f"{instance.label} is in the shared memory of another cluster", op)


def _same_cluster(e: Emitter, instance: Instance) -> bool:
    here = e.thread.place.cta
    there = instance.cta
    return there is not None and (here.gpu, here.cluster) == (there.gpu, there.cluster)


@handles(ops.Load)
def _load(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.Load)
    base, size = e.address(op.address, state), type_size(op.type)
    _check_space(e, op, base, op.space)
    if len(op.dsts) > 1 and base % (size * len(op.dsts)):
        raise e.stop("UB102", f"the address of the vector is not a multiple of {size * len(op.dsts)} bytes", op)
    addr = e.origin(op.address, state)
    for k, reg in enumerate(op.dsts):
        read = e.memory(state, op, "R", base + k * size, size, op.sem, op.proxy, op.scope, addr=addr)
        e.set_register(state, reg, typed(op.type, ("e", read.uid)))
    state.order += 1
    return [state]


@handles(ops.Store)
def _store(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.Store)
    base, size = e.address(op.address, state), type_size(op.type)
    _check_space(e, op, base, op.space)
    if len(op.srcs) > 1 and base % (size * len(op.srcs)):
        raise e.stop("UB102", f"the address of the vector is not a multiple of {size * len(op.srcs)} bytes", op)
    addr = e.origin(op.address, state)
    for k, src in enumerate(op.srcs):
        value = raw(size, e.term(src, state))
        data = e.origin(src, state)
        e.memory(state, op, "W", base + k * size, size, op.sem, op.proxy, op.scope, value=value, addr=addr, data=data)
    state.order += 1
    state.effects += 1
    return [state]


@handles(ops.Atomic)
def _atomic(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.Atomic)
    base, size = e.address(op.address, state), type_size(op.type)
    _check_space(e, op, base, op.space)
    addr = e.origin(op.address, state)
    operands = tuple(e.term(s, state) for s in op.srcs)
    origins = frozenset[Uid]().union(*(e.origin(s, state) for s in op.srcs))
    read_sem = "acquire" if op.sem in ("acquire", "acq_rel") else "relaxed"
    write_sem = "release" if op.sem in ("release", "acq_rel") else "relaxed"
    extra = ("ATOM", "RED") if op.is_red else ("ATOM",)
    read = e.memory(state, op, "R", base, size, read_sem, op.proxy, op.scope, addr=addr, extra=(*extra, "RMW"))
    state.order += 1
    old: Term = ("e", read.uid)
    e.set_register(state, op.dst, typed(op.type, old))

    def write(s: State, value: Term) -> None:
        data = origins | ({read.uid} if op.op != "exch" else NO_UIDS)
        e.memory(
            s, op, "W", base, size, write_sem, op.proxy, op.scope,
            value=value, addr=addr, data=data, rmw=read.uid, extra=(*extra, "RMW"),
        )  # fmt: skip
        s.order += 1

    if op.op != "cas":
        instance = e.instance_at(base)
        kind = scalar_kind(op.op, op.type, instance.object.space if instance else op.space)
        write(state, rmw(kind, op.type, old, operands))
        state.effects += 1
        return [state]
    condition: Term = ("x", "==", typed(op.type, old), typed(op.type, raw(size, operands[0])))
    out = []
    failed = state.fork()
    if state.truth(condition) is not False:
        state.constrain(condition, True)
        state.forked = True
        write(state, raw(size, operands[1]))
        state.effects += 1
        out.append(state)
    if failed.truth(condition) is not True:
        failed.constrain(condition, False)
        failed.forked = True
        if e.semantics.cas_stores:
            write(failed, old)
        out.append(failed)
    return out


# --- fences and barriers ---------------------------------------------------------------------------------


@handles(ops.Fence)
def _fence(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.Fence)
    tags: tuple[str, ...] = ("F", FENCE_TAG[op.sem], "GEN")
    if op.restrict == "mbarrier_init":
        tags = ("F", "MBARRIER_INIT_FENCE", "GEN")
    elif op.restrict is not None:
        tags = ("F", "RESTRICTED", FENCE_TAG[op.sem], "GEN")
    spaces = frozenset({op.restrict}) if op.restrict in ("shared::cta", "shared::cluster") else frozenset[str]()
    e.event(state, op, tags, scope=op.scope, spaces=spaces)
    state.order += 1
    return [state]


@handles(ops.ProxyFence)
def _proxy_fence(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.ProxyFence)
    tags = ["F", "PROXYFENCE", "ALIAS" if op.kind == "alias" else PROXY_TAG[op.kind]]
    covered = None
    if op.half is not None:
        tags += ["PRELEASE" if op.half == "release" else "PACQUIRE"]
    if op.address is not None and op.size is not None:
        address, size = e.address(op.address, state), e.number(op.size, state)
        instance = e.instance_at(address)
        if instance is None or instance.object.space != "global" or size != 128:
            raise e.stop("UB403", "the tensormap fence needs 128 bytes of .global memory", op)
        covered = (instance.physical + address - instance.base, size)
    elif op.half is None:
        tags.append("BOTH")
    spaces = op.spaces | (frozenset({op.restrict}) if op.restrict else frozenset())
    e.event(state, op, tuple(tags), scope=op.scope, spaces=spaces, covered=covered)
    state.order += 1
    return [state]


# --- await --------------------------------------------------------------------------------------------------


@handles(ops.Await)
def _await(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.Await)
    return _attempt(e, op, state, 1)


def _attempt(e: Emitter, op: ops.Await, state: State, number: int) -> list[State]:
    """One more try; where a try that fails has an effect the next one follows, as in the loop that it stands for."""
    inner = op.inner
    before, effects = len(state.events), state.effects
    out: list[State] = []
    for s in HANDLERS[type(inner)](e, inner, state):
        if s.ended:
            out.append(s)
            continue
        uids = tuple(ev.uid for ev in s.events[before:])
        if op.compare is None:
            condition: Term = ("e", uids[-1])
        else:
            operator, right = op.compare
            dsts = getattr(inner, "dsts", None) or (getattr(inner, "dst", None),)
            target = dsts[0]
            if target is None:
                raise InternalError("await without a destination register")
            condition = ("x", operator, s.registers[target.name], e.term(right, s))
        known = s.truth(condition)
        if known is not True:
            blocked = s.fork()
            blocked.ctrl |= reads_of(condition)
            blocked.constrain(condition, False)
            if blocked.effects == effects or not e.unroll:
                blocked.ended, blocked.stuck = "stuck", uids
                out.append(blocked)
            elif number >= e.unroll:
                blocked.ended = "cut"
                out.append(blocked)
            else:
                out += _attempt(e, op, blocked, number + 1)
        if known is not False:
            s.constrain(condition, True)
            s.ctrl |= reads_of(condition)
            out.insert(0, s)
    return out


def mbarrier_event(e: Emitter, state: State, op: Op, step: MbarrierStep, tags: tuple[str, ...], **more: Any) -> Event:
    """An event on an mbarrier object."""
    return e.event(state, op, ("MBAR", "GEN", *tags), mbarrier=step, **more)
