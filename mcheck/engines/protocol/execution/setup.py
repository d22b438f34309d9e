"""What all executions of a program share: its agents, clock components, tracked words, and cached footprints."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, fields
from itertools import chain
from typing import Literal

from mcheck.answers.root_waits import Steps
from mcheck.base.errors import Unsupported
from mcheck.base.records import dataclass
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.cat.algebra.tape import Tape
from mcheck.cat.ast import Model
from mcheck.effects.site import Layout, layout_of, widened
from mcheck.effects.unwritten_objects import find_unwritten_objects, without_earlier_writes
from mcheck.engines.protocol.analysis import sc_fences as sequential
from mcheck.engines.protocol.analysis.awaited_atomics import has_changing_attempts
from mcheck.engines.protocol.analysis.axioms import check_axioms
from mcheck.engines.protocol.analysis.code_facts import CodeFacts, may_end_mbarriers
from mcheck.engines.protocol.analysis.delayed_waits import find_delayed_waits
from mcheck.engines.protocol.analysis.lane_groups import Partition
from mcheck.engines.protocol.analysis.model_equivalence import is_equivalent
from mcheck.engines.protocol.analysis.polling import is_spin_loop
from mcheck.engines.protocol.analysis.representative_lanes import TrackedBytes, find_representable
from mcheck.engines.protocol.analysis.shared_words import find_released_words
from mcheck.engines.protocol.analysis.slicing import (
    Watched,
    all_registers,
    copied_data_matters,
    memory_matters,
    needed_objects,
    needed_registers,
)
from mcheck.engines.protocol.analysis.unshared_accesses import find_unshared_accesses
from mcheck.engines.protocol.incremental.history import Histories
from mcheck.engines.protocol.incremental.kinds import Shown
from mcheck.engines.protocol.incremental.lane_representatives import lanes_are_representable
from mcheck.engines.protocol.incremental.possible_kinds import foresee_kinds
from mcheck.engines.protocol.incremental.sorts import Sorts
from mcheck.engines.protocol.incremental.unsupported_checks import (
    find_absent_relations,
    find_unsupported_check,
    flags_two_reads,
)
from mcheck.engines.protocol.passes import ALL_PASSES, Pass, Passes
from mcheck.engines.protocol.state.access_history import Lanes
from mcheck.engines.protocol.state.cyclic_names import Ring
from mcheck.engines.protocol.state.footprints import CombinedAccess, LaneBytes
from mcheck.events import emit_async, emit_barrier, emit_mbarrier, emit_tensor_core
from mcheck.events.event import Event
from mcheck.events.model_options import Semantics
from mcheck.events.model_options import model_semantics as semantics_of
from mcheck.events.paths import exits_matter
from mcheck.ir import ops
from mcheck.ir.demanded_bits import DemandedBits, demanded_bits
from mcheck.ir.expr import Binary, Const, Unary
from mcheck.ir.liveness import live_registers_at, loop_heads
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.tensor_map_values import MAP_SIZE

REGISTERING_MODULES = (emit_async, emit_barrier, emit_mbarrier, emit_tensor_core)
"""Imported for the operations that they register."""

Footprint = tuple[Event, int, int, Lanes]
"""An event that stands for those of all lanes, the range of bytes, and which lane accesses which byte."""

SCOPED_PROXIES = frozenset(("texture", "surface", "constant"))


class NewMbarrier(Exception):
    """An mbarrier at an address that was not foreseen: vector clocks need another component."""

    def __init__(self, address: int) -> None:
        super().__init__("an mbarrier at a computed address")
        self.address = address


class NewWord(Exception):
    """A word that strong operations access, or whose value decides something, at an address that was not foreseen."""

    def __init__(self, address: int, size: int) -> None:
        super().__init__("a shared word at a computed address")
        self.address = address
        self.size = size


class NewOrder(Exception):
    """A word whose atomics have to be run in every order, although they commute."""

    def __init__(self, address: int) -> None:
        super().__init__("an order that what a thread has observed decides")
        self.address = address


MAX_TRACKED_WORDS = 512
"""The maximum number of tracked words."""
MAX_STALE_WRITES = 12
"""The number of latest writes that a read may return; the model is asked to confirm that it can return no earlier
one.
"""


@dataclass(slots=True)
class Setup:
    """A program prepared for execution."""

    program: Program
    partition: Partition
    semantics: Semantics
    profile: str
    unroll: int
    check_deadline: Callable[[], None]
    mbarriers: list[int]
    needed_registers: list[frozenset[str]]
    """For each thread, the registers whose values are followed."""
    sliced_registers: list[frozenset[str]]
    """For each thread, the registers whose values matter: all that are followed, unless slicing is off."""
    passes: Passes = ALL_PASSES
    layout: Layout | None = None
    placements: list[tuple[int, int, int]] = field(default_factory=list)
    warp_mates: list[tuple[int, ...]] = field(default_factory=list)
    """For each agent, the agents of its warp."""
    clock_size: int = 0
    footprints: dict[tuple[int, int], list[Footprint] | None] = field(default_factory=dict)
    combined_accesses: dict[tuple[int, int], tuple[CombinedAccess | None, ops.Op]] = field(default_factory=dict)
    """The accesses of all lanes of an agent in one instruction, by agent and operation."""
    copy_accesses: dict[tuple[int, int], tuple[tuple[LaneBytes, LaneBytes] | None, ops.Op]] = field(
        default_factory=dict
    )
    """The same for ``cp.async``: the bytes that are read and those that are written."""
    loop_heads: dict[int, set[int]] = field(default_factory=dict)
    tail_places: list[frozenset[int]] = field(default_factory=list)
    spin_waits: dict[tuple[int, int], bool] = field(default_factory=dict)
    carried_registers: dict[tuple[int, int], frozenset[str]] = field(default_factory=dict)
    facts_by_agent: dict[int, CodeFacts] = field(default_factory=dict)
    steps_by_agent: dict[int, Steps] = field(default_factory=dict)
    warpgroups: dict[int, tuple[int, ...]] = field(default_factory=dict)
    demanded_bits: dict[int, DemandedBits] = field(default_factory=dict)
    deciding_objects: frozenset[int] | Literal[False] | None = False
    """The cached result of ``needed_objects``; false until it is computed."""
    mbarriers_may_end: bool = False
    """Whether mbarriers of the program may be invalidated and initialised again, with new phases."""
    thorough: bool = False
    """Whether the search goes on after an error."""
    brief: bool = False
    """Whether an error has been found, so that stale reads need not be sought any more."""
    sc_order_matters: bool = True
    """Whether the order of fence.sc decides anything."""
    relaxed_barriers: bool = False
    """Whether a thread arrives at the cluster barrier without a release."""
    exits_matter: bool = True
    """Whether the time of a thread's exit can matter."""
    observed_registers: Watched | None = None
    """Registers whose final values are asked for; ``None`` if no final states are."""
    tape: Tape = field(default_factory=Tape)
    reads_conflict: bool = False
    """Whether a flag of the model may hold of two reads."""
    event_kinds: Shown = field(default_factory=Shown)
    sorts: Sorts | None = None
    """The sorts of events, as far as executions have distinguished them."""
    histories: Histories = field(default_factory=Histories.create)
    """What trials have answered in executions that were replayed."""
    tracked_words: dict[int, int] = field(default_factory=dict)
    """Addresses and sizes of the tracked words: those that strong operations access, or whose value decides
    something.
    """
    max_stale_writes: int = MAX_STALE_WRITES
    """The number of latest writes that a read may return. Where it is less than ``MAX_STALE_WRITES``, the model must
    confirm that all others are overwritten.
    """
    word_starts: list[int] = field(default_factory=list)
    longest_word: int = 0
    """The size of the longest tracked word; ``word_starts`` are the sorted addresses."""
    ordered_words: frozenset[int] = frozenset()
    """The tracked words whose atomics are run in every order, although they commute
    (``mcheck.engines.protocol.reduction.observed_rmw_order``).
    """
    released_words: frozenset[int] | None = None
    """The words whose writes may end a release pattern; ``None`` if any may."""
    reads_relaxed: bool = False
    """Whether a thread acts on a value that it read without acquiring."""
    stored_addresses: frozenset[int] = frozenset()
    """Constant addresses that plain stores write."""
    follows_causality: bool = False
    """Whether executions follow what synchronisation orders (``mcheck.engines.protocol.state.acquired_writes``)."""
    stale_maps: bool = False
    """Whether copies use the tensor maps as they were at the start (``mcheck.engines.protocol.stale_tensormaps``)."""
    advises: bool = True
    """Whether a race is reported with a fix: not where only the question is whether there is one."""
    unwritten_objects: frozenset[int] = frozenset()
    """The addresses of the objects that nothing writes."""
    unrecorded_objects: frozenset[int] = frozenset()
    """Those of them whose reads need no events."""
    unshared_accesses: frozenset[int] = frozenset()
    """The loads and stores, by identity, that need no events, because one thread alone touches their bytes."""
    tensor_maps: tuple[tuple[int, int], ...] = ()
    """The ranges of tensor maps, or of the objects that hold them."""
    ignores_copied_data: bool = False
    """Whether nothing depends on the data that copies move, only on the bytes that they touch."""
    contents_matter: bool = True
    """Whether anything may depend on the contents of memory."""
    single_representative: tuple[bool, ...] = ()
    """For each agent, whether one of its threads stands for all."""
    last_fence: list[int] = field(default_factory=list)
    """For each agent, the place in its code after which no fence follows."""
    rings: dict[int, Ring] = field(default_factory=dict)
    """By the base address of an object, its bytes that rotate from iteration to iteration
    (``mcheck.proofs.rotation_symmetry``).
    """
    delayed_waits: frozenset[tuple[int, int]] = frozenset()
    """The waits that may observe effects of their thread's later operations, as (thread, place in its code)."""

    def touches_map(self, address: int, size: int) -> bool:
        """Whether an access touches a tensor map."""
        return any(low < address + size and address < high for low, high in self.tensor_maps)

    def touches_word(self, ranges: Iterable[tuple[int, int]]) -> bool:
        """Whether some ranges of bytes overlap a tracked word."""
        return bool(self.word_starts) and any(True for low, high in ranges for _ in self.words_in(low, high))

    def words_in(self, low: int, high: int) -> Iterator[int]:
        """The addresses of the tracked words that a range of bytes overlaps."""
        starts = self.word_starts
        for k in range(bisect_right(starts, low - self.longest_word), len(starts)):
            if starts[k] >= high:
                return
            if starts[k] + self.tracked_words[starts[k]] > low:
                yield starts[k]

    def should_track(self, address: int) -> bool:
        """Whether a word whose value decides something should be tracked from the start of the execution."""
        return (
            address not in self.tracked_words
            and len(self.tracked_words) < MAX_TRACKED_WORDS
            and address in self.stored_addresses
        )

    def commits_wgmma(self, agent: int) -> bool:
        """Whether an agent commits wgmma groups, so that others wait for it."""
        return self.facts_of(agent).commits_wgmma

    def warpgroup_of(self, agent: int) -> tuple[int, ...]:
        """The agents of the four warps that execute a wgmma together, as far as they are declared and use it."""
        found = self.warpgroups.get(agent)
        if found is None:
            places = [self.program.threads[group[0]].place.warpgroup for group in self.partition]
            found = tuple(k for k, place in enumerate(places) if place == places[agent] and self.commits_wgmma(k))
            self.warpgroups[agent] = found
        return found

    def facts_of(self, agent: int) -> CodeFacts:
        """The facts about the code of an agent."""
        found = self.facts_by_agent.get(agent)
        if found is None:
            found = self.facts_by_agent[agent] = CodeFacts(
                self.program.threads[self.partition[agent][0]], self.mbarriers_may_end
            )
        return found

    def steps_of(self, agent: int) -> Steps:
        """What the code of an agent does for others."""
        found = self.steps_by_agent.get(agent)
        if found is None:
            found = self.steps_by_agent[agent] = Steps.create(self.program.threads[self.partition[agent][0]])
        return found

    def observed_registers_of(self, agent: int) -> frozenset[str]:
        """The registers of an agent whose final values are asked for."""
        return frozenset().union(*((self.observed_registers or {}).get(t, frozenset()) for t in self.partition[agent]))

    def demanded_bits_of(self, agent: int, *, stores: bool) -> DemandedBits:
        """The bits of an agent's registers that decide anything; stored values count only with ``stores``."""
        found = self.demanded_bits.get(agent)
        if found is None:
            code = chain.from_iterable(self.program.threads[t].code for t in self.partition[agent])
            found = self.demanded_bits[agent] = demanded_bits(code, stores=stores)
        return found

    def find_deciding_objects(self) -> frozenset[int] | None:
        """The addresses of the objects whose contents may decide something; ``None`` where they are not known."""
        if self.deciding_objects is False:
            self.deciding_objects = needed_objects(self.program, self.sliced_registers)
        return self.deciding_objects

    def is_spin_wait(self, agent: int, pc: int) -> bool:
        """Whether the poll of an mbarrier at ``pc`` is a wait written as a loop."""
        found = self.spin_waits.get((agent, pc))
        if found is None:
            thread = self.program.threads[self.partition[agent][0]]
            found = Pass.SPIN_LOOPS in self.passes and is_spin_loop(thread, pc, self.observed_registers_of(agent))
            self.spin_waits[agent, pc] = found
        return found

    def deciding_registers(self, agent: int, head: int) -> frozenset[str]:
        """The registers that decide something and are carried from one iteration of the loop at ``head`` to the
        next.
        """
        found = self.carried_registers.get((agent, head))
        if found is None:
            first = self.partition[agent][0]
            live = live_registers_at(self.program.threads[first], {head}, set(self.observed_registers_of(agent)))[head]
            found = self.carried_registers[agent, head] = self.sliced_registers[first].intersection(live)
        return found


