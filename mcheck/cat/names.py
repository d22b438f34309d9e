"""The base sets and relations that an event structure supplies, and the options of a model.

A cat file may use these names and those of ``stdlib.cat``; any other name is an error. To add one: a row here, or a tag
in ``mcheck.cat.tags``, its computation in ``mcheck.events``, a test. Sections are those of the PTX ISA unless said
otherwise.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mcheck.cat.ast import Kind
from mcheck.cat.tags import UNNAMED, Tag


class BaseName(NamedTuple):
    """One row: what the name means and where the notion comes from."""

    name: str
    kind: Kind
    doc: str
    section: str


_SETS: Final = (
    ("_", "every event", "cat"),
    ("IW", "initial writes: one per location, in no thread", "8.2.6"),
    ("STRONG", "strong operations: all accesses but weak ones, and memory fences", "8.4"),
    ("CTA", "operations of scope .cta", "8.5"),
    ("CLUSTER", "operations of scope .cluster", "8.5"),
    ("GPU", "operations of scope .gpu", "8.5"),
    ("SYS", "operations of scope .sys", "8.5"),
    *((tag.value, tag.doc, tag.section) for tag in Tag if tag not in UNNAMED),
)

_RELATIONS: Final = (
    ("id", "every event with itself", "cat"),
    ("po", "program order: same thread, earlier in its execution", "8.9.1"),
    ("si", "same dynamic instruction", "8.2.4"),
    ("int", "both events in one thread", "cat"),
    ("rf", "reads-from: a write and the read that returns its value", "8.9.7"),
    ("co", "coherence: an acyclic order of overlapping writes, the initial ones first", "8.9.6"),
    ("rmw", "the read and the write of one atomic", "8.4"),
    ("loc", "memory operations whose locations overlap, aliases included", "8.2"),
    ("vloc", "memory operations at one virtual address", "8.2.2"),
    ("overlap", "memory operations that share a byte", "8.2"),
    ("complete-overlap", "memory operations on exactly the same bytes", "8.2"),
    ("addr", "address dependency", "8.10"),
    ("data", "data dependency", "8.10"),
    ("ctrl", "control dependency", "8.10"),
    ("regardless", "a wait on an mbarrier and what its thread does behind it whatever the answer", "9.7.13.15"),
    ("sr", "operations whose scopes include each other's threads", "8.7"),
    ("scta", "events of threads of one CTA", "8.5"),
    ("scluster", "events of threads of one cluster", "8.5"),
    ("sgpu", "events of threads of one GPU", "8.5"),
    ("sync_fence", "Fence-SC order of morally strong fence.sc pairs", "8.9.3"),
    ("syncbar", "bar arrive or sync to bar sync of one barrier, as the table dialect counts it", "8.9.4"),
    (
        "barrier",
        "arrival at bar, barrier.cluster or bar.warp.sync to the departures that waited for it",
        "8.9.4",
    ),
    (
        "meet",
        "arrival where threads wait for each other without ordering memory, as at elect.sync, to the departures",
        "9.7.13.14, 9.7.15.7.2",
    ),
    ("exited", "the exit of a thread to the departures from a barrier that no longer waits for it", "9.7.13.1"),
    ("rounds", "arrivals at a barrier with a count to those of later rounds", "9.7.13.1"),
    ("issue", "the issue of an asynchronous operation to its memory operations", "8.9.1.1"),
    ("complete", "memory operations of an asynchronous operation to the waits that observe its completion", "8.9.1.1"),
    ("phase", "arrive or complete-tx to the successful waits of that phase and of later ones", "9.7.13.15"),
    ("phase-order", "order of the operations on one mbarrier that their phases demand", "9.7.13.15"),
    (
        "phase-fr",
        "a wait to the operation that ends the phase that it found, by completing it or with the object",
        "9.7.13.15",
    ),
    ("same-access", "chunks of one scalar access", "8.2"),
    (
        "sblock",
        "accesses that count for one CTA: asynchronous ones to shared memory for the owner of the bytes",
        "8.9.5",
    ),
    ("object-access", "mbarrier.init of an object and an ordinary access to its bytes", "9.7.13.15"),
    ("unborn", "the starts of a CTA's threads to an access to its shared memory from another CTA", "9.7.13.3"),
    ("outlived", "an access to another CTA's shared memory to the exits of that CTA's threads", "9.7.13.3"),
    (
        "own-outlived",
        "what a bulk copy writes to its own CTA's shared memory, or reads there and tells an mbarrier, to its exits",
        "9.7.9.25.1",
    ),
    ("mbarrier-object", "operations on one mbarrier object", "9.7.13.15"),
    ("covers", "a proxy fence to the accesses whose proxy, space and range it covers", "9.7.13.4"),
)

BASE: Final[dict[str, BaseName]] = {
    name: BaseName(name, kind, doc, section)
    for kind, table in ((Kind.SET, _SETS), (Kind.REL, _RELATIONS))
    for name, doc, section in table
}

OPTIONS: Final[dict[str, frozenset[str]]] = {
    "semantics": frozenset({"sc", "ptx-6.0", "ptx-7.5", "ptx-9.0", "ptx-9.3", "ptx-9.5"}),
}
"""Options of the form ``(* mcheck: key = value *)`` and the values that each may take.

``semantics`` selects the rules that are not relations: barriers of the table dialect, defaults of scopes.
"""
