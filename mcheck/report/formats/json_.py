"""The JSON documents of ``mcheck run`` and ``mcheck outcomes``, one test per line so that reports diff well."""

from __future__ import annotations

import json
from typing import Any

from mcheck import __version__
from mcheck.answers.result import Outcome, sort_by_state
from mcheck.checking.run.result import Result
from mcheck.checking.run.summary import Summary
from mcheck.report.finding import to_json as finding_to_json
from mcheck.report.problems import to_json
from mcheck.report.reasons import to_json as reasons_to_json
from mcheck.report.trace import format_trace

SCHEMA = 1


def header(**more: object) -> dict[str, Any]:
    """The keys with which every document starts."""
    return {"schema": SCHEMA, "tool": "mcheck", "version": __version__, **more}


def run_document(model: str, results: list[Result], summary: Summary) -> str:
    """The document of ``mcheck run --format json``."""
    head = json.dumps(header(model=model))[:-1]
    tests = ",\n".join(json.dumps(_test(result)) for result in results)
    return f'{head},\n"tests": [\n{tests}\n],\n"summary": {json.dumps(_summary(summary))}}}\n'


def outcomes_document(path: str, result: Result) -> str:
    """The document of ``mcheck outcomes --format json``."""
    head = json.dumps(header(path=path, model=result.model))[:-1]
    outcomes = ",\n".join(json.dumps(_outcome(outcome)) for outcome in _sorted(result.outcomes))
    findings = json.dumps([finding_to_json(f) for f in result.findings])
    undefined = json.dumps(result.undefined)
    rest = f'"undefined": {undefined}, "findings": {findings}'
    if result.assumptions:
        rest += f', "assumptions": {json.dumps(result.assumptions)}'
    return f'{head},\n"outcomes": [\n{outcomes}\n],\n{rest}}}\n'


def _test(result: Result) -> dict[str, Any]:
    return {
        "path": result.path,
        "name": result.name,
        "condition": result.condition,
        "kind": result.kind,
        "verdict": result.verdict,
        "expected": result.expected,
        "model": result.model,
        "ok": result.ok,
        "states": [dict(outcome.state) for outcome in _sorted(result.outcomes)],
        "complete": result.complete,
        "undefined": result.undefined,
        "findings": [finding_to_json(f) for f in result.findings],
        "executions": result.executions,
        "engine": result.engine,
        "seconds": round(result.seconds, 6),
        "reason": result.reason,
        **reasons_to_json(result.reasons, cut=result.cut),
        **({"headline": result.headline} if result.headline != result.status else {}),
        **({"assumptions": list(result.assumptions)} if result.assumptions else {}),
        **({"errors": to_json(result.problem)} if result.status == "error" and result.problem else {}),
    }


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "tests": summary.tests,
        "ok": summary.ok,
        "mismatch": summary.mismatch,
        "unknown": summary.unknown,
        "error": summary.error,
        **({"found": summary.found} if summary.found else {}),
        "seconds": round(summary.seconds, 6),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "state": dict(outcome.state),
        "executions": outcome.executions,
        "witness": list(format_trace(outcome.witness)),
    }


def _sorted(outcomes: tuple[Outcome, ...]) -> list[Outcome]:
    return sort_by_state(outcomes, lambda outcome: outcome.state)
