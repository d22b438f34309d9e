"""Sources in CUDA C++ for ``mcheck check``: compiled to modules, each with its launch.

The launch is that of a file beside the source, else what the recorder sees: of the program that the user names, or of
the source's own ``main``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from copy import copy

from mcheck.base.errors import InputError, McheckError, Span
from mcheck.base.reasons import Reasons, error_reason
from mcheck.base.records import dataclass, replace
from mcheck.checking.check.files import is_module, is_source, read_launch_beside
from mcheck.checking.check.source_places import source_lines, source_place
from mcheck.checking.policy.question import Completeness
from mcheck.checking.run.case import LaunchText, Settings
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import failed_result
from mcheck.findings.finding import CompiledLine, Finding
from mcheck.frontend.cuda.compiled import CompiledSource, cache_folder, compile_source, usable_folder
from mcheck.frontend.cuda.nvcc import CompileError, Compiler, find_compiler
from mcheck.frontend.cuda.program import QUIET, ProgramRun, linked_program, run_program
from mcheck.frontend.cuda.recording import Recording, compose_recording
from mcheck.frontend.litmus.source import read_source
from mcheck.frontend.ptx import reader
from mcheck.frontend.ptx.launch_template import launch_template
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.source_signatures import find_signatures, list_entries, shortest_name

_MAIN = re.compile(r"\b(?:int|auto)\s+main\s*\(")
TAIL = 2000
"""The characters of a program's output that a message shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How sources are compiled and launched. ``program`` is the command whose launches count; without ``run``, the
    ``main`` of a source is not run.
    """

    arch: str | None = None
    flags: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    run: bool = True


class LaunchUnknown(InputError):
    """Nothing says how the kernels of a source are launched; ``template`` is a launch file to fill in."""

    template: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFile:
    """A source or module with what is to be checked of it: ``module`` is the path of the PTX. ``compiled``
    says for what and by what, ``notes`` what else was done, ``problem`` why it cannot be checked.
    """

    path: str
    module: str = ""
    launch: LaunchText | None = None
    compiled: str = ""
    notes: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    problem: McheckError | None = None

    def restored(self, result: Result) -> Result:
        """The result about the module as one about the source: with its path, and as the user wrote it."""
        whole, given = os.path.abspath(self.path), self.path
        result = self._with_problem_in_source(result)

        def named(findings: Sequence[Finding]) -> tuple[Finding, ...]:
            return tuple(_renamed(finding, whole, given) for finding in findings)

        return replace(
            result,
            path=self.path,
            findings=named(result.findings),
            known=None if result.known is None else named(result.known),
            suppressed=tuple((_renamed(finding, whole, given), reason) for finding, reason in result.suppressed),
            deselected=named(result.deselected),
            reasons=_renamed_reasons(result.reasons, whole, given),
            assumptions=(*self.assumptions, *result.assumptions) if result.assumptions else (),
        )

    def _with_problem_in_source(self, result: Result) -> Result:
        """The result, what is wrong with it at a line of the source: the compiled module is not the user's."""
        problem = result.problem
        if problem is None or problem.span is None or problem.span.path != self.module or self.module == self.path:
            return result
        try:
            module = _parsed(self.module)
        except McheckError:
            return result  # of a module that cannot be read, its own text tells why
        moved = copy(problem)
        moved.span = source_place(problem.span, source_lines(module, *module.functions))
        return replace(result, problem=moved, reasons=(error_reason(moved),))

    def failed(self, settings: Settings) -> Result:
        """The result of a file that cannot be checked."""
        assert self.problem is not None
        return failed_result(self.path, None, self.problem, settings, 0.0, Completeness.FINDINGS)


def _renamed(finding: Finding, whole: str, given: str) -> Finding:
    """The finding with the source named as the user wrote it."""

    def renamed(lines: Sequence[CompiledLine]) -> tuple[CompiledLine, ...]:
        return tuple(replace(line, source=_renamed_places(line.source, whole, given)) for line in lines)

    return replace(
        finding,
        accesses=tuple(replace(a, source=_renamed_places(a.source, whole, given)) for a in finding.accesses),
        lines=renamed(finding.lines),
        gap=renamed(finding.gap),
    )


def _renamed_reasons(reasons: Reasons, whole: str, given: str) -> Reasons:
    """The reasons with the source named as the user wrote it."""
    return tuple(
        replace(
            reason,
            source=_renamed_places(reason.source, whole, given),
            because=_renamed_reasons(reason.because, whole, given),
        )
        for reason in reasons
    )


def _renamed_places(spans: Sequence[Span], whole: str, given: str) -> tuple[Span, ...]:
    return tuple(replace(span, path=given) if span.path == whole else span for span in spans)


def prepare_files(paths: Sequence[str], options: SourceOptions, *, launched: bool) -> Mapping[str, PreparedFile]:
    """The sources among ``paths``, and modules whose launches a program makes, by their paths; raises ``InputError``
    if there is no compiler, or the program cannot be run.

    ``launched``: the options of the command give the launch.
    """
    sources = [path for path in paths if is_source(path)]
    compiler = find_compiler(sources[0]) if sources else None
    compiled: dict[str, CompiledSource] = {}
    found: dict[str, PreparedFile] = {}
    for path in sources:
        assert compiler is not None
        try:
            compiled[path] = compile_source(path, compiler, options.arch, options.flags)
        except InputError as error:
            found[path] = PreparedFile(path=path, problem=error)
    modules = {path: compiled[path].path for path in compiled}
    if options.program:
        modules |= {path: path for path in paths if is_module(path)}
        run = _run_for(options.program, list(modules.values()), compiled, options)
        return found | {path: _of_program(path, modules[path], run, options, compiled) for path in modules}
    for path, made in compiled.items():
        assert compiler is not None
        found[path] = _of_source(path, made, compiler, options, launched=launched)
    return found


