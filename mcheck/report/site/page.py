"""Computing the page of one test; the templates only lay it out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mcheck.answers.result import State
from mcheck.base import reasons, verdicts
from mcheck.base.errors import InputError, InternalError, McheckError
from mcheck.base.files import read_file
from mcheck.base.reasons import Reason
from mcheck.base.records import replace
from mcheck.checking.check.files import is_module
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.case import DEFAULT_MODEL, Case, Options, Settings
from mcheck.checking.run.result import Result, kinds_hold
from mcheck.events.execution_graph import Execution
from mcheck.ir.condition import Notation
from mcheck.ir.program import describe_kinds
from mcheck.report.site.content import Page, Picture, Row, Verdict, verdict_from_checked
from mcheck.report.site.hardware_counts import find_hardware_counts
from mcheck.report.site.listing import make_listing
from mcheck.report.site.modules import module_page
from mcheck.report.site.problems import BROKEN, UNANSWERED, UNREAD, error_page, name_of_file, page_without_answer
from mcheck.report.site.schedules import describe_finding, draw_findings
from mcheck.report.site.topics import find_topics
from mcheck.report.text import format_state, format_term, format_term_value
from mcheck.report.trace import format_trace

if TYPE_CHECKING:
    from mcheck.answers.exploration import Exploration
    from mcheck.answers.result import Answer
    from mcheck.cat.ast import Model
    from mcheck.ir.program import Program

DRAWN = 6
"""The maximum number of pictures of allowed, and of forbidden, outcomes on a page."""
MOST_DATA = 60
MOST_THREADS, MOST_OPERATIONS = 8, 16
"""Larger programs are treated as kernel sketches."""
OTHERS = 4.0
"""Seconds for the answer under each other model."""
LARGEST = 48
"""The maximum number of boxes of an execution drawn on a page."""
BUDGET = 6.0
QUESTIONS = {
    "exists": "Can an execution end in this state?",
    "~exists": "Is this final state impossible?",
    "forall": "Does every execution end in this state?",
}
HOLDS = {
    frozenset({True}): "holds",
    frozenset({False}): "does not hold",
    frozenset({True, False}): "holds or not",
    frozenset[bool](): "filtered out",
}
"""The text for the possible truth values of the formula: both if it depends on an unknown value, none if filtered."""


def make_page(
    path: str,
    suite: str,
    file: str,
    *,
    model: str | None,
    profile: str,
    unroll: int,
    timeout: float | None,
    assume: tuple[str, ...] = (),
    text: str | None = None,
) -> Page:
    """The page of the test at ``path``, or of its ``text``; an error page if it cannot be read or an engine fails."""
    from mcheck.checking.run.single import crash_error, load_program

    page = Page(name=name_of_file(path), path=path, suite=suite, file=file, source="")
    try:
        page = replace(page, source=read_file(path).decode("utf-8", "replace") if text is None else text)
        program = load_program(path, assume, page.source, every=True)
        if model is not None:
            program = replace(program, model=None)
        if program.parameter is not None:
            settings = Settings(model=model, profile=profile, unroll=unroll, timeout=timeout, assume=assume)
            return _every_number(program, page, settings)
        if program.shortened is not None:  # only proofs use the shortened program
            program = replace(program.shortened.whole(), assumptions=program.assumptions)
        return _answered(page, program, model, profile, unroll, timeout)
    except InputError as error:
        return error_page(page, error, UNREAD)
    except OSError as error:
        return error_page(page, InputError(f"cannot read {path}: {error.strerror}"), UNREAD)
    except McheckError as error:
        return error_page(page, error, UNANSWERED)
    except Exception as error:  # noqa: BLE001 - a crash in one test must not end the others
        return error_page(page, crash_error(error), BROKEN)


def page_task(case: Case, settings: Settings, timeout: float | None) -> Page:
    """The page of a case; ``timeout`` limits each answer, the timeout of the settings all of them together."""
    if is_module(case.path):
        return module_page(case, replace(settings, timeout=timeout), DRAWN)
    return make_page(
        case.path,
        "",
        "",
        model=settings.model,
        profile=settings.profile,
        unroll=settings.unroll,
        assume=settings.assume,
        timeout=timeout,
        text=case.text,
    )


def lost_page(case: Case, _: Settings, reason: Reason, seconds: float) -> Page:  # noqa: ARG001 - as the pool gives it
    """The page of a test whose process was stopped or died."""
    return page_without_answer(case.path, "unknown", reasons.format_reasons((reason,)) or "", UNANSWERED, (reason,))


def _answered(
    page: Page, program: Program, model: str | None, profile: str, unroll: int, timeout: float | None
) -> Page:
    from mcheck.checking.policy.executions import executions

    page = replace(page, name=program.name, assumptions=program.assumptions.describe())
    name = model or program.model or DEFAULT_MODEL
    if _is_sketch(program):
        return _sketch(program, name, page, profile, unroll, timeout)
    explored = executions(
        program,
        _model(program, name),
        Question(profile=profile, unroll=unroll, timeout=timeout),
        forbidden=DRAWN,
        drawn=DRAWN,
        budget=BUDGET,
    )
    return _page(program, explored, _others(program, name, profile, unroll, timeout), page, name)


def _model(program: Program, name: str) -> Model:
    """The model of this name, resolved relative to the program if the program names it."""
    from mcheck.checking.run.single import choose_model, load_model

    return choose_model(None, name, program.path) if name == program.model else load_model(name)


def _is_sketch(program: Program) -> bool:
    """Whether the program has too many threads or operations to list its executions."""
    size = sum(len(t.code) for t in program.threads)
    return len(program.threads) > MOST_THREADS or (program.condition.kind == "none" and size > MOST_OPERATIONS)


def _sketch(program: Program, model: str, page: Page, profile: str, unroll: int, timeout: float | None) -> Page:
    """The page of a kernel sketch: the answer of ``mcheck check``, each finding with a schedule as witness."""
    from mcheck.checking.policy.ask import ask
    from mcheck.report.picture.svg import draw

    question = Question(about=Completeness.FINDINGS, profile=profile, unroll=unroll, timeout=timeout)
    given = ask(program, _model(program, model), question)
    findings, pictures = draw_findings(given.findings, program.name, model, DRAWN)
    if not findings:
        clean = _schedule(program, model, question)
        if clean is not None:
            svg = draw(clean, prefix="p1", style=False)
            pictures = (Picture(1, "The beginning of a run of the kernel", svg, clean.describe()),)
    own = Verdict(model, given.verdict, 0, True, False, given.reason or "", True, _has_errors(given))
    expected = program.expectation.kinds
    fits = kinds_hold(expected, given.findings)
    return replace(
        _described(program, page, model),
        sketch=True,
        cut=given.cut,
        status="ok" if fits else "mismatch",
        verdicts=(own,),
        assumptions=given.assumptions,
        pictures=pictures,
        findings=findings,
    )


def _every_number(program: Program, page: Page, settings: Settings) -> Page:
    """The page of a sketch with ``const N = any``: the answer of ``mcheck check`` for every N."""
    from mcheck.checking.check.command import check_case
    from mcheck.report.picture.svg import draw

    checked = check_case(Case(page.path, page.source), settings, Options())
    if checked.verdict is verdicts.Verdict.ERROR:
        error = checked.problem or InputError(checked.reason or "no answer")
        return error_page(page, error, BROKEN if isinstance(error, InternalError) else UNREAD)
    model = settings.model or program.model or DEFAULT_MODEL
    findings, pictures = draw_findings(checked.findings, program.name, model, DRAWN)
    if checked.verdict is verdicts.Verdict.PROVED and not findings and program.instance is not None:
        question = Question(
            about=Completeness.FINDINGS, profile=settings.profile, unroll=settings.unroll, timeout=settings.timeout
        )
        clean = _schedule(replace(program.instance(1), assumptions=program.assumptions), model, question)
        if clean is not None:
            svg = draw(clean, prefix="p1", style=False)
            pictures = (Picture(1, f"The beginning of a run with {program.parameter} = 1", svg, clean.describe()),)
    return replace(
        _described(program, page, model),
        name=program.name,
        sketch=True,
        cut=checked.cut,
        status="ok" if checked.as_expected or not checked.expected_kinds else "mismatch",
        verdicts=(verdict_from_checked(checked, model),),
        assumptions=checked.assumptions,
        pictures=pictures,
        findings=findings,
    )


def _schedule(program: Program, model: str, question: Question) -> Execution | None:
    """The beginning of a schedule of a program without findings."""
    from mcheck.checking.policy.executions import schedule
    from mcheck.report.picture.timeline import draw_schedule

    try:
        steps = schedule(program, _model(program, model), question)
    except (McheckError, RecursionError):
        return None
    return draw_schedule(steps, program.name, model)


def _others(program: Program, own: str, profile: str, unroll: int, timeout: float | None) -> list[Verdict]:
    """The verdicts under the other shipped models."""
    from mcheck.cat.model_files import model_names
    from mcheck.checking.policy.ask import ask
    from mcheck.checking.run.rules import find_missing_rules
    from mcheck.checking.run.single import load_model

    out = []
    limit = OTHERS if timeout is None else min(timeout, OTHERS)
    for name in model_names():
        if name == own:
            continue
        model = load_model(name)
        if lacking := find_missing_rules(program, model):
            out.append(Verdict(name, "", 0, True, False, f"this model has no rules for {lacking}", False))
            continue
        asked = Question(profile=profile, unroll=unroll, timeout=limit, findings=program.condition.kind == "none")
        out.append(_verdict(program, name, ask(program, model, asked, "explicit"), own=False))
    return out


def _has_errors(given: Answer) -> bool:
    return any(f.severity == "error" for f in given.findings)


def _verdict(program: Program, model: str, given: Answer, *, own: bool) -> Verdict:
    has_errors = _has_errors(given)
    verdict = str(given.verdict)
    if program.condition.kind == "none" and given.verdict is verdicts.Verdict.PASS:
        verdict = "finding" if has_errors else "clean" if given.complete else "unknown"
    states = len(given.outcomes)
    return Verdict(
        model, verdict, states, given.complete, given.undefined, given.reason or "", own, has_errors, given.cut
    )


def _page(program: Program, explored: Exploration, others: list[Verdict], page: Page, model: str) -> Page:
    from mcheck.answers.final_states import terms_of, truth_of
    from mcheck.ir.condition import ConstTerm

    given = explored.answer
    own = _verdict(program, model, given, own=True)
    labels = tuple(t.label for t in terms_of(program.condition) if not isinstance(t, ConstTerm))
    written = dict(program.condition.notation)
    pictures: list[Picture] = []
    too_large = False

    def picture(execution: Execution | None, caption: str, steps: Sequence[str] = ()) -> int:
        nonlocal too_large
        from mcheck.report.picture.svg import draw

        if execution is None:
            return -1
        if len(execution.boxes) > LARGEST:
            too_large = True
            return -1
        number = len(pictures) + 1
        pictures.append(
            Picture(
                number, caption, draw(execution, prefix=f"p{number}", style=False), tuple(steps) or execution.describe()
            )
        )
        return number

    seen = find_hardware_counts(program)
    rows = [
        Row(
            _values(o.state, labels, written),
            seen=seen.count(o.state) if seen else 0,
            allowed=True,
            holds=HOLDS[frozenset(truth_of(program.condition, o.state))],
            executions=o.executions,
            picture=picture(
                explored.allowed.get(o.state), f"Allowed: {_state(o.state, written)}", format_trace(o.witness)
            ),
        )
        for o in given.outcomes
    ]
    rows += [
        Row(
            _values(f.state, labels, written),
            seen=seen.count(f.state) if seen else 0,
            allowed=False,
            holds=HOLDS[frozenset(truth_of(program.condition, f.state))],
            executions=0,
            axiom=f.axiom,
            explanation=f.explanation,
            picture=picture(f.execution, f"Forbidden by {f.axiom}: {_state(f.state, written)}"),
        )
        for f in explored.forbidden
    ]
    findings = [
        describe_finding(f, picture((explored.findings or {}).get(f), f"{f.code}: {f.message}", format_trace(f.trace)))
        for f in given.findings
    ]
    result = _result(program, explored, model)
    return replace(
        _described(program, page, model),
        status=result,
        cut=explored.cut or any(v.cut for v in others),
        verdicts=tuple(sorted([own, *others], key=lambda v: v.model)),
        labels=tuple(format_term(label, written) for label in labels),
        rows=tuple(rows),
        seen=seen.summarise([o.state for o in given.outcomes]) if seen and rows else "",
        more_forbidden=given.complete and not explored.all_forbidden,
        pictures=tuple(pictures),
        too_large=too_large,
        findings=tuple(findings),
    )


def _data(program: Program) -> tuple[str, ...]:
    """Memory and registers after one concrete execution, if the concrete engine supports every instruction."""
    from mcheck.engines.concrete.machine import machine
    from mcheck.engines.concrete.result import execute
    from mcheck.report.execution import lines
    from mcheck.report.lines import plain

    try:
        report = [plain(line) for line in lines(execute(machine(program, seed=0), 0))]
    except (McheckError, RecursionError):
        return ()
    return tuple(report[:MOST_DATA]) + (
        (f"and {len(report) - MOST_DATA} more lines",) if len(report) > MOST_DATA else ()
    )


def _described(program: Program, page: Page, model: str) -> Page:
    """The page with everything that needs no engine."""

    about, sections = _about(program.doc)
    return replace(
        page,
        doc=about,
        sections=sections,
        topics=find_topics(program, page.source),
        listing=make_listing(program, page.source),
        kind=program.condition.kind,
        condition=program.condition.text.strip(),
        question=QUESTIONS.get(program.condition.kind, ""),
        expected=tuple(
            filter(
                None, (program.expectation.verdict, describe_kinds(program.expectation.kinds).replace(" | ", " or "))
            )
        ),
        kinds=program.expectation.kinds,
        model=model,
        digest=_model(program, model).digest,
        data=_data(program) if program.parameter is None else (),
    )


def _about(doc: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The description of a test, and the sections that it cites."""
    about, sections = [], []
    for line in doc:
        named = re.match(r"(?P<section>PTX ISA(?:\([^)]*\)|[^:(])*)(?::\s+(?P<rest>.*))?$", line.strip())
        if named is None or not re.search(r"\d\.\d", named["section"]):
            about.append(line)
            continue
        sections.append(named["section"].rstrip(". "))
        if named["rest"]:
            about.append(named["rest"][0].upper() + named["rest"][1:])
    return tuple(about), tuple(sections)


def _result(program: Program, explored: Exploration, model: str) -> str:
    given = explored.answer
    return Result(
        path=program.path,
        name=program.name,
        verdict=given.verdict,
        expected=program.expectation.verdict,
        expected_kinds=program.expectation.kinds,
        model=model,
        findings=given.findings,
    ).status


def _values(state: State, labels: tuple[str, ...], written: Mapping[str, Notation]) -> tuple[str, ...]:
    values = dict(state)
    return tuple(format_term_value(label, values[label], written) if label in values else "" for label in labels)


def _state(state: State, written: Mapping[str, Notation]) -> str:
    return format_state(state, written.items()) if state else "an execution"
