"""``extract_traces``: from a module and a launch to the program that one cluster executes.

Every lane becomes a thread. Its code is the sequence of operations that other lanes can observe, with numbers for
operands: control flow has been resolved. Gaps say what could not be followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from typing import Protocol, TypeVar

import numpy as np

from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.ptx.code import Code, collect_code
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.memory_layout import (
    SYSTEM_BYTES,
    MemoryLayout,
    place_variables,
    reserved_registers,
    with_contents,
    workspace_registers,
)
from mcheck.frontend.ptx.module import Address, Module, Register, Statement, Symbol
from mcheck.frontend.ptx.module_copies import written_name
from mcheck.ir.condition import Condition
from mcheck.ir.ops import Label, Op
from mcheck.ir.program import Place, Program, Thread
from mcheck.isa.kinds import Kind
from mcheck.simt.branch_paths import BranchPaths
from mcheck.simt.execution.cluster import EXITED, MAX_CHOICES, MAX_STEPS, Cluster, Step
from mcheck.simt.execution.compiler import Compiler
from mcheck.simt.execution.forced_values import AccessId, ForcedValues, Observation
from mcheck.simt.execution.lanes import WARP, Lanes, cta_names, executed_ctas
from mcheck.simt.execution.launch_answers import MAX_WON, CancelResponses, following_clusters
from mcheck.simt.execution.memory import Store
from mcheck.simt.execution.recorded_operations import Gap, RecordedOperations
from mcheck.simt.execution.waits.broadcast_waits import foreign_access
from mcheck.simt.execution.waits.counters import AssumedLock, Counters
from mcheck.simt.execution.waits.deferred_swaps import DeferredSwaps
from mcheck.simt.execution.waits.meetings import Meetings
from mcheck.simt.execution.waits.two_valued_locks import may_drop_failures, weaker_accesses
from mcheck.simt.grid.footprints.footprint import Footprint
from mcheck.simt.grid.footprints.watched_execution import GridWatch, grid_watch
from mcheck.simt.instructions import tensor_allocation
from mcheck.simt.instructions.dispatch import compile_steps
from mcheck.simt.rounds.kept_apart import are_apart
from mcheck.simt.rounds.loop_rounds import LoopRounds
from mcheck.simt.traces import end_of_threads
from mcheck.simt.traces.address_names import KernelTerms
from mcheck.simt.traces.dependent_grids import Early
from mcheck.simt.traces.idle_waiters import drop_idle_waiters
from mcheck.simt.traces.unread_atomics import drop_unread_atomics

LEADERS = "the leader of elect.sync is the first or the last lane of its mask"
WAITERS_KEEP_UP = "threads that only wait for mbarriers, at line {}, do not fall two phases behind"
ZEROED = "the system's part of shared memory (%reserved_smem_offset_1) is initially zero"
INITIALISED = "variables of the module initially hold their initialisers, or zero: {}"
FORCED_STEPS = 4
MIN_FORCED_STEPS = 2_000
"""A path by values that other threads write is given up after so many times the steps of the others, and so many more:
with these values a loop may never end.
"""
MAX_PATHS = 8
"""Maximum number of paths that are followed through branches on unknown data."""


@dataclass(frozen=True, slots=True)
class PathRules:
    """How paths are followed, as far as earlier ones have shown that: whether stores are ``named``, the bytes of the
    words that are followed as ``counters`` and the words of unknown contents that are followed as ``locks``, by
    address, whether loads that are repeated around a barrier, and swaps of words that hold two values, count as waits,
    whether loops of several loads are recorded as loops, whether values are followed through asynchronous copies, and
    whether rounds of loops are left out that do what the ones before them did. ``footprints_alone``: the programs are
    not asked for.
    """

    named: bool = False
    counters: Mapping[int, int] = field(default_factory=dict)
    locks: Mapping[int, AssumedLock] = field(default_factory=dict)
    barrier_waits: bool = False
    two_valued_locks: bool = False
    load_loops: bool = False
    copied_values: bool = False
    leaves_rounds_out: bool = False
    footprints_alone: bool = False


NOTHING_SHOWN = PathRules()


@dataclass(frozen=True, slots=True)
class ClusterTrace:
    """One path that a cluster can take. ``gaps`` bound what an answer about the program says of the kernel."""

    program: Program
    gaps: tuple[Gap, ...]
    assumptions: tuple[str, ...]
    operations: int
    steps: int = 0
    last_lane_leads: bool = False
    early_accesses: tuple[Early, ...] = ()
    """Accesses of lanes before their wait for the preceding grids (griddepcontrol)."""
    footprint: Footprint | None = None
    """The global memory that the cluster touches, where the grid has other clusters."""
    observations: Mapping[AccessId, Observation] = field(default_factory=dict)
    """The values that decide control on this path, where the engine can tell others (``BranchPaths``)."""
    choices: object = None
    """The choices of this path, without such values."""
    is_forced: bool = False
    """Whether such values were given."""
    joint_stores: frozenset[Span] = frozenset()
    """Stores of which that of one lane stands for those of others, which are not in the program."""


def extract_traces(
    module: Module,
    launch: Launch,
    limit: Limit | None = None,
    *,
    alone: bool = False,
    branches: BranchPaths | None = None,
    one_order: bool = False,
    whole_grid: bool = False,
    leaves_rounds_out: bool = False,
) -> Iterator[ClusterTrace]:
    """The paths that the clusters of a launch that are executed together, and of launches beside it, can take: several
    where a branch depends on data, on a leader, or on values that ``branches`` asks for meanwhile. With ``alone``, what
    they share with other clusters of the grid is not recorded. With ``one_order``, values that other threads write are
    those of the run. With ``whole_grid`` there are no other clusters: loops that repeat several loads are loops of the
    programs (``mcheck.simt.execution.waits.load_loops``). With ``leaves_rounds_out``, accesses that conflict with none
    may not be in the programs (``mcheck.simt.rounds.loop_rounds``).

    Raises ``InputError`` where control or an address of shared memory depends on a parameter that is not given.
    """
    watched = not alone and grid_watch(launch) is not None
    rules = PathRules(
        barrier_waits=True, two_valued_locks=True, load_loops=whole_grid, copied_values=whole_grid or watched,
        leaves_rounds_out=leaves_rounds_out,
    )  # fmt: skip
    ways = follow_paths(module, launch, limit, lambda: grid_watch(launch) if watched else None, branches, rules)
    for runner, cluster, watch in ways:
        yield replace(
            runner.cluster_trace(cluster, one_order=one_order), footprint=None if watch is None else watch.footprint
        )


W = TypeVar("W", bound="Watcher | None")


def follow_paths(
    module: Module,
    launch: Launch,
    limit: Limit | None,
    make_watch: Callable[[], W],
    branches: BranchPaths | None = None,
    rules: PathRules = NOTHING_SHOWN,
    *,
    first_lane_leads: bool = False,
) -> Iterator[tuple[Runner, Cluster, W]]:
    """Run the paths that the clusters of a launch can take, each with a watch of its own; see ``extract_traces``. A
    watch must know of the loops that count as waits by the ``rules`` to begin with. With ``first_lane_leads``, only
    those on which ``elect.sync`` elects the first lane.
    """
    runner = Runner(module, launch, limit or Limit(None), rules)
    todo = [PathChoices()]
    planned = {PathChoices()}
    excluded: set[int] = set()
    branches = branches or BranchPaths()
    most = 0
    while todo or branches.pending:
        if not todo:
            values = branches.next_values()
            if values is not None:
                todo.append(
                    replace(branches.origin, values=tuple(sorted((*p, o.address, o.value) for p, o in values.items())))
                )
            continue
        way = todo.pop()
        watch = make_watch()
        cluster = runner.run(way, watch, most * FORCED_STEPS + MIN_FORCED_STEPS if way.values else MAX_STEPS)
        rules = runner.next_rules(cluster, excluded)
        if rules != runner.rules:
            runner = Runner(module, launch, runner.limit, rules)
            todo, planned = [PathChoices()], {PathChoices()}
            branches.restart()
            continue
        if not way.values:
            most = max(most, cluster.step_count)
        elif cluster.step_count >= cluster.max_steps or not branches.is_followed_by(
            cluster.recorded.observations(), way.values
        ):
            branches.incomplete = True
            continue
        for more in runner.alternatives(way, cluster):
            if more.last_lane_leads and first_lane_leads:
                continue
            if more not in planned and len(planned) < MAX_PATHS:
                planned.add(more)
                todo.append(more)
        if branches.record(cluster.recorded.observations()) or not way.values:
            yield runner, cluster, watch


@dataclass(frozen=True, slots=True)
class PathChoices:
    """The choices that determine one path: the ways of branches by place in the code, whether the last lane leads at
    ``elect.sync``, how many clusters ``clusterlaunchcontrol`` wins, from which value counters of unknown contents
    count, how often a lane may try a swap that fails.
    """

    choices: tuple[tuple[int, bool], ...] = ()
    last_lane_leads: bool = False
    won: int = 0
    counter_start: int = 0
    swap_failures: int = 0
    values: tuple[tuple[int, int, int, int], ...] = ()
    """Values that accesses return: lane, index in its code, address, value."""


class Watcher(Protocol):
    """An observer of the steps of an execution."""

    def instrument(self, compiler: Compiler, steps: list[Step]) -> list[Step]:
        """Instrument the steps."""


class Runner:
    """What all paths of a cluster share: the compiled code and the memory layout."""

    def __init__(self, module: Module, launch: Launch, limit: Limit, rules: PathRules = NOTHING_SHOWN) -> None:
        self.module, self.launch, self.limit, self.rules = module, launch, limit, rules
        self.code: Code = collect_code(module, *(one.entry for one in launch.concurrent), named=rules.named)
        self.ctas = executed_ctas(launch)
        functions = [u.function for u in self.code.units]
        self.places: MemoryLayout = place_variables(module, functions, launch, self.ctas)

    def next_rules(self, c: Cluster, excluded: set[int]) -> PathRules:
        """The rules by which to go on after a path; those for these paths if it has shown nothing new. ``excluded`` are
        words that were found not to be counters.
        """
        locks = c.counters.new_locks()
        attempts = c.two_valued_locks_hold and (locks != self.rules.locks or self._drops_failed_attempts(c))
        return PathRules(
            named=self.rules.named or c.recorded.has_conflicting_stores,
            counters=c.counters.new_counters(excluded),
            locks=locks,
            barrier_waits=self.rules.barrier_waits and c.meetings.hold and self._hands_on_alone(c),
            two_valued_locks=self.rules.two_valued_locks and attempts,
            load_loops=self.rules.load_loops,
            copied_values=self.rules.copied_values,
            leaves_rounds_out=self.rules.leaves_rounds_out and (self.rules.footprints_alone or self._may_leave_out(c)),
            footprints_alone=self.rules.footprints_alone,
        )

    def _drops_failed_attempts(self, c: Cluster) -> bool:
        if not c.two_valued_locks:
            return True
        first = {at: c.places.initial_value(at, lock.size) for at, lock in c.two_valued_locks.items()}
        return may_drop_failures(c.two_valued_locks, c.recorded.distinct_operations(), c.places.memory, first)

    @staticmethod
    def _may_leave_out(c: Cluster) -> bool:
        """Whether the accesses that were left out of a path matter to no other lane, nor to other paths: these name
        accesses whose values decide by their place in the code of a lane, which has to be the same on all of them.
        """
        return are_apart(c) and not (c.recorded.repeated_accesses and c.recorded.observations())

    def _hands_on_alone(self, c: Cluster) -> bool:
        """Whether nobody else touches the words that hand on what waits have read."""
        return not any(
            foreign_access(op, address, size, takes_part=takes_part)
            for (address, size), those in c.meetings.words.items()
            for takes_part in (True, False)
            for op in c.recorded.distinct_operations(np.flatnonzero(those == takes_part))
        )

    def alternatives(self, way: PathChoices, c: Cluster) -> Iterator[PathChoices]:
        """Choices that differ from those of a path in one choice that it made."""
        chosen = dict(way.choices)
        for at in c.chosen_spans:
            if at not in chosen:
                yield replace(way, choices=tuple(sorted({**chosen, at: True}.items())))
        if c.has_elected:
            yield replace(way, last_lane_leads=True)
        if c.cancel_responses.request_count > way.won and way.won < len(following_clusters(self.launch, MAX_WON)):
            yield replace(way, won=way.won + 1)
        if c.swaps.happened and not way.swap_failures:
            yield replace(way, swap_failures=1)
        for start in c.counters.alternative_starts():
            yield replace(way, counter_start=start)

    def run(self, way: PathChoices, watch: Watcher | None = None, max_steps: int = MAX_STEPS) -> Cluster:
        """Run one path to its end; ``watch`` observes every step."""
        lanes = Lanes(self.launch, self.code.rows)
        counters = Counters(self.rules.counters, way.counter_start, self.rules.locks)
        places = with_contents(self.places, counters.initial_contents())
        system = reserved_registers(places)
        lanes.special |= {name: np.full(lanes.count, value, np.uint64) for name, value in system.items()}
        for number, one in enumerate(self.launch.concurrent):
            for name, value in workspace_registers(places, one.entry).items():
                lanes.special.setdefault(name, np.zeros(lanes.count, np.uint64))[lanes.launch_number == number] = value
        compiler = Compiler(self.module, self.code, lanes, places)
        steps = compile_steps(compiler)
        if watch is not None:
            steps = watch.instrument(compiler, steps)
        store = Store(len(self.ctas), places.shared_size, lanes.count, places.local_size, _contents(places),
                      named=self.code.stores_named)  # fmt: skip
        cluster = Cluster(
            lanes, places, store, RecordedOperations(lanes.count), steps, frozenset(compiler.block_starts),
            dict(way.choices), compiler.path_condition, last_lane_leads=way.last_lane_leads,
            explain_missing=self._missing, counters=counters, swaps=DeferredSwaps(way.swap_failures), path_choices=way,
            cancel_responses=CancelResponses(tuple(following_clusters(self.launch, way.won))), max_steps=max_steps,
            forced=ForcedValues({(lane, at): Observation(where, value) for lane, at, where, value in way.values}),
            meetings=Meetings(followed=self.rules.barrier_waits), follows_two_valued_locks=self.rules.two_valued_locks,
            follows_load_loops=self.rules.load_loops, follows_copied_values=self.rules.copied_values,
        )  # fmt: skip
        if self.rules.leaves_rounds_out and (watch is None or (isinstance(watch, GridWatch) and watch.repeats_rounds)):
            cluster.loop_rounds = LoopRounds(compiler, watch)
        starts = [unit.start for unit in self.code.units if unit.function.entry]
        cluster.pc = np.array(starts, np.int64)[lanes.launch_number]
        for lock in self.rules.locks.values():
            cluster.recorded.note_gap(lock.assumption, lock.span, assumes_contents=True)
        if system:
            store.zero(SYSTEM_BYTES)
            cluster.recorded.assumptions[ZEROED] = None
        cluster.run(self.limit.check)
        cluster.check_assumed_failures(lanes.exists)
        for lane in list(cluster.assumed_failures.by_lane):
            cluster.recorded.append_polls(lane, None)
        cluster.confirm_meetings(lanes.exists)
        if initialised := [name for at, name in places.initialised.items() if _is_asked(places, store, at)]:
            cluster.recorded.assumptions[INITIALISED.format(", ".join(initialised))] = None
        self._finish(cluster)
        return cluster

    def _finish(self, c: Cluster) -> None:
        """Handle the lanes that still wait at the end: either the engine finds that they wait forever, or it is unknown
        how they continue. Where all lanes have exited, run the checks at the end of threads.
        """
        stuck = c.status != EXITED
        if not stuck.any() and not any(gap.nothing_known for gap in c.recorded.gaps.values()):
            tensor_allocation.check_freed(c)
            end_of_threads.check_end(c)
        if stuck.any():
            c.recorded.lose_lanes(np.flatnonzero(stuck), "this wait did not end in the order that was followed", None)

    def _missing(self, statement: Statement) -> str:
        given = [a for one in self.launch.concurrent for a in one.arguments]
        names = list(dict.fromkeys(a.name for a in given))
        absent = list(dict.fromkeys(a.name for a in given if not a.is_given))
        read = _sources(self.code, statement, names)
        wanted = [n for n in read if n in absent]
        if wanted or not read:
            return f"give {' or '.join(map(repr, wanted or absent or names))} in the launch"
        return f"give all bytes of {' or '.join(map(repr, read))} in the launch"

    def cluster_trace(self, c: Cluster, *, whole: bool = False, one_order: bool = False) -> ClusterTrace:
        """The operations of the lanes as a program; with ``whole``, idle waits and unread atomics are kept. For
        ``one_order`` see ``extract_traces``.
        """
        observations = c.recorded.observations()
        telling = c.recorded.bind_values(one_order=one_order, settled=c.strong_writes.settled)
        gaps = [*c.recorded.gaps.values(), *(() if telling else c.recorded.order_gaps.values())]
        said = f"control depends on data: both ways were followed, each for all and up to {MAX_CHOICES} times"
        gaps += [Gap(said, span) for span in c.chosen_spans.values()]
        threads: list[Thread] = []
        names = cta_names(self.launch)
        for lane in np.flatnonzero(c.lanes.exists).tolist():
            cta, inside = divmod(lane, c.lanes.width)
            warp = inside // WARP
            role = f"{names[cta]}warp{warp}"
            threads.append(
                Thread(
                    index=len(threads), role=role, number=inside % WARP, name=f"{role}[{inside % WARP}]",
                    place=Place(self.ctas[cta], warp, inside % WARP), code=tuple(c.recorded.code[lane]),
                    labels=_labels(c.recorded.code[lane]),
                )
            )  # fmt: skip
        if c.two_valued_locks:
            weaker = weaker_accesses(c.two_valued_locks, threads)
            gaps += [Gap("failed attempts to take this lock may race with this", op.span) for op in weaker]
        program = Program(
            path=self.module.path, name=" and ".join(written_name(one.entry) for one in self.launch.concurrent),
            target=self.module.target,
            clustered=c.lanes.cluster_size > 1, memory=c.places.memory, threads=tuple(threads),
            condition=Condition("none"), terms=KernelTerms(c.places.memory, tuple(threads)),
        )  # fmt: skip
        whole = whole or any(thread.labels for thread in threads)
        program, waits = (program, ()) if whole else drop_idle_waiters(drop_unread_atomics(program))
        taken = list(c.recorded.assumptions)
        if waits:
            taken.append(WAITERS_KEEP_UP.format(", ".join(map(str, waits))))
        if c.has_elected:
            taken.append(LEADERS)
        return ClusterTrace(
            program, tuple(gaps), tuple(taken), c.recorded.operations, last_lane_leads=c.last_lane_leads,
            early_accesses=tuple(c.recorded.early_accesses.values()), observations=observations if telling else {},
            choices=replace(c.path_choices, values=()), is_forced=bool(c.path_choices.values),
            joint_stores=frozenset(c.recorded.joint_stores),
        )  # fmt: skip


def _labels(code: Sequence[Op]) -> dict[str, int]:
    return {op.name: k for k, op in enumerate(code) if isinstance(op, Label)}


def _contents(places: MemoryLayout) -> Iterator[tuple[int, bytes, bytes]]:
    """What is given of memory. Of memory that launches and clusters share, bytes that are not known at first are left
    out: what this cluster stores there, others may have overwritten.
    """
    for at, (data, quality) in places.contents.items():
        if at not in places.memories or not any(quality):
            yield at, data, quality
            continue
        start = 0
        for is_known, run in groupby(quality, lambda unknown: not unknown):
            end = start + len(list(run))
            if is_known:
                yield at + start, data[start:end], quality[start:end]
            start = end


def _is_asked(places: MemoryLayout, store: Store, at: int) -> bool:
    """Whether something was read or written of what is given of the memory at an address."""
    return any(at <= one < at + len(places.contents[at][0]) for one in store.asked if at in places.contents)


def _sources(code: Code, statement: Statement, names: list[str]) -> list[str]:
    """Those of the named parameters from which the operands of a statement are computed."""
    unit = next(u for u in code.units if any(s is statement for s in u.function.body))
    wanted: set[Register] = set(statement.uses)
    found: list[str] = []
    changed = True
    while changed:
        changed = False
        for other in unit.function.body:
            if not wanted & set(other.defs):
                continue
            taken = [o.name for o in other.operands if isinstance(o, Symbol) and o.name in names]
            found += [name for name in taken if name not in found]
            if other.kind is Kind.LOAD and isinstance(other.operands[1], Address):
                base = other.operands[1].base
                if isinstance(base, Symbol) and base.name in names and base.name not in found:
                    found.append(base.name)
            elif other.only_computes and not set(other.uses) <= wanted:
                wanted |= set(other.uses)
                changed = True
    return found
