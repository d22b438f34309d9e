"""Replacements that may mend a finding: counts, bytes, parities, pending groups, orders, scopes, barriers, objects."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcheck.checking.fences.edits import Change, Edit, replace_statement
from mcheck.checking.fences.finding_facts import Facts, involved_roles, touches
from mcheck.checking.fences.outline import Outline, Statement, enclosing_loops, evaluate
from mcheck.checking.fences.repair_insertions import ctas_of, guard_edits, lanes_of, threads_of, warps_of
from mcheck.ir.scopes import SCOPES

INIT = re.compile(r"(mbarrier\.init\.\S+\s+\[(?P<base>\w+)[^;]*\],\s*)(?P<value>[^;]+);")
_BYTES = re.compile(r"(mbarrier\.(?:arrive\.)?expect_tx\S*\s+.*\[(?P<base>\w+)[^;]*\],\s*)(?P<value>[^;]+);")
_PARITY = re.compile(r"(.*mbarrier\.(?:try_wait|test_wait)\.parity\S*\s+.*\[(?P<base>\w+)[^;]*\],\s*)(?P<value>[^;]+);")
_PENDING = re.compile(r"((?:cp\.async(?:\.bulk)?|wgmma)\.wait_group\S*\s+)(?P<value>[^;]+);")
_BARRIER = re.compile(r"(bar(?:rier)?\.(?:sync|arrive|red)\S*\s+\w+)(?:,\s*(?P<value>[^;]+))?;")
ARRIVES = re.compile(r"(?:cp\.async\.)?mbarrier\.arrive\S*\s.*?\[(?P<base>\w+)")
_COPIED = re.compile(
    r"cp\.async\.bulk\.\S*mbarrier::complete_tx::bytes\S*\s.*\],\s*(?P<bytes>[^,\[\]{}]+),\s*\[(?P<base>\w+)"
)
_MBARRIER = re.compile(r"(?P<before>mbarrier\.\S+\s+(?:[^\[;]*,\s*)?)\[(?P<operand>[^;]*?)\](?=[,;])")
_REMOTE = re.compile(r"^(mbarrier\.arrive)(?:\.release)?(?:\.cta)?\.shared(?:::cta)?(?=\.)")
"""An arrival in the own CTA, which cannot name an mbarrier of another one."""
_WIDER = re.compile(
    r"^((?:await )?(?:fence|ld|st|atom|red|mbarrier|multimem)\b[\w.]*?)\.(cta|cluster|gpu)(?=[.\s])(?!::)"
)
_STRONGER = (
    (re.compile(r"^((?:await )?ld)\.relaxed\b"), r"\1.acquire"),
    (re.compile(r"^((?:st|red))\.relaxed\b"), r"\1.release"),
    (re.compile(r"^(atom)\.relaxed\b"), r"\1.acq_rel"),
    (re.compile(r"^(atom)\.relaxed\b"), r"\1.release"),
    (re.compile(r"^(atom)\.relaxed\b"), r"\1.acquire"),
    (re.compile(r"^(atom)\.(?:acquire|release)\b"), r"\1.acq_rel"),
    (re.compile(r"^(mbarrier\.arrive\S*?)\.relaxed\b"), r"\1.release"),
    (re.compile(r"^((?:await )?mbarrier\.\w+_wait\S*?)\.relaxed\b"), r"\1.acquire"),
    (re.compile(r"^(barrier\.cluster\.arrive)\.relaxed\b"), r"\1.release"),
    (re.compile(r"^(barrier\.cluster\.wait)\.relaxed\b"), r"\1.acquire"),
    (re.compile(r"^(fence)\.(?:acq_rel|release|acquire)\b"), r"\1.sc"),
    (re.compile(r"^(cp\.async\.bulk\.wait_group)\.read\b"), r"\1"),
    (re.compile(r"^(mbarrier\.arrive(?:\.expect_tx)?)(?=\.(?:shared|b64))"), r"\1.release.cluster"),
    (re.compile(r"^((?:await )?mbarrier\.\w+_wait(?:\.parity)?)(?=\.(?:shared|b64))"), r"\1.acquire.cluster"),
    (re.compile(r"^(fence\.proxy\.async)\.shared::cta\b"), r"\1.shared::cluster"),
    (re.compile(r"^(fence\.proxy\.async)\.(?:global|shared::\w+)"), r"\1"),
    (re.compile(r"^bar\.warp\.sync\s[^;]*"), "bar.sync 0"),
    (re.compile(r"^bar\.(sync|arrive|red)\b"), r"barrier.\1"),
)
_REGISTERS = (("%ctaid.x", "%cluster_ctarank"), ("%tid.x", "%laneid"), ("%warpid", "%laneid"))


def propose_replacements(program: Outline, facts: Facts) -> Iterator[Edit]:
    """Replacements, each with its rank: first of what the findings name."""
    distances = _distances(program, facts)
    advised = tuple(step.codes[0].partition(".")[0] for steps in facts.advice for step in steps)
    stuck = facts.kinds == {"deadlock"}  # which no order ends: every write becomes visible at some time
    for number, statement in enumerate(program.statements):
        near = touches(statement, facts) or statement.instruction.startswith(advised)
        if not near and number not in distances:
            continue
        rank = 2 if near else 6 + 4 * distances[number]
        values = () if facts.only_proxies else _of_values(program, facts, statement)
        for value, (kind, text) in enumerate(values):
            yield Edit((replace_statement(statement, text),), kind, rank + value)
        stronger = () if stuck else stronger_forms(statement.instruction)
        for place, changed in enumerate(stronger):
            yield Edit((replace_statement(statement, changed),), "order, scope or space", rank + place)
        if _is_synchronisation(statement):
            for edit in guard_edits(program, statement, facts):
                yield Edit(edit.changes, edit.kind, rank + edit.rank)
    if not stuck:
        yield from _wider_pairs(program, facts)
    yield from _sizes(program, facts)


def _distances(program: Outline, facts: Facts) -> dict[int, int]:
    """How far the statements of the roles of a finding are from its lines."""
    roles = involved_roles(program, facts)
    named = [number for number, each in enumerate(program.statements) if each.line in facts.lines]
    return {
        number: min((abs(number - other) for other in named if program.statements[other].role == each.role), default=8)
        for number, each in enumerate(program.statements)
        if each.role in roles
    }


def _is_synchronisation(statement: Statement) -> bool:
    return bool(
        re.match(
            r"await|mbarrier|cp\.async\.(bulk\.)?(wait|commit)|cp\.async\.mbarrier|bar|fence|wgmma\.(fence|wait|commit)|red",
            statement.instruction,
        )
    )


def _of_values(program: Outline, facts: Facts, statement: Statement) -> Iterator[tuple[str, str]]:
    """The kind and the text of each replacement of a number or an operand."""
    for kind, pattern, values in (
        ("count", INIT, _counts),
        ("bytes", _BYTES, _bytes),
        ("parity", _PARITY, _parities),
        ("pending groups", _PENDING, _pending),
    ):
        if found := pattern.match(statement.instruction):
            seen = {found["value"].strip()}
            for value in values(program, facts, statement, found):
                if value not in seen:
                    seen.add(value)
                    yield kind, f"{found[1]}{value};"
    if found := _BARRIER.match(statement.instruction):
        for threads in dict.fromkeys(_threads(program, statement)):
            if str(threads) != found["value"]:
                yield "threads of a barrier", f"{found[1]}, {threads};"
    if found := _MBARRIER.search(statement.instruction):
        for operand in _operands(program, found["operand"]):
            text = statement.instruction
            changed = text[: found.start("operand")] + operand + text[found.end("operand") :]
            yield "mbarrier", _REMOTE.sub(r"\1.release.cluster.shared::cluster", changed) if "@" in operand else changed


def _spell(program: Outline, value: int) -> Iterator[str]:
    """The constants with a value, and its digits."""
    yield from (name for name, number in program.constants.items() if number == value)
    yield str(value)


def _counts(program: Outline, facts: Facts, _: Statement, found: re.Match[str]) -> Iterator[str]:
    """The arrivals on the mbarrier, those that the findings name, and one more or less."""
    arrived = arrivals_at(program, found["base"])
    old = evaluate(found["value"], program.constants)
    values = [*arrived, *(n for n in facts.numbers if 0 < n <= 1024), 1, *program.constants.values()]
    values += [] if old is None else [old + 1, max(old - 1, 1), 2 * old]
    for value in dict.fromkeys(v for v in values if 0 < v != old):
        yield from _spell(program, value)


def arrivals_at(program: Outline, base: str) -> Iterator[int]:
    """How many threads arrive on an mbarrier, in all and of each role; a guard lets one of a warp or a role through."""
    counts = []
    for statement in program.statements:
        arrives = ARRIVES.match(statement.instruction)
        if arrives and arrives["base"] == base:
            role = program.roles[statement.role]
            conditions = [block.head for block in statement.blocks if block.head.startswith("if")] + [statement.guard]
            guarded = " ".join(conditions).strip()
            threads = lanes_of(program, role)
            if "laneid" in guarded or (guarded and "tid" not in guarded):
                threads = warps_of(program, role)
            elif guarded:
                threads = 1
            remote = "shared::cluster" in statement.instruction
            counts.append(threads * (ctas_of(program, role) if remote else 1))
    if counts:
        yield sum(counts)
        yield from counts


def _bytes(program: Outline, facts: Facts, _: Statement, found: re.Match[str]) -> Iterator[str]:
    """The bytes that copies complete on the mbarrier, and those that findings name."""
    old = evaluate(found["value"], program.constants)
    copied = [
        text["bytes"].strip()
        for each in program.statements
        if (text := _COPIED.match(each.instruction)) and text["base"] == found["base"]
    ]
    yield from dict.fromkeys(copied)
    sizes = [size for text in copied if (size := evaluate(text, program.constants)) is not None]
    values = [sum(sizes)]
    for number in facts.numbers:
        values += [number] if old is None else [old + number, number, old - number]
    values += [] if old is None else [2 * old, old // 2]
    for value in dict.fromkeys(v for v in values if v > 0 and v != old and v % 16 == 0):
        yield from _spell(program, value)


def _parities(program: Outline, _: Facts, statement: Statement, found: re.Match[str]) -> Iterator[str]:
    """The other parity, those of other waits, and those of loops around the wait."""
    old = found["value"].strip()
    toggled = re.match(r"(.+?)\s*\^\s*1$", old)
    if old in ("0", "1"):
        yield "1" if old == "0" else "0"
    elif toggled:
        yield re.sub(r"^\((.*)\)$", r"\1", toggled[1])
    else:
        yield f"({old})^1" if not re.fullmatch(r"\w+|\(.*\)", old) else f"{old}^1"
    loops = [loop.variable for loop in enclosing_loops(statement.blocks)]
    for other in program.statements:
        text = _PARITY.match(other.instruction)
        if text and set(re.findall(r"[A-Za-z_]\w*", text["value"])) <= {*program.constants, *filter(None, loops)}:
            yield text["value"].strip()
    yield from "01"
    for loop in loops:
        yield from (f"{loop}&1", f"({loop}&1)^1")
        for name in program.constants:
            yield from (f"({loop}/{name})&1", f"(({loop}/{name})&1)^1")


def _pending(program: Outline, _facts: Facts, _: Statement, found: re.Match[str]) -> Iterator[str]:
    """Fewer pending groups, the most first."""
    old = found["value"].strip()
    value = evaluate(old, program.constants)
    less = re.match(r"(.*\w)\s*-\s*(\d+)$", old)
    if less:
        yield f"{less[1]} - {int(less[2]) + 1}"
    elif not old.isdigit():
        yield f"{old} - 1"
    for fewer in range((value if value is not None and value < 9 else 1) - 1, -1, -1):
        yield str(fewer)


def _threads(program: Outline, statement: Statement) -> Iterator[int]:
    roles = [threads_of(program, role) for role in program.roles]
    yield roles[statement.role]
    yield sum(roles)
    for other in roles:
        yield other + roles[statement.role]


def _operands(program: Outline, old: str) -> Iterator[str]:
    """Other mbarriers of the program, other elements of this one, and this one in another CTA or in its own."""
    names = dict.fromkeys(
        found["operand"] for each in program.statements if (found := _MBARRIER.search(each.instruction))
    )
    index = re.match(r"(\w+)\[(\d+)\](.*)$", old)
    if index:
        for other in range(8):
            if str(other) != index[2]:
                yield f"{index[1]}[{other}]{index[3]}"
    if "@" in old:
        yield old.partition("@")[0]
    elif any("cluster" in role.place for role in program.roles):
        yield from (f"{old}@{rank}" for rank in range(2))
    yield from (name for name in names if name != old)


def stronger_forms(instruction: str) -> Iterator[str]:
    """The instruction with a stronger order, a wider scope or a wider space."""
    for pattern, new in _STRONGER:
        changed, count = pattern.subn(new, instruction, count=1)
        if count:
            yield changed
    if found := _WIDER.match(instruction):
        for scope in SCOPES[SCOPES.index(found[2]) + 1 :]:
            yield instruction[: found.start(2)] + scope + instruction[found.end(2) :]


def wider_forms(instruction: str) -> list[str]:
    """The instruction with the scope of a cluster or of a GPU."""
    return [text for text in stronger_forms(instruction) if ".cluster" in text or ".gpu" in text]


def _wider_pairs(program: Outline, facts: Facts) -> Iterator[Edit]:
    """The scopes of two statements that findings name, or that are about their objects, made wider together."""
    wide = [
        (statement, wider_forms(statement.instruction))
        for statement in program.statements
        if statement.line in facts.lines or (touches(statement, facts) and "mbarrier" in statement.instruction)
    ]
    wide = [(statement, texts) for statement, texts in wide if texts]
    for number, (one, texts) in enumerate(wide):
        for other, others in wide[number + 1 :]:
            changes = (replace_statement(one, texts[0]), replace_statement(other, others[0]))
            yield Edit(changes, "scopes of both sides", 16)


def _sizes(program: Outline, facts: Facts) -> Iterator[Edit]:
    """Changes of what the kernel computes: constants, bounds of loops, coordinates, terms of addresses."""
    rank = 500
    for statement in program.statements:
        if not touches(statement, facts):
            continue
        for one, other in _REGISTERS:
            for old, new in ((one, other), (other, one)):
                if old in statement.instruction:
                    changed = statement.instruction.replace(old, new)
                    yield Edit((replace_statement(statement, changed),), "coordinate", rank)
        for found in re.finditer(r"\(([^()]+?)\s*[+-]\s*\d+\)", statement.instruction):
            text = statement.instruction
            changed = text[: found.start()] + re.sub(r"^(%?\w+(?:\.\w+)?)$", r"\1", found[1]) + text[found.end() :]
            yield Edit((replace_statement(statement, changed),), "address", rank + 1)
        if flip := re.match(r"(xor\.b32 .*, )1;$", statement.instruction):
            for loop in enclosing_loops(statement.blocks):
                for name in program.constants:
                    changed = f"{flip[1]}1 << ({loop.variable}%{name});"
                    yield Edit((replace_statement(statement, changed),), "phase bit", rank + 2)
    yield from _bounds(program)
    yield from _constants(program)


def _bounds(program: Outline) -> Iterator[Edit]:
    """The bounds of a loop replaced by those of another."""
    loops = dict.fromkeys(block for statement in program.statements for block in statement.blocks if block.variable)
    for loop in loops:
        for other in loops:
            ours, theirs = (each.head.partition(" in ")[2].strip() for each in (loop, other))
            if ours != theirs:
                start = program.shown.index(ours, loop.start)
                yield Edit((Change(start, start + len(ours), theirs),), "bounds of a loop", 503)


def _constants(program: Outline) -> Iterator[Edit]:
    """A constant one larger, one smaller, or with the value of another one or of a size in the program.

    How often a loop runs is no correction, unless the constant is the number of stages.
    """
    bounds = " ".join(block.head for each in program.statements for block in each.blocks if block.variable)
    sizes = [int(number) for number in re.findall(r"(?<![\w.:])\d+(?![\w.])", program.shown)]
    for found in re.finditer(r"\bconst\b[^;]*;", program.shown):
        for part in re.finditer(r"(?P<name>\w+)\s*=\s*(?P<value>\d+)\b", found[0]):
            old, start = int(part["value"]), found.start() + part.start("value")
            name = re.escape(part["name"])
            if re.search(rf"\b{name}\b", bounds) and not re.search(rf"\w\[{name}\]", program.shown):
                continue
            others = [name for name in program.constants if name != part["name"]]
            near = sorted({size for size in sizes if old < size <= 4 * old} | {max(old - 1, 1), max(old // 2, 1)})
            for number, new in enumerate(dict.fromkeys([str(old + 1), *others, *map(str, near)])):
                if new != part["value"]:
                    end = start + len(part["value"])
                    yield Edit((Change(start, end, new),), "constant", 504 + number)
