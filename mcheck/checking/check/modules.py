"""Checks one PTX module with its launch or launches: reads both, executes a cluster of each, reports findings by source
line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.cat.ast import Model
from mcheck.checking.check.files import read_launch_beside
from mcheck.checking.check.module_models import model_of_version
from mcheck.checking.check.selection import find_all, set_apart
from mcheck.checking.check.source_places import (
    compiled_code,
    locate_finding,
    locate_reasons,
    name_source_lines,
    source_lines,
)
from mcheck.checking.check.unused_loads import add_value_uses
from mcheck.checking.modules.any_parameter import answer_for_every
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.case import Case, LaunchText, Options, Settings
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import answer_case, stem_of
from mcheck.frontend.ptx import launch_reader, reader
from mcheck.frontend.ptx.launch import Buffer, Extent, Launch, LaunchSequence
from mcheck.frontend.ptx.launch_reader import LaunchDescription
from mcheck.frontend.ptx.launch_sequence_reader import build_launches
from mcheck.frontend.ptx.mangled_names import demangle
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.source_signatures import find_signatures
from mcheck.frontend.ptx.targets import check_target
from mcheck.ir.condition import Condition
from mcheck.ir.program import Expectation

MOST_NUMBERS = 8
"""The maximum number of launches that a text lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleText:
    """A module as text, with its launch as the user describes it."""

    path: str
    name: str
    source: str
    described: LaunchDescription
    model: str | None = None
    model_span: Span | None = None
    condition: Condition = Condition("none")
    expectation: Expectation = Expectation()
    warnings: tuple[tuple[str, Span | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedModule(ModuleText):
    """A module and its launches, by whose kernels it is named; ``several``: the user gave a sequence."""

    module: Module
    launches: tuple[Launch, ...]
    several: bool

    def answer(self, model: Model, question: Question, engine: str) -> Answer:
        """The answer about the launches."""
        if self.several:
            from mcheck.checking.modules.launches.launch_sequence import answer_sequence  # one launch needs none of it

            return answer_sequence(self.module, LaunchSequence(launches=self.launches), model, question, engine)
        return answer_for_every(self.module, self.launches[0], model, question, engine)


@dataclass(frozen=True, slots=True)
class ModuleInquiry:
    """The inquiry about the findings of a module, launched as the options or the file beside it say, or as
    ``described``.
    """

    options: Options = Options()
    described: LaunchDescription | None = None

    @property
    def about(self) -> Completeness:
        """The findings."""
        return Completeness.FINDINGS

    def read(self, case: Case, settings: Settings) -> ModuleText:  # noqa: ARG002 - assumptions are those of the launch
        """The text of the module and the description of its launch."""
        if self.described is None:
            text, described = read_inputs(case, self.options)
        else:
            text, described = case.text or "", self.described
        return ModuleText(path=case.path, name=stem_of(case.path), source=text, described=described)

    def prepare(self, subject: ModuleText, settings: Settings) -> LaunchedModule:
        """The module with the kernels that are launched."""
        module = _with_source_names(reader.parse_module(subject.source, subject.path), subject.source)
        given = build_launches(module, subject.described)
        check_target(module)
        several = isinstance(given, LaunchSequence)
        launches = tuple(
            replace(launch, assume=tuple(dict.fromkeys((*launch.assume, *settings.assume))))
            for launch in (given.launches if isinstance(given, LaunchSequence) else (given,))
        )
        return LaunchedModule(
            path=subject.path, name=", ".join(dict.fromkeys(launch.entry for launch in launches)),
            source=subject.source, described=subject.described, module=module, launches=launches, several=several,
            model=model_of_version(module.ptx),
        )  # fmt: skip

    def ask(self, subject: LaunchedModule, model: Model, settings: Settings, within: Limit) -> Answer:
        """The answer about the kernels, by lines of the source, with the launches among the assumptions."""
        engine = self.options.engine
        code = compiled_code(subject.module, *(launch.entry for launch in subject.launches))
        given = find_all(
            lambda asked: subject.answer(model, asked, engine),
            subject,
            settings,
            self.options,
            within,
            lambda finding: locate_finding(finding, code),
        )
        return replace(
            given,
            findings=tuple(add_value_uses(locate_finding(finding, code), subject.module) for finding in given.findings),
            assumptions=(
                *_notes(subject.described),
                *_launch_assumptions(subject.launches, several=subject.several),
                *(name_source_lines(text, code.places) for text in given.assumptions),
            ),
        )

    def report(self, result: Result, subject: LaunchedModule, given: Answer) -> Result:
        """The result with unwanted findings set apart, its reasons by lines of the source."""
        lines = source_lines(subject.module, *(launch.entry for launch in subject.launches))
        return set_apart(result, replace(given, reasons=locate_reasons(given.reasons, lines)), self.options)


def read_inputs(case: Case, options: Options) -> tuple[str, LaunchDescription]:
    """The text of a module, and its launch as the options or the file beside it say; raises ``InputError``."""
    text = reader.read_text(case.path) if case.text is None else case.text
    return text, combine_launch(options.launch_of(case.path) or read_launch_beside(case.path))


def check_text(text: str, path: str, given: LaunchDescription, settings: Settings, options: Options) -> Result:
    """The result of checking the text of a module, launched as ``given``; raises only ``KeyboardInterrupt``."""
    return answer_case(Case(path, text=text), settings, ModuleInquiry(options, given))


def combine_launch(said: LaunchText | None) -> LaunchDescription:
    """The launch from a launch file and options; options override the file."""
    if said is None:
        return LaunchDescription()
    options = launch_reader.from_words(said.fields, said.params)
    return options if said.text is None else options.override(launch_reader.from_text(said.text, said.path))


# --- what an answer rests on ----------------------------------------------------------------------------------


def _notes(described: LaunchDescription) -> Iterator[str]:
    """What the launch files leave out."""
    for one in (described, *described.launches):
        yield from one.notes


def _with_source_names(module: Module, text: str) -> Module:
    """The module with the declarations of its entries, if their sources are there, and with parameters that nvcc has
    numbered named as in them. Lines stay what they are.
    """
    signatures = find_signatures(module)
    names = {
        entry: [said.name for said in signature.parameters]
        for entry, signature in signatures.items()
        if any(formal.name == f"{entry}_param_{k}" for k, formal in enumerate(module.functions[entry].parameters))
    }
    if names:
        from mcheck.frontend.cuda.compiled import rename_parameters

        named = rename_parameters(text, lambda entry: names.get(entry.name, ()), module)
        module = reader.parse_module(named, module.path)
    return replace(module, signatures=signatures)


def _launch_assumptions(launches: Sequence[Launch], *, several: bool) -> Iterator[str]:
    """The assumptions that state the launches; of several each with its number, or the numbers of those alike."""
    found: dict[str, list[int]] = {}
    for number, launch in enumerate(launches, 1):
        for text in assumptions(launch):
            found.setdefault(text, []).append(number)
    for text, numbers in found.items():
        yield f"{_numbered(numbers)}: {text.removeprefix('the launch: ')}" if several else text


def _numbered(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"launch {numbers[0]}"
    more = f" and {len(numbers) - MOST_NUMBERS} more" if len(numbers) > MOST_NUMBERS else ""
    return f"launches {', '.join(map(str, numbers[:MOST_NUMBERS]))}{more}"


def _in_source(entry: str) -> str:
    """An entry as C++ names it, with the arguments of its template."""
    cpp = demangle(entry)
    return entry if cpp is None else cpp.qualified


def assumptions(launch: Launch) -> tuple[str, ...]:
    """The assumptions that state the launch."""
    found = [
        (
            f"the launch: entry {_in_source(launch.entry)}, "
            f"grid {_extent(launch.grid)}, block {_extent(launch.block)}, "
            f"cluster {_extent(launch.cluster)}, {launch.shared} bytes of dynamic shared memory"
            f"{', programmatic' if launch.programmatic else ''}{f', GPU {launch.gpu}' if launch.gpu else ''}"
        )
    ]
    unknown = [a.name for a in launch.arguments if not a.is_given]
    if unknown:
        found.append(f"not given, treated as unknown: {', '.join(unknown)}")
    buffers = [
        place.name
        for argument in launch.arguments
        for _, place in argument.places
        if isinstance(place, Buffer) and place.size is None
    ]
    if buffers:
        found.append(f"buffers of unknown size are assumed large enough for every access: {', '.join(buffers)}")
    return tuple(found)


def _extent(extent: Extent) -> str:
    return ", ".join(map(str, extent))
