"""Topics of a test: keywords from its instructions, clusters and loops."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from mcheck.ir.ops import Branch
from mcheck.report.site.listing import blank_comments

if TYPE_CHECKING:
    from mcheck.ir.program import Program, Thread

CLUSTERS, LOOPS = "clusters", "loops"
INSTRUCTIONS = (
    ("cp.async", r"\bcp\.async\.(?!bulk)"),
    ("bulk copies", r"\bcp\.async\.bulk\.(?!tensor|prefetch\.tensor|commit_group|wait_group)"),
    ("tensor copies", r"\bcp\.(reduce\.)?async\.bulk\.(prefetch\.)?tensor\b"),
    ("asynchronous reductions", r"\bcp\.reduce\.async|\bred\.async"),
    ("st.async", r"\bst\.async"),
    ("multicast", r"\.multicast::cluster"),
    ("mbarriers", r"\bmbarrier\."),
    ("proxy fences", r"\bfence\.proxy|\bfence\.generic|\.texture|\.surface|\.constant"),
    ("tensor maps", r"\btensormap\b"),
    ("memory fences", r"\bfence\.(sc|acq_rel|acquire|release)|\bmembar"),
    ("barriers", r"\bbar\.|\bbarrier\."),
    (CLUSTERS, r"\bbarrier\.cluster\b|\bmapa\b|\bgetctarank\b|\.multicast::cluster|\bcta_group::2\b"),
    ("atomics", r"\b(atom|red)\.(?!async)"),
    ("wgmma", r"\bwgmma\."),
    ("tensor memory", r"\btcgen05\."),
    (LOOPS, r"\bfor\s+[\w$]+\s+in\b"),
)
"""Topics in display order, with patterns of their instructions."""
ORDER = tuple(topic for topic, _ in INSTRUCTIONS)
_LABEL = re.compile(r"^[ \t]*([\w$%]+)[ \t]*:(?!:)", re.MULTILINE)
_JUMP = re.compile(r"\bbra(?:\.uni)?[ \t]+([\w$%]+)")


def find_topics(program: Program, source: str) -> tuple[str, ...]:
    """The topics of a test or a sketch."""
    named = _by_instructions(blank_comments(source))
    return _ordered(named, clusters=_in_clusters(program), loops=any(map(_has_loop, program.threads)))


def find_module_topics(source: str) -> tuple[str, ...]:
    """The topics of a PTX module."""
    code = blank_comments(source)
    labels = {m[1]: m.start() for m in _LABEL.finditer(code)}
    loops = any(labels.get(m[1], len(code)) < m.start() for m in _JUMP.finditer(code))
    return _ordered(_by_instructions(code), clusters=".reqnctapercluster" in code, loops=loops)


def _by_instructions(code: str) -> set[str]:
    return {topic for topic, pattern in INSTRUCTIONS if re.search(pattern, code)}


def _ordered(named: set[str], *, clusters: bool, loops: bool) -> tuple[str, ...]:
    found = named | ({CLUSTERS} if clusters else set()) | ({LOOPS} if loops else set())
    return tuple(topic for topic in ORDER if topic in found)


def _in_clusters(program: Program) -> bool:
    """Whether two CTAs of one cluster have threads; scopes and ``.shared::cluster`` do not imply that."""
    ctas: dict[tuple[int, int], set[int]] = defaultdict(set)
    for thread in program.threads:
        ctas[thread.place.cta.gpu, thread.place.cta.cluster].add(thread.place.cta.number)
    return any(len(numbers) > 1 for numbers in ctas.values())


def _has_loop(thread: Thread) -> bool:
    """Whether the thread has a backward branch."""
    return any(
        isinstance(op, Branch) and thread.labels.get(op.target, len(thread.code)) <= at
        for at, op in enumerate(thread.code)
    )
