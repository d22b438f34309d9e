"""Diagnostics of a text: notes with a place, a severity and a fix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcheck.base.errors import InternalError, McheckError, Span, Unsupported
from mcheck.base.records import replace
from mcheck.base.source_files import SourceText
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.check.files import explain_skipped_modules, is_module, is_source, launch_file
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import load_program
from mcheck.findings.repair import make_edits
from mcheck.ir.program import describe_kinds
from mcheck.report.bugs import collect_bugs
from mcheck.report.finding import Bug, tell
from mcheck.report.sentences import label
from mcheck.tools.lsp.corrections import find_correction
from mcheck.tools.lsp.note import Note, note_severity

MOST_TRIALS = 150
"""Changed programs that are checked for a repair while someone types."""
RELATED = 12
"""The maximum number of related places of a finding; a deadlock may have hundreds."""


def compute_notes(text: str, path: str, settings: Settings, *, tries: bool = False) -> tuple[Note, ...]:
    """The notes about a model, a source, a PTX module with its launch, or a litmus test, by the suffix of the path.

    ``tries``: also with edits that take further checks to confirm: of a source, and of a sketch the cheapest
    repair.
    """
    if is_compiled(path):
        from mcheck.tools.lsp.source_notes import compute_source_notes

        try:
            return tuple(compute_source_notes(text, path, settings, tries=tries))
        except McheckError as error:
            return tuple(_problems(error, path, text))
    if path.endswith(".cat"):
        return tuple(_of_model(text, path))
    if is_module(path):
        return tuple(_of_module(text, path, settings))
    return tuple(_of_mended_test(text, path, settings) if tries else _of_test(text, path, settings))


def may_be_mended(path: str, notes: Iterable[Note]) -> bool:
    """Whether further checks may find an edit for one of the notes about a file."""
    errors = [note for note in notes if note.severity == "error"]
    if is_compiled(path):
        return any(note.remedy for note in errors)
    return path.endswith(".litmus") and any(_lacks_edits(note) for note in errors)


def _lacks_edits(note: Note) -> bool:
    return bool(note.remedy) and not note.edits


def _of_mended_test(text: str, path: str, settings: Settings) -> Iterator[Note]:
    """The notes, those of findings without an edit with the cheapest repair of the sketch, if one is known in time."""
    from mcheck.checking.fences.examination import Limits, examine_text
    from mcheck.report.source_edits import repair_edits

    limits = Limits(timeout=settings.timeout, processor_time=settings.processor_time, trials=MOST_TRIALS)
    examined = examine_text(path, text, None, limits, settings=settings)
    repairs = examined.repairs
    plain = [repair for repair in repairs.found if repair.is_plain] if repairs is not None else []
    edits = repair_edits(text, plain[0].text) if plain else ()
    for note in _of_test(text, path, settings, examined.result):
        lacks = note.severity == "error" and _lacks_edits(note)
        yield replace(note, edits=edits) if lacks and edits else note


def is_compiled(path: str) -> bool:
    """Whether a file is compiled before it is checked, so that the file on the disk counts."""
    return is_source(path) or path.endswith(".py")


def _of_model(text: str, path: str) -> Iterator[Note]:
    from mcheck.cat.library import parse_model

    try:
        parse_model(text, path)
    except McheckError as error:
        yield from _problems(error, path, text)


def _of_module(text: str, path: str, settings: Settings) -> Iterator[Note]:
    from mcheck.frontend.ptx import reader

    if launch_file(path) is not None:
        yield from _of_checked(check_case(Case(path, text=text), settings, Options()), text, path)
        return
    try:
        reader.parse_module(text, path)
    except McheckError as error:
        yield from _problems(error, path, text)
        return
    yield Note(
        span=Span(path, 1, 1), severity="hint", message=f"not checked: {explain_skipped_modules([path])}", code="launch"
    )


def _of_test(text: str, path: str, settings: Settings, checked: Result | None = None) -> Iterator[Note]:
    """The notes about a test; ``checked``: the result of its check, if it is known."""
    case = Case(path, text=text)
    checked = checked or check_case(case, settings, Options())
    yield from _of_checked(checked, text, path)
    if checked.verdict is not Verdict.ERROR:
        yield from _of_verdict(case, settings)


def _of_checked(checked: Result, text: str, path: str) -> Iterator[Note]:
    for message, span in checked.warnings:
        yield Note(span=span or Span(path, 1, 1), severity="warning", message=message)
    if checked.problem is not None:
        yield from _problems(checked.problem, path, text)
    else:
        yield from _of_findings(checked, text, path)


def _problems(error: McheckError, path: str, text: str) -> Iterator[Note]:
    """The notes about the errors of a text, with corrections of misspelt words."""
    lines = text.split("\n")
    for one in error.all_errors:
        note = _problem(one, path)
        correction = find_correction(one, lines) if one.span is not None and one.span.path == path else None
        yield note if correction is None else replace(note, edits=(correction,))


def _problem(error: McheckError, path: str) -> Note:
    """The note about an error; an error in an included file is placed at the start of this one."""
    lines = [error.message]
    if isinstance(error, InternalError):
        lines[0] = f"internal error: {error.message}; please report it with this file"
    if error.expected:
        lines.append(f"expected: {error.expected}")
    if error.hint:
        lines.append(f"hint: {error.hint}")
    severity = "warning" if isinstance(error, Unsupported) else "error"
    span, related = error.span or Span(path, 1, 1), ()
    if span.path != path:
        note = Note(span=Span(path, 1, 1), severity=severity, message="\n".join(lines), code=error.code or "")
        return replace(note, related=((span, error.message),))
    return Note(span=span, severity=severity, message="\n".join(lines), code=error.code or "", related=related)


def _of_findings(checked: Result, text: str, path: str) -> Iterator[Note]:
    lines = text.split("\n")
    table = not is_module(path) and load_program(path, text=text, every=True).dialect
    texts = SourceText(text, path)
    for bug in collect_bugs(checked.findings, texts):
        yield _of_bug(bug, texts, lines, path, expected=checked.status == "ok", table=table)
    if checked.status == "finding" and checked.expected_kinds and not checked.findings:
        wanted = describe_kinds(checked.expected_kinds)
        place = checked.expectation_span or Span(path, 1, 1)
        yield Note(span=place, severity="error", message=f"expected {wanted}, found nothing", code="mismatch")
    if checked.verdict.is_open and checked.reason:
        yield Note(span=Span(path, 1, 1), severity="information", message=checked.reason, code=checked.verdict)


def _of_bug(bug: Bug, texts: SourceText, lines: list[str], path: str, *, expected: bool, table: bool) -> Note:
    finding, told = bug.finding, tell(bug, texts)
    places = [(a.span, label(finding, k)) for k, a in enumerate(finding.accesses) if a.span is not None]
    places.sort(key=lambda place: place[0].path != path)  # stable: the first one in this file leads
    severity = note_severity(finding.severity)
    if expected and severity == "error":
        severity = "information"
    kind = f"{finding.kind}: "
    parts = [kind + told.sentence.removeprefix(kind), *(f"{word}: {said}" for word, said in told.notes)]
    return Note(
        span=places[0][0] if places and places[0][0].path == path else Span(path, 1, 1),
        severity=severity,
        message="\n".join(parts),
        code=finding.code,
        related=tuple(places[1 : 1 + RELATED]),
        edits=make_edits(finding.fixes, lines, table=table),
        remedy=finding.missing,
    )


def _of_verdict(case: Case, settings: Settings) -> Iterator[Note]:
    """The note about an unexpected verdict."""
    try:
        program = load_program(case.path, text=case.text, every=True)
    except McheckError:
        return
    wanted = program.expectation.verdict
    if wanted is None or program.parameter is not None:
        return
    result: Result = run_case(case, replace(settings, verdict_only=True))
    if result.verdict.is_of_condition and result.verdict != wanted:
        message = f"expected {wanted}, found {result.verdict}: {result.condition} under {result.model}"
        if result.reason:
            message += f"\n{result.reason}"
        place = result.expectation_span or Span(case.path, 1, 1)
        yield Note(span=place, severity="error", message=message, code="mismatch")