def _allows_single_representative(setup: Setup) -> bool:
    """Whether the model lets one thread stand for the lanes of an agent, and no object has two addresses."""
    if Pass.REPRESENTATIVE_LANES not in setup.passes:
        return False
    aliased = any(i.base != i.physical for i in setup.program.memory.instances)
    return not aliased and lanes_are_representable(setup.tape)


def prepare(
    program: Program,
    partition: Partition,
    model: Model,
    profile: str,
    unroll: int,
    deadline: Callable[[], None],
    previous: Setup | None = None,
    extra_mbarriers: tuple[int, ...] = (),
    observed_registers: Watched | None = None,
    extra_words: dict[int, int] | None = None,
    ordered_words: frozenset[int] = frozenset(),
    *,
    reorder_sc_fences: bool = False,
    passes: Passes = ALL_PASSES,
) -> Setup:
    """Prepare a program whose lanes are partitioned into these agents.

    With ``reorder_sc_fences``, both orders of its fence.sc are explored whether or not they decide anything. Raises
    ``Unsupported`` for constructs that this engine does not support.
    """
    if previous is None:
        _check_supported(program, semantics_of(model, dialect=program.dialect))
        check_axioms(program, tape_of(model))
        reason = (
            None
            if is_equivalent(tape_of(model))
            else find_unsupported_check(tape_of(model), find_absent_relations(program))
        )
        if reason is not None:
            raise Unsupported(reason)
    found = sorted(
        {
            op.address.value
            for op in program.operations
            if isinstance(op, ops.MbarrierInit) and isinstance(op.address, Const)
        }
        if previous is None
        else set(previous.mbarriers)
    )
    mbarriers = found + [a for a in extra_mbarriers if a not in found]
    sliced = (
        needed_registers(program, observed_registers)
        if previous is None or observed_registers is not None
        else previous.sliced_registers
    )
    setup = Setup(
        program,
        partition,
        semantics_of(model, dialect=program.dialect),
        profile,
        unroll,
        deadline,
        mbarriers,
        needed_registers=sliced if Pass.SLICING in passes else all_registers(program),
        sliced_registers=sliced,
        passes=passes,
        layout=layout_of(program),
        observed_registers=observed_registers,
        tape=tape_of(model),
        reads_conflict=flags_two_reads(tape_of(model)),
        event_kinds=foresee_kinds(program) if previous is None else previous.event_kinds,
        sorts=Sorts(program) if previous is None else previous.sorts,
        tracked_words={
            **(_find_strong_words(program) if previous is None else previous.tracked_words),
            **(extra_words or {}),
        },
        stored_addresses=_find_stored_addresses(program) if previous is None else previous.stored_addresses,
        tensor_maps=_find_tensor_maps(program) if previous is None else previous.tensor_maps,
        unwritten_objects=find_unwritten_objects(program) if previous is None else previous.unwritten_objects,
        ordered_words=ordered_words,
        released_words=find_released_words(program) if previous is None else previous.released_words,
        reads_relaxed=_reads_relaxed(program) if previous is None else previous.reads_relaxed,
    )
    if setup.reads_conflict or Pass.UNWRITTEN_OBJECTS not in passes:
        setup.unwritten_objects = frozenset()  # its reads may conflict as well
    setup.unrecorded_objects = without_earlier_writes(program, setup.unwritten_objects)
    # A flag of one's own may speak of a single access, or of two of one thread.
    if Pass.UNSHARED_ACCESSES in passes and observed_registers is None and is_equivalent(setup.tape):
        setup.unshared_accesses = find_unshared_accesses(program) if previous is None else previous.unshared_accesses
    setup.delayed_waits = (
        find_delayed_waits(program, setup.sliced_registers) if previous is None else previous.delayed_waits
    )
    setup.mbarriers_may_end = may_end_mbarriers(program)
    setup.word_starts, setup.longest_word = sorted(setup.tracked_words), max(setup.tracked_words.values(), default=0)
    for group in partition:
        if observed_registers is not None and len(group) > 1:  # a register that one lane needs is needed of the agent
            for registers in (setup.needed_registers, setup.sliced_registers):
                registers[group[0]] = frozenset().union(*(registers[t] for t in group))
        cta = program.threads[group[0]].place.cta
        setup.placements.append((cta.gpu, cta.cluster, cta.number))
    mates: dict[tuple[int, int], list[int]] = {}
    for k, group in enumerate(partition):
        place = program.threads[group[0]].place
        mates.setdefault(place.own_warp, []).append(k)
    by_agent = {k: tuple(warp) for warp in mates.values() for k in warp}
    setup.warp_mates = [by_agent[k] for k in range(len(partition))]
    if previous is not None:
        setup.sc_order_matters = previous.sc_order_matters or reorder_sc_fences
    else:
        decides = is_equivalent(setup.tape) and Pass.SC_FENCE_ORDER in passes
        setup.sc_order_matters = sequential.sc_order_matters(program) if decides else sequential.has_sc_fence(program)
    setup.relaxed_barriers = program.clustered and _has_relaxed_barriers(program)
    setup.exits_matter = exits_matter(program) if previous is None else previous.exits_matter
    if not setup.tracked_words and observed_registers is None and not program.parameter:
        setup.ignores_copied_data = (
            previous.ignores_copied_data if previous is not None else _ignores_copied_data(setup)
        )
    setup.contents_matter = previous.contents_matter if previous is not None else _contents_matter(setup)
    setup.clock_size = len(partition) + len(mbarriers)
    distinguished = (
        [(a, a + 8) for a in mbarriers]
        + [(a, a + size) for a, size in setup.tracked_words.items()]
        + list(setup.tensor_maps)
    )
    setup.single_representative = (
        find_representable(program, partition, TrackedBytes(distinguished))
        if _allows_single_representative(setup)
        else (False,) * len(partition)
    )
    read_code(setup)
    return setup


