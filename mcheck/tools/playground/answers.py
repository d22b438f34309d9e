"""The interface of the playground page to mcheck, in a browser worker: texts and JSON in, JSON out."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

from mcheck.base.errors import McheckError
from mcheck.base.verdicts import Verdict

NAME = "program.litmus"
OWN_MODEL = "edited.cat"
MOST_PICTURES = 12
MOST_FORBIDDEN = 6
ENGINE = "explicit"


def run(text: str, model: str, engine: str = ENGINE, own: str = "") -> str:
    """The answer of ``mcheck run`` for a text: the report, the status, the places of errors.

    ``own`` is the text of a model that replaces ``model``, here and in the other questions.
    """
    from mcheck.checking.backends import Backend
    from mcheck.checking.run.case import Case, Settings
    from mcheck.checking.run.command import RUN
    from mcheck.checking.run.summary import summarize
    from mcheck.checking.suite import answer_cases
    from mcheck.report.lines import Printer
    from mcheck.report.text import TextReport

    stream = StringIO()
    report = TextReport(Printer(stream, color=False), details=True)
    settings = Settings(model=_chosen_model(model, own) or None, engine=engine)
    try:
        (result,) = answer_cases([Case(NAME, text=text)], settings, RUN, Backend(jobs=1))
    except McheckError as error:
        return _refused(error, text)
    stream.write(_problems(result.problem if result.verdict is Verdict.ERROR else None, text))
    report.result(result)
    if not result.ok:
        report.finish(summarize([result]))
    return json.dumps(
        {
            "report": stream.getvalue(),
            "status": result.status,
            "verdict": result.verdict,
            "codes": [f.code for f in result.findings],
            "places": _places(result),
            "pictures": result.was_read and result.verdict is not Verdict.ERROR,
        }
    )


def check(text: str, model: str, own: str = "") -> str:
    """The answer of ``mcheck check`` for a text."""
    from mcheck.checking.backends import Backend
    from mcheck.checking.check.command import check_command
    from mcheck.checking.run.case import Case, Options, Settings
    from mcheck.checking.suite import answer_cases
    from mcheck.report.checked import describe
    from mcheck.report.lines import plain

    settings = Settings(model=_chosen_model(model, own) or None)
    try:
        (result,) = answer_cases([Case(NAME, text=text)], settings, check_command(Options()), Backend(jobs=1))
    except McheckError as error:
        return _refused(error, text)
    report = _problems(result.problem if result.verdict is Verdict.ERROR else None, text)
    report += "".join(f"{plain(line)}\n" for line in describe(result, errors=False))
    return json.dumps(
        {
            "report": report,
            "status": result.status,
            "verdict": result.headline,
            "codes": [f.code for f in result.findings],
            "places": _places(result),
            "pictures": False,
        }
    )


def pictures(text: str, model: str, forbidden: bool, own: str = "") -> str:
    """Pictures of executions: of the allowed states, or of forbidden states with their axioms."""
    from mcheck.checking.policy.executions import executions
    from mcheck.checking.policy.question import Question
    from mcheck.checking.run.single import choose_model, load_program
    from mcheck.report.picture.formats import picture
    from mcheck.report.text import format_state

    try:
        program = load_program(NAME, text=text)
        named = choose_model(_chosen_model(model, own), program.model, program.path, program.model_span)
        asked = MOST_FORBIDDEN if forbidden else 0
        found = executions(program, named, Question(), forbidden=asked, drawn=0 if forbidden else MOST_PICTURES)
    except McheckError as error:
        return json.dumps({"problem": error.message, "pictures": []})
    notation = program.condition.notation
    if forbidden:
        drawn = [(f.state, f.execution, f.axiom) for f in found.forbidden if f.execution is not None]
    else:
        drawn = [(state, execution, "") for state, execution in found.allowed.items()]
    shown: list[dict[str, Any]] = [
        {"state": format_state(state, notation), "axiom": axiom, "svg": picture(execution, "x.svg")}
        for state, execution, axiom in drawn
    ]
    return json.dumps({"problem": "", "pictures": shown})


def models() -> str:
    """The names of the models."""
    from mcheck.cat.model_files import model_names
    from mcheck.checking.run.case import DEFAULT_MODEL

    return json.dumps({"models": model_names(), "default": DEFAULT_MODEL})


def model_text(name: str) -> str:
    """The text of a model, as a start for one's own."""
    from mcheck.cat.library import full_text
    from mcheck.checking.run.case import DEFAULT_MODEL

    return full_text(name or DEFAULT_MODEL)


def explain(code: str) -> str:
    """What a code means: the catalogue's entry, by headings."""
    from mcheck.findings import catalogue

    entry = catalogue.get(code)
    parts = [("", entry.explanation), ("Section", entry.section), ("Fix", entry.all_remedies)]
    parts.append(("After this finding", f"{entry.consequence}."))
    programs = [("Incorrect", entry.bad), ("Correct", entry.good)]
    return json.dumps({"title": f"{entry.code} {entry.name}", "parts": parts, "programs": programs})


def _chosen_model(name: str, own: str) -> str:
    if not own.strip():
        return name
    Path(OWN_MODEL).write_text(own, encoding="utf-8")
    return OWN_MODEL


def _refused(error: McheckError, text: str) -> str:
    """The answer where there is none: the model cannot be read."""
    told = {"status": "error", "verdict": Verdict.ERROR, "codes": [], "places": [], "pictures": False}
    return json.dumps({"report": _problems(error, text), **told})


def _problems(problem: McheckError | None, text: str) -> str:
    from mcheck.report.errors import render

    return render(problem, sources={NAME: text}) + "\n" if problem is not None else ""


def _places(result: Any) -> list[dict[str, int]]:
    """The places to mark in the text: the error, or the accesses of findings."""
    errors = result.problem.all_errors if result.problem is not None else []
    spans = [one.span for one in errors if one.span is not None and one.span.path != OWN_MODEL]
    spans += [access.span for finding in result.findings for access in finding.accesses]
    lines = dict.fromkeys(span.line for span in spans if span is not None)
    return [{"line": line} for line in lines]
