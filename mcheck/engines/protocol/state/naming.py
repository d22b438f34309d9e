"""The kinds of names that canonical forms give to attributes of a state.

``mcheck.engines.protocol.reduction.canonical_form`` has a function for each. Those that are ``rotated`` contain
addresses, parities, or what is named by them. Names of tracked words, and of what they and the memory hold, are not: a
proof seeks no rotation where words are tracked or the contents of memory matter
(``mcheck.proofs.parametric_proof``).
"""

from __future__ import annotations

from mcheck.base.declared_state import SHALLOW, SHARED, Attribute, Copying, Naming, Unnamed, listed, mapped, state

SEQUENCE = Naming("sequence of values")
SET = Naming("set of values")
COUNT = Naming("number of members")
PRESENCE = Naming("whether there is one")

ADDRESS = Naming("address", rotated=True)
EVENTS = Naming("set of events", rotated=True)
EVENTS_BY_KEY = Naming("sets of events by key", rotated=True)
ENTRIES = Naming("events in the window", rotated=True)
SOURCE = Naming("statement of an event")
TIME = Naming("vector clock", rotated=True)

STEP = Naming("number of live steps of the agent before it")
PHASE = Naming("phase relative to that of the object")
SIGNALLED_OBJECT = Naming("object whose clock component it is", rotated=True)
FOOTPRINT = Naming("statement and bytes of an event", rotated=True)
REORDERABLE = Naming("operations that no axiom orders before it")

CURRENT_OPERATIONS = Naming("operations on a valid mbarrier, by phase", rotated=True)
EARLIER_OPERATIONS = Naming("operations of earlier phases of an mbarrier", rotated=True)
CURRENT_OPEN_OPERATIONS = Naming("operations on a valid mbarrier that something may still precede", rotated=True)
CURRENT_TIME = Naming("vector clock of a valid mbarrier", rotated=True)
LIFETIME_CHANGES = Naming("invalidations and initialisations", rotated=True)
INVALIDATION = Naming("invalidation of an mbarrier that has not been initialised again", rotated=True)
MBARRIER_STATE = Naming("parity and counts of an mbarrier", rotated=True)
PHASE_OPERATIONS = Naming("events by phase of an mbarrier", rotated=True)
COMPLETION_TIMES = Naming("times at which recent phases completed", rotated=True)
RECENT_PHASES = Naming("recent phases of an mbarrier")
FIRST_ARRIVALS = Naming("recent phases with an arrival")
UNSEEN_PHASES = Naming("first phase that each agent has not seen complete")

ARRIVALS = Naming("arrivals in this generation of a barrier", rotated=True)
REPEATED_ARRIVALS = Naming("further arrivals in this generation of a barrier", rotated=True)
ARRIVAL_EVENTS = Naming("events of arrivals and their times", rotated=True)
PREVIOUS_ARRIVALS = Naming("arrivals at a barrier that something may still precede", rotated=True)
BY_LANE = Naming("operands by lane")
WARPS = Naming("agents of each warp")

WRITES = Naming("writes of a word that may still be read or preceded")
WORD_OPERATIONS = Naming("accesses to a word that something may still precede")
FOUND_PLACE = Naming("whether the place in the trace is known")

ACCESS = Naming("statement and bytes of an access", rotated=True)
LANES = Naming("lanes that accessed the bytes", rotated=True)
CLOCK_OBJECTS = Naming("objects whose clock components these are", rotated=True)
WAITING_AGENTS = Naming("agents that waited for it")
SIGNAL_KEY = Naming("which signal of the operation")
COMPLETED_ACCESSES = Naming("accesses by what their completion shows", rotated=True)

PLACE = Naming("place in the code, as the proof counts it")
BLOCKED_ON = Naming("object that the agent waits for", rotated=True)
LANE_STATES = Naming("lanes", rotated=True)
LOOP_STATE = Naming("what decides whether the next iteration is executed")
ALIGNED_COUNT = Naming("aligned instructions ahead of the warp")
CLUSTER_ARRIVAL = Naming("arrival at the barrier of the cluster", rotated=True)
WGMMA_GROUPS = Naming("wgmma groups that somebody has to wait for", rotated=True)
ACCESS_SET = Naming("set of accesses", rotated=True)
SOURCES = Naming("live reads by register", rotated=True)

WINDOW = Naming("window", rotated=True)
RELATION = Naming("stored relation", rotated=True)
EVENT_SETS = Naming("stored sets of events", rotated=True)
EDGES = Naming("edges by relation", rotated=True)
SORT = Naming("sort of an event", rotated=True)
LIVE_EVENT = Naming("statement and bytes of a live event", rotated=True)

AGENTS = Naming("agents", rotated=True)
MBARRIERS = Naming("mbarriers by address", rotated=True)
WORDS = Naming("tracked words by address")
BARRIERS = Naming("barriers by key", rotated=True)
SIGNALS = Naming("signals in flight", rotated=True)
QUEUE = Naming("order of the signals")
HISTORIES = Naming("accesses by byte", rotated=True)
CONTENTS = Naming("contents of memory")
PROGRAM_ORDER = Naming("events so far in program order", rotated=True)
POLLS = Naming("polls that not all later events depend on", rotated=True)
FENCES = Naming("fence.sc", rotated=True)
ALIGNED_STATEMENTS = Naming("aligned barriers that not all agents of the warp have executed")
TOKENS = Naming("states in registers that are used otherwise", rotated=True)

OF_PROGRAM = Unnamed("follows from the program, whose code a proof compares")
PAST = Unnamed("tells what has happened, for messages and the search; no later step depends on it")
NUMBERED = Unnamed("numbers steps or events; that only their order matters is part of other names")
CACHE = Unnamed("follows from other attributes")

EVENT_MASK = Attribute(SHARED, EVENTS)
CLOCK = Attribute(SHARED, TIME)
CONSTANT = Attribute(SHARED, OF_PROGRAM)
NUMBER = Attribute(SHARED, NUMBERED)


def operations(naming: Naming) -> Attribute:
    """Declare a list of operations on a synchronisation object."""
    return Attribute(listed(state("SyncOperation")), naming)


def remembered(copied: Copying = SHALLOW) -> Attribute:
    """Declare an attribute that only tells what has happened."""
    return Attribute(copied, PAST)


OPERATIONS_BY_NUMBER = mapped(listed(state("SyncOperation")))