def read_code(setup: Setup) -> None:
    """Collect facts about the places in the code of each agent."""
    for k, group in enumerate(setup.partition):
        thread = setup.program.threads[group[0]]
        setup.loop_heads[k] = loop_heads(thread)
        setup.tail_places.append(_find_tails(thread.code, setup.loop_heads[k]))
        setup.last_fence.append(_find_last_fence(thread.code, setup.loop_heads[k]))


def _reads_relaxed(program: Program) -> bool:
    reads = ops.Load | ops.Atomic | ops.MbarrierWait
    code = map(ops.performed_operation, program.operations)
    return any(isinstance(op, reads) and op.sem in ("relaxed", "release") for op in code)


def _has_relaxed_barriers(program: Program) -> bool:
    return any(
        isinstance(op, ops.ClusterBarrier) and op.kind == "arrive" and op.sem == "relaxed" for op in program.operations
    )


def _ignores_copied_data(setup: Setup) -> bool:
    if Pass.UNUSED_CONTENTS not in setup.passes:
        return False
    holders = (setup.program.memory.find(low) for low, _ in setup.tensor_maps)
    unwritten = all(item is not None and item.base in setup.unwritten_objects for item in holders)
    return unwritten and not copied_data_matters(setup.program)


def _contents_matter(setup: Setup) -> bool:
    if Pass.UNUSED_CONTENTS not in setup.passes:
        return True
    atomics = [o for o in map(ops.performed_operation, setup.program.operations) if isinstance(o, ops.Atomic)]
    asked = setup.observed_registers is not None or any(
        op.op == "cas" for op in atomics
    )  # whether it stores depends on memory
    return not atomics or asked or memory_matters(setup.program)


