"""Tags of events: the sets of cat that an event belongs to by itself, and some that only engines use.

The sets that need more than the event (``_``, ``IW``, ``STRONG``, the scopes) are rows of ``mcheck.cat.names``, which
takes the others from here. Sections are those of the PTX ISA.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Tag(StrEnum):
    """Each with what it means and where the notion comes from."""

    doc: str
    section: str

    def __new__(cls, name: str, doc: str, section: str) -> Self:
        """A tag is the name of its set."""
        tag = str.__new__(cls, name)
        tag._value_ = name
        tag.doc = doc
        tag.section = section
        return tag

    # event kinds
    M = "M", "memory operations: reads and writes", "8.4"
    R = "R", "read operations", "8.4"
    W = "W", "writes, the initial ones included", "8.4"
    F = "F", "fences and barriers: events without a memory effect of their own that order others", "8.4"
    B = "B", "execution barriers: bar, barrier, barrier.cluster, bar.warp.sync", "8.9.4"
    RMW = "RMW", "reads and writes of atomics", "8.4"
    ATOM = "ATOM", "reads and writes of atom, whose read may be part of an acquire pattern", "8.8"
    RED = "RED", "reads and writes of red, whose read is never part of an acquire pattern", "8.8"
    # strength
    WEAK = "WEAK", "weak memory operations", "8.4"
    RLX = "RLX", "relaxed memory operations", "8.4"
    ACQ = "ACQ", "acquire operations and acquire fences", "8.8"
    REL = "REL", "release operations and release fences", "8.8"
    ACQ_REL = "ACQ_REL", "fence.acq_rel", "8.8"
    SC = "SC", "fence.sc", "8.9.3"
    # proxies
    GEN = "GEN", "accesses through the generic proxy, and its proxy fence", "8.6"
    SUR = "SUR", "accesses through the surface proxy, and its proxy fence", "8.6"
    TEX = "TEX", "accesses through the texture proxy, and its proxy fence", "8.6"
    CON = "CON", "accesses through the constant proxy, and its proxy fence", "8.6"
    ALIAS = "ALIAS", "fence.proxy.alias", "8.6"
    ASYNC = "ASYNC", "accesses through the async proxy, and fence.proxy.async", "8.6"
    MULTIMEM = "MULTIMEM", "accesses by a multimem address", "8.2.3"
    TMAP = "TMAP", "accesses through the tensormap proxy, and fence.proxy.tensormap", "8.6"
    PROXYFENCE = "PROXYFENCE", "proxy fences", "8.6"
    # state spaces
    GLOBAL = "GLOBAL", "accesses to global memory", "5.1"
    SHARED = "SHARED", "accesses to shared memory", "5.1"
    # asynchronous operations and mbarriers
    ISSUE = "ISSUE", "the issue of an asynchronous operation, which stands in program order", "8.9.1.1"
    COMPLETE = "COMPLETE", "complete-tx and arrive-on operations of asynchronous operations", "9.7.13.15"
    MBAR = "MBAR", "operations on mbarrier objects", "9.7.13.15"
    INIT = "INIT", "mbarrier.init", "9.7.13.15"
    ARRIVE = "ARRIVE", "arrive operations on an mbarrier", "9.7.13.15"
    EXPECT = "EXPECT", "expect-tx operations on an mbarrier", "9.7.13.15"
    WAIT = "WAIT", "test_wait and try_wait on an mbarrier", "9.7.13.15"
    TRYWAIT = "TRYWAIT", "try_wait on an mbarrier, which may suspend its thread", "9.7.13.15.16"
    INVAL = "INVAL", "mbarrier.inval", "9.7.13.15"
    SIGNAL = "SIGNAL", "mbarrier.complete_tx as an instruction", "9.7.13.15"
    INCREMENT = "INCREMENT", "the count that cp.async.mbarrier.arrive adds at once", "9.7.13.15"
    ASYNCSIGNAL = "ASYNCSIGNAL", "the completion signal of an asynchronous operation on an mbarrier", "8.9.1.1"
    GROUPWAIT = (
        "GROUPWAIT",
        "cp.async.wait_group, cp.async.wait_all, cp.async.bulk.wait_group, wgmma.wait_group",
        "9.7.9.25.3.3",
    )
    PROXYWAIT = (
        "PROXYWAIT",
        "cp.async.bulk.wait_group.sync_restrict::proxy::async, which the async proxy alone observes",
        "9.5",
    )
    SIGNALLED = "SIGNALLED", "source reads of bulk copies that tell an mbarrier when they are done", "9.7.9.25.4.1"
    CPASYNC = "CPASYNC", "memory operations of cp.async", "9.7.9.25.3.1"
    ASYNCREDUCTION = "ASYNCREDUCTION", "element reductions of cp.reduce.async.bulk and red.async", "9.7.9.25.4.2"
    GRIDWAIT = "GRIDWAIT", "griddepcontrol.wait", "9.7.13.13"
    EARLIER = (
        "EARLIER",
        "accesses of what the grid in front writes, and writes of what it reads",
        "9.7.13.13",
    )
    NONCOHERENT = "NONCOHERENT", "reads of ld.global.nc", "9.7.9.9"
    WGMMA = "WGMMA", "reads of wgmma.mma_async", "8.9.1.1"
    WGFENCE = "WGFENCE", "wgmma.fence, and fence.proxy.async in a thread with wgmma", "8.9.1.1, 9.7.15.7.1"
    PIPE = (
        "PIPE",
        "memory operations of tcgen05.mma, cp and shift, and where their thread has issued them",
        "9.7.16.6",
    )
    COMMIT = "COMMIT", "the arrivals of tcgen05.commit", "9.7.16.11"
    # barriers and special fences
    BARRIVE = "BARRIVE", "arrivals at an execution barrier", "8.9.4"
    BWAIT = "BWAIT", "resumptions from an execution barrier", "8.9.4"
    MEET = "MEET", "arrivals where threads wait for each other without ordering memory", "9.7.13.14, 9.7.15.7.2"
    MET = "MET", "resumptions of lanes that have waited for each other without ordering memory", "9.7.13.14"
    START = "START", "the beginning of a thread, in programs with clusters", "9.7.13.3"
    EXIT = "EXIT", "the end of a thread, in programs with clusters", "9.7.13.3"
    CLUSTERBAR = "CLUSTERBAR", "barrier.cluster", "9.7.13.3"
    MBARRIER_INIT_FENCE = "MBARRIER_INIT_FENCE", "fence.mbarrier_init.release.cluster", "9.7.13.4"
    RESTRICTED = "RESTRICTED", "fences with .sync_restrict", "9.7.13.4"
    BOTH = "BOTH", "proxy fences that order in both directions", "9.7.13.4"
    PRELEASE = "PRELEASE", "the release half of a one-way proxy fence", "9.7.13.4"
    PACQUIRE = "PACQUIRE", "the acquire half of a one-way proxy fence", "9.7.13.4"
    READHALF = "READHALF", "the release half that covers reads only", "9.4, 9.7.15.4"
    # what only engines ask for
    BLOCKED = "BLOCKED", "a resumption from a barrier that never comes", "9.7.13.1"
    CONSTANT = "CONSTANT", "accesses to constant memory", "5.1"
    PARAM = "PARAM", "accesses to kernel parameters", "5.1"
    TENSOR = "TENSOR", "accesses to tensor memory", "9.7.16.1"


UNNAMED = frozenset({Tag.BLOCKED, Tag.CONSTANT, Tag.PARAM, Tag.TENSOR})
"""Tags that a model cannot name."""

PROXY_TAG = {
    "generic": Tag.GEN,
    "texture": Tag.TEX,
    "surface": Tag.SUR,
    "constant": Tag.CON,
    "async": Tag.ASYNC,
    "tensormap": Tag.TMAP,
}
"""The proxy of an access, as instructions and findings name it, and its tag (PTX ISA 8.6)."""


def proxy_of(tags: frozenset[Tag]) -> str:
    """The proxy of memory events with these tags: of several, the one that is not generic."""
    return next((proxy for proxy, tag in PROXY_TAG.items() if tag in tags and tag is not Tag.GEN), "generic")
