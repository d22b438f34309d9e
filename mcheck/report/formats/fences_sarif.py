"""SARIF of ``mcheck fences``: the findings of ``mcheck check``, each with the checked repairs of its program as fixes.

A repair mends the program, not one finding: every finding of a program has all of them. Line ends are those of Unix in
what is inserted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcheck.base.records import replace
from mcheck.checking.fences.edits import replaced_lines
from mcheck.checking.fences.examination import Examined
from mcheck.checking.fences.repairs import Repair
from mcheck.report.fences import count_edits
from mcheck.report.formats.sarif import Object, artifact, build_log, convert_findings, describe_run, findings_of


def document(examined: Sequence[Examined], exit_status: int = 0) -> str:
    """The SARIF log of these files."""
    checked = [(each, each.result) for each in examined if each.result is not None]
    rules, found = convert_findings(replace(findings_of(result), fixes=tuple(_fixes(each))) for each, result in checked)
    invocation = describe_run([result for _, result in checked], exit_status)
    return build_log(rules, invocation, [each.path for each in examined], found)


def _fixes(examined: Examined) -> Iterator[Object]:
    for repair in examined.repairs.found if examined.repairs is not None else ():
        replacements = list(_replacements(examined.text, repair))
        yield {
            "description": {"text": _describe(repair)},
            "artifactChanges": [{"artifactLocation": artifact(examined.path), "replacements": replacements}],
        }


def _describe(repair: Repair) -> str:
    """What a repair is, in a sentence."""
    left = f", with {', '.join(repair.reviews)} for review" if repair.reviews else ""
    changes = f"; not only the order changes: {', '.join(repair.changes)}" if repair.changes else ""
    return f"{count_edits(repair)} after which the program is {repair.verdict}{left}, cost {repair.cost:g}{changes}"


def _replacements(before: str, repair: Repair) -> Iterator[Object]:
    for each in replaced_lines(before, repair.text):
        start, end = each.first + 1, each.first + len(each.old) + 1
        region = {"startLine": start, "startColumn": 1, "endLine": end, "endColumn": 1}
        inserted = "".join(f"{line}\n" for line in each.new)
        yield {"deletedRegion": region} | ({"insertedContent": {"text": inserted}} if inserted else {})
