"""The page of a PTX module and its launch: the answer of ``mcheck check``."""

from __future__ import annotations

import os

from mcheck.base import verdicts
from mcheck.base.errors import InputError, InternalError
from mcheck.base.records import replace
from mcheck.checking.check.command import check_case
from mcheck.checking.check.files import read_launch_beside
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.report.site.content import Page, verdict_from_checked
from mcheck.report.site.problems import BROKEN, UNREAD, error_page
from mcheck.report.site.schedules import draw_findings
from mcheck.report.site.topics import find_module_topics


def module_page(case: Case, settings: Settings, drawn: int) -> Page:
    """The page, with at most ``drawn`` pictures; an error page if the module or its launch cannot be read."""
    checked = check_case(case, settings, Options())
    page = Page(
        name=os.path.basename(case.path),
        path=case.path,
        suite="",
        file="",
        source=checked.source,
        digest=checked.digest,
        cut=checked.cut,
        launch=_launch(case.path),
        sketch=True,
    )
    if checked.verdict is verdicts.Verdict.ERROR:
        error = checked.problem or InputError(checked.reason or "no answer")
        return error_page(page, error, BROKEN if isinstance(error, InternalError) else UNREAD)
    model = checked.model
    findings, pictures = draw_findings(checked.findings, page.name, model, drawn)
    return replace(
        page,
        doc=(f"PTX module, kernel {checked.name}.",),
        topics=find_module_topics(checked.source),
        model=model,
        verdicts=(verdict_from_checked(checked, model),),
        assumptions=checked.assumptions,
        findings=findings,
        pictures=pictures,
    )


def _launch(path: str) -> str:
    try:
        launch = read_launch_beside(path)
    except InputError:
        return ""  # the error is on the page
    return "" if launch is None else (launch.text or "").strip()
