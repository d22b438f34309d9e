"""Frames: in which function's body places stand that were inlined.

A chain is the source location of an instruction, followed by those of the calls that it was inlined into. The frame of
two places is the innermost call that contains both: in the body of its function they are two statements, or calls, and
what has to come between them is written there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from mcheck.base.errors import Span

Chain = Sequence[Span]
Statement = tuple[str, int]
"""File and line."""


def statement_of(span: Span) -> Statement:
    """The file and line of a location; columns differ between parts of one statement."""
    return span.path, span.line


def count_shared_calls(chains: Sequence[Chain]) -> int:
    """The number of outermost calls that all of these places are in, and that tell none of them apart."""
    if len(chains) < 2 or len({tuple(map(statement_of, chain)) for chain in chains}) < 2:
        return 0
    return count_common_calls(chains)


def inside_frame(chain: Chain, others: Sequence[Chain]) -> Chain:
    """A place up to the statement, or call, of the innermost function whose one call contains it and all the others:
    the same wherever that function is inlined.
    """
    return chain[: len(chain) - count_common_calls((chain, *others))]


def count_common_calls(chains: Sequence[Chain]) -> int:
    """The number of outermost calls that all of these places are in."""
    calls = ([statement_of(span) for span in reversed(chain[1:])] for chain in chains)
    return sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, zip(*calls, strict=False)))
