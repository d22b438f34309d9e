"""Sole writes: a swap that waits for a value comes after the only write that leaves it.

A compare-and-swap that is repeated until it reads the value v that it expects writes after it has read v only; one that
fails changes nothing. If the word holds another value at first, and one write of the program, executed once at most,
leaves v there, that is the write that it reads from. Its own write is behind that one in coherence order: otherwise
reads-from, program order and coherence, all morally strong, would be a cycle (PTX ISA 9.0 section 8.10.5). So no
coherence leads from the swap to the other write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.engines.protocol.analysis.atomic_words import AtomicWords, WordWrite
from mcheck.ir import ops

Value = tuple[int, int]
"""A word and a value."""
Step = tuple[int, int]
"""The index of a thread and a place in its code."""


@dataclass(frozen=True, slots=True)
class SoleWrites:
    """The sole ``writes`` of awaited values, and the ``swaps`` that wait for these."""

    writes: Mapping[Step, Value] = field(default_factory=dict)
    swaps: Mapping[Step, Value] = field(default_factory=dict)


def find_sole_writes(words: AtomicWords) -> SoleWrites:
    """Return the sole writes of values of atomic words for which some compare-and-swap waits."""
    found: dict[Value, WordWrite] = {}
    swaps: dict[Step, Value] = {}
    for word, (first, writes) in words.items():
        waiting = [w for w in writes if w.awaited is not None and w.awaited == w.expected]
        for value in {w.awaited for w in waiting if w.awaited is not None}:
            leaving = [w for w in writes if w.value in (None, value)]
            if first not in (None, value) and len(leaving) == 1 and not _is_repeated(leaving[0]):
                found[word, value] = leaving[0]
                swaps |= {(w.thread.index, w.pc): (word, value) for w in waiting if w.awaited == value}
    return SoleWrites({(w.thread.index, w.pc): value for value, w in found.items()}, swaps)


def _is_repeated(write: WordWrite) -> bool:
    """Return whether a write is in a loop."""
    thread = write.thread
    return any(
        isinstance(op, ops.Branch) and thread.labels[op.target] <= write.pc <= pc for pc, op in enumerate(thread.code)
    )
