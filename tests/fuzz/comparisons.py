"""The three comparison campaigns, item by item: random programs, metamorphic pairs, edited models."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from mcheck.base.errors import McheckError
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from tests.fuzz.differential import LISTING, EngineAnswer, contradictions, extras, model_of, run_engine, run_engines
from tests.fuzz.draft import Draft
from tests.fuzz.metamorphic import RELATIONS, Pair, violations
from tests.fuzz.minimise import minimise
from tests.fuzz.programs import draft, legal
from tests.fuzz.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The programs, engines and time limits of a campaign; ``save`` is a folder for differences."""

    seed: str
    families: tuple[str, ...]
    engines: tuple[str, ...]
    timeout: float
    save: Path | None = None
    patience: float = 60.0
    thorough: bool = False

    def random(self, number: int, purpose: str = "") -> Random:
        """The source of chance of one item: the same for the same seed, number and purpose."""
        return Random(f"{self.seed}:{number}{purpose}")


def read(made: Draft) -> Program | None:
    """The program, if its text is one."""
    try:
        return parse(made.text(), f"{made.name}.litmus")
    except McheckError:
        return None


def compare_program(plan: Plan, number: int, record: Record) -> None:
    """A random program before all engines; what differs is made small and kept."""
    made = draft(plan.random(number), plan.families)
    compare_text(plan, f"{plan.seed}-{number}", made, record)


def compare_text(plan: Plan, name: str, made: Draft, record: Record) -> None:
    """A program before all engines, timed and counted."""
    program = parse(made.text(), f"{name}.litmus")
    record.count("programs", made.name)
    for word in instructions(program):
        record.count("instructions", word)
    heard: dict[str, EngineAnswer] = {}
    model = model_of(program.model or "ptx-9.0")
    for engine in plan.engines:
        started = time.process_time()
        heard[engine] = run_engine(engine, program, model, plan.timeout)
        record.count("seconds", engine, time.process_time() - started)
    account(heard, record)
    found = contradictions(heard)
    if plan.thorough and set(LISTING) <= set(plan.engines):
        found += extras(program, plan.timeout)
    if not found:
        return
    for sort in sorted({d.sort for d in found}):
        record.count("differences", f"{'/'.join(sort[1])} {sort[0]}")
    record.differs(name, [str(d) for d in found])
    if plan.save is not None:
        sorts = {d.sort for d in found}

        def shows(smaller: Draft) -> bool:
            p = read(smaller)
            if p is None:
                return False
            again = contradictions(run_engines(p, plan.engines, timeout=plan.timeout))
            return bool(sorts & {d.sort for d in again})

        keep(plan, name, made, [str(d) for d in found], shows)


def account(heard: dict[str, EngineAnswer], record: Record) -> None:
    """What the engines have answered, and why one has not."""
    answered = [h for h in heard.values() if not h.open]
    record.count("answers", "by all" if len(answered) == len(heard) else f"by {len(answered)} of {len(heard)}")
    for engine, h in heard.items():
        if h.open:
            record.count("left open", f"{engine}: {brief(h.reason)}")
    if answered:
        first = answered[0]
        record.count("verdicts", "undefined" if first.undefined else first.verdict)
        for code in sorted(first.codes or ()) or ["none"]:
            record.count("findings", code)


def brief(reason: str) -> str:
    """A reason without what is particular to the program."""
    return re.sub(r"\d+", "N", reason.partition(":")[0].partition(";")[0])[:60] or "no reason"


def keep(plan: Plan, name: str, made: Draft, said: Sequence[str], shows: Callable[[Draft], bool]) -> None:
    """Writes a program that differs, and its smallest relative that still does."""
    assert plan.save is not None
    plan.save.mkdir(parents=True, exist_ok=True)
    notes = "".join(f"// {line}\n" for line in said)
    (plan.save / f"{name}.litmus").write_text(made.text() + notes, encoding="utf-8")
    small = minimise(made, shows, seconds=plan.patience)
    (plan.save / f"{name}-small.litmus").write_text(small.text() + notes, encoding="utf-8")


def instructions(program: Program) -> set[str]:
    """The instructions of a program, by the first parts of their names."""
    words = {op.text.strip().removeprefix("await ") for thread in program.threads for op in thread.code}
    names = {re.match(r"(?:@!?%?\w+\s+)?([a-z][\w.]*)", word) for word in words}
    return {".".join(m[1].split(".")[:3]) for m in names if m}


def compare_pair(plan: Plan, number: int, record: Record) -> None:
    """A metamorphic pair before each engine."""
    for attempt in range(50):
        random = plan.random(number, f":pair {attempt}")
        relation = random.choice(list(RELATIONS))
        made = RELATIONS[relation](random, draft(random, plan.families))
        if made is not None and legal(made.first) and legal(made.second):
            break
    else:
        record.count("pairs", "none found")
        return
    record.count("pairs", relation)
    for engine in plan.engines:
        started = time.process_time()
        wrong = _unrelated(plan, engine, made, record)
        record.count("seconds", engine, time.process_time() - started)
        if wrong:
            name = f"{plan.seed}-{number}-{relation}-{engine}"
            record.count("differences", f"{engine} {relation}")
            record.differs(name, wrong)
            if plan.save is not None:
                plan.save.mkdir(parents=True, exist_ok=True)
                notes = "".join(f"// {line}\n" for line in wrong)
                for part, which in (("first", made.first), ("second", made.second)):
                    (plan.save / f"{name}-{part}.litmus").write_text(which.text() + notes, encoding="utf-8")


def _unrelated(plan: Plan, engine: str, pair: Pair, record: Record) -> list[str]:
    heard = []
    for made in (pair.first, pair.second):
        program = parse(made.text(), "pair.litmus")
        heard.append(run_engine(engine, program, model_of(program.model or "ptx-9.0"), plan.timeout))
    for h in heard:
        if h.open:
            record.count("left open", f"{engine}: {brief(h.reason)}")
    return violations(pair, *heard)
