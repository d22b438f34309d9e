"""What the page of one test says: everything is computed here, the templates only arrange it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcheck.answers.result import State
from mcheck.errors import InputError, McheckError
from mcheck.files import contents
from mcheck.findings.finding import Finding
from mcheck.findings.order import by_cause
from mcheck.graph.execution import Execution
from mcheck.limit import timed_out
from mcheck.policy.question import About, Question
from mcheck.program.condition import Notation
from mcheck.program.program import in_words
from mcheck.report.site.listing import Listing, listing_of
from mcheck.report.site.seen import seen_of
from mcheck.report.text import name_of, number_of, state_text
from mcheck.report.trace import texts
from mcheck.run.case import DEFAULT_MODEL, Case, Result, Settings, kinds_hold

if TYPE_CHECKING:
    from mcheck.answers.exploration import Exploration
    from mcheck.program.program import Program

DRAWN = 6
MOST_DATA = 60
MOST_THREADS, MOST_OPERATIONS = 8, 16
"""Above these a program is a kernel sketch."""
OTHERS = 4.0
"""Seconds for the answer under a model that is not the page's own."""
"""Pictures of allowed outcomes, and of forbidden ones, on one page."""
LARGEST = 48
"""Boxes in the largest execution that is drawn on a page."""
BUDGET = 6.0
QUESTIONS = {
    "exists": "Can an execution end like this?",
    "~exists": "Is it impossible that an execution ends like this?",
    "forall": "Does every execution end like this?",
}
HOLDS = {
    frozenset({True}): "holds",
    frozenset({False}): "does not hold",
    frozenset({True, False}): "holds or not",
    frozenset[bool](): "filtered out",
}
"""By the truth values that the formula may have: both where an unknown value decides, none if the filter says no."""
TOPICS = (
    ("cp.async", r"\bcp\.async\.(?!bulk)"),
    ("bulk copies", r"\bcp\.async\.bulk\.(?!tensor|prefetch\.tensor)"),
    ("tensor copies", r"\bcp\.(reduce\.)?async\.bulk\.(prefetch\.)?tensor\b"),
    ("asynchronous reductions", r"\bcp\.reduce\.async|\bred\.async"),
    ("st.async", r"\bst\.async"),
    ("multicast", r"\.multicast::cluster"),
    ("mbarriers", r"\bmbarrier\."),
    ("proxy fences", r"\bfence\.proxy|\bfence\.generic|\.texture|\.surface|\.constant"),
    ("tensor maps", r"\btensormap\b"),
    ("memory fences", r"\bfence\.(sc|acq_rel|acquire|release)|\bmembar"),
    ("barriers", r"\bbar\.|\bbarrier\."),
    ("clusters", r"\bcluster\b"),
    ("atomics", r"\b(atom|red)\."),
    ("wgmma", r"\bwgmma\."),
    ("loops", r"\bfor\b|\bbra\b|\bawait\b|\bgoto\b"),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer under one model; ``verdict`` is empty where the model has no rules for what the program does."""

    model: str
    verdict: str
    states: int
    complete: bool
    undefined: bool
    reason: str
    own: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table of outcomes.

    ``holds``: whether the condition's formula is true in it, in words. ``seen``: how often a chip showed it, where the
    page says what was seen.
    """

    values: tuple[str, ...]
    allowed: bool
    holds: str
    executions: int
    axiom: str = ""
    cycle: tuple[str, ...] = ()
    picture: int = -1
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn execution; ``svg`` stands in the page, ``steps`` is the execution in words."""

    number: int
    caption: str
    svg: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A finding with what the catalogue says, and the picture that shows it."""

    finding: Finding
    name: str
    explanation: tuple[str, ...]
    remedy: str
    section: str
    picture: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One test. ``problem`` is why there is nothing but its text. ``digest`` is that of its own model's text; ``cut``:
    with more time there might be more to show.
    """

    name: str
    path: str
    suite: str
    file: str
    source: str
    doc: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    sketch: bool = False
    assumptions: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    listing: Listing | None = None
    kind: str = "none"
    condition: str = ""
    question: str = ""
    expected: tuple[str, ...] = ()
    status: str = "ok"
    verdicts: tuple[Verdict, ...] = ()
    labels: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    seen: str = ""
    more_forbidden: bool = False
    pictures: tuple[Picture, ...] = ()
    too_large: bool = False
    findings: tuple[Found, ...] = ()
    model: str = ""
    problem: str = ""
    problem_title: str = "This test could not be read"
    problem_line: int = 0
    hint: str = ""
    digest: str = ""
    cut: bool = False

    @property
    def lasting(self) -> bool:
        """Whether the same texts and options have this page whenever it is made."""
        return not self.problem and not self.cut

    def named(self, path: str, model: str) -> Page:
        """The page of the same texts, where they are called so."""
        return replace(self, path=path, model=model)

    @property
    def verdict(self) -> str:
        """The answer under the test's own model."""
        return next((v.verdict for v in self.verdicts if v.own), "error" if self.problem else "unknown")


def page_of(
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
    """The page of the test at ``path``, or of its ``text``; one that cannot be read, or that breaks an engine, gets a
    page that says so.
    """
    from mcheck.run.single import internal, load

    stem = os.path.basename(path).removesuffix(".litmus")
    page = Page(name=stem, path=path, suite=suite, file=file, source="")
    try:
        page = replace(page, source=contents(path).decode("utf-8", "replace") if text is None else text)
        return _answered(page, load(path, assume, text), model, profile, unroll, timeout)
    except InputError as error:
        return _failed(page, error, "This test could not be read")
    except OSError as error:
        return _failed(page, InputError(f"cannot read {path}: {error.strerror}"), "This test could not be read")
    except McheckError as error:
        return _failed(page, error, "This test has no answer")
    except Exception as error:  # noqa: BLE001 - a crash in one test must not take the others with it
        return _failed(page, internal(error), "This test has no answer: an error of mcheck's own")


def page_task(case: Case, settings: Settings, timeout: float | None) -> Page:
    """The page of a case; ``timeout`` is that of each answer, where that of the settings is for all of them."""
    return page_of(
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


def page_lost(case: Case, _: Settings, reason: str, seconds: float) -> Page:  # noqa: ARG001 - as the pool gives it
    """The page of a test whose process had to be stopped or died."""
    return without_answer(case.path, "unknown", reason, "This test has no answer")


def without_answer(path: str, status: str, problem: str, title: str) -> Page:
    """A page with nothing on it but why."""
    name = os.path.basename(path).removesuffix(".litmus")
    return Page(
        name=name,
        path=path,
        suite="",
        file="",
        source="",
        status=status,
        problem=problem,
        problem_title=title,
        cut=True,
    )


def _answered(
    page: Page, program: Program, model: str | None, profile: str, unroll: int, timeout: float | None
) -> Page:
    from mcheck.policy.show import executions
    from mcheck.run.single import model_of

    page = replace(page, name=program.name, assumptions=program.assumptions.described())
    name = model or program.model or DEFAULT_MODEL
    if _is_sketch(program):
        return _sketch(program, name, page, profile, unroll, timeout)
    explored = executions(
        program,
        model_of(name),
        Question(profile=profile, unroll=unroll, timeout=timeout),
        forbidden=DRAWN,
        drawn=DRAWN,
        budget=BUDGET,
    )
    return _page(program, explored, _others(program, name, profile, unroll, timeout), page, name)


def _failed(page: Page, error: McheckError, title: str) -> Page:
    span = error.span
    hints = [f"Expected: {error.expected}." if error.expected else "", f"Hint: {error.hint}" if error.hint else ""]
    here = span is not None and span.path == page.path
    where = f"line {span.line}, column {span.column}: " if span is not None and here else ""
    return replace(
        page,
        name=os.path.basename(page.path).removesuffix(".litmus"),
        status="error",
        problem=where + error.message,
        problem_title=title,
        problem_line=span.line if span is not None and here else 0,
        hint=" ".join(filter(None, hints)),
    )


def _is_sketch(program: Program) -> bool:
    """A kernel: too many threads or operations to list its executions, or about nothing but findings."""
    size = sum(len(t.code) for t in program.threads)
    return len(program.threads) > MOST_THREADS or (program.condition.kind == "none" and size > MOST_OPERATIONS)


def _sketch(program: Program, model: str, page: Page, profile: str, unroll: int, timeout: float | None) -> Page:
    """The page of a kernel sketch: what ``mcheck check`` says, each finding with the schedule that shows it."""
    from mcheck.policy.ask import ask
    from mcheck.report.picture.svg import draw
    from mcheck.report.picture.timeline import timeline
    from mcheck.run.single import model_of

    question = Question(about=About.FINDINGS, profile=profile, unroll=unroll, timeout=timeout)
    given = ask(program, model_of(model), question)
    pictures: list[Picture] = []
    findings = []
    for finding in by_cause(given.findings):
        drawn = timeline(finding, program.name, model)
        number = -1
        if drawn is not None and len(pictures) < DRAWN:
            number = len(pictures) + 1
            svg = draw(drawn, prefix=f"p{number}", style=False)
            pictures.append(Picture(number, f"{finding.code}: how it comes about", svg, texts(finding.trace)))
        findings.append(_found(finding, number))
    if not findings:
        clean = _schedule(program, model, question)
        if clean is not None:
            svg = draw(clean, prefix="p1", style=False)
            pictures.append(Picture(1, "A run of the kernel, from its beginning", svg, clean.describe()))
    own = Verdict(model, given.verdict, 0, True, False, given.reason or "", True)
    expected = program.expectation.kinds
    fits = kinds_hold(expected, given.findings)
    return replace(
        _described(program, page, model),
        sketch=True,
        cut=given.cut,
        status="ok" if fits else "mismatch",
        verdicts=(own,),
        assumptions=given.assumptions,
        pictures=tuple(pictures),
        findings=tuple(findings),
    )


def _schedule(program: Program, model: str, question: Question) -> Execution | None:
    """The beginning of one schedule of a program without a finding."""
    from mcheck.policy.show import schedule
    from mcheck.report.picture.timeline import run
    from mcheck.run.single import model_of

    try:
        steps = schedule(program, model_of(model), question)
    except (McheckError, RecursionError):
        return None
    return run(steps, program.name, model)


def _others(program: Program, own: str, profile: str, unroll: int, timeout: float | None) -> list[Verdict]:
    """The verdicts under the other models that come with mcheck."""
    from mcheck.cat.library import model_names
    from mcheck.policy.ask import ask
    from mcheck.run.rules import missing
    from mcheck.run.single import model_of

    out = []
    limit = OTHERS if timeout is None else min(timeout, OTHERS)
    for name in model_names():
        if name == own:
            continue
        model = model_of(name)
        if lacking := missing(program, model):
            out.append(Verdict(name, "", 0, True, False, f"this model has no rules for {lacking}", False))
            continue
        given = ask(program, model, Question(profile=profile, unroll=unroll, timeout=limit), "explicit")
        states = len(given.outcomes)
        out.append(Verdict(name, given.verdict, states, given.complete, given.undefined, given.reason or "", False))
    return out


def _page(program: Program, explored: Exploration, others: list[Verdict], page: Page, model: str) -> Page:
    from mcheck.answers.final import terms_of, truth_of
    from mcheck.program.condition import ConstTerm

    given = explored.answer
    own = Verdict(model, given.verdict, len(given.outcomes), given.complete, given.undefined, given.reason or "", True)
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

    seen = seen_of(program)
    rows = [
        Row(
            _values(o.state, labels, written),
            seen=seen.count(o.state) if seen else 0,
            allowed=True,
            holds=HOLDS[frozenset(truth_of(program.condition, o.state))],
            executions=o.executions,
            picture=picture(explored.allowed.get(o.state), f"Allowed: {_state(o.state, written)}", texts(o.witness)),
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
            cycle=f.cycle,
            picture=picture(f.execution, f"Forbidden by {f.axiom}: {_state(f.state, written)}"),
        )
        for f in explored.forbidden
    ]
    findings = [
        _found(f, picture((explored.findings or {}).get(f), f"{f.code}: {f.message}", texts(f.trace)))
        for f in given.findings
    ]
    result = _result(program, explored, model)
    return replace(
        _described(program, page, model),
        status=result,
        cut=explored.cut or any(timed_out(v.reason) for v in others),
        verdicts=tuple(sorted([own, *others], key=lambda v: v.model)),
        labels=tuple(name_of(label, written) for label in labels),
        rows=tuple(rows),
        seen=seen.told([o.state for o in given.outcomes]) if seen and rows else "",
        more_forbidden=given.complete and not explored.all_forbidden,
        pictures=tuple(pictures),
        too_large=too_large,
        findings=tuple(findings),
    )


def _data(program: Program) -> tuple[str, ...]:
    """Memory and registers after one execution with real data, where the simulator knows every instruction."""
    from mcheck.report.execution import lines
    from mcheck.report.lines import plain
    from mcheck.simulate.machine import machine
    from mcheck.simulate.result import execute

    try:
        told = [plain(line) for line in lines(execute(machine(program, seed=0), 0))]
    except (McheckError, RecursionError):
        return ()
    return tuple(told[:MOST_DATA]) + ((f"and {len(told) - MOST_DATA} lines more",) if len(told) > MOST_DATA else ())


def _described(program: Program, page: Page, model: str) -> Page:
    """The page with all that needs no engine of the memory model."""
    from mcheck.run.single import model_of

    about, sections = _about(program.doc)
    return replace(
        page,
        doc=about,
        sections=sections,
        topics=tuple(topic for topic, pattern in TOPICS if re.search(pattern, page.source)),
        listing=listing_of(program, page.source),
        kind=program.condition.kind,
        condition=program.condition.text.strip(),
        question=QUESTIONS.get(program.condition.kind, ""),
        expected=tuple(
            filter(None, (program.expectation.verdict, in_words(program.expectation.kinds).replace(" | ", " or ")))
        ),
        model=model,
        digest=model_of(model).digest,
        data=_data(program),
    )


def _about(doc: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a test says of itself, and the sections that it names."""
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


def _found(finding: Finding, picture: int) -> Found:
    from mcheck.findings import catalogue

    entry = catalogue.get(finding.code)
    paragraphs = tuple(" ".join(p.split()) for p in re.split(r"\n\s*\n", entry.explanation.strip()))
    return Found(
        finding,
        entry.name.replace("-", " "),
        paragraphs,
        " ".join((finding.missing or entry.remedy).split()),
        entry.section,
        picture,
    )


def _values(state: State, labels: tuple[str, ...], written: Mapping[str, Notation]) -> tuple[str, ...]:
    values = dict(state)
    return tuple(number_of(label, values[label], written) if label in values else "" for label in labels)


def _state(state: State, written: Mapping[str, Notation]) -> str:
    return state_text(state, written.items()) if state else "an execution"
