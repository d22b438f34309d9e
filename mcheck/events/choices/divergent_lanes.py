"""Lanes of one warp that do not all execute the same instructions of wgmma (PTX ISA 9.0 section 9.7.15), and what else
paths are undefined for, in whatever order their events come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

from mcheck.cat.tags import Tag
from mcheck.events.event import Event, Path
from mcheck.ir.aligned_operations import Statement, aligned_statement, is_wgmma
from mcheck.ir.program import Program
from mcheck.semantics.terms import Uid

Executed = list[tuple[Statement, Uid]]
"""The aligned instructions of a path, each with its event."""


def is_undefined_by_paths(program: Program, paths: Sequence[Path]) -> bool:
    """Whether these paths are undefined for what they are: copies that may outlive their threads, lanes that part."""
    return any(path.unfinished for path in paths) or find_divergent_wgmma(program, paths) is not None


def find_divergent_wgmma(program: Program, paths: Sequence[Path]) -> tuple[Uid, Statement | None] | None:
    """The event of the first instruction of wgmma that one lane of a warp executes where another one executes another
    aligned instruction, which is told as well, or has exited.
    """
    if not any(map(is_wgmma, program.operations)):
        return None
    warps: dict[tuple[int, int], list[Path]] = defaultdict(list)
    for path in paths:
        warps[program.threads[path.thread].place.own_warp].append(path)
    for lanes in warps.values():
        executed = [(_executed(path), path.end == "end") for path in lanes] if len(lanes) > 1 else []
        for one, other in combinations(executed, 2):
            found = _first_difference(*one, *other)
            if found is not None:
                return found
    return None


def _first_difference(
    one: Executed, one_ended: bool, other: Executed, other_ended: bool
) -> tuple[Uid, Statement | None] | None:  # fmt: skip
    """Where two lanes differ, unless both execute a barrier there, which is for the barriers to tell."""
    for (here, uid), (there, theirs) in zip(one, other, strict=False):
        if here != there:
            return (uid, there) if not here[-1] else (theirs, here) if not there[-1] else None
    longer, ended = (one, other_ended) if len(one) > len(other) else (other, one_ended)
    rest = longer[min(len(one), len(other)) :] if ended else []
    return next(((uid, None) for statement, uid in rest if not statement[-1]), None)


def _executed(path: Path) -> Executed:
    found: dict[int, tuple[Statement, Uid]] = {}
    for event in path.events:
        if _is_aligned(event):
            found.setdefault(event.instruction, (aligned_statement(event.op), event.uid))
    return list(found.values())


def _is_aligned(event: Event) -> bool:
    step = event.barrier
    barrier = Tag.BARRIVE in event.tags and step is not None and step.key[0] == "bar" and step.aligned
    return barrier or (is_wgmma(event.op) and event.order is not None)
