"""Emission of events: what each operation adds to a thread's path.

Generic memory operations and fences stand in program order. Barriers are in ``mcheck.events.emit_barrier``,
asynchronous operations in ``mcheck.events.emit_async``, mbarrier operations in ``mcheck.events.emit_mbarrier``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from mcheck.base.errors import InternalError, Unsupported
from mcheck.base.phrase import Phrase
from mcheck.base.records import dataclass, replace
from mcheck.cat.tags import PROXY_TAG, Tag
from mcheck.effects.dispatch import effect_of
from mcheck.effects.effect import Effect
from mcheck.effects.operands import Operands, decisive_expressions, evaluate_operands
from mcheck.effects.registry import EFFECTS
from mcheck.effects.site import Layout, Site, layout_of
from mcheck.events.event import NO_UIDS, Event, MbarrierStep, Misstep
from mcheck.events.model_options import Semantics
from mcheck.events.thread_state import State
from mcheck.findings.undefined_effects import continues_after
from mcheck.ir import ops
from mcheck.ir.alu import UNCOMPUTED
from mcheck.ir.expr import Const, Expr, Lanes, Reg
from mcheck.ir.ops import Exit, Op, Wgmma
from mcheck.ir.program import Program, Thread
from mcheck.semantics.terms import Term, Uid, alu, expression, raw, reads_of, rmw, scalar_kind, typed

SEM_TAG = {"weak": Tag.WEAK, "relaxed": Tag.RLX, "acquire": Tag.ACQ, "release": Tag.REL}
FENCE_TAG = {"sc": Tag.SC, "acq_rel": Tag.ACQ_REL, "acquire": Tag.ACQ, "release": Tag.REL}
SPACE_TAG = {
    "global": Tag.GLOBAL,
    "shared": Tag.SHARED,
    "const": Tag.CONSTANT,
    "param": Tag.PARAM,
    "tensor": Tag.TENSOR,
}

NARROW = ("shared::cta", "shared::cluster", "tensor")
"""The spaces that a fence may be restricted to."""

OPERANDS = frozenset(("shared::cta", "shared::cluster"))
"""The spaces that the operands of wgmma are in."""

T = TypeVar("T")
OpT = TypeVar("OpT", bound=Op)
Handler = Callable[["Emitter", OpT, State], list[State]]
HANDLERS: dict[type[Op], Handler[Any]] = {}

ONE_PATH = "the path of a thread depends on what a load or an atomic returns, which the protocol engine alone follows"


def handler_of(op: OpT) -> Handler[OpT]:
    """The function that emits the events of an operation: its handler, or the one of its effect."""
    found = HANDLERS.get(type(op))
    if found is None:
        import_emitters()
        found = HANDLERS.get(type(op)) or (_emit_by_effect if type(op) in EFFECTS else None)
    if found is None:
        if isinstance(op, ops.AssumedValue):
            raise Unsupported(ONE_PATH, op.span)
        raise InternalError(f"no events for {type(op).__name__}")
    return found


@cache
def import_emitters() -> None:
    """Import the other modules that register handlers; a test of loads, stores and fences needs none of them."""
    for name in ("async", "barrier", "mbarrier", "tensor_core"):
        import_module(f"mcheck.events.emit_{name}")


def _emit_by_effect(e: Emitter, op: Op, state: State) -> list[State]:
    """Emit an operation that its effect describes completely: legality of the operands, and what it stores."""
    made = e.effect_of(op, state)
    for stored in made.stores:
        e.memory(state, op, Tag.W, stored.address, stored.size, "weak", "generic", None, value=stored.value)
    if made.stores:
        state.order += 1
        state.effects += 1
    return [state]


def handles(kind: type[OpT]) -> Callable[[Handler[OpT]], Handler[OpT]]:
    """Register the function that emits the events of operations of a kind."""

    def register(handler: Handler[OpT]) -> Handler[OpT]:
        HANDLERS[kind] = handler
        return handler

    return register


class Stop(Exception):
    """Undefined behaviour that ends the path; ``before`` are the events that its operation has had by then."""

    def __init__(self, misstep: Misstep, before: Sequence[Event] = ()) -> None:
        super().__init__(misstep.message)
        self.misstep = misstep
        self.before = before


@dataclass(slots=True)
class Emitter:
    """Executes the operations of one thread on a ``State``, emitting events."""

    program: Program
    thread: Thread
    semantics: Semantics
    domain: Callable[[Uid, State], tuple[int, ...] | None] = lambda _uid, _state: None
    unsure: Callable[[Uid, State], bool] = lambda _uid, _state: False
    """Whether a read may return an unknown value, beside its ``domain``."""
    failed_attempts: Callable[[Sequence[Event]], bool] = lambda _events: False
    """Whether a failed try may have an error though the one that ends the wait has none."""
    unroll: int = 0
    meets: bool = True
    """Whether instructions at which threads synchronise are modelled, with a path that waits forever."""
    layout: Layout | None = None
    unwritten: frozenset[int] | None = None
    """``None``, or if nothing depends on what copies move: the addresses of the objects that nothing writes. A copy has
    an event for each range of bytes that it touches then, and none for those of such an object that it reads."""
    strong_copies: bool = True
    """Whether the accesses of strong copies are strong, rather than followed as weak ones."""
    _site: Site | None = field(default=None, init=False)
    _multiplies: bool | None = field(default=None, init=False)
    _warp_lanes: tuple[int, ...] = field(default=(), init=False)
    stopped: list[State] = field(default_factory=list, init=False)
    """The states in which the thread would have stopped during the current operation, had it not continued."""

    @property
    def site(self) -> Site:
        """The place where the thread executes."""
        if self._site is None:
            self._site = Site(self.layout or layout_of(self.program), self.thread.place)
        return self._site

    @property
    def multiplies(self) -> bool:
        """Whether the thread executes wgmma."""
        if self._multiplies is None:
            self._multiplies = any(isinstance(op, Wgmma) for op in self.thread.code)
        return self._multiplies

    @property
    def warp_lanes(self) -> tuple[int, ...]:
        """The lanes of the thread's warp that the program has."""
        if not self._warp_lanes:
            cta, warp = self.thread.place.own_warp
            places = (t.place for t in self.program.threads)
            self._warp_lanes = tuple(p.lane for p in places if p.warp == warp and p.cta.number == cta)
        return self._warp_lanes

    def start(self) -> State:
        """The state before the first instruction."""
        registers: dict[str, Term] = {}
        default = 0 if self.program.dialect else None
        for name in self.thread.types:
            registers[name] = ("?", (self.thread.index, name)) if default is None else default
        registers.update(self.thread.init)
        state = State(_Registers(registers, self.thread.index, default))
        if self.program.clustered:
            self.event(state, self.thread.code[0] if self.thread.code else Exit(), (Tag.START,))
            state.order += 1
        return state

    # --- operands -----------------------------------------------------------------------------------

    def term(self, expr: Expr, state: State) -> Term:
        """The value of an operand."""
        if isinstance(expr, Const):
            return expr.value
        if isinstance(expr, Lanes):
            return expr.values[self.thread.place.lane]
        return state.resolve_term(expression(expr, state.registers))

    def number(self, expr: Expr, state: State) -> int:
        """The value of an operand, known by ``needs``."""
        value = self.term(expr, state)
        if not isinstance(value, int):
            raise InternalError(f"operand {expr!r} has no known value")
        return value

    def optional_number(self, expr: Expr | None, state: State) -> int | None:
        """The value of an optional operand."""
        return None if expr is None else self.number(expr, state)

    def needs(self, op: Op, state: State) -> Term | None:
        """The first operand that must be known and is not."""
        if self._kept(op) is not None:
            return None
        for expr in decisive_expressions(ops.performed_operation(op)):
            value = self.term(expr, state)
            if not isinstance(value, int):
                return value
        return None

    def operands(self, op: Op, state: State) -> Operands:
        """The values of the operands, known by ``needs``."""
        return evaluate_operands(op, lambda expr: self.number(expr, state))

    def effect_of(self, op: Op, state: State) -> Effect:
        """The effect of an operation here; undefined behaviour if a precondition is violated."""
        made = self._kept(op)
        if made is None:
            made = effect_of(op, self.operands(op, state), self.site)
            if all(isinstance(expr, Const) for expr in decisive_expressions(op)):
                self.site.layout.effects[self.thread.index, id(op)] = op, made
        return self.admit(op, state, made)

    def _kept(self, op: Op) -> Effect | None:
        """The cached effect of an operation with constant operands."""
        found = self.site.layout.effects.get((self.thread.index, id(op)))
        return found[1] if found is not None and found[0] is op else None

    def admit(self, op: Op, state: State, made: Effect) -> Effect:
        """An effect whose preconditions hold, or are violated in a way after which the thread goes on: then it stops on
        another path, by which the finding is reported.
        """
        for fault in made.faults:
            if not continues_after(self.program, fault.code, op):
                raise self.stop(fault.code, fault.message, op)
            stopped = state.fork()
            stopped.misstep, stopped.ended = Misstep(fault.code, fault.message, op, op.section), "undefined"
            self.stopped.append(stopped)
        return made

    def require_part(self, op: Op, made: Effect, found: T | None) -> T:
        """A part of an effect that must be present."""
        if found is None:
            raise self.stop(made.faults[0].code, made.faults[0].message, op)
        return found

    def origin(self, expr: Expr, state: State) -> frozenset[Uid]:
        """The events that an operand depends on, even if the path has fixed its value."""
        if isinstance(expr, Const | Lanes):
            return NO_UIDS
        return reads_of(expression(expr, state.registers))

    # --- execution ------------------------------------------------------------------------------------

    def execute(self, op: Op, state: State) -> list[State]:
        """The states after ``op``, each one instruction further unless the thread ended."""
        handler = handler_of(op)
        state.instruction += 1
        before, order = len(state.events), state.order
        self.stopped = []
        try:
            out = handler(self, op, state)
        except Stop as stop:
            state.truncate(before)  # the thread stops before it
            state.misstep = stop.misstep
            state.ended = "undefined"
            out = [state]
        form = ops.multimem_of(op)
        for s in out:
            if not s.ended:
                s.pc += 1
                if form is not None and form.more:  # the next access belongs to the same instruction
                    s.order = order
        for s in self.stopped:
            s.truncate(before)
        return out + self.stopped

    def stop(self, code: str, message: str | Phrase, op: Op) -> Stop:
        """Undefined behaviour of ``op``."""
        return Stop(Misstep(code, message, op, op.section))

    def event(self, state: State, op: Op, tags: tuple[Tag, ...], *, ordered: bool = True, **more: Any) -> Event:
        """Add an event; ``ordered`` puts it next in program order."""
        event = Event(
            uid=(self.thread.index, len(state.events)),
            op=op,
            tags=_set_of(tags),
            order=state.order if ordered else None,
            instruction=state.instruction,
            block=more.pop("block", self.thread.place.cta.number),
            ctrl=state.ctrl,
            **more,
        )
        state.add(event)
        return event

    def memory(
        self,
        state: State,
        op: Op,
        kind: Tag,
        address: int,
        size: int,
        sem: str,
        proxy: str,
        scope: str | None,
        *,
        value: Term = 0,
        extra: tuple[Tag, ...] = (),
        **more: Any,
    ) -> Event:
        """A read (``kind`` ``R``) or write (``W``) of one scalar or run of bytes."""
        instance = self.site.at(address)
        assert instance is not None, "its effect has been checked"
        tags = (kind, Tag.M, SEM_TAG[sem], PROXY_TAG[proxy], SPACE_TAG[instance.object.space], *extra)
        earlier = instance.object.earlier_grid
        if earlier == "writes" or (earlier == "reads" and kind is Tag.W):
            tags = (*tags, Tag.EARLIER)
        if proxy == "async" and instance.cta is not None:
            more["block"] = instance.cta.number
        physical, virtual = instance.physical + (address - instance.base), address
        form = ops.multimem_of(op)
        if form is not None and instance.object.space == "global":  # not the source of a bulk copy
            virtual -= form.distance or 0
            tags = (*tags, Tag.MULTIMEM)
        return self.event(
            state, op, tags, address=physical, virtual=virtual, size=size, value=value, scope=scope, **more
        )

    def set_register(self, state: State, reg: Reg | None, value: Term) -> None:
        """Assign a destination register, ``None`` being the sink."""
        if reg is not None:
            state.registers[reg.name] = value


