"""The canonical form leaves nothing out that a later step may look at."""

from __future__ import annotations

import dataclasses

from mcheck.cat import load_model
from mcheck.engines.protocol.analysis.lane_groups import partition_lanes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import prepare
from mcheck.engines.protocol.incremental.entries import Entry
from mcheck.engines.protocol.incremental.window import Window
from mcheck.engines.protocol.operations.races import objects_flagged
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import (
    Done,
    Mbarrier,
    PhaseOperations,
    Rendezvous,
    Signal,
    Word,
    Written,
)
from mcheck.events.thread_state import State as Lane
from mcheck.frontend.litmus import parse
from tests.engines.protocol.sketches import ring

KNOWN: dict[type, str] = {
    Agent: "index threads lanes emitters code place time pc step status where of_event tracked completed fenced "
    "wgmma_open wgmma_groups committed piped met last_read cluster_arrived visits effects looked spinning exit_time "
    "aligned origin rounds lean left",
    Lane: "registers pc events constraints known unequal facts ctrl visits groups cp_async piped completes tracked "
    "cluster_arrived order instruction effects forked arrived ended stuck misstep fixed idle fences",
    Mbarrier: "address seen state generation began ended renewed now before older looks failed phases time "
    "next_time times waited glimpsed arrived unannounced expected_bytes got_bytes known joined",
    PhaseOperations: "acts signals copies waits ending",
    Rendezvous: "key members round count here again brought kinds arrivals time before failed votes own warps last",
    Word: "address size writes done version written taken",
    Written: "agent step value time entries event kind position",
    Signal: "key agent step address kind tx count time event records issues",
    Done: "agent step position time event kind phase signal until effect entries loose",
    Record: "agent step lanes event write proxy asynchronous cp_async cta spaces bars done signalled position entries",
    Entry: "event thread sets exact edges back sort instruction slot time stand_in",
    Machine: "setup forced program zero memory agents names window before waits_for looks settle_at exits fences trace"
    " vain held signals queue problems reversals assigned coarse histories words meetings sc_fences reported aligned"
    " tokens unsure parted inexact impossible guesses flagged trials absent bound overtaken ended mbarriers"
    " mbarrier_places exchanged watch found guessed completed",
    Window: "program tape checks flags axioms co wanted shown entries free all exact count cols filled masks "
    "keyed sorts ends latest recent memo complete domains missed settled compiled told newest meets circles bounds "
    "before_reads",
}
"""What the parts of an execution hold. Whoever adds to them decides whether
``mcheck.engines.protocol.reduction.canonical_form`` has to tell it: a state that is taken for another one, though a
later step would tell them apart, makes proofs that are none.
"""


def test_every_part_of_an_execution_has_been_thought_of() -> None:
    program = parse(ring(1), "ring.litmus")
    setup = prepare(program, partition_lanes(program), load_model("ptx-9.0"), "ptx", 2, lambda: None)
    machine = Machine(setup, (), objects_flagged)
    for kind, names in KNOWN.items():
        if dataclasses.is_dataclass(kind):
            held = {f.name for f in dataclasses.fields(kind)}
        else:
            held = set(vars(machine if kind is Machine else machine.window))
        assert held == set(names.split()), kind
