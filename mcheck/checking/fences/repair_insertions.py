"""Insertions that may mend a finding: fences, barriers, waits, arrivals, and the guards and loops around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from mcheck.checking.fences.edits import Change, Edit, insert
from mcheck.checking.fences.finding_facts import Facts, involved_roles
from mcheck.checking.fences.outline import Gap, Outline, Role, Statement, enclosing_loops, evaluate

WARP = 32
NEAR = 12
"""As many gaps from a line of a finding a statement is inserted."""
_PROXY = {"RACE004", "RACE006", "RACE003", "RACE007", "RACE008"}
_COPIED = re.compile(r"await |mbarrier\.(arrive|expect_tx)|red\.release|st\.release|barrier\.arrive|bar\.arrive")
_TENSORMAP = re.compile(r"\[(\w+), \{")
_FAMILY = re.compile(
    r"[a-z_]+(?:\.(?:async|bulk|proxy|sync|warp|cluster|wait_group|commit_group|arrive|expect_tx|inval))*"
)
_INITIALISED = re.compile(r"mbarrier\.init\.\S+\s+\[([^\]]+)\]")
_TRACKED = re.compile(r"mbarrier::complete_tx::bytes.*\[([^\[\]]+(?:\[[^\]]*\][^\[\]]*)?)\](?:,\s*[^\[\],]+)?;$")
GROUPS = (
    (re.compile(r"\bcp\.async\.(ca|cg)\."), "cp.async.commit_group;", ("cp.async.wait_group 0;", "cp.async.wait_all;")),
    (
        re.compile(r"\bcp\.(reduce\.)?async\.bulk\.\S*bulk_group"),
        "cp.async.bulk.commit_group;",
        ("cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group 0;"),
    ),
    (
        re.compile(r"\bwgmma\.mma_async"),
        "wgmma.commit_group.sync.aligned;",
        ("wgmma.wait_group.sync.aligned 0;",),
    ),
)


def propose_insertions(program: Outline, facts: Facts) -> Iterator[Edit]:
    """Insertions, each with its rank."""
    yield from _advised(program, facts)
    gaps = _ranked_gaps(program, facts)
    yield from _statements(program, facts, gaps)
    if not facts.only_proxies:
        yield from _copies(program, facts, gaps)
        yield from _signals(program, facts, gaps)
        yield from _cluster_meetings(program)
        yield from _drains(program)
    yield from _meetings(program, gaps)


def _advised(program: Outline, facts: Facts) -> Iterator[Edit]:
    """What the fixes of the findings name: all of its steps, then each."""
    for steps in facts.advice:
        where = [(step, place) for step in steps for place in step.points]
        places = [(_after if place.after else _before)(program, place.site.line) for _, place in where]
        codes = ["\n".join(f"{code};" for code in step.codes) for step, _ in where]
        if all(places):
            chosen = tuple(insert(program, gaps[0], code) for gaps, code in zip(places, codes, strict=True))
            kind = kind_of(program, places[0][0], codes[0])
            yield Edit(chosen, kind, 0 if len(chosen) == 1 else 3)
        for gaps, code in zip(places, codes, strict=True):
            for gap in gaps[:1]:
                yield Edit((insert(program, gap, code),), kind_of(program, gap, code), 1)


def kind_of(program: Outline, gap: Gap, code: str) -> str:
    """The kind of an insertion: the families of what is inserted, and where."""
    names = dict.fromkeys(found[0] for line in code.split("\n") if (found := _FAMILY.match(line)))
    return f"insert {' and '.join(names)} in {program.roles[gap.role].name}"


def _after(program: Outline, line: int) -> list[Gap]:
    """The gaps behind the statement at a line, from the nearest outwards."""
    found = [each for each in program.statements if each.line == line]
    if not found:
        return []
    last = found[-1]
    inner = len(last.blocks)
    out = []
    for gap in program.gaps:
        around = len(gap.blocks) <= inner and gap.blocks == last.blocks[: len(gap.blocks)]
        if around and gap.role == last.role and gap.at >= last.end:
            out.append(gap)
            inner = len(gap.blocks) - 1
    return out


def _before(program: Outline, line: int) -> list[Gap]:
    """The gap in front of the statement at a line, then those in front of the blocks around it."""
    found = next((each for each in program.statements if each.line == line), None)
    if found is None:
        return []
    starts = [found.start, *(block.start for block in reversed(found.blocks))]
    return [gap for start in starts for gap in program.gaps if gap.at == start]


def _ranked_gaps(program: Outline, facts: Facts) -> list[tuple[int, Gap]]:
    """The gaps of the roles of a finding, with their distances from its lines."""
    order = {gap.at: number for number, gap in enumerate(program.gaps)}
    named = [order[g.at] for line in facts.lines for g in (_after(program, line)[:1] + _before(program, line)[:1])]
    roles = involved_roles(program, facts)
    out = []
    for gap in program.gaps:
        if gap.role in roles:
            distance = min((abs(order[gap.at] - at) for at in named), default=0)
            if distance <= NEAR:
                out.append((distance, gap))
    return sorted(out, key=lambda each: (each[0], each[1].at))


def _statements(program: Outline, facts: Facts, gaps: list[tuple[int, Gap]]) -> Iterator[Edit]:
    """Fences and waits of the families that the program uses, near the lines of the findings."""
    codes = list(dict.fromkeys(_codes(program, facts)))
    for distance, gap in gaps:
        for number, code in enumerate(codes):
            yield Edit((insert(program, gap, code),), kind_of(program, gap, code), 10 + 4 * distance + number)


def _codes(program: Outline, facts: Facts) -> Iterator[str]:
    text = " ".join(statement.instruction for statement in program.statements)
    several = has_several_ctas(program)
    if facts.codes & _PROXY or facts.asynchronous:
        yield "fence.proxy.async.shared::cta;"
        yield "fence.proxy.async.global;"
        yield "fence.proxy.async;"
        yield "fence.proxy.async.shared::cta;\nbar.sync 0;"
    if facts.only_proxies:
        return
    for family, commit, waits in GROUPS:
        if family.search(text):
            yield commit
            for wait in waits:
                yield wait
                yield f"{commit}\n{wait}"
                yield f"{wait}\nbar.sync 0;"
    if "RACE009" in facts.codes:
        yield "fence.proxy.tensormap::generic.release.gpu;"
        for name in dict.fromkeys(_TENSORMAP.findall(text)):
            acquire = f"fence.proxy.tensormap::generic.acquire.gpu [{name}], 128;"
            yield acquire
            yield f"fence.proxy.tensormap::generic.release.gpu;\n{acquire}"
    yield "bar.warp.sync 0xffffffff;"
    if "UB201" in facts.codes:
        yield "fence.mbarrier_init.release.cluster;"
    if facts.codes & {"UB203", "UB202"}:
        for barrier in dict.fromkeys(_INITIALISED.findall(text)):
            yield f"mbarrier.inval.shared::cta.b64 [{barrier}];"
    if facts.codes & {"RACE001", "RACE002"}:
        for scope in ("cta", "cluster", "gpu") if several else ("cta",):
            yield f"fence.acq_rel.{scope};"


def has_several_ctas(program: Outline) -> bool:
    return len({role.ranges.get("cta", "0") for role in program.roles}) > 1 or any(
        ".." in role.ranges.get("cta", "") for role in program.roles
    )


def _copies(program: Outline, facts: Facts, gaps: list[tuple[int, Gap]]) -> Iterator[Edit]:
    """Copies of the waits and arrivals that the program has elsewhere, and waits for the phases that findings name."""
    named = [
        f"await mbarrier.try_wait.parity{scope}.shared::cta.b64 [{barrier.partition('@')[0]}], {parity};"
        for parity, barrier in _barriers(program, facts)
        for scope in (("", ".acquire.cluster") if has_several_ctas(program) else ("",))
    ]
    elsewhere = [statement for statement in program.statements if _COPIED.match(statement.instruction)]
    for distance, gap in gaps:
        scope = {block.variable for block in gap.blocks}
        loops = {name for other in program.statements for block in other.blocks if (name := block.variable)}
        for number, code in enumerate(named):
            yield Edit((insert(program, gap, code),), "insert wait", 12 + 4 * distance + number)
        for text in dict.fromkeys(statement.text for statement in elsewhere):
            names = set(re.findall(r"[A-Za-z_]\w*", text))
            if names & loops <= scope:
                kind = "insert wait" if "await" in text else "insert arrival"
                yield Edit((insert(program, gap, text),), kind, 25 + 4 * distance)


def _signals(program: Outline, facts: Facts, gaps: list[tuple[int, Gap]]) -> Iterator[Edit]:
    """Arrivals for the phases that threads wait for in vain, by roles that do not wait for them."""
    if "deadlock" not in facts.kinds:
        return
    named = [barrier for _, barrier in facts.phases]
    text = " ".join(each.instruction for each in program.statements)
    named += [each for each in _INITIALISED.findall(text) if each in facts.objects]
    near = {gap.at: distance for distance, gap in gaps}
    for barrier in dict.fromkeys(named):
        name = barrier.partition("@")[0]
        waits = {each.role for each in program.statements if f"[{name}]" in each.instruction and "_wait" in each.text}
        for gap in program.gaps:
            distance = near.get(gap.at, len(gap.blocks))
            for number, code in enumerate(_arrivals(program, barrier) if gap.role not in waits else ()):
                yield Edit((insert(program, gap, code),), "insert arrival", 3 + 2 * distance + number)


def _arrivals(program: Outline, barrier: str) -> Iterator[str]:
    """Arrivals at an mbarrier, in the own CTA or in another one."""
    name, _, rank = barrier.partition("@")
    yield f"mbarrier.arrive.shared::cta.b64 _, [{name}];"
    if has_several_ctas(program):
        for other in (rank,) if rank else ("0", "1"):
            yield f"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{name}@{other}];"


def _barriers(program: Outline, facts: Facts) -> Iterator[tuple[int | str, str]]:
    """The phases that findings name, and the first phases of the mbarriers that track the copies at their lines."""
    yield from facts.phases
    for statement in program.at_lines(facts.lines):
        found = _TRACKED.search(statement.instruction)
        if found and "undefined" in facts.kinds:
            for parity in (0, 1):
                yield parity, found[1]


def _meetings(program: Outline, gaps: list[tuple[int, Gap]]) -> Iterator[Edit]:
    """Barriers: one that all warps of a role meet at, and one in every role of a CTA."""
    roles = [role for role in range(len(program.roles)) if any(gap.role == role for _, gap in gaps)]
    free = _free_barrier(program)
    for role in roles:
        alone = len(_same_cta(program, role)) == 1
        code = meeting_of(program, role)
        for distance, gap in gaps:
            if gap.role == role:
                yield Edit((insert(program, gap, code),), "insert barrier", 14 + 4 * distance)
                if not alone:
                    yield Edit((insert(program, gap, "bar.sync 0;"),), "insert barrier", 18 + 4 * distance)
    for role in roles:
        yield from _joint(program, gaps, _same_cta(program, role), ("bar.sync 0;",), 20)
        pairs = [other for other in roles if other != role and other in _same_cta(program, role)]
        for other in pairs:
            threads = sum(WARP * warps_of(program, program.roles[each]) for each in (role, other))
            yield from _joint(program, gaps, (role, other), (f"bar.sync {free}, {threads};",), 40)


def meeting_of(program: Outline, role: int) -> str:
    """A barrier for all threads of a role."""
    if len(_same_cta(program, role)) == 1:
        return "bar.sync 0;"
    return f"bar.sync {_free_barrier(program)}, {threads_of(program, program.roles[role])};"


def _free_barrier(program: Outline) -> int:
    return next(n for n in range(1, 17) if not re.search(rf"\bbar(?:rier)?\.\w+\s+{n}\b", program.shown))


def _joint(
    program: Outline,
    gaps: list[tuple[int, Gap]],
    roles: tuple[int, ...],
    codes: tuple[str, ...],
    rank: int,
) -> Iterator[Edit]:
    """A barrier in each of these roles."""
    if len(roles) < 2 or (min(roles) != roles[0] and rank < 40):
        return
    choices = []
    for role in roles:
        near = [(distance, gap) for distance, gap in gaps if gap.role == role and not _diverges(gap)]
        near = near or [(0, gap) for gap in program.gaps if gap.role == role and not gap.blocks]
        choices.append(near[:5])
    for chosen in product(*choices):
        looped = {tuple(block.head for block in gap.blocks) for _, gap in chosen}
        if len(looped) == 1:
            for code in codes:
                changes = tuple(insert(program, gap, code) for _, gap in chosen)
                yield Edit(changes, "insert barrier", rank + 4 * sum(distance for distance, _ in chosen))


def _diverges(gap: Gap) -> bool:
    return any(block.variable is None for block in gap.blocks)


def _same_cta(program: Outline, role: int) -> tuple[int, ...]:
    place = program.roles[role].ranges
    same = ("gpu", "cluster", "cta")
    return tuple(
        number
        for number, other in enumerate(program.roles)
        if all(other.ranges.get(name) == place.get(name) for name in same)
    )


def _cluster_meetings(program: Outline) -> Iterator[Edit]:
    """A barrier of the cluster in every role: at the beginning, or at the end."""
    if not has_several_ctas(program) or "cluster" not in program.shown:
        return
    code = "barrier.cluster.arrive;\nbarrier.cluster.wait;"
    for name, pick in (("beginning", 0), ("end", -1)):
        places = [
            [gap for gap in program.gaps if gap.role == role and not gap.blocks] for role in range(len(program.roles))
        ]
        if all(places):
            changes = tuple(insert(program, gaps[pick], code) for gaps in places)
            yield Edit(changes, f"insert cluster barrier at the {name}", 15)


def _drains(program: Outline) -> Iterator[Edit]:
    """Behind a loop over stages, the waits for what is still to come of each stage."""
    for statement in program.statements:
        loop = next(enclosing_loops(statement.blocks), None)
        found = loop and re.match(r"for\s+(\w+)\s+in\s+(.+?)\.\.(.+)$", loop.head)
        if not found or not statement.instruction.startswith("await mbarrier") or loop is None:
            continue
        gap = next((gap for gap in program.gaps if gap.at >= loop.end and gap.role == statement.role), None)
        for stages in program.constants if gap else ():
            if re.search(rf"%\s*{stages}\b", statement.instruction) and gap is not None:
                end = found[3].strip()
                head = f"for {found[1]} in {end}..{end}+{stages} {{"
                code = f"{head}\n  {statement.text}\n}}"
                yield Edit((insert(program, gap, code),), "insert drain", 24)


def guard_edits(program: Outline, statement: Statement, facts: Facts) -> Iterator[Edit]:
    """A guard of one thread for a statement that all execute, and the guard away of one that some execute."""
    block = statement.blocks[-1] if statement.blocks else None
    if block is not None and block.head.startswith("if"):
        inside = [each for each in program.statements if block in each.blocks]
        if len(inside) == 1 and not program.shown[block.end :].lstrip().startswith("else"):
            yield Edit((Change(block.start, block.end, statement.text),), "remove guard", 8)
            threads = threads_of(program, program.roles[statement.role])
            whole, count = re.subn(r"^(bar\S*\s+\w+),.*;", rf"\1, {threads};", statement.text)
            if count:
                yield Edit((Change(block.start, block.end, whole),), "remove guard", 8)
    if statement.guard:
        yield Edit((Change(statement.start, statement.end, statement.instruction),), "remove guard", 8)
    elif statement.instruction.startswith("mbarrier") and not facts.only_proxies:
        for condition in ("%tid.x == 0", "%laneid == 0", "%warpid == 0"):
            text = f"if ({condition}) {{ {statement.instruction} }}"
            yield Edit((Change(statement.start, statement.end, text),), "add guard", 9)


def warps_of(program: Outline, role: Role) -> int:
    """The warps of a role in one CTA."""
    if "warpgroup" in role.ranges:
        return 4 * _length(program, role.ranges["warpgroup"])
    return _length(program, role.ranges.get("warp", "0"))


def threads_of(program: Outline, role: Role) -> int:
    """The threads of a role in one CTA, as a barrier counts them: whole warps."""
    return WARP * warps_of(program, role)


def lanes_of(program: Outline, role: Role) -> int:
    """The threads of a role in one CTA that execute it."""
    whole = "lane" not in role.ranges and {"warp", "warpgroup"} & role.ranges.keys()
    return warps_of(program, role) * (WARP if whole else _length(program, role.ranges.get("lane", "0")))


def ctas_of(program: Outline, role: Role) -> int:
    """The CTAs that have a role."""
    return _length(program, role.ranges.get("cta", "0"))


def _length(program: Outline, text: str) -> int:
    first, dots, last = text.partition("..")
    if not dots:
        return 1
    ends = evaluate(first, program.constants), evaluate(last, program.constants)
    return max(ends[1] - ends[0], 1) if ends[0] is not None and ends[1] is not None else 1