_set_of = cache(frozenset[Tag])
"""Some tags as a set, which is one and the same for all events of a kind."""


class _Registers(dict[str, Term]):
    """Register values; unwritten registers are 0 in the table dialect and unknown constants elsewhere."""

    def __init__(self, values: dict[str, Term], thread: int, default: int | None) -> None:
        super().__init__(values)
        self.thread = thread
        self.default = default

    def copy(self) -> _Registers:
        return _Registers(self, self.thread, self.default)

    def __missing__(self, name: str) -> Term:
        return ("?", (self.thread, name)) if self.default is None else self.default


# --- local computation -------------------------------------------------------------------------------


@handles(ops.DivergentAligned)
def _parted(e: Emitter, op: Op, state: State) -> list[State]:
    e.effect_of(op, state)
    return [state]


@handles(ops.Alu)
def _alu(e: Emitter, op: ops.Alu, state: State) -> list[State]:
    args = tuple(expression(s, state.registers) for s in op.srcs)  # not settled: a result keeps what it depends on
    if op.op in UNCOMPUTED:
        results: tuple[Term, ...] = (("?", (e.thread.index, op.op, state.instruction)),)
        dsts = op.dsts
    elif op.op == "nop":
        return [state]
    elif op.op == "mapa":
        made = e.effect_of(op, state)
        there = e.require_part(op, made, made.result)
        dsts, results = op.dsts, (there,)
    elif op.op == "mov" and op.type.startswith("b"):
        dsts, results = op.dsts, args
    else:
        dsts, results = op.dsts, alu(op.op, op.type, op.src_type, args, len(op.dsts))
    for reg, value in zip(dsts, results, strict=False):
        e.set_register(state, reg, value)
    return [state]


