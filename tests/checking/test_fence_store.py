"""Examinations with a store: what it has of changed programs is not checked again."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL
from time import process_time, sleep

import pytest

from benchmarks.fences_removal import ring
from mcheck.base.verdicts import Verdict
from mcheck.checking.check import command
from mcheck.checking.check.command import check_case
from mcheck.checking.fences import examination
from mcheck.checking.fences.examination import Examined, Limits, examine_text
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


@pytest.mark.daily
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


def give_up(case: Case, settings: Settings, options: Options) -> Result:
    """A check that comes to its limit."""
    return replace(check_case(case, settings, options), verdict=Verdict.UNKNOWN, cut=True)


def examine_fixed(store: Store) -> Examined:
    path = KERNELS / "A05-same-thread-without-proxy-fence-fixed.litmus"
    limits = Limits(timeout=60, processor_time=True)
    return examine_text(str(path), path.read_text(encoding="utf-8"), None, limits, store=store)


def test_what_was_given_up_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An examination that goes on where another was interrupted comes to the next change."""
    store = Store()
    monkeypatch.setattr(command, "check_case", give_up)
    first = examine_fixed(store)
    kept = dict(store)
    assert first.removals is not None
    assert len(kept) == first.removals.trials > 0
    assert not first.removals.removable
    monkeypatch.setattr(command, "check_case", refuse)
    assert examine_fixed(store).removals == first.removals
    assert store == kept


def test_what_was_given_up_is_tried_with_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    monkeypatch.setattr(command, "check_case", give_up)
    examine_fixed(store)
    monkeypatch.setattr(command, "check_case", check_case)
    monkeypatch.setattr(examination, "LEAST", 4 * examination.LEAST)
    found = examine_fixed(store)
    assert found.removals is not None
    assert found.removals == examine_fixed(Store()).removals
    assert not found.removals.undecided


def test_a_check_that_had_less_time_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of the whole examination cut it."""
    store, late = Store(), [0.0]

    def check(case: Case, settings: Settings, options: Options) -> Result:
        late[0] = 1000.0
        return give_up(case, settings, options)

    monkeypatch.setattr(command, "check_case", check)
    monkeypatch.setattr(examination, "process_time", lambda: process_time() + late[0])
    found = examine_fixed(store)
    assert found.removals is not None
    assert found.removals.trials
    assert not store


def answers(folder: Path) -> set[bytes]:
    """The keys of the answers in a folder."""
    path = folder / "answers.sqlite"
    if not path.exists():
        return set()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        try:
            return {key for (key,) in database.execute("select key from answers")}
        except sqlite3.OperationalError:  # it is being made
            return set()


@pytest.mark.daily(least=0)
def test_an_examination_that_was_killed_goes_on(tmp_path: Path) -> None:
    path, cache = tmp_path / "ring.litmus", tmp_path / "cache"
    path.write_text(ring(1, 1), encoding="utf-8")
    command = [sys.executable, "-m", "mcheck", "fences", str(path), "--format", "json", "-j", "1"]
    whole = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    with subprocess.Popen([*command, "--cache", str(cache)], stdout=subprocess.DEVNULL) as killed:
        while len(answers(cache)) < 3 and killed.poll() is None:
            sleep(0.01)
        killed.kill()
    assert killed.returncode == -SIGKILL
    kept = answers(cache)
    assert len(kept) >= 3
    again = subprocess.run([*command, "--cache", str(cache)], check=True, capture_output=True, text=True).stdout
    assert again == whole
    assert kept < answers(cache)
