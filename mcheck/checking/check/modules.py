"""Checks one PTX module with its launch or launches: reads both, executes a cluster of each, reports findings by source
line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.errors import Span
from mcheck.base.reasons import with_total_time
from mcheck.checking.check.case import Checked, LaunchText, Options, Settings, Subject
from mcheck.checking.check.files import read_launch_beside
from mcheck.checking.check.selection import find_all
from mcheck.checking.check.single import conclude, failed_result
from mcheck.checking.modules.any_parameter import answer_for_every
from mcheck.checking.modules.launch_sequence import answer_sequence
from mcheck.checking.policy.question import Question
from mcheck.checking.run.case import DEFAULT_MODEL, Case
from mcheck.checking.run.single import load_model
from mcheck.findings.finding import Access, Finding
from mcheck.frontend.ptx import launch_reader, reader
from mcheck.frontend.ptx.launch import Buffer, Extent, Launch, LaunchSequence
from mcheck.frontend.ptx.launch_reader import LaunchDescription
from mcheck.frontend.ptx.launch_sequence_reader import build_launches
from mcheck.frontend.ptx.module import Module, SourceLine
from mcheck.frontend.ptx.targets import check_target


def check_file(case: Case, settings: Settings, options: Options) -> Checked:
    """Checks a module in a file, launched as the options or the file beside it say.

    Raises only ``KeyboardInterrupt``.
    """
    started = perf_counter()
    try:
        text, given = read_inputs(case, options)
    except Exception as error:  # noqa: BLE001 - likewise
        return failed_result(case.path, None, error, settings, perf_counter() - started)
    return check_text(text, case.path, given, settings, options, started)


def read_inputs(case: Case, options: Options) -> tuple[str, LaunchDescription]:
    """The text of a module, and its launch as the options or the file beside it say; raises ``InputError``."""
    text = reader.read_text(case.path) if case.text is None else case.text
    return text, combine_launch(options.launch or read_launch_beside(case.path))


def check_text(
    text: str, path: str, given: LaunchDescription, settings: Settings, options: Options, started: float | None = None
) -> Checked:
    """Checks the text of a module; raises only ``KeyboardInterrupt``."""
    started = perf_counter() if started is None else started
    within = Limit(settings.timeout)
    subject = Subject(path=path, name=path.rpartition("/")[2].rpartition(".")[0] or path, source=text)
    try:
        module = reader.parse_module(text, path)
        given_launches = build_launches(module, given)
        check_target(module)
        several = isinstance(given_launches, LaunchSequence)
        launches = given_launches.launches if isinstance(given_launches, LaunchSequence) else (given_launches,)
        launches = tuple(
            replace(launch, assume=tuple(dict.fromkeys((*launch.assume, *settings.assume)))) for launch in launches
        )
        subject = replace(subject, name=", ".join(dict.fromkeys(launch.entry for launch in launches)))
        model = load_model(settings.model or DEFAULT_MODEL)

        def answer(asked: Question) -> Answer:
            if several:
                return answer_sequence(module, LaunchSequence(launches=launches), model, asked, options.engine)
            return answer_for_every(module, launches[0], model, asked, options.engine)

        found = find_all(answer, subject, settings, options, within)
    except Exception as error:  # noqa: BLE001 - a crash in one file must not take the others with it
        return failed_result(path, subject, error, settings, perf_counter() - started)
    lines = source_lines(module, *(launch.entry for launch in launches))
    found = replace(
        found,
        findings=tuple(_with_source(finding, lines) for finding in found.findings),
        reasons=with_total_time(found.reasons, settings.timeout),
        assumptions=(*_launch_assumptions(launches, several=several), *found.assumptions),
    )
    checked = conclude(path, subject, found, options, perf_counter() - started)
    return replace(checked, digest=model.digest)


def combine_launch(said: LaunchText | None) -> LaunchDescription:
    """The launch from a launch file and options; options override the file."""
    if said is None:
        return LaunchDescription()
    options = launch_reader.from_words(said.fields, said.params)
    return options if said.text is None else options.override(launch_reader.from_json(said.text, said.path))


# --- what an answer rests on ----------------------------------------------------------------------------------


def _launch_assumptions(launches: Sequence[Launch], *, several: bool) -> Iterator[str]:
    """The assumptions that state the launches; of several each with its number."""
    for number, launch in enumerate(launches, 1):
        said = assumptions(launch)
        yield from (f"launch {number}: {text.removeprefix('the launch: ')}" for text in said) if several else said


def assumptions(launch: Launch) -> tuple[str, ...]:
    """The assumptions that state the launch."""
    found = [
        (
            f"the launch: entry {launch.entry}, grid {_extent(launch.grid)}, block {_extent(launch.block)}, "
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


# --- the source -----------------------------------------------------------------------------------------------

Place = tuple[int, int]
"""Line and column of a statement in the module."""


def source_lines(module: Module, *entries: str) -> Mapping[Place, SourceLine]:
    """The source locations that the statements of these entries and of functions were compiled from."""
    functions = [f for f in module.functions.values() if f.name in entries or not f.entry]
    return {(s.span.line, s.span.column): s.source for f in functions for s in f.body if s.source is not None}


def _with_source(finding: Finding, lines: Mapping[Place, SourceLine]) -> Finding:
    if not lines:
        return finding
    return replace(finding, accesses=tuple(_sourced(access, lines) for access in finding.accesses))


def _sourced(access: Access, lines: Mapping[Place, SourceLine]) -> Access:
    line = None if access.span is None else lines.get((access.span.line, access.span.column))
    places: list[Span] = []
    while line is not None:
        places.append(Span(line.path, line.line, max(line.column, 1)))
        line = line.inlined_at
    return replace(access, source=tuple(places))
