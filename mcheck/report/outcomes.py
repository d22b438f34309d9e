"""The text report of ``mcheck outcomes``."""

from __future__ import annotations

from mcheck.answers.number_text import MEANING, UNKNOWN
from mcheck.checking.run.result import Result
from mcheck.report.bugs import describe_findings
from mcheck.report.lines import Printer
from mcheck.report.text import NOTHING_NAMED, count, format_state
from mcheck.report.trace import format_trace


def write(result: Result, printer: Printer) -> None:
    """Write every state with an execution that ends in it, then the findings."""
    states = count(len(result.outcomes), "state", "states")
    told = NOTHING_NAMED if result.observes_nothing else f"{states}{'' if result.complete else ', incomplete'}"
    printer.line((result.name, "bold"), f" under {result.model}: {told}")
    if any(value == UNKNOWN for outcome in result.outcomes for _, value in outcome.state):
        printer.line(f"({MEANING})")
    for assumption in result.assumptions:
        printer.line(f"assuming: {assumption}")
    for outcome in result.outcomes:
        executions = count(outcome.executions, "execution", "executions")
        printer.line()
        printer.line((format_state(outcome.state, result.notation), "cyan"), f"  ({executions})")
        for step in format_trace(outcome.witness):
            printer.line(f"    {step}")
    printer.line()
    if result.undefined:
        printer.line(
            "some execution is ",
            ("undefined", "bold red"),
            ": the model allows the states above regardless" if result.outcomes else ": anything may happen",
        )
    elif result.complete:
        printer.line("no execution is undefined")
    for line in describe_findings(result.findings, result.source, result.path, trace=True, width=printer.width):
        printer.line(*line)
