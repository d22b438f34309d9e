"""Moves that may mend a finding: a statement to another place of its role or of another role, or out of a branch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcheck.checking.fences.edits import Change, Edit, insert, overlaps, remove
from mcheck.checking.fences.finding_facts import Facts, involved_roles, touches
from mcheck.checking.fences.outline import Block, Gap, Outline, Statement

ACROSS = "move across blocks"
"""The kind of a move into a loop or a branch, or out of one: for other sizes the statement may be needed there."""
REACH = 8
"""As many gaps a statement moves."""
_MOVABLE = re.compile(
    r"await\b|mbarrier\.(arrive|init|expect_tx|complete_tx|inval)|cp\.async\.(bulk\.)?(wait|commit)|bar|fence|"
    r"wgmma\.(wait|commit|fence)|red\b|ld\b|st\b"
)
_JUMPS = re.compile(r"\S*\s*:$|bra|exit|ret|trap")
_BOUNDS = {
    ("ld", True): re.compile(r"await|bar"),
    ("ld", False): re.compile(r"mbarrier\.arrive|red\b|atom\b"),
    ("st", True): re.compile(r"await"),
    ("st", False): re.compile(r"mbarrier\.arrive|red\b|atom\b|bar"),
}
"""What loads and stores may not move past, upwards or not: what they follow, and what hands them over."""
_SYNCHRONISES = re.compile(
    r"await mbarrier|mbarrier|cp\.async\.(bulk\.)?(wait|commit)|bar|fence|wgmma\.(wait|commit|fence)|red\b"
)


def propose_moves(program: Outline, facts: Facts) -> Iterator[Edit]:
    """Moves, each with its rank."""
    order = {gap.at: number for number, gap in enumerate(program.gaps)}
    roles = involved_roles(program, facts)
    for statement in program.statements:
        if not _MOVABLE.match(statement.instruction):
            continue
        near = touches(statement, facts)
        data = re.match(r"ld\b|st\b", statement.instruction)
        if (not near and statement.role not in roles) or (data and statement.line not in facts.accesses):
            continue
        start, end, blocks, text = _unit(program, statement)
        here = order.get(start)
        if here is None:
            continue
        taken = remove(program, start, end)
        for gap in program.gaps:
            distance = abs(order[gap.at] - here)
            if gap.role == statement.role and 0 < distance <= REACH and not start <= gap.at <= end:
                put = insert(program, gap, text)
                crosses = data and (gap.blocks != blocks or _carries(program, statement, gap))
                if not crosses and not _is_next(program, gap, end) and not overlaps((taken, put)):
                    rank = (6 if near else 40) + 2 * distance + (3 if gap.blocks != blocks else 0) + (8 if data else 0)
                    yield Edit((taken, put), "move" if gap.blocks == blocks else ACROSS, rank)
    yield from _between_roles(program, facts)
    yield from _hoists(program)


def _unit(program: Outline, statement: Statement) -> tuple[int, int, tuple[Block, ...], str]:
    """What moves: the statement, or the branch that has nothing else in it."""
    block = statement.blocks[-1] if statement.blocks else None
    if block is not None and block.variable is None and block.head.startswith("if"):
        inside = [each for each in program.statements if block in each.blocks]
        if len(inside) == 1 and not program.shown[block.end :].lstrip().startswith("else"):
            text = program.text[block.start : block.end]
            return block.start, block.end, statement.blocks[:-1], re.sub(r"\s*\n\s*", " ", text)
    return statement.start, statement.end, statement.blocks, statement.text


def _carries(program: Outline, statement: Statement, gap: Gap) -> bool:
    """Whether a move of an access to the gap could change what it reads, or what other accesses and threads read."""
    first, last = sorted((statement.start, gap.at))
    names = _names(statement)
    crossed = (each for each in program.statements if first <= each.start < last and each != statement)
    return any(
        _JUMPS.match(each.instruction)
        or _BOUNDS[statement.instruction[:2], gap.at < statement.start].match(each.instruction)
        or (names & _names(each) and not _SYNCHRONISES.match(each.instruction))
        for each in crossed
    )


def _names(statement: Statement) -> set[str]:
    """The objects and registers that a statement names."""
    return set(re.findall(r"(?<![%\w.])[A-Za-z_]\w*", statement.instruction.partition(" ")[2]))


def _is_next(program: Outline, gap: Gap, end: int) -> bool:
    """Whether nothing lies between a statement that ends at ``end`` and a gap behind it."""
    return gap.at >= end and not program.shown[end : gap.at].strip()


def _between_roles(program: Outline, facts: Facts) -> Iterator[Edit]:
    """What the fix of a finding inserts, if another role has it: moved from there."""
    for step in (step for steps in facts.advice for step in steps):
        code = f"{step.codes[0]};"
        for place in step.points:
            target = next((each for each in program.statements if each.line == place.site.line), None)
            sources = [each for each in program.statements if each.instruction == code]
            if target is None:
                continue
            gap = next((g for g in program.gaps if (g.at >= target.end if place.after else g.at == target.start)), None)
            for source in sources:
                if gap is not None and source.role != target.role:
                    changes = (remove(program, source.start, source.end), insert(program, gap, source.text))
                    yield Edit(changes, "move", 0)


def _hoists(program: Outline) -> Iterator[Edit]:
    """A barrier in both branches of an ``if``, put behind them."""
    for one in program.statements:
        for other in program.statements:
            if not one.blocks or not other.blocks or one.start >= other.start or one.text != other.text:
                continue
            first, second = one.blocks[-1], other.blocks[-1]
            joined = program.shown[first.end : second.start].strip() == "" and second.head.startswith("else")
            if joined and one.instruction.startswith("bar"):
                gap = next((g for g in program.gaps if g.at >= second.end), None)
                if gap is not None:
                    changes: tuple[Change, ...] = (
                        remove(program, one.start, one.end),
                        remove(program, other.start, other.end),
                        insert(program, gap, one.text),
                    )
                    yield Edit(changes, "move", 4)
