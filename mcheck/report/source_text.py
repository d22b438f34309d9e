"""Source lines to quote: those of the program, and those of the files that a module says it was compiled from.

Such a file is read if its name is that of source code, beside the module or where the module says. ``depth_of``
chooses the place to show of an access that was inlined: the statement in the file of the kernel, or where that is the
same for several accesses of a finding, the outermost call that tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.base.source_files import SourceText
from mcheck.findings.finding import Finding
from mcheck.findings.frames import count_shared_calls, statement_of
from mcheck.findings.groups import reads_before_first_fill

_HEAD = re.compile(r"\s*(?:def\b|@)")
_ASSEMBLY = re.compile(r"\b(?:asm|__asm__)\b")


@dataclass(frozen=True, slots=True)
class Depth:
    """How deep in its calls the accesses of a finding are shown: without the ``shared`` outermost ones, and ``inside``
    the functions that are in the file of the caller, or at the call. A function around inline assembly is a word of the
    program's own: it is shown where it is called.
    """

    shared: int = 0
    inside: bool = False

    def place(self, chain: Sequence[Span], texts: SourceText) -> Span | None:
        """The place to show of a source location and its calls; ``None`` if none can be read."""
        called = self.call(chain, texts)
        if called is None or not self.inside:
            return called
        within = list(chain[: chain.index(called)])
        while within and within[-1].path == called.path and _is_statement(texts.line(within[-1])):
            called = within.pop()
        return called

    def call(self, chain: Sequence[Span], texts: SourceText) -> Span | None:
        """The outermost readable place that is not a shared call, nor the head of a function, which a compiler names as
        the caller of a function that it calls itself; ``None`` if there is none.
        """
        own = list(reversed(chain[: len(chain) - self.shared]))
        readable = [(span, text) for span in own if (text := texts.line(span)) is not None]
        return next((span for span, text in readable if _is_code(text)), readable[-1][0] if readable else None)


def depth_of(chains: Sequence[tuple[Span, ...]], texts: SourceText) -> Depth:
    """The depth at which places with different calls are still told apart."""
    inside = Depth(count_shared_calls(chains), inside=True)
    places = {statement_of(place) if (place := inside.place(chain, texts)) else None for chain in chains}
    return inside if len(places) == len({tuple(map(statement_of, chain)) for chain in chains}) else Depth(inside.shared)


def places_shown(finding: Finding, texts: SourceText) -> list[Span | None]:
    """For each access the place to show: in the source if it can be read, otherwise in the program."""
    chains = [access.source for access in finding.accesses]
    depth = depth_of(chains, texts)
    return [depth.place(chain, texts) or access.span for chain, access in zip(chains, finding.accesses, strict=True)]


def primary_place(finding: Finding, shown: Sequence[Span | None]) -> Span | None:
    """Where to look first, of the places shown of its accesses, in reports of every format: at the access that comes
    too early, the second of two. A read that does not wait for its copy and the access of a later launch stand first,
    as do of threads that wait forever those to begin with.
    """
    in_order = finding.kind == "deadlock" or finding.code == "RACE012" or reads_before_first_fill(finding)
    order = shown if in_order else [*reversed(shown[:2]), *shown[2:]]
    return next((span for span in order if span is not None), None)


def _is_code(text: str | None) -> bool:
    return text is not None and not _HEAD.match(text)


def _is_statement(text: str | None) -> bool:
    return text is not None and _is_code(text) and not _ASSEMBLY.search(text)
