"""Examinations with a store: what it has of changed programs is not checked again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mcheck.base.verdicts import Verdict
from mcheck.checking.check import command
from mcheck.checking.check.command import check_case
from mcheck.checking.fences.examination import Limits, examine_text
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.result import Result

KERNELS = Path("litmus/kernels")
CONDITION = """PTX fenced
{ x = 0; f = 0; }
 P0@cta 0,gpu 0      | P1@cta 1,gpu 0       ;
 st.relaxed.gpu x, 1 | ld.acquire.gpu r0, f  ;
 fence.acq_rel.cta   | ld.relaxed.gpu r1, x  ;
 st.release.gpu f, 1 |                       ;
~exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


class Store(dict[bytes, bytes]):
    """Answers in memory."""

    def put(self, key: bytes, answer: bytes) -> None:
        self[key] = answer

    def remove(self, key: bytes) -> None:
        self.pop(key, None)


def refuse(case: Case, settings: Settings, options: Options) -> Result:
    """The check of what is no program; such an answer is not kept."""
    found = check_case(case, settings, options)
    assert found.verdict is Verdict.ERROR, "a changed program is checked again"
    return found


@pytest.mark.parametrize(
    ("name", "jobs"),
    [
        ("A05-same-thread-without-proxy-fence", 1),  # repairs
        ("A05-same-thread-without-proxy-fence-fixed", 1),  # removals
        ("A05-same-thread-without-proxy-fence-fixed", 2),
        ("fenced", 1),  # removals that leave the answer to a condition
    ],
)
def test_a_second_examination_checks_nothing_again(name: str, jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = KERNELS / f"{name}.litmus"
    text = path.read_text(encoding="utf-8") if path.exists() else CONDITION
    store, limits = Store(), Limits(timeout=60, processor_time=True, trials=60, jobs=jobs)
    first = examine_text(str(path), text, None, limits, store=store)
    assert first.removals or first.repairs
    kept = dict(store)
    assert kept
    monkeypatch.setattr(command, "check_case", refuse)
    again = examine_text(str(path), text, None, limits, store=store)
    assert (again.removals, again.repairs, again.fixed) == (first.removals, first.repairs, first.fixed)
    assert store == kept
    with pytest.raises(AssertionError, match="checked again"):
        examine_text(str(path), text, None, Limits(timeout=60, processor_time=True, trials=60), store=Store())


def test_answers_that_a_limit_cut_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(case: Case, settings: Settings, options: Options) -> Result:
        return replace(check_case(case, settings, options), cut=True)

    monkeypatch.setattr(command, "check_case", check)
    path, store = KERNELS / "A05-same-thread-without-proxy-fence-fixed.litmus", Store()
    limits = Limits(timeout=60, processor_time=True)
    found = examine_text(str(path), path.read_text(encoding="utf-8"), None, limits, store=store)
    assert found.removals is not None
    assert found.removals.trials
    assert not store
