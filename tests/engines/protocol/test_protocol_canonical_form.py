"""The canonical form leaves nothing out that a later step may look at."""

from __future__ import annotations

import dataclasses

from mcheck.cat import load_model
from mcheck.engines.protocol.analysis.lane_groups import partition_lanes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import prepare
from mcheck.engines.protocol.incremental.entries import Entry
from mcheck.engines.protocol.incremental.window import Window
from mcheck.engines.protocol.operations.races import report_object_flags
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import (
    BarrierState,
    Mbarrier,
    PhaseOperations,
    Signal,
    SyncOperation,
    Word,
    Write,
)
from mcheck.events.thread_state import State as Lane
from mcheck.frontend.litmus import parse
from tests.engines.protocol.sketches import ring

KNOWN: dict[type, str] = {
    Agent: "index threads lanes emitters code placement time pc step status blocked_on records_by_event tracked_counts "
    "completed_counts wgmma_fenced open_wgmma wgmma_groups commit_time pipe_records warp_synchronised last_read "
    "cluster_arrival loop_visits effect_count polled_versions spinning exit_time aligned_count sources "
    "loop_iterations single_representative last_barrier_arrivals",
    Lane: "registers pc events constraints known unequal facts ctrl visits groups cp_async piped completes tracked "
    "cluster_arrived order instruction effects forked arrived ended stuck misstep fixed idle fences",
    Mbarrier: "address clock_index state lifetime initialisation invalidation lifetime_changes current_operations "
    "previous_operations older_operations waits failed_operations phases time pending_time completion_times "
    "waited_phases delayed_waited_phases first_arrivals unannounced_bytes expected_bytes received_bytes "
    "last_phase_seen merged_phase",
    PhaseOperations: "operations signals copies waits completing",
    BarrierState: "key members generation count arrived repeated_arrivals arrival_events kinds arrivals time "
    "previous_arrivals "
    "failed_arrivals votes lane_operands warps previous_events",
    Word: "address size writes operations version write_events read_index",
    Write: "agent step value time entries event kind position",
    Signal: "key agent step address kind tx count time event records issues",
    SyncOperation: "agent step position time event kind phase signal clock_bound effect entries reorderable",
    Record: "agent step lanes event write proxy asynchronous cp_async spaces mbarrier_clocks waits signalled "
    "position "
    "entries",
    Entry: "event thread sets exact edges back sort instruction slot time stand_in",
    Machine: "setup prefix program zero_clock memory agents agent_of_thread window program_order control_sources polls "
    "merge_threshold exits fences trace failed_steps blocked_steps signals queue problems reversals decisions "
    "agents_to_split histories tracked_words barriers sc_fences reported aligned_statements tokens not_followed "
    "ambiguous_arrivals inexact_reason broken_axiom guess_count on_flags trial_count exit_passed_barrier bound "
    "branch_values takes_other_branch "
    "findings_left_open "
    "reordering outcome mbarriers mbarrier_places phase_reversals observer unordered_finds guessed_truths "
    "completed_barriers waits causality",  # the last two: proofs have no atomics in words that are followed
    Window: "program tape checks flags axioms co wanted shown entries free all exact count cols filled masks keyed "
    "sorts "
    "ends latest recent memo complete domains missed has_merged compiled relations newest meets circles bounds "
    "before_reads",
}
"""What the parts of an execution hold. Whoever adds to them decides whether
``mcheck.engines.protocol.reduction.canonical_form`` has to tell it: a state that is taken for another one, though a
later step would tell them apart, makes proofs that are none.
"""


def test_every_part_of_an_execution_has_been_thought_of() -> None:
    program = parse(ring(1), "ring.litmus")
    setup = prepare(program, partition_lanes(program), load_model("ptx-9.0"), "ptx", 2, lambda: None)
    machine = Machine(setup, (), report_object_flags)
    for kind, names in KNOWN.items():
        if dataclasses.is_dataclass(kind):
            held = {f.name for f in dataclasses.fields(kind)}
        else:
            held = set(vars(machine if kind is Machine else machine.window))
        assert held == set(names.split()), kind
