#!/usr/bin/env python3
"""Bugs planted in ptx-9.0.cat, and the tests of litmus/ that notice.

    python benchmarks/mutations.py [--engine explicit|z3] [--only TEXT] [--tests N]

Each mutation drops a check or changes a definition. It is caught if some test no longer answers as its file expects;
the first such tests are named. Exit status 1 if one is not caught and no argument is listed why it cannot be.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mcheck.cat import full_text, load_model, parse_model
from mcheck.cat.ast import Check, Model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Question
from mcheck.checking.run.result import kinds_hold
from mcheck.frontend.litmus import load
from mcheck.ir.program import Program

ROOT = Path(__file__).resolve().parent.parent
NAME = "ptx-9.0"
SKIPPED = {"kernels"}

CHANGES: tuple[tuple[str, str, str], ...] = (
    ("weak operations are strong", "let strong = ((RLX", "let strong = ((M | RLX"),
    ("volatile and relaxed are weak", "let strong = ((RLX | ACQ", "let strong = ((ACQ"),
    ("red supplies the read of an acquire pattern", "((R & strong) \\ RED)", "(R & strong)"),
    (
        "fence.sc releases nothing",
        "((F & (REL | ACQ_REL | SC)) \\ RESTRICTED)",
        "((F & (REL | ACQ_REL)) \\ RESTRICTED)",
    ),
    (
        "fence.release releases nothing",
        "((F & (REL | ACQ_REL | SC)) \\ RESTRICTED)",
        "((F & (ACQ_REL | SC)) \\ RESTRICTED)",
    ),
    (
        "fence.sc acquires nothing",
        "((F & (ACQ | ACQ_REL | SC)) \\ RESTRICTED)",
        "((F & (ACQ | ACQ_REL)) \\ RESTRICTED)",
    ),
    (
        "fence.acquire acquires nothing",
        "((F & (ACQ | ACQ_REL | SC)) \\ RESTRICTED)",
        "((F & (ACQ_REL | SC)) \\ RESTRICTED)",
    ),
    (
        "restricted fences release everything",
        "let release-fence = ((F & (REL | ACQ_REL | SC)) \\ RESTRICTED)",
        "let release-fence = (F & (REL | ACQ_REL | SC))",
    ),
    (
        "restricted fences acquire everything",
        "let acquire-fence = ((F & (ACQ | ACQ_REL | SC)) \\ RESTRICTED)",
        "let acquire-fence = (F & (ACQ | ACQ_REL | SC))",
    ),
    ("proxies do not matter to moral strength", "let same-proxy = (", "let same-proxy = ((_ * _) | "),
    (
        "scopes do not matter",
        "([strong]; sr; [strong])) & same-proxy",
        "([strong]; [strong]) | (strong * strong)) & same-proxy",
    ),
    ("moral strength of parts", "(vloc & complete-overlap)", "vloc"),
    ("moral strength across addresses", "(vloc & complete-overlap)", "(loc & complete-overlap)"),
    (
        "no observation through atomics",
        "((morally-strong & rf) | (observation; rmw; observation))",
        "(morally-strong & rf)",
    ),
    (
        "release writes publish nothing",
        "let own-released = (([W & REL]; ((po-loc; [strong-write])?)) | ",
        "let own-released = (",
    ),
    ("no release by an earlier write of the place", "([W & REL]; ((po-loc; [strong-write])?))", "[W & REL]"),
    ("no release by fences", " | ([release-fence]; po; [strong-write]))", ")"),
    ("no acquire by a later read of the place", "((([strong-read]; po-loc)?); [R & ACQ])", "[R & ACQ]"),
    ("no acquire by fences", " | ([strong-read]; po; [acquire-fence]))", ")"),
    ("synchronisation at any scope", "let by-patterns = (morally-strong & ", "let by-patterns = ("),
    ("relaxed arrivals release", "[ARRIVE & REL]", "[ARRIVE]"),
    ("complete-tx is cumulative", "[ARRIVE & REL]", "([ARRIVE & REL] | [SIGNAL])"),
    ("a fence before an arrive releases nothing", " | ([release-fence]; po; [ARRIVE | SIGNAL]))", ")"),
    ("relaxed waits acquire", "let awaited = ([WAIT & ACQ]", "let awaited = ([WAIT]"),
    (
        "a fence after a wait acquires nothing",
        "let awaited = ([WAIT & ACQ] | ([WAIT]; (po \\ outlasts); [acquire-fence]))",
        "let awaited = [WAIT & ACQ]",
    ),
    (
        "mbarriers synchronise at any scope",
        "(morally-strong & (arrived; signalled; awaited))",
        "(arrived; signalled; awaited)",
    ),
    ("relaxed cluster arrivals order", "[BARRIVE \\ RLX]", "[BARRIVE]"),
    ("barriers order nothing", "([BARRIVE \\ RLX]; barrier) | ", ""),
    ("no fence before a relaxed cluster arrival", " | ([release-fence & wide]; po; barrier))", ")"),
    ("a narrow fence before a relaxed cluster arrival", "[release-fence & wide]", "[release-fence]"),
    (
        "fence.mbarrier_init releases everything",
        "let release-fence = ((F & (REL | ACQ_REL | SC)) \\ RESTRICTED)",
        "let release-fence = (((F & (REL | ACQ_REL | SC)) \\ RESTRICTED) | MBARRIER_INIT_FENCE)",
    ),
    (
        "fence.mbarrier_init releases nothing",
        "((RESTRICTED & REL) | MBARRIER_INIT_FENCE)",
        "(RESTRICTED & REL)",
    ),
    (
        "restricted fences release nothing",
        "((RESTRICTED & REL) | MBARRIER_INIT_FENCE)",
        "MBARRIER_INIT_FENCE",
    ),
    ("restricted fences acquire nothing", "let narrow-acquire = (RESTRICTED & ACQ)", "let narrow-acquire = 0"),
    (
        "narrow releases take along what they do not cover",
        "(((r & passes); narrow) & passes)",
        "((r; narrow) & passes)",
    ),
    ("narrow acquires bring what they do not cover", "(((r & passes); narrow) & passes)", "((r & passes); narrow)"),
    ("narrow fences hand over once", "((observed | handed); ordered)", "(observed; ordered)"),
    (
        "what precedes an operation is handed over with it",
        "let base-causality = (ordered | ([_ \\ asynchronous]; carried))",
        "let base-causality = (ordered | ((ordered?); [_ \\ asynchronous]; carried))",
    ),
    ("narrow fences leave copies behind", " | ([asynchronous]; carried))", ")"),
    ("a wait observes arrivals of any scope", "let signalled = (morally-strong & phase)", "let signalled = phase"),
    ("the halves towards the async proxy do not synchronise", " | ([ASYNC]; halves))", ")"),
    (
        "the halves towards the tensormap proxy do not synchronise",
        "([TMAP | later-forms]; halves)",
        "([later-forms]; halves)",
    ),
    ("fence.sc orders nothing beyond its patterns", " | sync_fence)", ")"),
    (
        "a copy is not ordered after what precedes it",
        "let before-issue = (here-or-later; issue)",
        "let before-issue = issue",
    ),
    ("a relaxed wait sees the copy", "([GROUPWAIT] | awaited)", "([GROUPWAIT] | [WAIT])"),
    ("no wait on a group", "(complete; ([GROUPWAIT] | awaited))", "(complete; awaited)"),
    ("no wait on an mbarrier for a copy", "(complete; ([GROUPWAIT] | awaited))", "(complete; [GROUPWAIT])"),
    (
        "a copy's completion orders only the waiter",
        "let after-completion = ((observed; (ordered?))",
        "let after-completion = (observed",
    ),
    (
        "proxy fences of another CTA",
        "(base-causality & other-proxy & scta); [proxy-fence])",
        "(base-causality & other-proxy); [proxy-fence])",
    ),
    (
        "entering fences of another CTA",
        "let entering = ([proxy-fence]; (base-causality & other-proxy & scta)",
        "let entering = ([proxy-fence]; (base-causality & other-proxy)",
    ),
    ("no alias fence", "(((in-time; [ALIAS & BOTH]) | alias-halves); in-time)", "in-time"),
    (
        "fence.proxy.async covers everything",
        "let to-fence = ((base-causality | after-completion) & covers^-1)",
        "let to-fence = (base-causality | after-completion)",
    ),
    (
        "no fence towards the async proxy",
        "let through-fence = ((fenced | fenced-over); (ordered?); issue; [ASYNC])",
        "let through-fence = ([GEN]; before-issue; [ASYNC])",
    ),
    (
        "proxy fences are not handed over by narrow ones",
        "let through-fence = ((fenced | fenced-over); (ordered?)",
        "let through-fence = (fenced; (ordered?)",
    ),
    (
        "proxy fences beside the way",
        "((fenced | fenced-over); (ordered?); issue; [ASYNC])",
        "(in-time & (fenced; way-to-issue; [ASYNC]))",
    ),
    ("halves synchronise at any scope", "let halves = (sr & ", "let halves = ("),
    ("halves towards the async proxy of any scope", "(way & sr)", "way"),
    ("halves towards the tensormap proxy of any scope", "(base-causality & sr)", "base-causality"),
    (
        "the acquiring half covers everything",
        "let enters-async = (([ASYNC & PACQUIRE]; before-issue; [ASYNC]) & covers)",
        "let enters-async = ([ASYNC & PACQUIRE]; before-issue; [ASYNC])",
    ),
    (
        "one half of a proxy fence is enough",
        "let through-halves = (",
        "let through-halves = (([GEN]; to-fence; [ASYNC & PRELEASE]; way-to-issue; [ASYNC]) | ",
    ),
    ("halves order nothing", "(through-fence | through-halves | released-reads", "(through-fence | released-reads"),
    ("what cp.async has read needs no fence", "([W & CPASYNC]", "([CPASYNC]"),
    ("cp.async writes need a fence", "through-halves | released-reads | copied)", "through-halves | released-reads)"),
    ("a completion needs a fence", " | async-to-generic", ""),
    ("copies are not ordered among themselves", " | async-to-async", ""),
    ("tensor maps are never seen", " | generic-to-map", ""),
    ("a tensor map needs no acquire", "(base-causality & sr); acquires-map)", "before-issue; [TMAP])"),
    (
        "tensor maps need no fence",
        "generic-to-async | async-to-generic",
        "([GEN & M]; in-time; [TMAP & M]) | generic-to-async | async-to-generic",
    ),
    ("surface and texture need no fence", "([M]; (in-time & other-proxy & scta); [M])", "([M]; in-time; [M])"),
    (
        "surface and texture across CTAs",
        "([M]; (in-time & other-proxy & scta); [M])",
        "([M]; (in-time & other-proxy); [M])",
    ),
    (
        "aliases need no fence",
        "let preserved = (same-address | other-address)",
        "let preserved = (same-address | other-address | (loc & ([GEN & M]; in-time; [GEN & M])))",
    ),
    ("aliases are never ordered", "let preserved = (same-address | other-address)", "let preserved = same-address"),
    (
        "no causality through an observation",
        "let causality = (preserved | (observation; preserved))",
        "let causality = preserved",
    ),
    ("an atomic is one operation to its observers", "(observation; preserved)", "((rmw?); observation; preserved)"),
    ("morally strong accesses race", "(related | morally-strong)", "related"),
    ("ordered accesses race", "(conflict \\ (related | morally-strong))", "(conflict \\ morally-strong)"),
)
"""(name, text of the model, what stands there instead)"""

HARMLESS: dict[str, str] = {
    "drop FenceSC": "sync_fence is part of base causality, so a cycle of the two breaks Order already",
    "weak operations are strong": "a weak operation has no scope, so sr and observation relate it to no other thread",
    "drop Q41": "what it leaves open is unknown, which no file expects; "
    "tests/checking/modules/test_modules_multimem.py notices",
    "halves towards the async proxy of any scope": "both halves cover shared memory, at the scope of the cluster, "
    "and no thread of another cluster accesses it",
    "the acquiring half covers everything": "the releasing half covers less, its CTA's shared memory, and both "
    "accesses are to the same bytes",
}
"""Mutations that no test of litmus/ can notice, with the argument."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A model with a bug."""

    name: str
    model: Model


