"""The page of a PTX module with the launch that lies beside it: what ``mcheck check`` says of the two."""

from __future__ import annotations

import os
from dataclasses import replace

from mcheck.base import verdicts
from mcheck.base.errors import InputError, InternalError
from mcheck.checking.check.case import Options, Settings
from mcheck.checking.check.files import read_launch_beside
from mcheck.checking.run.case import DEFAULT_MODEL, Case
from mcheck.report.site.content import Page, of_checked
from mcheck.report.site.problems import BROKEN, UNREAD, failed
from mcheck.report.site.schedules import with_schedules
from mcheck.report.site.topics import topics_of_module


def module_page(case: Case, settings: Settings, drawn: int) -> Page:
    """The page, with at most so many pictures; one that says why where the module or its launch cannot be read."""
    from mcheck.checking.check.modules import check_file  # imports what reads modules, which tests never need

    checked = check_file(case, settings, Options())
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
        error = checked.problem or InputError(checked.reason or "it has no answer")
        return failed(page, error, BROKEN if isinstance(error, InternalError) else UNREAD)
    model = settings.model or DEFAULT_MODEL
    findings, pictures = with_schedules(checked.findings, page.name, model, drawn)
    return replace(
        page,
        doc=(f"PTX module, kernel {checked.name}.",),
        topics=topics_of_module(checked.source),
        model=model,
        verdicts=(of_checked(checked, model),),
        assumptions=checked.assumptions,
        findings=findings,
        pictures=pictures,
    )


def _launch(path: str) -> str:
    try:
        said = read_launch_beside(path)
    except InputError:
        return ""  # the page says why
    return "" if said is None else (said.text or "").strip()