# --- generic memory ------------------------------------------------------------------------------------


@handles(ops.Load)
def _load(e: Emitter, op: ops.Load, state: State) -> list[State]:
    made, addr = e.effect_of(op, state), e.origin(op.address, state)
    for reg in op.dsts[len(made.accesses) :]:
        e.set_register(state, reg, ("?", (e.thread.index, "nothing", state.instruction)))
    extra = (Tag.NONCOHERENT,) if op.non_coherent else ()
    for k, (reg, access) in enumerate(zip(op.dsts, made.accesses, strict=False)):
        read = e.memory(
            state, op, Tag.R, access.address, access.size, op.sem, op.proxy, op.scope, addr=addr, extra=extra
        )
        value: Term = ("?", (e.thread.index, k, state.instruction)) if op.matrix_rows else ("e", read.uid)
        e.set_register(state, reg, typed(op.type, value))
    state.order += 1
    return [state]


@handles(ops.Store)
def _store(e: Emitter, op: ops.Store, state: State) -> list[State]:
    made, addr = e.effect_of(op, state), e.origin(op.address, state)
    for k, (src, access) in enumerate(zip(op.srcs, made.accesses, strict=False)):
        where, size = access.address, access.size
        value = raw(size, ("?", (e.thread.index, k, state.instruction)) if op.matrix_rows else e.term(src, state))
        data = e.origin(src, state)
        e.memory(state, op, Tag.W, where, size, op.sem, op.proxy, op.scope, value=value, addr=addr, data=data)
    state.order += 1
    state.effects += 1
    return [state]


