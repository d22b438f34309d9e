"""A suite as a LaTeX table: ``mcheck doc --paper``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby

from mcheck import __version__
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.files import is_module
from mcheck.checking.policy.question import Completeness
from mcheck.checking.run.result import Result
from mcheck.report.formats.latex import latex

_NONE = "--"
COLUMNS = ("Test", "Question", "Answer", "States", "Findings")


def latex_table(results: Sequence[Result], title: str) -> str:
    """A ``longtable`` with a row for each test, in the order given, and a part for each folder.

    It needs the packages booktabs and longtable. ``States`` is the number of final states, with a plus sign if there
    may be more, or a dash for a file that was only checked for findings (a PTX module, or a sketch with ``const N =
    any``); ``Findings`` lists the codes of findings, in parentheses if they are not errors.
    """
    models = sorted({result.model for result in results})
    told = f"{title} ({len(results)} tests under {', '.join(models)}; mcheck {__version__})."
    lines = [
        r"% \usepackage[T1]{fontenc} \usepackage{booktabs,longtable}",
        r"\begin{longtable}{@{}llllp{.2\linewidth}@{}}",
        rf"\caption{{{latex(told)}}}\\",
        r"\toprule",
        " & ".join(COLUMNS) + r" \\",
        r"\midrule",
        r"\endfirsthead",
        r"\toprule",
        " & ".join(COLUMNS) + r" \\",
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
    ]
    folders = [list(members) for _, members in groupby(results, key=lambda r: os.path.dirname(r.path))]
    for k, members in enumerate(folders):
        if len(folders) > 1:
            folder = os.path.basename(os.path.dirname(members[0].path)) or "."
            rule = [r"\addlinespace"] if k else []
            lines += [*rule, rf"\multicolumn{{{len(COLUMNS)}}}{{@{{}}l}}{{\itshape {latex(folder)}}} \\*"]
        lines += [_row(result, several=len(models) > 1) for result in members]
    return "\n".join([*lines, r"\end{longtable}"]) + "\n"


def _row(result: Result, *, several: bool) -> str:
    checked = result.about is Completeness.FINDINGS
    more = "" if result.complete else "+"
    name = os.path.basename(result.path) if is_module(result.path) else result.name
    cells = (
        rf"\texttt{{{latex(name)}{f' ({latex(result.model)})' if several else ''}}}",
        "" if checked else latex({"none": "", "~exists": "never"}.get(result.kind, result.kind)),
        latex(_answer(result)),
        _NONE if checked else f"{len(result.outcomes)}{more}" if result.was_read else "",
        latex(_codes(result)),
    )
    return " & ".join(cells) + r" \\"


def _answer(result: Result) -> str:
    """The verdict, with the expected one if they differ."""
    if result.kind == "none" and result.verdict is Verdict.PASS:
        return ""
    if result.verdict is Verdict.FINDING and not result.findings:
        return "ignored"  # all findings are left out of the answer
    missed = result.status == "mismatch" and result.expected not in (None, result.verdict)
    return f"{result.verdict} (expected {result.expected})" if missed else result.verdict


def _codes(result: Result) -> str:
    grave = {f.code for f in result.findings if f.severity == "error"}
    others = {f.code for f in result.findings} - grave
    return ", ".join([*sorted(grave), *(f"({code})" for code in sorted(others))])
