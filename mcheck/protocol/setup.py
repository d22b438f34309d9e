"""What all executions of a program share: its agents, the components of the vectors, the footprints found so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

from mcheck.cat.ast import Model
from mcheck.errors import Unsupported
from mcheck.explore import emit_async, emit_barrier, emit_mbarrier
from mcheck.explore.liveness_of_registers import loop_heads
from mcheck.explore.semantics import Semantics
from mcheck.explore.semantics import of as semantics_of
from mcheck.graph.event import Event
from mcheck.program import ops
from mcheck.program.expr import Binary, Const, Unary
from mcheck.program.program import Program
from mcheck.protocol import sequential
from mcheck.protocol.agents import Partition
from mcheck.protocol.history import Lanes
from mcheck.protocol.needed import Watched, needed
from mcheck.protocol.polling import spins

HANDLERS = (emit_async, emit_barrier, emit_mbarrier)
"""Imported for the operations that they register."""

Footprint = tuple[Event, int, int, Lanes]
"""An event that stands for those of all lanes, the bytes that they touch, and who touched which."""

SCOPED_PROXIES = frozenset(("texture", "surface", "constant"))


class NewMbarrier(Exception):
    """An mbarrier at an address that was not foreseen: the vectors need two more components."""

    def __init__(self, address: int) -> None:
        super().__init__("an mbarrier at a computed address")
        self.address = address


@dataclass(slots=True)
class Setup:
    """A program as the engine runs it."""

    program: Program
    partition: Partition
    semantics: Semantics
    profile: str
    unroll: int
    deadline: Callable[[], None]
    mbarriers: list[int]
    needed: list[frozenset[str]]
    places: list[tuple[int, int, int]] = field(default_factory=list)
    warps: list[tuple[int, ...]] = field(default_factory=list)
    """For each agent, those of its warp."""
    components: int = 0
    footprints: dict[tuple[int, int], list[Footprint] | None] = field(default_factory=dict)
    loops: dict[int, set[int]] = field(default_factory=dict)
    tails: list[int] = field(default_factory=list)
    many_ctas: bool = False
    spinning: dict[tuple[int, int], bool] = field(default_factory=dict)
    sequential: bool = True
    """Whether the order of the fence.sc decides anything."""
    watched: Watched | None = None
    """Registers whose final values are asked for; ``None`` if no final states are."""

    def asked(self, agent: int) -> frozenset[str]:
        """The registers of an agent whose final values are asked for."""
        return frozenset().union(*((self.watched or {}).get(t, frozenset()) for t in self.partition[agent]))

    def spins(self, agent: int, pc: int) -> bool:
        """Whether the poll of an mbarrier there is a wait that is written out."""
        found = self.spinning.get((agent, pc))
        if found is None:
            thread = self.program.threads[self.partition[agent][0]]
            found = self.spinning[agent, pc] = spins(thread, pc, self.asked(agent))
        return found


def prepare(
    program: Program,
    partition: Partition,
    model: Model,
    profile: str,
    unroll: int,
    deadline: Callable[[], None],
    known: Setup | None = None,
    extra: tuple[int, ...] = (),
    watched: Watched | None = None,
) -> Setup:
    """The set-up of a program cut into these agents; raises ``Unsupported`` for what this engine does not follow."""
    if known is None:
        _check(program, model)
    found = sorted(
        {
            op.address.value
            for code in {id(t.code): t.code for t in program.threads}.values()
            for op in code
            if isinstance(op, ops.MbarrierInit) and isinstance(op.address, Const)
        }
        if known is None
        else set(known.mbarriers)
    )
    mbarriers = found + [a for a in extra if a not in found]
    setup = Setup(
        program,
        partition,
        semantics_of(model, dialect=program.dialect),
        profile,
        unroll,
        deadline,
        mbarriers,
        needed(program, watched) if known is None or watched is not None else known.needed,
        watched=watched,
    )
    for group in partition:
        if watched is not None and len(group) > 1:  # what one lane must know is asked of the agent
            setup.needed[group[0]] = frozenset().union(*(setup.needed[t] for t in group))
        cta = program.threads[group[0]].place.cta
        setup.places.append((cta.gpu, cta.cluster, cta.number))
    mates: dict[tuple[int, int], list[int]] = {}
    for k, group in enumerate(partition):
        place = program.threads[group[0]].place
        mates.setdefault(place.own_warp, []).append(k)
    by_agent = {k: tuple(warp) for warp in mates.values() for k in warp}
    setup.warps = [by_agent[k] for k in range(len(partition))]
    setup.sequential = sequential.decides(program) if known is None else known.sequential
    setup.many_ctas = len({p[2] for p in setup.places}) > 1
    setup.components = len(partition) + 2 * len(mbarriers)
    for k, group in enumerate(partition):
        setup.loops[k] = loop_heads(program.threads[group[0]])
        setup.tails.append(_tail(program.threads[group[0]].code, setup.loops[k]))
    return setup


def _tail(code: tuple[ops.Op, ...], heads: set[int]) -> int:
    """The place in the code from which a thread only computes and exits."""
    k = len(code)
    while k and (
        (isinstance(code[k - 1], ops.Label) and k - 1 not in heads)
        or (isinstance(code[k - 1], ops.Alu | ops.Exit) and code[k - 1].guard is None)
    ):
        k -= 1
    return k


def _check(program: Program, model: Model) -> None:
    name = dict(model.options).get("semantics", "")
    if name not in ("ptx-9.0", "ptx-9.3"):
        raise Unsupported("the protocol engine knows the rules of ptx-9.0 and ptx-9.3 only")
    aliases = [
        (item.base, item.base + item.object.size) for item in program.memory.instances if item.base != item.physical
    ]
    if aliases and any(_names(op, aliases) for thread in program.threads for op in thread.code):
        raise Unsupported("aliases are not followed by the protocol engine")
    seen: set[int] = set()
    for thread in program.threads:
        for op in thread.code:
            if id(op) in seen:
                continue
            seen.add(id(op))
            inner = ops.performed(op)
            if getattr(inner, "proxy", "generic") in SCOPED_PROXIES or (
                isinstance(inner, ops.ProxyFence) and inner.kind not in ("async", "tensormap", "alias", "generic")
            ):
                raise Unsupported("texture, surface and constant proxies are not followed by the protocol engine")
            if isinstance(inner, ops.Barrier) and inner.instance is not None:
                raise Unsupported("static barriers of the table dialect are not followed by the protocol engine")


def _names(value: object, ranges: list[tuple[int, int]]) -> bool:
    """Whether an operation has a constant that points into one of these ranges: where every pointer starts from."""
    match value:
        case Const(number):
            return any(low <= number < high for low, high in ranges)
        case tuple():
            return any(_names(item, ranges) for item in value)
        case Unary() | Binary() | ops.Op():
            return any(_names(getattr(value, f.name), ranges) for f in fields(value))
    return False