@handles(ops.Atomic)
def _atomic(e: Emitter, op: ops.Atomic, state: State) -> list[State]:
    made, addr = e.effect_of(op, state), e.origin(op.address, state)
    (access,) = e.require_part(op, made, made.accesses or None)
    base, size = access.address, access.size
    operands = tuple(e.term(s, state) for s in op.srcs)
    origins = frozenset[Uid]().union(*(e.origin(s, state) for s in op.srcs))
    other = "weak" if op.sem == "weak" else "relaxed"  # weak: as the protocol engine weakens it
    read_sem = "acquire" if op.sem in ("acquire", "acq_rel") else other
    write_sem = "release" if op.sem in ("release", "acq_rel") else other
    extra = (Tag.ATOM, Tag.RED) if op.is_red else (Tag.ATOM,)
    read = e.memory(state, op, Tag.R, base, size, read_sem, op.proxy, op.scope, addr=addr, extra=(*extra, Tag.RMW))
    if op.multimem is None:  # nothing orders the atomics of one instruction, so all their accesses have one place
        state.order += 1
    old: Term = ("e", read.uid)
    e.set_register(state, op.dst, typed(op.type, old))

    def write(s: State, value: Term) -> None:
        data = origins | ({read.uid} if op.op != "exch" else NO_UIDS)
        e.memory(
            s, op, Tag.W, base, size, write_sem, op.proxy, op.scope,
            value=value, addr=addr, data=data, rmw=read.uid, extra=(*extra, Tag.RMW),
        )  # fmt: skip
        s.order += 1

    if op.op != "cas":
        instance = e.site.at(base)
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
def _fence(e: Emitter, op: ops.Fence, state: State) -> list[State]:
    tags: tuple[Tag, ...] = (Tag.F, FENCE_TAG[op.sem], Tag.GEN)
    if op.restrict == "mbarrier_init":
        tags = (Tag.F, Tag.MBARRIER_INIT_FENCE, Tag.GEN)
    elif op.restrict is not None:
        tags = (Tag.F, Tag.RESTRICTED, FENCE_TAG[op.sem], Tag.GEN)
    spaces = frozenset({op.restrict}) if op.restrict in NARROW else frozenset[str]()
    e.event(state, op, tags, scope=op.scope, spaces=spaces)
    state.order += 1
    return [state]


