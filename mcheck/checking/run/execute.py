"""``mcheck exec``: runs one execution of a file, with objects loaded from and dumped to files."""

from __future__ import annotations

from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import Exceeded, Span
from mcheck.base.reasons import format_reasons, timeout_reason
from mcheck.base.records import dataclass
from mcheck.checking.run.single import load_program
from mcheck.engines.concrete import array_files
from mcheck.engines.concrete.machine import machine
from mcheck.engines.concrete.result import Execution
from mcheck.engines.concrete.result import execute as run
from mcheck.semantics.chip_behaviour import behaviour as behaviour_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecRequest:
    """The options of an execution. ``loads`` and ``dumps`` are (object name, file) pairs."""

    loads: tuple[tuple[str, str], ...] = ()
    dumps: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    profile: str = "ptx"
    behaviour: str = "documents"


@dataclass(frozen=True, slots=True)
class ExecResult:
    """An execution, the program's warnings, and the contents of the files to write."""

    execution: Execution
    warnings: tuple[tuple[str, Span | None], ...]
    dumps: tuple[tuple[str, bytes], ...]


def execute(path: str, wanted: ExecRequest, timeout: float | None = None) -> ExecResult:
    """Runs the program in the file at ``path``; ``Exceeded`` if that takes longer than ``timeout`` seconds."""
    limit = Limit(timeout)
    program = load_program(path)
    how = behaviour_of(wanted.behaviour)
    m = machine(program, seed=wanted.seed, profile=wanted.profile, how=how, deadline=limit.check)
    for name, file in wanted.loads:
        array_files.load(program, m.memory, name, file)
    for name, _ in wanted.dumps:
        array_files.instances(program, name)
    try:
        execution = run(m, wanted.seed)
    except TimeOut:
        raise Exceeded(format_reasons((timeout_reason(timeout),)) or "") from None
    dumps = tuple((file, array_files.dump(program, execution, name, file)) for name, file in wanted.dumps)
    return ExecResult(execution, program.warnings, dumps)