def _find_last_fence(code: tuple[ops.Op, ...], heads: set[int]) -> int:
    """The place of the last fence; the end of the code if it has loops."""
    places = [k for k, op in enumerate(code) if isinstance(op, ops.Fence)]
    return 0 if not places else len(code) if heads else places[-1]


def _find_tails(code: tuple[ops.Op, ...], heads: set[int]) -> frozenset[int]:
    """The places in the code from which a thread only computes and exits."""
    found = {len(code)}
    for k in range(len(code) - 1, -1, -1):
        op = code[k]
        goes_on = (isinstance(op, ops.Label) and k not in heads) or (isinstance(op, ops.Alu) and op.guard is None)
        if (isinstance(op, ops.Exit) and op.guard is None) or (goes_on and k + 1 in found):
            found.add(k)
    return frozenset(found)


def _find_strong_words(program: Program) -> dict[int, int]:
    """The words at constant addresses that strong operations or awaits access; in the size of the awaits, if any."""
    out: dict[int, int] = {}
    for op in sorted(program.operations, key=lambda op: not isinstance(op, ops.Await)):
        inner = ops.performed_operation(op)
        if not isinstance(inner, ops.ScalarAccess) or not isinstance(inner.address, Const):
            continue
        if inner.sem != "weak" or isinstance(op, ops.Await):
            size = type_size(inner.type)
            several = (
                inner.dsts if isinstance(inner, ops.Load) else inner.srcs if isinstance(inner, ops.Store) else (0,)
            )
            for k in range(len(several)):
                out.setdefault(widened(inner.address.value) + k * size, size)
    return out


