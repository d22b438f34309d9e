"""Failed synchronisation because of narrow scopes, for the message of RACE010."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.answers.scope_mismatch import NarrowScope, ScopedOperation, acquires, find_too_narrow, releases, scope_of
from mcheck.events.choices.candidate import Candidate
from mcheck.events.choices.prepared import Prepared
from mcheck.events.structure import Node, Structure
from mcheck.ir.ops import Fence

MAX_PAIRS = 2
"""The maximum number of release-acquire pairs in a message."""


def find_narrow_scopes(prepared: Prepared, candidate: Candidate, pair: tuple[int, int]) -> list[NarrowScope]:
    """Release-acquire pairs whose scopes are too narrow: those that end in a thread of the racing pair, or else all.

    At most ``MAX_PAIRS``.
    """
    s = prepared.s
    threads = {s.nodes[k].thread for k in pair}
    observed = [
        (s.nodes[a], s.nodes[b])
        for choice, taken in zip(prepared.choices, candidate, strict=True)
        for relation, pairs in choice.options[taken].edges
        if relation in ("phase", "rf")
        for a, b in pairs
    ]
    apart = [(a, b) for a, b in observed if a.thread >= 0 and a.thread != b.thread]
    near = find_too_narrow(_ends(s, [(a, b) for a, b in apart if b.thread in threads]))
    return (near or find_too_narrow(_ends(s, apart)))[:MAX_PAIRS]


def _ends(s: Structure, observed: list[tuple[Node, Node]]) -> Iterator[tuple[ScopedOperation, ScopedOperation]]:
    """The release and the acquire of each observation: the two operations themselves, or the fences around them.

    The observing and the observed operation also have to include each other in their scopes, or there is no observation
    in the sense of 8.7.
    """
    for a, b in observed:
        assert a.source is not None and b.source is not None
        first, second = a.source, b.source
        before = [e for e in s.paths[a.thread].events if e.order is not None and e.order < (first.order or 0)]
        after = [e for e in s.paths[b.thread].events if e.order is not None and e.order > (second.order or 0)]
        release = (
            first.op
            if releases(first.op)
            else next((e.op for e in reversed(before) if isinstance(e.op, Fence) and releases(e.op)), None)
        )
        acquire = (
            second.op
            if acquires(second.op)
            else next((e.op for e in after if isinstance(e.op, Fence) and acquires(e.op)), None)
        )
        if release is not None and acquire is not None and first.order is not None:
            yield ScopedOperation(release, s.thread(a).place), ScopedOperation(acquire, s.thread(b).place)
            if scope_of(first.op) is not None and scope_of(second.op) is not None:
                yield ScopedOperation(first.op, s.thread(a).place), ScopedOperation(second.op, s.thread(b).place)
