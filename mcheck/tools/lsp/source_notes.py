"""Notes about a source in CUDA C++ or Python, from the modules that were compiled from it.

A ``.cu`` file with a launch file beside it is compiled; its ``main`` is not run. Otherwise, and for Python, the modules
beside it, or in a folder beside it, that have a launch and name the source are checked. Places are those in the source.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from mcheck.base.errors import McheckError, Span
from mcheck.base.records import replace
from mcheck.base.source_files import SourceText
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.check.cuda_sources import SourceOptions, prepare_files
from mcheck.checking.check.files import MODULE_SUFFIX, is_source, launch_file
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.result import Result
from mcheck.findings.repair import Edit, apply_edits, make_edits
from mcheck.report.bugs import collect_bugs, has_fewer_bugs
from mcheck.report.finding import Bug, tell
from mcheck.report.source_edits import find_source_edits
from mcheck.tools.lsp.note import Note, note_severity

MOST_MODULES = 40
"""The maximum number of modules that are checked for a source."""
MOST_TRIED = 3
"""The maximum number of bugs whose fixes are tried."""
CheckEdited = Callable[[Bug, Sequence[Edit]], Result]
"""Checks what a bug was found in, with these edits of the source."""
_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"]+)"', re.MULTILINE)


def compute_source_notes(text: str, path: str, settings: Settings, *, tries: bool) -> Iterator[Note]:
    """The notes about a source as it is on the disk. ``tries``: with edits that a check confirms, which takes some
    time: of the edited source if it is compiled here, else of the module with the instructions that they stand for.
    """
    if is_source(path) and launch_file(path) is not None:
        result = check_source(path, settings)
        check = partial(_check_edited, text, path, settings)
        yield from _of_result(result, path, check if tries else None)
        return
    modules = modules_of(path)
    if not modules and is_source(path):
        said = f"not checked: no launch file beside {os.path.basename(path)}"
        yield Note(span=Span(path, 1, 1), severity="hint", message=said, code="launch")
    told: set[object] = set()
    for module in modules:
        check = partial(_check_module, module, settings)
        for note in _of_result(check_case(Case(module), settings, Options()), path, check if tries else None):
            key = note.code, note.span, note.message
            if key not in told:
                told.add(key)
                yield note


def modules_of(path: str) -> list[str]:
    """The modules beside a source that have a launch and were compiled from it."""
    folder, name = Path(path).parent, os.path.basename(path)
    found = sorted((*folder.glob(f"*{MODULE_SUFFIX}"), *folder.glob(f"*/*{MODULE_SUFFIX}")))[: 10 * MOST_MODULES]
    return [str(one) for one in found if launch_file(str(one)) is not None and _names(one, name)][:MOST_MODULES]


def _names(module: Path, source: str) -> bool:
    try:
        text = module.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(os.path.basename(file) == source for file in _FILE.findall(text))


def check_source(path: str, settings: Settings, include: str = "") -> Result:
    """The result of checking a CUDA C++ source with the launch beside it."""
    flags = ("-I", include) if include else ()
    file = prepare_files([path], SourceOptions(flags=flags, run=False), launched=False)[path]
    if file.problem is not None:
        return file.failed(settings)
    launches = () if file.launch is None else ((file.module, file.launch),)
    return file.restored(check_case(Case(file.module), settings, Options(launches=launches)))


def _of_result(result: Result, path: str, check: CheckEdited | None) -> Iterator[Note]:
    if result.verdict is Verdict.ERROR:
        assert result.problem is not None
        yield _of_problem(result.problem, path)
        return
    texts = SourceText(result.source, result.program)
    tried = 0
    for bug in collect_bugs(result.findings, texts):
        note = _of_bug(bug, texts, path)
        if check is not None and note.severity == "error" and tried < MOST_TRIED:
            edits = _edits_here(bug, texts, path)
            if edits:
                tried += 1
                helps = has_fewer_bugs(result, check(bug, edits))
                note = replace(note, edits=edits if helps else ())
        yield note
    if result.verdict.is_open and result.reason:
        said = f"{os.path.basename(result.path)}: {result.verdict}: {result.reason}"
        yield Note(span=Span(path, 1, 1), severity="information", message=said, code=result.verdict)


def _of_problem(error: McheckError, path: str) -> Note:
    span = error.span if error.span is not None and _is_same(error.span.path, path) else None
    message = error.message if span is not None or error.span is None else f"{error.span.path}: {error.message}"
    place = Span(path, 1, 1) if span is None else replace(span, path=path)
    return Note(span=place, severity="error", message=message, code=error.code or "")


def _of_bug(bug: Bug, texts: SourceText, path: str) -> Note:
    told, finding = tell(bug, texts), bug.finding
    marks = sorted(told.marks, key=lambda mark: (not _is_same(texts.name(mark.span.path), path), not mark.primary))
    places = [(_named(mark.span, texts, path), mark.label) for mark in marks]
    here = bool(places) and places[0][0].path == path
    lines = [told.sentence, *(f"{word}: {said}" for word, said in told.notes)]
    return Note(
        span=places[0][0] if here else Span(path, 1, 1),
        severity=note_severity(finding.severity),
        message="\n".join(lines),
        code=finding.code,
        related=tuple(places[1:] if here else places),
        remedy=finding.missing,
    )


def _named(span: Span, texts: SourceText, path: str) -> Span:
    """The place with the path of the document, if it is there, and as wide as the rest of its line."""
    name = texts.name(span.path)
    line = texts.line(span)
    length = span.length if line is None else max(len(line.rstrip()) - span.column + 1, 1)
    return Span(path if _is_same(name, path) else os.path.abspath(name), span.line, span.column, length)


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _edits_here(bug: Bug, texts: SourceText, path: str) -> tuple[Edit, ...]:
    found = find_source_edits(bug.finding, texts)
    if not all(_is_same(texts.name(edit.path), path) for edit in found):
        return ()
    return tuple(Edit(edit.line, edit.column, edit.text, len(edit.replaces)) for edit in found)


def _check_edited(text: str, path: str, settings: Settings, _: Bug, edits: Sequence[Edit]) -> Result:
    """The result for the source with these edits, in a folder of its own."""
    folder = tempfile.mkdtemp(prefix="mcheck-lsp-")
    try:
        copy = os.path.join(folder, os.path.basename(path))
        Path(copy).write_text("\n".join(apply_edits(text.split("\n"), tuple(edits))), encoding="utf-8")
        launch = launch_file(path)
        assert launch is not None
        shutil.copy(launch, os.path.join(folder, os.path.basename(launch)))
        return check_source(copy, settings, os.path.dirname(os.path.abspath(path)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_module(path: str, settings: Settings, bug: Bug, _: Sequence[Edit]) -> Result:
    """The result for the module with the instructions that a fix inserts."""
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    text = "\n".join(apply_edits(lines, make_edits(bug.finding.fixes, lines)))
    return check_case(Case(path, text=text), settings, Options())