def _find_stored_addresses(program: Program) -> frozenset[int]:
    """The constant addresses of plain stores."""
    out: set[int] = set()
    for op in program.operations:
        if isinstance(op, ops.Store) and isinstance(op.address, Const):
            out.update(widened(op.address.value) + k * type_size(op.type) for k in range(len(op.srcs)))
    return frozenset(out)


def _find_tensor_maps(program: Program) -> tuple[tuple[int, int], ...]:
    """The ranges of the tensor maps that instructions name; whole objects if some name is not a constant."""
    kinds = ops.TensorCopy | ops.TensormapReplace | ops.TensormapCopyFence | ops.ProxyFence
    named = [
        expr
        for op in program.operations
        if isinstance(op, kinds)
        for name in ("tensor_map", "address", "dst", "src")
        if (expr := getattr(op, name, None)) is not None
    ]
    whole = not all(isinstance(expr, Const) for expr in named)
    found: set[tuple[int, int]] = set()
    for expr in named:
        place = widened(expr.value) if isinstance(expr, Const) else 0
        instance = program.memory.find(place)
        if instance is not None:
            found.add((instance.base, instance.base + instance.object.size) if whole else (place, place + MAP_SIZE))
    return tuple(sorted(found))


def _check_supported(program: Program, semantics: Semantics) -> None:
    """Raise ``Unsupported`` for operations that this engine does not support."""
    if semantics.cas_stores and any(
        isinstance(op, ops.Atomic) and op.op == "cas" for op in map(ops.performed_operation, program.operations)
    ):
        raise Unsupported("the protocol engine does not support a compare-and-swap that stores the old value")
    if has_changing_attempts(program):
        raise Unsupported("the protocol engine does not support awaited atomics whose failed attempts change memory")
    aliases = [
        (item.base, item.base + item.object.size)
        for item in program.memory.instances
        if item.base != item.physical and not item.object.copies
    ]
    if aliases and any(points_into(op, aliases) for op in program.operations):
        raise Unsupported("the protocol engine does not support aliases")
    for op in program.operations:
        inner = ops.performed_operation(op)
        if getattr(inner, "proxy", "generic") in SCOPED_PROXIES or (
            isinstance(inner, ops.ProxyFence) and inner.kind not in ("async", "tensormap", "alias", "generic")
        ):
            raise Unsupported("the protocol engine does not support texture, surface and constant proxies")
        if isinstance(inner, ops.Barrier) and inner.instance is not None:
            raise Unsupported("the protocol engine does not support static barriers of the table dialect")


def points_into(value: object, ranges: list[tuple[int, int]]) -> bool:
    """Whether an operation has a constant that points into one of these ranges; every pointer derives from one."""
    match value:
        case Const(number):
            return any(low <= number < high for low, high in ranges)
        case tuple():
            return any(points_into(item, ranges) for item in value)
        case Unary() | Binary() | ops.Op():
            return any(points_into(getattr(value, f.name), ranges) for f in fields(value))
    return False
