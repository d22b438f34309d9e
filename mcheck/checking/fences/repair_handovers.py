"""Corrections of a whole hand-over, whose parts mend nothing alone.

A thread hands over what it has done by a release, and takes over by an acquire (PTX ISA 8.8). A release may come too
early, and without the wait for the copies that it should cover; it may cover what one thread has done, where others of
its role have done more; the arrivals and the count of an mbarrier have to fit; and there may be no release at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcheck.checking.fences.edits import Change, Edit, apply_changes, insert, overlaps, remove, replace_statement
from mcheck.checking.fences.finding_facts import Facts, involved_roles, touches
from mcheck.checking.fences.outline import Block, Gap, Outline, Statement, outline
from mcheck.checking.fences.repair_insertions import (
    GROUPS,
    ctas_of,
    guard_edits,
    has_several_ctas,
    lanes_of,
    meeting_of,
)
from mcheck.checking.fences.repair_replacements import ARRIVES, INIT, arrivals_at, stronger_forms, wider_forms

_RELEASE = re.compile(r"mbarrier\.arrive\.(?!expect_tx)|(?:red|st|atom)\S*\.(?:relaxed|release|acq_rel)\b|bar\.arrive")
_OBJECT = re.compile(r"\[(?P<base>\w+)")
_WAIT = re.compile(r"await|\S+wait_(?:group|all)\b")
_COMMIT = re.compile(r"\S+commit_group\b")
_ATOMIC = re.compile(r"(?:atom|red|st|mbarrier\.arrive)\b")
_WORD = re.compile(r"\.global(?:\s+\.align\s+\d+)?\s+\.[bu]32\s+(?P<names>[^;{}]+);")
_ZERO = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*=\s*0\s*$")
REACH = 6
"""As many gaps a release moves back."""


def propose_handovers(program: Outline, facts: Facts) -> Iterator[Edit]:
    """Corrections of hand-overs, each with its rank."""
    if facts.only_proxies:
        return
    yield from _guards_and_counts(program, facts)
    if facts.kinds == {"deadlock"}:
        return
    yield from _later_releases(program, facts)
    yield from _releases_for_all(program, facts)
    yield from _flags(program, facts)


# --- the arrivals and the count of an mbarrier ----------------------------------------------------------------------


def _guards_and_counts(program: Outline, facts: Facts) -> Iterator[Edit]:
    """More or fewer threads arrive, and the count says so."""
    roles = involved_roles(program, facts)
    for statement in program.statements:
        arrives = ARRIVES.match(statement.instruction)
        if not arrives or statement.role not in roles:
            continue
        inits = [each for each in program.statements if (m := INIT.match(each.instruction)) and m["base"] == arrives[1]]
        for edit in guard_edits(program, statement, facts):
            after = outline(apply_changes(program.text, edit.changes))
            for count in dict.fromkeys(arrivals_at(after, arrives[1])) if after is not None else ():
                changes = (*edit.changes, *(_counted(each, count) for each in inits))
                if inits and not overlaps(changes):
                    yield Edit(changes, f"{edit.kind} and count", 9 if touches(statement, facts) else 12)


def _counted(init: Statement, count: int) -> Change:
    found = INIT.match(init.instruction)
    assert found is not None, init.instruction
    return replace_statement(init, f"{found[1]}{count};")


# --- a release that comes too early ---------------------------------------------------------------------------------


def _later_releases(program: Outline, facts: Facts) -> Iterator[Edit]:
    """A release moved behind an access, its commit or a wait, with a wait for copies before it or with wider scopes."""
    roles = involved_roles(program, facts)
    for statement in program.statements:
        if statement.role not in roles or not _RELEASE.match(statement.instruction):
            continue
        gaps = [gap for gap in program.gaps if _is_beside(gap, statement) and gap.at >= statement.end]
        wider = [*_wider_scopes(program, statement)] if has_several_ctas(program) else []
        for distance, gap in enumerate(gaps[1 : REACH + 1]):
            before = _last_before(program, gap)
            if before is None or not (
                before.line in facts.lines or _WAIT.match(before.text) or _COMMIT.match(before.text)
            ):
                continue
            taken = remove(program, statement.start, statement.end)
            for number, wait in enumerate(_waits_between(program, statement, gap)):
                put = insert(program, gap, f"{wait}\n{statement.text}")
                yield Edit((taken, put), "later release behind a wait", 8 + 2 * distance + number)
            for text, other in wider:
                put = insert(program, gap, statement.guard + text)
                yield Edit((taken, put, other), "later release with wider scopes", 10 + 2 * distance)


def _is_beside(gap: Gap, statement: Statement) -> bool:
    return gap.role == statement.role and gap.blocks == statement.blocks


def _last_before(program: Outline, gap: Gap) -> Statement | None:
    return next((each for each in reversed(program.statements) if each.end <= gap.at and each.role == gap.role), None)


def _waits_between(program: Outline, release: Statement, gap: Gap) -> Iterator[str]:
    """The waits for the groups of copies that lie between a release and a gap, with their commit if it is not there."""
    crossed = [each for each in program.statements if release.end <= each.start < gap.at and each.role == gap.role]
    for family, commit, waits in GROUPS:
        issued = [each for each in crossed if family.search(each.instruction)]
        if issued:
            head = commit.partition(";")[0]
            done = any(each.start > issued[-1].start and each.instruction.startswith(head) for each in crossed)
            yield from (wait if done else f"{commit}\n{wait}" for wait in waits)


def _wider_scopes(program: Outline, release: Statement) -> Iterator[tuple[str, Change]]:
    """The release with a wider scope, and the wait for it in another role as well."""
    name = _OBJECT.search(release.instruction)
    for other in program.statements if name else ():
        base = _OBJECT.search(other.instruction)
        if other.role != release.role and base and name and base[1] == name[1] and other.instruction[:5] == "await":
            for mine in wider_forms(release.instruction)[:1]:
                for theirs in wider_forms(other.instruction)[:1]:
                    yield mine, replace_statement(other, theirs)


# --- a release by one thread for all of its role --------------------------------------------------------------------


def _releases_for_all(program: Outline, facts: Facts) -> Iterator[Edit]:
    """A barrier of the role in front of an atomic or an arrival, which is given a stronger order."""
    roles = involved_roles(program, facts)
    for statement in program.statements:
        role = program.roles[statement.role]
        if statement.role not in roles or not _ATOMIC.match(statement.instruction):
            continue
        block = next((each for each in statement.blocks if each.variable is None), None)
        start = statement.start if block is None else block.start
        gap = next((each for each in program.gaps if each.at == start), None)
        if gap is None or lanes_of(program, role) == 1:
            continue
        for number, text in enumerate(stronger_forms(statement.instruction)):
            changes = (insert(program, gap, meeting_of(program, statement.role)), replace_statement(statement, text))
            yield Edit(changes, "barrier and order", 14 + number)


# --- no release at all ----------------------------------------------------------------------------------------------


def _flags(program: Outline, facts: Facts) -> Iterator[Edit]:
    """A flag in global memory, which is set behind an access of one role and awaited in front of that of another one,
    where no barrier can be: the roles are on different GPUs or in CTAs without a common cluster.
    """
    accesses = [each for each in program.at_lines(facts.accesses) if _OBJECT.search(each.instruction)]
    for one in accesses:
        for other in accesses:
            if _are_apart(program, one.role, other.role) and _names(one) & _names(other):
                edit = _by_flag(program, one, other)
                if edit is not None:
                    yield edit


def _are_apart(program: Outline, one: int, other: int) -> bool:
    places = [program.roles[role].ranges for role in (one, other)]
    levels = ("gpu", "cluster") if any("cluster" in place for place in places) else ("gpu", "cta")
    return any(places[0].get(name, "0") != places[1].get(name, "0") for name in levels)


def _names(statement: Statement) -> set[str]:
    return set(re.findall(r"(?<=\[)[A-Za-z_]\w*", statement.instruction))


def _by_flag(program: Outline, first: Statement, second: Statement) -> Edit | None:
    """The second access after the first, by a flag: none in loops, which would need more than one value."""
    roles = program.roles[first.role], program.roles[second.role]
    scope = "sys" if roles[0].ranges.get("gpu") != roles[1].ranges.get("gpu") else "gpu"
    flag, declared = _flag(program)
    release = f"red.release.{scope}.global.add.u32 [{flag}], 1;"
    ending = _ending(program, first, release)
    before = next((gap for gap in program.gaps if gap.at == _outermost(second)), None)
    if ending is None or before is None or any(block.variable for block in (*first.blocks, *second.blocks)):
        return None
    register = next(f"r{n}" for n in range(100) if not re.search(rf"\br{n}\b", program.shown))
    threads = lanes_of(program, roles[0]) * ctas_of(program, roles[0])
    wait = f"await ld.acquire.{scope}.global.u32 {register}, [{flag}] == {threads};"
    writes = not first.instruction.startswith("ld")
    return Edit((*declared, *ending, insert(program, before, wait)), "insert flag", 15 if writes else 17)


def _outermost(statement: Statement) -> int:
    return statement.blocks[0].start if statement.blocks else statement.start


def _flag(program: Outline) -> tuple[str, tuple[Change, ...]]:
    """A word that is declared as zero and nobody uses, or a new one with its declaration."""
    code = " ".join(each.instruction for each in program.statements)
    for found in _WORD.finditer(program.shown):
        for part in found["names"].split(","):
            zero = _ZERO.match(part.strip())
            if zero and not re.search(rf"\b{zero['name']}\b", code):
                return zero["name"], ()
    name = next(f"flag{n}" for n in range(100) if not re.search(rf"\bflag{n}\b", program.shown))
    closing = program.shown.index("}", program.shown.index("{"))
    return name, (Change(closing, closing, f"  .global .u32 {name} = 0;\n"),)


def _ending(program: Outline, access: Statement, release: str) -> tuple[Change, ...] | None:
    """A release behind an access: of a copy of a group behind the wait for it, which is made a full one, or added."""
    after = [each for each in program.statements if each.role == access.role and each.start > access.start]
    blocks: tuple[Block, ...] = access.blocks
    for family, commit, waits in GROUPS:
        if not family.search(access.instruction):
            continue
        head = waits[-1].split(" ")[0]
        waiting = next((each for each in after if each.instruction.startswith(head) and not each.blocks), None)
        if waiting is not None:
            full = waiting.instruction.replace(".read", "")
            changed = () if full == waiting.instruction else (replace_statement(waiting, full),)
            gap = _gap_behind(program, waiting.end, waiting)
            return None if gap is None else (*changed, insert(program, gap, release))
        committed = next((each for each in after if each.instruction.startswith(commit.rstrip(";"))), None)
        last = committed or access
        gap = _gap_behind(program, last.end, last)
        code = f"{waits[-1]}\n{release}" if committed else f"{commit}\n{waits[-1]}\n{release}"
        return None if gap is None else (insert(program, gap, code),)
    gap = _gap_behind(program, blocks[0].end if blocks else access.end, access)
    return None if gap is None else (insert(program, gap, release),)


def _gap_behind(program: Outline, end: int, statement: Statement) -> Gap | None:
    return next((gap for gap in program.gaps if gap.role == statement.role and gap.at >= end and not gap.blocks), None)
