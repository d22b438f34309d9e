"""Words that several threads update by a load and a store, where one atomic was meant: ``*p += x``.

No barrier, and no order of the accesses of two threads, mends such a race where all of them execute the two as one
statement: of two updates at a time one is lost. An atomic is strong, and does not race with others (PTX ISA 8.7.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mcheck.base.errors import Span
from mcheck.base.phrase import Code, Site, Sites, Thing, say
from mcheck.base.records import dataclass, replace
from mcheck.checking.check.unused_loads import executed_by
from mcheck.findings.finding import Finding
from mcheck.findings.fix import Advise, Fix, Meet
from mcheck.frontend.ptx.module import Function, Module, Register, Statement, operand_registers
from mcheck.isa.kinds import Kind
from mcheck.simt.trace_extraction import ClusterTrace

_ADDENDS = {"add": (1, 2), "sub": (1,), "fma": (3,), "mad": (3,)}
"""Instructions that add to one of these operands."""
_SAME_NAME = ("min", "max", "and", "or", "xor")
"""Instructions for which there is an atomic of the name, and whose operands may change places."""
_INTEGERS = ("s32", "u32", "s64", "u64")
_ANY = "cas"
"""The atomic by which a loop computes any update."""


@dataclass(frozen=True, slots=True)
class Update:
    """A load, and a store to its address of what is computed from its value, which ``atomic`` does as well."""

    load: Span
    store: Span
    atomic: str


def advise_atomics(findings: Sequence[Finding], module: Module, way: ClusterTrace, scope: str) -> tuple[Finding, ...]:
    """The findings; of races between updates of one word by several threads of a path, or by several CTAs, with the
    atomic, at this scope, as the fix.
    """
    races = [f for f in findings if f.code == "RACE001" and len(f.accesses) == 2 and _is_general(f)]
    if not races:
        return tuple(findings)
    updates = [u for u in _find_updates(module, scope) if any(_updates_twice(f, u, way) for f in races)]
    return tuple(_with_atomic(f, updates) if f in races else f for f in findings)


def _updates_twice(race: Finding, update: Update, way: ClusterTrace) -> bool:
    """Whether both ends of a race make an update: two of its stores meet, or a thread that stores has loaded before."""
    store = _place(update.store)
    reader = next((a for a in race.accesses if a.access == "read"), None)
    both = {store} if reader is None else {store, _place(update.load)}
    if reader is None or update.store in way.joint_stores:
        return _spans(race) == both
    return _spans(race) == both and store in executed_by(reader.thread, way.program)


def _with_atomic(finding: Finding, updates: Iterable[Update]) -> Finding:
    spans = _spans(finding)
    update = next((u for u in updates if spans <= {_place(u.load), _place(u.store)}), None)
    if update is None:
        return finding
    name = finding.accesses[0].object.partition("@")[0]
    where = Sites(tuple(Site(span.line, span.column) for span in (update.load, update.store)), " and ")
    loop = " in a loop" if update.atomic.endswith(_ANY) else ""
    atomic = say("by an atomic, {}, instead of by the load and the store at {}", Code(update.atomic), where)
    text = say("Update {}{} {}", Thing(name), loop, atomic)
    why = "of two updates at the same time one is lost"
    return replace(finding, fixes=(Fix((Advise(text),), why=(why,)),), gap=())


def _is_general(finding: Finding) -> bool:
    """Whether the fix is the remedy of the catalogue; a barrier at a place is one that mends the race."""
    step = finding.fixes[0].steps[0] if finding.fixes else None
    return isinstance(step, Meet) or (isinstance(step, Advise) and step.general)


def _spans(finding: Finding) -> set[tuple[int, int]]:
    return {_place(access.span) if access.span is not None else (0, 0) for access in finding.accesses}


def _place(span: Span) -> tuple[int, int]:
    return span.line, span.column


# --- in the code ----------------------------------------------------------------------------------------------------


def _find_updates(module: Module, scope: str) -> Iterator[Update]:
    for function in module.functions.values():
        defined: dict[Register, list[Statement]] = {}
        for statement in function.body:
            for register in statement.defs:
                defined.setdefault(register, []).append(statement)
        for store in function.body:
            if store.kind is Kind.STORE and not store.opcode.is_strong:
                yield from _updates_by(store, function, defined, scope)


def _updates_by(
    store: Statement, function: Function, defined: dict[Register, list[Statement]], scope: str
) -> Iterator[Update]:
    """The update that a store ends, from its data back through what only computes to a load of its address."""
    address = store.address
    stored = [r for operand in store.operands if operand is not address for r in operand_registers(operand)]
    if address is None or not any(s.kind is Kind.LOAD and s.address == address for s in function.body):
        return
    ways: list[tuple[Register, str]] = [(register, "") for register in stored]
    seen = set(ways)
    for register, how in ways:
        for made in defined.get(register, ()):
            if made.kind is Kind.LOAD and made.address == address and how:
                space = f".{made.opcode.space}" if made.opcode.space in ("global", "shared") else ""
                yield Update(made.span, store.span, f"atom.relaxed.{scope}{space}.{how}")
                return
            if made.only_computes:
                more = [(r, _after(how, made, r)) for r in made.uses]
                ways += [way for way in dict.fromkeys(more) if way not in seen]
                seen.update(more)


def _after(how: str, made: Statement, register: Register) -> str:
    """The atomic of an update if ``made``, which uses a register, is on the way from the load to the store."""
    name, kind = made.opcode.name, made.opcode.type
    if made.kind is Kind.MOVE or name == "cvt":
        return how.partition(".")[0] if name == "cvt" else how
    if how:
        return _ANY
    positions = [k for k, operand in enumerate(made.operands) if register in operand_registers(operand)]
    if positions and all(k in _ADDENDS.get(name, ()) for k in positions) and len(positions) == 1:
        return f"add.{'noftz.' if 'f16' in kind else ''}{kind}"
    if name in _SAME_NAME and (kind in _INTEGERS or kind.startswith("b")):
        return f"{name}.{kind}"
    return _ANY
