"""The base sets and relations that an event structure supplies, and the options of a model.

A cat file may use these names and those of ``stdlib.cat``; any other name is an error. To add one: a row here, its
computation in ``mcheck.graph``, a test. Sections are those of the PTX ISA unless said otherwise.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mcheck.cat.ast import Kind


class BaseName(NamedTuple):
    """One row: what the name means and where the notion comes from."""

    name: str
    kind: Kind
    doc: str
    section: str


_SETS: Final = (
    # event kinds
    ("_", "every event", "cat"),
    ("M", "memory operations: reads and writes", "8.4"),
    ("R", "read operations", "8.4"),
    ("W", "writes, the initial ones included", "8.4"),
    ("IW", "initial writes: one per location, in no thread", "8.2.6"),
    ("F", "fences and barriers: events without a memory effect of their own that order others", "8.4"),
    ("B", "execution barriers: bar, barrier, barrier.cluster, bar.warp.sync", "8.9.4"),
    ("RMW", "reads and writes of atomics", "8.4"),
    ("ATOM", "reads and writes of atom, whose read may be part of an acquire pattern", "8.8"),
    ("RED", "reads and writes of red, whose read is never part of an acquire pattern", "8.8"),
    # strength
    ("WEAK", "weak memory operations", "8.4"),
    (
        "STRONG",
        "strong operations: all accesses but weak ones, and memory fences",
        "8.4",
    ),
    ("RLX", "relaxed memory operations", "8.4"),
    ("ACQ", "acquire operations and acquire fences", "8.8"),
    ("REL", "release operations and release fences", "8.8"),
    ("ACQ_REL", "fence.acq_rel", "8.8"),
    ("SC", "fence.sc", "8.9.3"),
    # scopes
    ("CTA", "operations of scope .cta", "8.5"),
    ("CLUSTER", "operations of scope .cluster", "8.5"),
    ("GPU", "operations of scope .gpu", "8.5"),
    ("SYS", "operations of scope .sys", "8.5"),
    # proxies
    ("GEN", "accesses through the generic proxy, and its proxy fence", "8.6"),
    ("SUR", "accesses through the surface proxy, and its proxy fence", "8.6"),
    ("TEX", "accesses through the texture proxy, and its proxy fence", "8.6"),
    ("CON", "accesses through the constant proxy, and its proxy fence", "8.6"),
    ("ALIAS", "fence.proxy.alias", "8.6"),
    ("ASYNC", "accesses through the async proxy, and fence.proxy.async", "8.6"),
    ("TMAP", "accesses through the tensormap proxy, and fence.proxy.tensormap", "8.6"),
    ("PROXYFENCE", "proxy fences", "8.6"),
    # state spaces
    ("GLOBAL", "accesses to global memory", "5.1"),
    ("SHARED", "accesses to shared memory", "5.1"),
    # asynchronous operations and mbarriers
    ("ISSUE", "the issue of an asynchronous operation, which stands in program order", "8.9.1.1"),
    ("COMPLETE", "complete-tx and arrive-on operations of asynchronous operations", "9.7.13.15"),
    ("MBAR", "operations on mbarrier objects", "9.7.13.15"),
    ("INIT", "mbarrier.init", "9.7.13.15"),
    ("ARRIVE", "arrive operations on an mbarrier", "9.7.13.15"),
    ("EXPECT", "expect-tx operations on an mbarrier", "9.7.13.15"),
    ("WAIT", "test_wait and try_wait on an mbarrier", "9.7.13.15"),
    ("INVAL", "mbarrier.inval", "9.7.13.15"),
    ("SIGNAL", "mbarrier.complete_tx as an instruction", "9.7.13.15"),
    ("INCREMENT", "the count that cp.async.mbarrier.arrive adds at once", "9.7.13.15"),
    ("ASYNCSIGNAL", "the completion signal of an asynchronous operation on an mbarrier", "8.9.1.1"),
    ("GROUPWAIT", "cp.async.wait_group, cp.async.wait_all, cp.async.bulk.wait_group, wgmma.wait_group", "9.7.9.25.3.3"),
    ("CPASYNC", "memory operations of cp.async", "9.7.9.25.3.1"),
    ("ASYNCREDUCTION", "element reductions of cp.reduce.async.bulk and red.async", "9.7.9.25.4.2"),
    ("WGMMA", "reads of wgmma.mma_async", "8.9.1.1"),
    ("WGFENCE", "wgmma.fence", "8.9.1.1"),
    # barriers and special fences
    ("BARRIVE", "arrivals at an execution barrier", "8.9.4"),
    ("BWAIT", "resumptions from an execution barrier", "8.9.4"),
    ("START", "the beginning of a thread, in programs with clusters", "9.7.13.3"),
    ("EXIT", "the end of a thread, in programs with clusters", "9.7.13.3"),
    ("CLUSTERBAR", "barrier.cluster", "9.7.13.3"),
    ("MBARRIER_INIT_FENCE", "fence.mbarrier_init.release.cluster", "9.7.13.4"),
    ("RESTRICTED", "fences with .sync_restrict", "9.7.13.4"),
    ("BOTH", "proxy fences that order in both directions", "9.7.13.4"),
    ("PRELEASE", "the release half of a one-way proxy fence", "9.7.13.4"),
    ("PACQUIRE", "the acquire half of a one-way proxy fence", "9.7.13.4"),
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
    ("exited", "the exit of a thread to the departures from a barrier that no longer waits for it", "9.7.13.1"),
    ("rounds", "arrivals at a barrier with a count to those of later rounds", "9.7.13.1"),
    ("issue", "the issue of an asynchronous operation to its memory operations", "8.9.1.1"),
    ("complete", "memory operations of an asynchronous operation to the waits that observe its completion", "8.9.1.1"),
    ("phase", "arrive or complete-tx to the successful waits of that phase and of later ones", "9.7.13.15"),
    ("phase-order", "order of the operations on one mbarrier that their phases demand", "9.7.13.15"),
    ("phase-fr", "a wait that returned false to the operations that complete its phase", "9.7.13.15"),
    ("same-access", "chunks of one scalar access", "8.2"),
    (
        "sblock",
        "accesses that count for one CTA: asynchronous ones to shared memory for the owner of the bytes",
        "8.9.5",
    ),
    ("object-access", "mbarrier.init of an object and an ordinary access to its bytes", "9.7.13.15"),
    ("unborn", "the starts of a CTA's threads to an access to its shared memory from another CTA", "9.7.13.3"),
    ("outlived", "an access to another CTA's shared memory to the exits of that CTA's threads", "9.7.13.3"),
    ("own-outlived", "the writes of a bulk copy to its own CTA's shared memory to the exits of that CTA", "9.7.9.25.1"),
    ("mbarrier-object", "operations on one mbarrier object", "9.7.13.15"),
    ("covers", "a proxy fence to the accesses whose proxy, space and range it covers", "9.7.13.4"),
)

BASE: Final[dict[str, BaseName]] = {
    name: BaseName(name, kind, doc, section)
    for kind, table in ((Kind.SET, _SETS), (Kind.REL, _RELATIONS))
    for name, doc, section in table
}

OPTIONS: Final[dict[str, frozenset[str]]] = {
    "semantics": frozenset({"sc", "ptx-6.0", "ptx-7.5", "ptx-9.0", "ptx-9.3"}),
}
"""Options of the form ``(* mcheck: key = value *)`` and the values that each may take.

``semantics`` selects the rules that are not relations: barriers of the table dialect, defaults of scopes.
"""
