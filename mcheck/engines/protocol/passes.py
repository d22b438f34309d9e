"""Passes: the reductions and shortcuts of the protocol engine and of the proofs, each of which can be switched off.

``mcheck run`` and ``mcheck check`` take ``--without NAME`` for it. No pass changes an answer: without one there are
more executions, steps or events, and the same verdict, codes and states, as far as the limits of the search allow.
Beyond them, and where no state repeats without the pass, the answer is unknown. An answer that says something else is a
bug, and the name of the pass says where.

What adds executions is no pass, for without it some would be missing: deferred phases, last operations of a phase,
reads and waits that never end, atomics in observed order, axioms that are asked whether an order of the steps is
theirs. Nor are what executions are made of (a repeated loop iteration waits; dependent steps are reversed) and the
canonical forms that proofs compare.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Self

from mcheck.base.errors import InputError

_ENGINE = "mcheck.engines.protocol."
_PROOFS = "mcheck.proofs."


class Pass(StrEnum):
    """A pass by its name: ``module`` implements it, ``argument`` says in a sentence why it changes no answer."""

    module: str
    argument: str

    def __new__(cls, name: str, module: str, argument: str) -> Self:
        self = str.__new__(cls, name)
        self._value_ = name
        self.module, self.argument = module, argument
        return self

    # --- agents ---------------------------------------------------------------------------------------------------

    LANE_GROUPS = (
        "lane-groups",
        _ENGINE + "analysis.lane_groups",
        (
            "Lanes with the same code up to data addresses take each step together: nothing orders them between steps "
            "that all of them take, and where they diverge the engine starts again with smaller agents."
        ),
    )
    REPRESENTATIVE_LANES = (
        "representative-lanes",
        _ENGINE + "analysis.representative_lanes",
        (
            "The events of one lane stand for those of all lanes of an agent where no check of the model relates two "
            "lanes, and a way through another lane leads through this one as well."
        ),
    )
    COMBINED_ACCESSES = (
        "combined-accesses",
        _ENGINE + "operations.lane_accesses",
        "The lanes' accesses by one instruction differ in their bytes alone, so one event has the bytes of all.",
    )
    COMMON_LOADS = (
        "common-loads",
        _ENGINE + "operations.tracked_locations",
        "Lanes that may each read only the latest write of a word all read it, whatever their order.",
    )

    # --- what is followed -----------------------------------------------------------------------------------------

    SLICING = (
        "slicing",
        _ENGINE + "analysis.slicing",
        (
            "A value that reaches no branch, address, count, awaited value or final state decides nothing, so which "
            "write its read returns need not be chosen."
        ),
    )
    WEAKENED_ACCESSES = (
        "weakened-accesses",
        _ENGINE + "analysis.weakened_accesses",
        (
            "A program has all executions with less order if strong accesses of data that decides nothing are weak: "
            "where that one has no race but those of morally strong accesses, it has none."
        ),
    )
    UNUSED_CONTENTS = (
        "unused-contents",
        _ENGINE + "analysis.slicing",
        "Where nothing depends on the contents of memory, copies move no data and all atomics commute.",
    )
    UNWRITTEN_OBJECTS = (
        "unwritten-objects",
        "mcheck.effects.unwritten_objects",
        "Reads of an object that nothing writes conflict with no access, so they have no events.",
    )
    UNSHARED_ACCESSES = (
        "unshared-accesses",
        _ENGINE + "analysis.unshared_accesses",
        "Plain accesses to bytes that one thread alone touches conflict with no access, so they have no events.",
    )
    SPIN_LOOPS = (
        "spin-loops",
        _ENGINE + "analysis.polling",
        "A loop that only polls leaves with the awaited result, however often it polled: it is a wait.",
    )
    REDUNDANT_POLLS = (
        "redundant-polls",
        _ENGINE + "analysis.polling",
        "A poll whose result only decides whether a wait for the same phase follows leads to one state either way.",
    )

    # --- executions -----------------------------------------------------------------------------------------------

    SC_FENCE_ORDER = (
        "sc-fence-order",
        _ENGINE + "analysis.sc_fences",
        (
            "The order of two fence.sc decides only what a strong load that reads once may return; without such a load "
            "the opposite order shows every race that an order hides."
        ),
    )
    COMMUTING_ATOMICS = (
        "commuting-atomics",
        _ENGINE + "reduction.observed_rmw_order",
        (
            "Atomics of one function leave the same value in either order; they are not reversed while nothing returns "
            "or observes which came first."
        ),
    )
    OVERWRITTEN_WRITES = (
        "overwritten-writes",
        _ENGINE + "operations.coherence_positions",
        (
            "A read returns no write that the model orders before another one that precedes the read, and a write "
            "precedes none that the model orders before it: these need no trials."
        ),
    )
    UNSPLIT_ATOMICS = (
        "unsplit-atomics",
        _ENGINE + "operations.unsplit_atomics",
        (
            "The model forbids a morally strong write between an atomic and what it has read (8.10.3), so no atomic is "
            "tried there."
        ),
    )
    SEEN_PHASES = (
        "seen-phases",
        _ENGINE + "operations.mbarrier_waits",
        "The model forbids that a wait finds an earlier phase than a wait of its thread before it, so none is tried.",
    )
    BLOCKED_EXECUTIONS = (
        "blocked-executions",
        _ENGINE + "operations.tracked_locations",
        "A wait before the step that ends it only waits for that step, so this order shows nothing new.",
    )
    EQUIVALENT_EXECUTIONS = (
        "equivalent-executions",
        _ENGINE + "exploration",
        "Executions with the same choices differ in the order of commuting steps alone, and so do their reversals.",
    )
    THREAD_SYMMETRY = (
        "thread-symmetry",
        _ENGINE + "reduction.thread_symmetry",
        (
            "Exchanging two threads of a warp with the same code, about which nothing is asked, maps executions to "
            "executions with the same final state."
        ),
    )
    COMMUTING_ARRIVALS = (
        "commuting-arrivals",
        _ENGINE + "commuting_arrivals",
        (
            "Arrivals of which each knows what those of the phase before knew may change places between phases without "
            "less being ordered: one execution without a finding stands for all."
        ),
    )

    DETERMINED_WAITS = (
        "determined-waits",
        _ENGINE + "determined_waits",
        (
            "Where no wait can end without the writes that it observes in one execution, every other execution orders "
            "at least what that one does: one without a finding stands for all."
        ),
    )

    JOINT_ARRIVALS = (
        "joint-arrivals",
        _ENGINE + "operations.joint_arrivals",
        (
            "Where no wait can end without any of the additions that lanes make by one instruction, it observes all of "
            "them or none, so the lanes arrive, and wait, in one step."
        ),
    )

    # --- events ---------------------------------------------------------------------------------------------------

    EVENT_MERGING = (
        "event-merging",
        _ENGINE + "reduction.event_merging",
        "Events that no later event can be related to differently are interchangeable in every later check.",
    )
    COMPLETION_CLASSES = (
        "completion-classes",
        _ENGINE + "reduction.completion_classes",
        (
            "Whoever observes the completion of one copy of a class observes that of all, so no later edge tells them "
            "apart."
        ),
    )

    # --- proofs ---------------------------------------------------------------------------------------------------

    PREFIX_SHARING = (
        "prefix-sharing",
        _PROOFS + "prefix_sharing",
        "Programs that differ in N take the same steps up to the first that differs, so these are executed once.",
    )
    TRANSLATED_PROGRAMS = (
        "translated-programs",
        _PROOFS + "translation",
        (
            "A cluster that does what another one does at other places of its buffers, which nothing is known of, has "
            "the same executions with their bytes renamed."
        ),
    )
    SETUP_REUSE = (
        "setup-reuse",
        _PROOFS + "setup_reuse",
        "What a program as a whole may need covers a program that does nothing else.",
    )
    ROTATION_SYMMETRY = (
        "rotation-symmetry",
        _PROOFS + "rotation_symmetry",
        (
            "The model depends on addresses only by which bytes are the same, and on phases by their parities: "
            "renaming stages and parities maps executions to executions."
        ),
    )
    PERIODIC_REGISTERS = (
        "periodic-registers",
        _PROOFS + "periodic_registers",
        "A register that has the same values in every period of a loop is a constant in each round of it.",
    )
    LONG_LOOPS = (
        "long-loops",
        _PROOFS + "parametric_proof",
        "Once the state repeats, the remaining rounds of a long loop repeat what the rounds before them did.",
    )


Passes = frozenset[Pass]
"""The passes that are on."""
ALL_PASSES: Passes = frozenset(Pass)
_BY_NAME = {str(one): one for one in Pass}


def passes_without(names: Iterable[str]) -> Passes:
    """All passes except those with some names; raises ``InputError`` for an unknown name."""
    return ALL_PASSES - {find_pass(name) for name in names}


def find_pass(name: str) -> Pass:
    """The pass with a name; raises ``InputError`` with the names that there are."""
    found = _BY_NAME.get(name)
    if found is not None:
        return found
    from difflib import get_close_matches  # only errors need it

    near = get_close_matches(name, list(Pass), n=1)
    raise InputError(
        f"there is no pass named {name!r}",
        expected=", ".join(Pass),
        hint=f"did you mean {near[0]}?" if near else None,
    )
