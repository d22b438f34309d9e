"""Candidates for the repair of a PTX module: edits of the instructions at the lines of findings, the likeliest first.

What a finding names is inserted. Beside that: ends of groups, bytes and counts of mbarriers, loops around a test of a
phase, stronger orders and wider scopes, barriers of the CTA and of the cluster, and waits for more groups. A compiler
makes several instructions of one, so alike instructions at the lines of the findings change together.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from mcheck.base.records import dataclass
from mcheck.checking.fences.costs import Costs
from mcheck.checking.fences.edits import Change, Edit, overlaps
from mcheck.checking.fences.finding_facts import Facts, collect_facts
from mcheck.checking.fences.repair_insertions import GROUPS
from mcheck.checking.fences.repair_replacements import stronger_forms
from mcheck.findings.finding import Finding
from mcheck.findings.fix import insertions
from mcheck.findings.repair import make_edits

_PENDING = re.compile(r"\b((?:cp\.async(?:\.bulk)?|wgmma)\.wait_group[\w.]*)\s+(\d+)\s*;")
_BYTES = re.compile(r"mbarrier\.(?:arrive\.)?expect_tx[^;]*,\s*(?P<value>%\w+|\d+)\s*;")
_COUNT = re.compile(r"mbarrier\.init[^;]*,\s*(?P<value>%\w+|\d+)\s*;")
_COPY = re.compile(r"cp\.async\.bulk\.shared\S*mbarrier::complete_tx::bytes[^;]*?\],\s*(?P<value>%\w+|\d+)\s*,\s*\[")
_TEST = re.compile(
    r"(?P<whole>mbarrier\.(?:try|test)_wait\S*\s+(?P<answer>%?[\w$]+)\s*,[^;]*;)(?!\s*@!(?P=answer)\s+bra\b)"
)
_ORDERED = re.compile(r"\b(?:fence|ld|st|atom|red|mbarrier|barrier\.cluster)\.[\w.:]+[^;{}]*;")
_MEETING = re.compile(r"\bbar(?:rier)?\.(?:cta\.)?sync\s+0\s*;")
_LABEL = re.compile(r"^\s*\$?[\w$]+:[ \t]*$", re.MULTILINE)
_RETURN = re.compile(r"^[ \t]*ret\s*;", re.MULTILINE)
_CLUSTER = "barrier.cluster.arrive; barrier.cluster.wait;"
_END_OF_CTA = {"UB501", "UB502", "UB504"}
_START_OF_CTA = {"UB201", "UB503"}


def find_module_candidates(findings: Sequence[Finding], text: str, costs: Costs) -> tuple[Edit, ...]:
    """Edits with different results, by rank and then by cost."""
    module = _Module(text, costs)
    facts = collect_facts(findings)
    proposals = (
        _advised(module, findings), _waits(module), _commits(module, facts), _numbers(module, facts),
        _loops(module, facts), _orders(module, facts), _cluster_barriers(module, facts), _barriers(module, facts),
    )  # fmt: skip
    by_changes: dict[object, Edit] = {}
    for edit in (each for proposed in proposals for each in proposed):
        if not overlaps(edit.changes):
            by_changes.setdefault(edit.changes, edit)
    return tuple(sorted(by_changes.values(), key=lambda each: (each.rank, each.cost)))


@dataclass(frozen=True)
class _Module:
    text: str
    costs: Costs

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.text.split("\n")

    @cached_property
    def starts(self) -> list[int]:
        """The offsets at which the lines begin."""
        return list(accumulate((len(line) + 1 for line in self.lines), initial=0))

    def offset_of(self, line: int) -> int:
        """The offset of a 1-based line."""
        return self.starts[line - 1]

    def line_of(self, at: int) -> int:
        """The 1-based line of an offset."""
        return bisect_right(self.starts, at)

    def at_line(self, line: int) -> str:
        """The text of a line."""
        return self.lines[line - 1]

    def number(self, operand: str) -> int | None:
        """The value of an operand: digits, or a register that one move of a number sets."""
        if operand.isdigit():
            return int(operand)
        found = re.findall(rf"\bmov\.[bu](?:32|64)\s+{re.escape(operand)},\s*(\d+)\s*;", self.text)
        return int(found[0]) if len(set(found)) == 1 else None

    def insertion(self, places: Iterable[int], code: str, kind: str, rank: int) -> Edit:
        """The insertion of statements at offsets."""
        lines = tuple(f"{part.strip()};" for part in code.split(";") if part.strip())
        changes = tuple(Change(at, at, code, lines) for at in places)
        cost = len(changes) * sum(self.costs.of(line) + self.costs.edit.get("insert", 0) for line in lines)
        return Edit(changes, kind, rank, cost)

    def replacement(self, changes: Sequence[Change], kind: str, rank: int, cost: float = 0.0) -> Edit:
        """The replacement of parts of instructions."""
        return Edit(tuple(changes), kind, rank, cost + self.costs.edit.get("replace", 0) * len(changes))


def _advised(module: _Module, findings: Sequence[Finding]) -> Iterator[Edit]:
    """What the fixes of the findings name."""
    for finding in findings:
        edits = make_edits(finding.fixes, module.lines, parts=True)
        codes = [code for step in insertions(finding.fixes) for code in step.codes]
        places = (module.offset_of(each.line) + each.column for each in edits)
        changes = tuple(
            Change(at, at + each.length, each.text, () if each.length else (each.text.strip(),))
            for each, at in zip(edits, places, strict=True)
        )
        cost = sum(module.costs.of(f"{code};") + module.costs.edit.get("insert", 0) for code in codes)
        if changes:
            yield Edit(changes, f"insert {' and '.join(dict.fromkeys(codes))}", 0, cost)


def _waits(module: _Module) -> Iterator[Edit]:
    """Fewer groups that may be pending at a wait: all waits of a kind together."""
    places: dict[tuple[str, int], list[re.Match[str]]] = {}
    for found in _PENDING.finditer(module.text):
        places.setdefault((found[1], int(found[2])), []).append(found)
    for (_, pending), waits in places.items():
        for fewer in dict.fromkeys((pending - 1, 0)) if pending else ():
            yield module.replacement([Change(*each.span(2), str(fewer)) for each in waits], "pending groups", 0)


def _commits(module: _Module, facts: Facts) -> Iterator[Edit]:
    """The end of a group behind each copy at the lines of findings: where its own instruction ends."""
    for family, commit, _ in GROUPS:
        lines = [line for line in sorted(facts.accesses) if family.search(module.at_line(line))]
        ends = [module.text.find(";", module.offset_of(line)) + 1 for line in lines]
        if ends:
            yield module.insertion(ends, f" {commit}", f"insert {commit.rstrip(';')}", 1)


def _numbers(module: _Module, facts: Facts) -> Iterator[Edit]:
    """The bytes that are expected and the arrivals that are counted: as many as findings name or copies complete."""
    if not facts.kinds & {"deadlock", "undefined", "race"}:
        return
    sizes = [size for each in _COPY.finditer(module.text) if (size := module.number(each["value"]))]
    for kind, pattern, known in (("bytes", _BYTES, [sum(sizes), *sizes]), ("count", _COUNT, [])):
        for found in pattern.finditer(module.text):
            old = module.number(found["value"])
            if old is None:
                continue
            named = [value for number in facts.numbers for value in (number, old + number, old - number)]
            near = [2 * old, old // 2] + ([old + 1, old - 1] if kind == "count" else [])
            wanted = [*known, *named, *near]
            unit = 16 if kind == "bytes" else 1
            for place, new in enumerate(dict.fromkeys(n for n in wanted if n > 0 and n != old and n % unit == 0)):
                if kind == "bytes" or new <= 1024:
                    rank = (1 if "deadlock" in facts.kinds else 3) + place
                    yield module.replacement([Change(*found.span("value"), str(new))], kind, rank)


def _loops(module: _Module, facts: Facts) -> Iterator[Edit]:
    """A test of a phase that is repeated until its answer is true."""
    if facts.only_proxies:
        return
    free = next(n for n in range(1000) if f"mcheck_again_{n}" not in module.text)
    for found in _TEST.finditer(module.text):
        label = f"mcheck_again_{free}"
        new = f"{label}: {found['whole']} @!{found['answer']} bra {label};"
        yield module.replacement([Change(*found.span("whole"), new)], "loop around a test", 2)


def _orders(module: _Module, facts: Facts) -> Iterator[Edit]:
    """Stronger orders and wider scopes of what stands at the lines of findings, or is alike."""
    alike: dict[tuple[str, str], list[tuple[re.Match[str], str]]] = {}
    named: set[tuple[str, str]] = set()
    for found in _ORDERED.finditer(module.text):
        opcode = found[0].split(None, 1)[0]
        is_named = module.line_of(found.start()) in facts.lines
        for number, text in enumerate(stronger_forms(_in_order(found[0]))):
            key = (opcode, str(number))
            alike.setdefault(key, []).append((found, text))
            if is_named:
                named.add(key)
    for key, places in alike.items():
        synchronises = re.match(r"mbarrier|fence|barrier|.*\.(?:relaxed|acquire|release|acq_rel)\b", key[0])
        if key in named or (synchronises and not facts.only_proxies):
            changes = [Change(*found.span(), text) for found, text in places]
            dearer = sum(module.costs.of(text) - module.costs.of(found[0]) for found, text in places)
            yield module.replacement(changes, "order, scope or space", 2 if key in named else 4, dearer)


def _in_order(instruction: str) -> str:
    """An atomic with its order before its operation, as PTX has it now: ``atom.add.release`` is an older form."""
    return re.sub(r"^((?:atom|red))\.(\w+)\.(relaxed|acquire|release|acq_rel)\.", r"\1.\3.\2.", instruction)


def _cluster_barriers(module: _Module, facts: Facts) -> Iterator[Edit]:
    """A barrier of the cluster at the end or near the beginning, or in the place of one of the CTA."""
    if not re.search(r"cluster", module.text):
        return
    if facts.codes & _END_OF_CTA:
        ends = [found.start() for found in _RETURN.finditer(module.text)]
        yield module.insertion(ends, f"\t{_CLUSTER}\n", "insert cluster barrier at the end", 1)
    if facts.codes & (_START_OF_CTA | {"RACE001", "RACE003", "RACE010"}):
        for found in _MEETING.finditer(module.text):
            cost = sum(module.costs.of(part.strip()) for part in (f"{_CLUSTER}").split("; "))
            yield module.replacement([Change(*found.span(), _CLUSTER)], "barrier of the cluster", 3, cost)
    if facts.codes & _START_OF_CTA:
        first = min((module.offset_of(line) for line in facts.lines), default=0)
        for place, found in enumerate(_LABEL.finditer(module.text, first)):
            if place < 4:
                yield module.insertion([found.end() + 1], f"\t{_CLUSTER}\n", "insert cluster barrier", 4 + place)


def _barriers(module: _Module, facts: Facts) -> Iterator[Edit]:
    """A barrier of the CTA before an access, or where the branch around one ends."""
    if facts.only_proxies or not facts.kinds & {"race"}:
        return
    places: dict[int, int] = {}
    for line in sorted(facts.accesses):
        at = module.offset_of(line)
        behind = _LABEL.search(module.text, at)
        before = max((found.end() + 1 for found in _LABEL.finditer(module.text, 0, at)), default=None)
        for place, rank in ((behind and behind.end() + 1, 3), (before, 4), (at, 5)):
            if place is not None:
                places.setdefault(place, rank)
    for place, rank in places.items():
        yield module.insertion([place], "\tbar.sync 0;\n", "insert barrier", rank)