def unfit(text: str) -> list[str]:
    """The changes whose place does not stand in the model exactly once."""
    return [f"'{name}': {old}" for name, old, _ in CHANGES if text.count(old) != 1]


def mutations(text: str, model: Model) -> Iterator[Mutation]:
    """Each check dropped, then the changes; one that does not fit the model is an error."""
    if said := unfit(text):
        raise SystemExit("these do not fit the model:\n" + "\n".join(said))
    for k, statement in enumerate(model.statements):
        if isinstance(statement, Check):
            number = sum(1 for s in model.statements[:k] if isinstance(s, Check) and s.name == statement.name) + 1
            nth = f" ({number})" if number > 1 else ""
            rest = model.statements[:k] + model.statements[k + 1 :]
            yield Mutation(f"drop {statement.name}{nth}", replace(model, statements=rest))
    for name, old, new in CHANGES:
        yield Mutation(name, parse_model(text.replace(old, new), f"{name}.cat"))


def as_expected(program: Program, model: Model, engine: str) -> bool:
    """Whether the test answers as its file expects."""
    got = ask(program, model, Question(timeout=20), engine)
    verdict = program.expectation.verdict
    return (verdict is None or got.verdict == verdict) and kinds_hold(program.expectation.kinds, got.findings)


def main() -> int:
    """Prints a line per mutation; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("explicit", "z3"), default="explicit")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutations whose name contains it")
    parser.add_argument("--tests", type=int, default=1, metavar="N", help="name up to N tests that notice")
    options = parser.parse_args()
    model = load_model(NAME)
    text = full_text(NAME)
    files = [f for f in sorted((ROOT / "litmus").rglob("*.litmus")) if f.parent.name not in SKIPPED]
    programs = [(f, p) for f in files if (p := load(str(f))).model in (None, NAME)]
    kept: list[tuple[Path, Program]] = list(programs)
    total = missed = 0
    for mutation in mutations(text, model):
        if options.only not in mutation.name:
            continue
        started = time.perf_counter()
        noticed: list[Path] = []
        for item in kept:
            if not as_expected(item[1], mutation.model, options.engine):
                noticed.append(item[0])
                if len(noticed) >= options.tests:
                    break
        total += 1
        if noticed:
            what = ", ".join(f.stem for f in noticed)
            # what noticed one change is likely to notice the next
            first = [item for item in kept if item[0] in noticed]
            kept = first + [item for item in kept if item[0] not in noticed]
        elif mutation.name in HARMLESS:
            what = f"not noticed: {HARMLESS[mutation.name]}"
        else:
            what, missed = "NOT NOTICED", missed + 1
        print(f"{time.perf_counter() - started:>6.2f} s  {mutation.name}: {what}", flush=True)
    print(f"{total} mutations of {NAME}, {missed} not noticed, {len(programs)} tests")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
