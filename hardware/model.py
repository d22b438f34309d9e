"""What the concrete engine says about a case, in the form in which the chip's answers are kept."""

from __future__ import annotations

from typing import Any

from hardware.cases import Case
from hardware.data import make
from mcheck.base.errors import McheckError
from mcheck.engines.concrete.machine import Machine, machine
from mcheck.engines.concrete.schedule import run
from mcheck.frontend import litmus
from mcheck.ir.program import Program
from mcheck.semantics.chip_behaviour import SM_90


def program_of(case: Case) -> Program:
    """The case's program."""
    return litmus.parse(case.text, f"{case.name}.litmus")


def inputs(case: Case, program: Program) -> dict[str, bytes]:
    """The initial contents of the objects that the case names."""
    out = {}
    for name, (kind, key) in case.data.items():
        instance = program.memory.instance_of(name)
        assert instance is not None
        out[name] = make(kind, key, instance.object.size)
    return out


def prepared(case: Case) -> Machine:
    """A machine with the case's data in memory."""
    program = program_of(case)
    m = machine(program, how=SM_90)
    for name, data in inputs(case, program).items():
        instance = program.memory.instance_of(name)
        assert instance is not None
        m.memory.load_object(instance, data)
    return m


def answer(case: Case) -> dict[str, Any]:
    """``status`` is ``ok``, ``undefined CODE``, ``stuck`` or ``unsupported``; the bytes of every object, and
    predicates.

    Objects that hold mbarriers or tensor maps are left out, since their contents are opaque.
    """
    m = prepared(case)
    try:
        run(m)
    except McheckError as error:
        return {"status": "unsupported", "message": error.message}
    status = "ok"
    for finding in m.findings:
        if finding.kind == "undefined" and finding.severity == "error":
            status = f"undefined {finding.code}"
        elif finding.kind == "deadlock":
            status = "stuck"
    memory, known = {}, {}
    for instance in m.program.memory.instances:
        if instance.object.elem in ("b64", "tensormap"):
            continue
        memory[instance.label], known[instance.label] = m.memory.read(instance.base, instance.object.size)
    predicates = {
        f"{r.thread.name}:{name}": r.registers[name]
        for r in m.runners
        for name, kind in r.thread.types.items()
        if kind == "pred"
    }
    return {"status": status, "memory": memory, "known": known, "registers": predicates}