def _run_for(
    command: Sequence[str], modules: Sequence[str], compiled: Mapping[str, CompiledSource], options: SourceOptions
) -> ProgramRun:  # fmt: skip
    target = options.arch or next((made.target for made in compiled.values()), None)
    return run_program(command, usable_folder(cache_folder()), modules, target, shown=False)


def _of_program(
    path: str, module: str, run: ProgramRun, options: SourceOptions, compiled: Mapping[str, CompiledSource]
) -> PreparedFile:
    said = " ".join(options.program)
    made = compiled.get(path)
    base = PreparedFile(path=path, module=module)
    if made is not None:
        base = replace(base, compiled=_compiled_note(made), assumptions=(_compiled_assumption(made),))
    return _recorded(base, run, said)


def _of_source(
    path: str, made: CompiledSource, compiler: Compiler, options: SourceOptions, *, launched: bool
) -> PreparedFile:
    compiled = _compiled_note(made) if options.arch is None else ""
    base = PreparedFile(path=path, module=made.path, compiled=compiled, assumptions=(_compiled_assumption(made),))
    if launched:
        return base
    try:
        beside = read_launch_beside(path)
        if beside is not None:
            return replace(base, launch=beside)
        if not (options.run and _MAIN.search(read_source(path))):
            return replace(base, problem=_launch_unknown(path, _parsed(made.path), ""))
        return _recorded(base, _run_main(made, compiler, options), f"main() of {path}")
    except InputError as error:
        return replace(base, problem=error)


def _run_main(made: CompiledSource, compiler: Compiler, options: SourceOptions) -> ProgramRun:
    cache = usable_folder(cache_folder())
    program = linked_program(made, compiler, options.flags, cache)
    return run_program([str(program)], cache, [made.path], made.target, shown=False, quiet=QUIET)


def _compiled_note(made: CompiledSource) -> str:
    return f"compiled for {made.target} by nvcc {made.release} (--arch for another target)"


def _compiled_assumption(made: CompiledSource) -> str:
    return f"{made.source} as nvcc {made.release} compiles it for {made.target}"


def _parsed(path: str) -> Module:
    module = reader.read_module(path)
    return replace(module, signatures=find_signatures(module))


# --- recorded launches ------------------------------------------------------------------------------------------


def _recorded(base: PreparedFile, run: ProgramRun, who: str) -> PreparedFile:
    """The file with the launches that a run made of its kernels."""
    try:
        module = _parsed(base.module)
    except InputError as error:
        return replace(base, problem=error)
    recording = compose_recording(run.lines, module.parameter_names, dict(module.all_variables))
    if recording is None:
        return replace(base, problem=_launch_unknown(base.path, module, _why_nothing(run, who, module)))
    notes = [f"{base.path}: {recorded_text(recording)} of {who}", *(f"{base.path}: {note}" for note in recording.notes)]
    if run.ending:
        notes.append(f"{who}: {run.ending}; what it had launched by then is checked")
    launch = LaunchText(text=recording.text, path=f"{os.path.splitext(base.path)[0]}.launch.json, as recorded")
    said = (f"the launches that {who} made, recorded without a GPU",)
    return replace(base, launch=launch, notes=(*base.notes, *notes), assumptions=(*base.assumptions, *said))


def recorded_text(recording: Recording) -> str:
    """How many launches were recorded, in words."""
    kept = len(recording.document.get("launches", (None,)))
    again = recording.launches - kept
    more = f" ({again} more of the same)" if again else ""
    return f"{kept} launch{'' if kept == 1 else 'es'}{more}"


def recorded_entries(recording: Recording) -> tuple[str, ...]:
    """The entries that were launched, by their names in the module."""
    one = recording.document
    return tuple(launch["entry"] for launch in one.get("launches", (one,)))


def _why_nothing(run: ProgramRun, who: str, module: Module) -> str:
    others = sorted({shortest_name(line["entry"], module.entries) for line in run.lines})
    made = f"only {', '.join(others)}" if others else "nothing"
    ending = f"; {run.ending}" if run.ending else ""
    said = " ".join(run.said.split())
    shown = f"; it wrote: {said[-TAIL:]}" if said else ""
    return f"without a GPU {who} launched {made}{ending}{shown}"


def _launch_unknown(path: str, module: Module, why: str) -> InputError:
    if not module.entries:
        return InputError(
            f"{path} has no kernel", hint="mcheck cuda -- ./program checks the kernels of all sources of a program"
        )
    names = ", ".join(list_entries(module.entries))
    stem = os.path.splitext(os.path.basename(path))[0]
    problem = LaunchUnknown(
        f"nothing says how the kernels of {path} are launched ({names})",
        expected=f"{stem}.launch.json beside it, --grid, --block and --param, or a program that launches them: "
        f"mcheck check {path} -- ./program",
        hint=why or None,
    )
    problem.template = launch_template(module)
    return problem


__all__ = ["CompileError", "LaunchUnknown", "PreparedFile", "SourceOptions", "prepare_files", "recorded_text"]
