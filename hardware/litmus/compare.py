"""What a chip showed beside what a model allows.

    python -m hardware.litmus.compare [--observed FILE] [--model NAME] [--only PREFIX] [--json FILE]

Every state seen has to be allowed, save in programs with undefined executions, where the model promises nothing. A
state that is not allowed is a mistake of the model, of the program or of the runner, unless ``EXPLAINED`` says why.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hardware.litmus.observe import observed_as
from mcheck.answers.final_states import terms_of
from mcheck.answers.result import Answer
from mcheck.answers.verdict_rules import makes_undefined
from mcheck.cat import load_model
from mcheck.cat.ast import Model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.engine_choice import is_litmus
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse
from mcheck.ir.condition import MemTerm, RegTerm
from mcheck.ir.program import Program
from mcheck.ir.type_sizes import type_size
from mcheck.report.hardware_results import Observation, Values, load, observation_file

MAP_READ_LATE = "the map is read behind the .read wait, which the text excludes"
KEPT = "the assembler takes what a weak access before an acquire had for what is read behind it"
REREAD = ("acquire+race", "handshake-atomic-global+shared", "handshake-global+shared", "handshake-mbarrier+global")
EXPLAINED = {
    "reduce-add-f32-subnormals-are-zero": "the chip keeps subnormal numbers, as ISA 9.4 says and 9.0 does not",
    "tensor-store-tail-is-no-access": "the chip writes the 16 bytes in which a row ends whole",
    "tensor-store-tail-is-skipped": "the chip writes the 16 bytes in which a row ends whole",
    "tensor-map-replaced-after-store-read-wait": MAP_READ_LATE,
    **dict.fromkeys(("chip-61", "chip-818", "chip-1085", "chip-1268", "chip-3373", "chip3-2737"), MAP_READ_LATE),
    **dict.fromkeys(("chip4-745", "chip4-999"), MAP_READ_LATE),
    **dict.fromkeys(("chip4s-2", "chip4s-503", "chip4s-691", *(f"Reread+{name}" for name in REREAD)), KEPT),
    **dict.fromkeys(("chip-2615", "chip3-137"), "the assembler puts a weak load before a relaxed one of the same word"),
}
"""Tests in which sm_90 is known to differ from the text (docs, what a Hopper chip answered, and does)."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One test: the allowed states with how often each was seen, and the states seen that are not among them.

    ``forbids``: what the test looks for is forbidden. ``undefined`` has the codes of the findings that make anything
    allowed. ``unknown`` says why the model has no answer.
    """

    name: str
    instances: int
    hits: int
    allowed: tuple[tuple[tuple[int | None, ...], int], ...]
    beyond: tuple[tuple[Values, int], ...]
    forbids: bool
    undefined: tuple[str, ...]
    unknown: str = ""

    @property
    def contradicts(self) -> bool:
        """Whether the chip did what the model forbids."""
        return bool(self.beyond) and not self.undefined and not self.unknown

    @property
    def seen(self) -> int:
        """How many of the allowed states were seen."""
        return sum(count > 0 for _, count in self.allowed)

    @property
    def stem(self) -> str:
        """The name of the test without its folder."""
        return self.name.rsplit("/", 1)[-1].removesuffix(".litmus")


def compare(program: Program, observation: Observation, model: Model, *, timeout: float = 60) -> Compared:
    """One test; ``program`` is what was run, with the terms that were watched. Of a kernel with an error, whose states
    are many and anything besides, none is listed.
    """
    kernel = not is_litmus(program)
    if kernel:
        found = ask(program, model, Question(about=Completeness.FINDINGS, timeout=timeout)).findings
        if errors := tuple(sorted({f.code for f in found if makes_undefined(f)})):
            return Compared(observation.name, observation.instances, observation.hits, (), (), False, errors)
    given = ask(program, model, Question(about=Completeness.STATES, timeout=timeout), "protocol" if kernel else "auto")
    sizes = [_size(program, t) for t in terms_of(program.condition)]
    counts: Counter[Values] = Counter()
    for values, number in observation.states.items():
        counts[tuple(v % (1 << 8 * s) for v, s in zip(values, sizes, strict=True))] += number
    allowed = []
    matched: set[Values] = set()
    for state in _states(given, sizes) if sizes else [()]:
        fits = [v for v in counts if all(a is None or a == b for a, b in zip(state, v, strict=True))]
        matched.update(fits)
        allowed.append((state, sum(counts[v] for v in fits)))
    codes = tuple(sorted({f.code for f in given.findings if f.severity == "error"})) if given.undefined else ()
    return Compared(
        observation.name,
        observation.instances,
        observation.hits,
        tuple(allowed),
        tuple((v, n) for v, n in sorted(counts.items()) if v not in matched),
        program.condition.kind != "none"
        and given.verdict == ("fail" if program.condition.kind == "exists" else "pass"),
        codes,
        "" if given.complete or given.undefined or not sizes else given.reason or "not all states are known",
    )


def _states(given: Answer, sizes: list[int]) -> Iterator[tuple[int | None, ...]]:
    for outcome in given.outcomes:
        yield tuple(
            None if value == "unknown" else int(value) % (1 << 8 * size)
            for (_, value), size in zip(outcome.state, sizes, strict=True)
        )


def _size(program: Program, term: object) -> int:
    if isinstance(term, MemTerm):
        return term.size
    assert isinstance(term, RegTerm)
    kind = program.threads[term.thread].types[term.reg]
    return 1 if kind == "pred" else type_size(kind)


def _one(seen: Observation, model: str) -> Compared:
    return compare(as_seen(seen), seen, load_model(model))


def as_seen(seen: Observation) -> Program:
    """The program as it was run."""
    return observed_as(parse(seen.text, seen.name), seen.terms, contents=seen.contents)


def all_compared(observations: list[Observation], model: str, jobs: int = 1) -> Iterator[Compared]:
    """The tests that ran to an end, in order."""
    ran = [o for o in observations if o.states]
    if jobs == 1:
        yield from (_one(o, model) for o in ran)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(_one, model=model), ran, chunksize=16)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observed", type=Path, default=observation_file())
    parser.add_argument("--model", default="ptx-9.0")
    parser.add_argument("--only", default="", help="tests whose name starts so")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, help="a line per test")
    parser.add_argument("-v", "--verbose", action="store_true")
    given = parser.parse_args()
    runs, observations = load(given.observed)
    for run in dict.fromkeys(runs):
        print(f"{run.device}, driver {run.driver}, {run.date}, pass {run.name}")
    chosen = [o for o in observations.values() if o.name.startswith(given.only)]
    found = list(all_compared(chosen, given.model, given.jobs))
    bad = 0
    for c in found:
        if c.contradicts and c.stem in EXPLAINED:
            print(f"explained   {c.name}: {EXPLAINED[c.stem]}")
        elif c.contradicts:
            bad += 1
            print(f"NOT ALLOWED {c.name}: {c.beyond}")
        elif c.unknown:
            print(f"unknown     {c.name}: {c.unknown}")
        elif given.verbose:
            what = f", undefined ({', '.join(c.undefined)})" if c.undefined else ""
            print(f"{c.name}: {c.seen} of {len(c.allowed)} states in {c.instances:,}{what}")
    for o in chosen:
        if not o.states:
            print(f"no answer   {o.name}: {o.statuses[-1]}")
    if given.json is not None:
        keys = ("name", "instances", "hits", "forbids", "undefined", "unknown", "seen")
        rows = [{**{k: getattr(c, k) for k in keys}, "states": len(c.allowed), "beyond": len(c.beyond)} for c in found]
        given.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary(found)
    print(f"{bad} tests with a state that {given.model} does not allow and nobody has explained")
    return bool(bad)


def summary(found: list[Compared]) -> None:
    """Tests, instances, and how much of what is allowed was seen."""
    defined = [c for c in found if not c.undefined and not c.unknown]
    whole = sum(c.seen == len(c.allowed) for c in defined)
    print(f"{len(found):,} tests, {sum(c.instances for c in found):,} instances")
    print(f"{len(defined):,} without undefined executions: every allowed state seen in {whole:,}")
    forbidden = [c for c in defined if c.forbids and c.stem not in EXPLAINED]
    tries, hits = sum(c.instances for c in forbidden), sum(c.hits for c in forbidden)
    print(f"{len(forbidden):,} look for what is forbidden: seen {hits} times in {tries:,} instances")
    racy = [c for c in found if c.undefined]
    print(f"{len(racy):,} with a race: what they look for was seen in {sum(c.hits > 0 for c in racy):,}")


if __name__ == "__main__":
    sys.exit(main())
