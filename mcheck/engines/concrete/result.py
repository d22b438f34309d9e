"""The result of one execution: registers, memory, mbarriers, findings, and whether the condition holds."""

from __future__ import annotations

from collections import Counter

from mcheck.base.records import dataclass
from mcheck.engines.concrete.execute import typed
from mcheck.engines.concrete.machine import Machine, Value
from mcheck.engines.concrete.schedule import run
from mcheck.findings.finding import Finding
from mcheck.ir.condition import And, Compare, ConstTerm, Formula, MemTerm, Not, Or, RegTerm, Term, Truth
from mcheck.ir.expr import apply_binary
from mcheck.ir.memory import Instance
from mcheck.ir.program import Program
from mcheck.semantics import mbarrier
from mcheck.semantics.memory import changed_ranges


@dataclass(frozen=True, slots=True)
class Object:
    """The final contents of an object.

    ``known`` has a 0 for every unknown byte (``None``: all known); ``changed``: the ranges that differ from the start.
    ``opaque`` objects are tensor maps.
    """

    label: str
    elem: str
    elem_size: int
    data: bytes
    known: bytes | None
    changed: tuple[tuple[int, int], ...]
    opaque: bool = False

    @property
    def hex(self) -> str:
        """All bytes, two digits each, ``??`` for unknown ones."""
        if self.opaque:
            return "??" * len(self.data)
        if self.known is None:
            return self.data.hex()
        return "".join(f"{b:02x}" if k else "??" for b, k in zip(self.data, self.known, strict=True))


@dataclass(frozen=True, slots=True)
class Execution:
    """A finished execution. ``registers`` are named ``thread:register``, ``barriers`` by object and offset."""

    path: str
    seed: int
    registers: dict[str, Value]
    objects: tuple[Object, ...]
    barriers: dict[str, mbarrier.State]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    open_points: tuple[str, ...]
    steps: int
    ended: bool
    condition: str = ""
    holds: bool | None = None
    source: str = ""


def labels(program: Program) -> dict[int, str]:
    """The names of objects by base address: ``buf@0`` with the rank in the cluster, or with the CTA if that is
    ambiguous.
    """
    counts = Counter(instance.label for instance in program.memory.instances)
    out = {}
    for instance in program.memory.instances:
        label = instance.label
        if counts[label] > 1 and instance.cta is not None:
            cta = instance.cta
            label = f"{instance.object.name}@{cta.cluster}.{cta.rank}" if program.clustered else _by_cta(instance)
        out[instance.base] = label
    return out


def _by_cta(instance: Instance) -> str:
    assert instance.cta is not None
    return f"{instance.object.name}@{instance.cta.number}"


def snapshot(machine: Machine) -> dict[int, tuple[bytes, bytes | None]]:
    """The contents of every object by base address; taken before and after the run."""
    return {
        instance.base: machine.memory.read(instance.base, instance.object.size)
        for instance in machine.program.memory.instances
    }


def execute(machine: Machine, seed: int) -> Execution:
    """Runs a machine to its end and returns the result."""
    before = snapshot(machine)
    run(machine)
    return collect(machine, before, seed)


def collect(machine: Machine, before: dict[int, tuple[bytes, bytes | None]], seed: int) -> Execution:
    """The result of a machine that has run; ``before`` is its ``snapshot`` from the start."""
    program = machine.program
    names = labels(program)
    objects = []
    for instance in program.memory.instances:
        data, known = machine.memory.read(instance.base, instance.object.size)
        opaque = bool(instance.object.tensor_map) or instance.object.elem == "tensormap"
        old, old_known = before[instance.base]
        if old_known is not None:
            # A byte that was unknown and is known now has changed, whatever it holds.
            old = bytes(a if k else a ^ 0xFF for a, k in zip(data, old_known, strict=True))
            if known is not None:
                old = bytes(b if k else a for a, b, k in zip(data, old, known, strict=True))
        size = instance.object.elem_size or 1
        objects.append(
            Object(
                names[instance.base], instance.object.elem, size, data, known, tuple(changed_ranges(old, data)), opaque
            )
        )
    registers = {f"{r.thread.name}:{name}": value for r in machine.runners for name, value in r.registers.items()}
    barriers = {}
    for address, state in sorted(machine.barriers.items()):
        place = machine.memory.find(address)
        assert place is not None
        offset = address - place.base
        barriers[names[place.base] + (f"+{offset}" if offset else "")] = state
    condition = program.condition
    holds = None if condition.kind == "none" else _holds(machine, condition.formula)
    return Execution(
        path=program.path,
        seed=seed,
        registers=registers,
        objects=tuple(objects),
        barriers=barriers,
        findings=tuple(machine.findings),
        notes=tuple(sorted(machine.notes)),
        open_points=tuple(sorted(machine.open_points)),
        steps=machine.steps,
        ended=all(r.ended for r in machine.runners),
        condition=condition.text,
        holds=holds,
        source=program.source,
    )


# --- the final condition in this one state --------------------------------------------------------------


def _term(machine: Machine, term: Term) -> Value:
    match term:
        case RegTerm():
            return machine.runners[term.thread].registers.get(term.reg, 0 if machine.program.dialect else None)
        case MemTerm():
            return typed(term.type, machine.memory.load(term.address, term.size))
        case ConstTerm():
            return term.value


def _holds(machine: Machine, formula: Formula) -> bool | None:
    """Whether the formula holds in the final state; ``None`` if that depends on unknown contents."""
    match formula:
        case Truth():
            return formula.value
        case Not():
            inner = _holds(machine, formula.part)
            return None if inner is None else not inner
        case Compare():
            a, b = _term(machine, formula.left), _term(machine, formula.right)
            return None if a is None or b is None else bool(apply_binary(formula.op, a, b))
        case And() | Or():
            parts = [_holds(machine, part) for part in formula.parts]
            decisive = isinstance(formula, Or)
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
