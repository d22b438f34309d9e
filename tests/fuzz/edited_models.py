"""Comparison under edited models: an engine must follow the given model or report that it cannot.

For each edit of a shipped model some tests of the suites are put to the explicit engine, most of them such that the
edit changes their answer, and then to the others: they agree, they refuse (``unknown``, with a reason), or they differ.
Counted apart are the two questions: what is found, and (where a test asks for it) which states there are. A test that
the edit leaves without any execution is not one of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from mcheck.cat.ast import Model
from mcheck.frontend.litmus import load
from mcheck.ir.program import Program
from tests.cat.pretty import show_model
from tests.fuzz.comparisons import Plan, brief
from tests.fuzz.differential import EngineAnswer, contradictions, model_of, run_engine
from tests.fuzz.edits import edited
from tests.fuzz.record import Record

BASES = ("ptx-9.0", "ptx-9.3", "ptx-9.5")
REFERENCE = "explicit"
TRIED = 250
"""Tests that the explicit engine looks at under each edit, until enough of them have another answer."""
OF_STATES = ("states", "verdict")
"""What differences say that are none of findings."""
CHANGED, UNCHANGED = 6, 3
"""Tests that the other engines look at: those whose answer the edit changes, and others."""
QUICK = 0.5
"""Seconds that a test may take under the model as it is, to be one of those that are tried."""


@dataclass(slots=True)
class Suites:
    """The tests that edits are tried on, with their answers under the models as they are."""

    files: list[Path]
    programs: dict[Path, Program] = field(default_factory=dict)
    answers: dict[tuple[Path, str], EngineAnswer | None] = field(default_factory=dict)

    def program(self, path: Path) -> Program:
        """A test, read once; it says nothing about the model, which is given."""
        if path not in self.programs:
            self.programs[path] = replace(load(str(path)), model=None)
        return self.programs[path]

    def before(self, path: Path, base: str) -> EngineAnswer | None:
        """The answer under a shipped model, or nothing if it takes too long."""
        if (path, base) not in self.answers:
            heard = run_engine(REFERENCE, self.program(path), model_of(base), QUICK)
            self.answers[path, base] = None if heard.open else heard
        return self.answers[path, base]


def suites(folder: Path) -> Suites:
    """The suites of a folder, but kernel sketches, whose models are not for every engine."""
    return Suites([f for f in sorted(folder.rglob("*.litmus")) if f.parent.name != "kernels"])


def comparison(tests: Suites) -> Callable[[Plan, int, Record], None]:
    """One edit, on tests drawn from the suites."""
    return lambda plan, number, record: compare_edit(plan, number, record, tests)


def compare_edit(plan: Plan, number: int, record: Record, tests: Suites) -> None:
    """Edit ``number``: which engines follow it."""
    random = plan.random(number, ":edit")
    base = BASES[number % len(BASES)]
    what, model = edited(random, model_of(base))
    record.count("edits", what.split(" in ")[0] if "dropped in" in what else "renamed or inlined or tested")
    chosen = _chosen(plan, random, tests, base, model)
    record.count("tests", "changed by the edit", sum(1 for _, _, changed in chosen if changed))
    record.count("tests", "unchanged", sum(1 for _, _, changed in chosen if not changed))
    differing: list[str] = []
    for path, reference, _ in chosen:
        for engine in plan.engines:
            if engine == REFERENCE:
                continue
            started = time.process_time()
            heard = run_engine(engine, tests.program(path), model, plan.timeout)
            record.count("seconds", engine, time.process_time() - started)
            differing += _count(engine, path, reference, heard, record)
    if differing:
        name = f"{plan.seed}-{number}-{base}"
        record.differs(f"{name}: {what}", differing)
        if plan.save is not None:
            plan.save.mkdir(parents=True, exist_ok=True)
            notes = "".join(f"(* {line} *)\n" for line in (what, *differing))
            (plan.save / f"{name}.cat").write_text(show_model(model) + notes, encoding="utf-8")


def _count(engine: str, path: Path, reference: EngineAnswer, heard: EngineAnswer, record: Record) -> list[str]:
    """Counts an answer by question; in what it differs."""
    found = contradictions({REFERENCE: reference, engine: heard})
    asked = {"findings": (heard.codes is None, [d for d in found if d.what not in OF_STATES])}
    if reference.states and any(reference.states):
        asked["states"] = (heard.states is None, [d for d in found if d.what in OF_STATES])
    for question, (refused, differences) in asked.items():
        answer = "differ" if differences else "refused" if refused else "agreed"
        record.count(f"{engine}, {question}", answer)
        if answer == "refused":
            record.count(f"{engine}, {question} refused", brief(heard.reason))
    return [f"{path.stem}: {d}" for d in found]


def _chosen(
    plan: Plan, random: Random, tests: Suites, base: str, model: Model
) -> list[tuple[Path, EngineAnswer, bool]]:
    """Tests, their answers under the edited model by the explicit engine, and whether the edit changed them."""
    changed: list[tuple[Path, EngineAnswer, bool]] = []
    others: list[tuple[Path, EngineAnswer, bool]] = []
    for path in random.sample(tests.files, min(TRIED, len(tests.files))):
        before = tests.before(path, base)
        if before is None:
            continue
        after = run_engine(REFERENCE, tests.program(path), model, plan.timeout)
        if after.open or after.none:
            continue
        differs = bool(contradictions({"before": before, "after": after}))
        (changed if differs else others).append((path, after, differs))
        if len(changed) >= CHANGED:
            break
    return changed[:CHANGED] + others[:UNCHANGED]