@handles(ops.GridWait)
def _grid_wait(e: Emitter, op: Op, state: State) -> list[State]:
    """Its thread goes on when the grids in front are over, which they are some time: it blocks nobody (9.7.13.13)."""
    e.event(state, op, (Tag.GRIDWAIT,))
    state.order += 1
    return [state]


@handles(ops.ProxyFence)
def _proxy_fence(e: Emitter, op: ops.ProxyFence, state: State) -> list[State]:
    tags = [Tag.F, Tag.PROXYFENCE, Tag.ALIAS if op.kind == "alias" else PROXY_TAG[op.kind]]
    covered = None
    if op.half is not None:
        of_reads = op.restrict is not None and op.restrict.endswith("::read")
        tags += [Tag.PACQUIRE if op.half == "acquire" else Tag.READHALF if of_reads else Tag.PRELEASE]
    made = e.effect_of(op, state)
    for access in made.accesses:
        instance = e.site.at(access.address)
        assert instance is not None
        covered = (instance.physical + access.address - instance.base, access.size)
    if op.address is None and op.half is None:
        tags.append(Tag.BOTH)
    if op.kind == "async" and op.half is None and e.multiplies and (not op.spaces or op.spaces & OPERANDS):
        tags.append(Tag.WGFENCE)  # it orders prior writes and the reads of wgmma.mma_async (9.7.15.7.1)
    spaces = op.spaces | (frozenset({op.restrict}) if op.restrict else frozenset())
    e.event(state, op, tuple(tags), scope=op.scope, spaces=spaces, covered=covered)
    state.order += 1
    return [state]


# --- await --------------------------------------------------------------------------------------------------


@handles(ops.Await)
def _await(e: Emitter, op: ops.Await, state: State) -> list[State]:
    if op.followed:
        raise Unsupported(ONE_PATH, op.span)
    return _attempt(e, op, state, 1)


def _attempt(e: Emitter, op: ops.Await, state: State, number: int) -> list[State]:
    """One more try; where a try that fails has an effect, or may be wrong, the next one follows, as in the loop that it
    stands for.
    """
    inner = op.inner
    before, effects = len(state.events), state.effects
    out: list[State] = []
    for s in handler_of(inner)(e, inner, state):
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
                if not blocked.idle and e.failed_attempts(s.events[before:]):
                    again = blocked.fork()
                    again.idle = True
                    out += _attempt(e, op, again, number)
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


def mbarrier_event(e: Emitter, state: State, op: Op, step: MbarrierStep, tags: tuple[Tag, ...], **more: Any) -> Event:
    """An event on an mbarrier object."""
    counted = replace(step, fences=state.fences) if state.fences else step
    return e.event(state, op, (Tag.MBAR, Tag.GEN, *tags), mbarrier=counted, **more)
