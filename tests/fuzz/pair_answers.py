"""Two answers about a grid, from pairs of its clusters and about all of them: what is compared, and the command that
compares those about random plans.
"""

from __future__ import annotations

import argparse
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.errors import Unsupported
from mcheck.base.reasons import format_reasons
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.answer import follow_clusters
from mcheck.checking.policy.question import Question
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.trace_extraction import ClusterTrace
from tests.fuzz.differential import DEFAULT_MODEL, model_of

P = TypeVar("P")


@dataclass(frozen=True)
class Compared(Generic[P]):
    """Both answers about a plan, and what is wrong: "" if they agree."""

    plan: P
    pairs: Answer | None
    why: str
    whole: Answer
    wrong: str = ""


class Compare(Protocol[P]):
    """Compares the answers about a plan, each of which has so many seconds."""

    def __call__(self, plan: P, seconds: float, /) -> Compared[P]: ...


def build(text: str, given: dict[str, Any], *, cooperative: bool) -> tuple[Module, Launch]:
    """A module and its launch."""
    module = parse_module(text, "grid.ptx")
    return module, replace(build_launch(module, from_object(given)), cooperative=cooperative)


def follow_pair(module: Module, pair: Launch, limit: Limit, trace: ClusterTrace | None = None) -> Answer | None:
    """The answer about two clusters, which are known to stand for all."""
    question = Question(timeout=limit.left())
    model = model_of(DEFAULT_MODEL)
    given = follow_clusters(module, pair, model, question, "auto", limit, alone=True, apart=True, trace=trace)
    return None if given is None or given.deadlocks else given.answer


def say_why(find: Callable[[], Answer | None]) -> tuple[Answer | None, str]:
    """The answer of an argument about pairs, or why there is none."""
    try:
        found = find()
        if found is not None and found.verdict is Verdict.BOUNDED:
            return None, format_reasons(found.reasons) or ""
        return found, "" if found is not None else "the pair is left open"
    except NotReducible as error:
        return None, error.why
    except (TimeOut, Unsupported) as error:
        return None, f"too late, or not followed: {error}"


def contradiction(pairs: Answer | None, whole: Answer) -> str:
    """What is wrong with an answer from pairs beside that about all clusters: "" if they agree."""
    both = None if pairs is None else (pairs.verdict, whole.verdict)
    wrong = {(Verdict.PROVED, Verdict.FINDING): "missed", (Verdict.FINDING, Verdict.PROVED): "invented"}
    return "" if both is None else wrong.get(both, "")


def compare_random(about: str | None, generate: Callable[[Random], P], compare: Compare[P]) -> int:
    """The command: compares the answers about random plans, and prints how often there is which."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--verbose", action="store_true", help="print each answer")
    given = parser.parse_args()
    tally: Tally[str] = Tally()
    for seed in range(given.seed, given.seed + given.programs):
        found = compare(generate(Random(seed)), given.seconds)
        said = f"refused: {found.why}" if found.pairs is None else found.pairs.verdict.value
        tally[f"{said} / {found.whole.verdict.value}"] += 1
        if found.wrong:
            print(f"seed {seed}: {found.wrong}: {found.plan}", flush=True)
        elif given.verbose:
            print(f"seed {seed}: {said} / {found.whole.verdict.value}", flush=True)
    for what, number in tally.most_common():
        print(f"{number:5} {what}")
    return 0
