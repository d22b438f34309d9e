"""The answer about several launches: those about each of them, joined in the order of the file, and what they do to
each other.

Launches of one GPU are in one stream (``mcheck.checking.modules.launches.launch_order``); those of different GPUs run
at the same time (``mcheck.checking.modules.launches.concurrent_launches``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mcheck.answers.result import Answer, Covers, LaunchAnswer
from mcheck.answers.verdict_rules import add_verdict, verdict_of
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.phrase import say
from mcheck.base.progress import Level, note
from mcheck.base.reasons import Cause, Reason, Reasons, timeout_reason, unique_reasons
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Model
from mcheck.checking.modules.any_parameter import answer_for_every
from mcheck.checking.modules.grid_coverage import uncovered_grid
from mcheck.checking.modules.launches.concurrent_launches import GroupAnswer, answer_groups
from mcheck.checking.modules.launches.launch_order import Conflict
from mcheck.checking.modules.launches.launch_races import launch_race, uncertain_reason
from mcheck.checking.modules.launches.launch_study import LaunchStudy
from mcheck.checking.policy.question import Question
from mcheck.findings.finding import Finding
from mcheck.frontend.ptx.launch import Launch, LaunchSequence
from mcheck.frontend.ptx.module import Module
from mcheck.simt.instructions.recording import OTHER_GRIDS
from mcheck.simt.traces import dependent_grids

MOST_REASONS = 4
"""The maximum number of pairs of accesses that a reason lists."""
MOST_NAMES = 8
"""The maximum number of launches that a text lists."""
CONTENTS = "what earlier launches leave in memory decides whether this is {}"
UNCERTAIN = "launches that may overlap are not ordered for certain"
STREAM = "each GPU runs these launches in one stream, and nothing else beside them"
AT_ONCE = "launches on different GPUs run at the same time: each of these GPUs begins its launch at once"


def answer_sequence(
    module: Module, sequence: LaunchSequence, model: Model, question: Question, engine: str = "auto"
) -> Answer:
    """The answer about launches in stream order. Raises ``InputError`` as ``answer_launch`` does."""
    limit = Limit(question.timeout)
    study = LaunchStudy(module, sequence.launches, limit)
    known: dict[Launch, Answer] = {}
    answers: list[Answer] = []
    conflicts: list[Conflict] = []
    left: list[Reason] = []
    groups: list[GroupAnswer] = []
    settled: dict[int, Answer] = {}
    try:
        groups += answer_groups(study, model, question, engine, limit)
        settled |= {k: _given(study, k, group) for group in groups if _settles(study, group) for k in group.numbers}
        for number in range(len(study.launches)):
            if number in settled:
                answers.append(settled[number])
                continue
            begun = study.begins_with(number)
            if begun not in known:
                note(Level.LAUNCH, f"launch {number + 1} of {len(study.launches)}")
                asked = replace(question, timeout=limit.remaining())
                given = answer_for_every(module, begun, model, asked, engine)
                for example in study.examples(number):
                    if example != begun and any(f.severity == "error" for f in given.findings):
                        asked = replace(question, timeout=limit.remaining())
                        given = _without_doubtful(given, answer_for_every(module, example, model, asked, engine))
                known[begun] = given
            answers.append(_within(study, number, known[begun]))
        conflicts = study.conflicts()
        left += _listed(UNCERTAIN, study, [c for c in conflicts if not c.definite])
        left += [reason for group in groups for reason in group.reasons]
    except TimeOut as over:
        left.append(timeout_reason(question.timeout, str(over)))
    for number, why in sorted(study.missing.items()):
        said = f"not all that {study.name(number)} accesses was compared with other launches"
        left.append(Reason(Cause.LAUNCHES, said, because=(why,)))
    races = [launch_race(c, study, question.profile) for c in conflicts if c.definite]
    return _joined(study, answers, groups, races, tuple(left))


def _listed(said: str, study: LaunchStudy, conflicts: Sequence[Conflict]) -> Reasons:
    """The reason for pairs of accesses, the first of which it lists; none if there are none."""
    if not conflicts:
        return ()
    why = [uncertain_reason(c, study) for c in conflicts[:MOST_REASONS]]
    more = len(conflicts) - MOST_REASONS
    why += [Reason(Cause.GAP, f"{more} more pairs")] if more > 0 else []
    return (Reason(Cause.LAUNCHES, said, because=tuple(why)),)


# --- the answer about one of them -----------------------------------------------------------------------------


def _without_doubtful(given: Answer, described: Answer) -> Answer:
    """The answer about a launch without findings that may rest on contents that earlier launches do not leave.

    ``given`` takes the contents of what they may write as unknown, or some as what a lock or a counter holds at first;
    ``described`` as an example: an error is one of the launch if all examples have it, whose words are not alike.
    """

    def key(finding: Finding) -> object:
        return finding.code, tuple(access.span for access in finding.accesses)

    sure = {key(f) for f in described.findings}
    kept = tuple(f for f in given.findings if f.severity != "error" or key(f) in sure)
    said = [
        Reason(Cause.OTHER_LAUNCHES, CONTENTS.format(f.code), span=f.accesses[0].span if f.accesses else None)
        for f in given.findings if f not in kept
    ]  # fmt: skip
    if not said:
        return given
    return add_verdict(replace(given, findings=kept, covered=False, reasons=unique_reasons(given.reasons, said)))


def _within(study: LaunchStudy, number: int, given: Answer) -> Answer:
    """The answer about a launch without what is known better if the launches around it are known: what it accesses
    before its wait (RACE011), and waits that another launch may end.
    """
    given = _without_other_grids(study, (number,), given)
    awaited = {f: _awaited(study, number, f) for f in given.findings if f.kind == "deadlock"}
    kept = tuple(f for f in given.findings if not awaited.get(f))
    if len(kept) == len(given.findings):
        return given
    said = [reason for found in awaited.values() for reason in found]
    covered = given.covered and not said
    verdict, reasons = verdict_of(kept, covered=covered, reasons=unique_reasons(given.reasons, said))
    return replace(given, verdict=verdict, reasons=reasons, findings=kept, covered=covered)


def _without_other_grids(study: LaunchStudy, numbers: Sequence[int], given: Answer) -> Answer:
    """The answer about launches, without what is said of the ones before if these are known: that there are none, or
    which.
    """
    firsts = {numbers[0] for numbers, _ in study.streams.values()}
    if any(k in firsts and study.launches[k].programmatic for k in numbers):
        return given
    findings = tuple(f for f in given.findings if f.code != dependent_grids.CODE)
    kept = replace(given, findings=findings, assumptions=tuple(a for a in given.assumptions if a != OTHER_GRIDS))
    return kept if findings == given.findings else add_verdict(kept)


def _given(study: LaunchStudy, number: int, group: GroupAnswer) -> Answer:
    """The answer about one of several launches that were followed together, which has the executions."""
    assert group.answer is not None
    assert group.answer.covers is not None
    total = study.launches[number].total_count
    covers = Covers(clusters=total, total=total, together=group.answer.covers.together)
    given = _without_other_grids(study, group.numbers, group.answer)
    return replace(given, covers=covers, executions=0, reasons=() if group.reasons else given.reasons)


def _settles(study: LaunchStudy, group: GroupAnswer) -> bool:
    """Whether the answer about launches together is one about each of them: they were followed whole, and no other
    launch takes part in their executions.
    """
    if not group.says_more:
        return False
    others = [k for k in range(len(study.launches)) if k not in group.numbers]
    return all(study.is_apart(k, others) for k in group.numbers)


def _awaited(study: LaunchStudy, number: int, finding: Finding) -> Reasons:
    """The waits of a deadlock that another launch may end by a write to global memory: what earlier launches leave
    there is not known.
    """
    found = []
    for access in finding.accesses:
        for other in range(len(study.launches)):
            if study.may_write_for(number, other, access.object):
                said = f"this waits for {access.object}, which {study.name(other)} may write"
                found.append(Reason(Cause.OTHER_LAUNCHES, said, span=access.span))
    return unique_reasons(found)


# --- all of them ----------------------------------------------------------------------------------------------


def _joined(
    study: LaunchStudy, answers: Sequence[Answer], groups: Sequence[GroupAnswer], races: Sequence[Finding],
    left: Reasons,
) -> Answer:  # fmt: skip
    findings = (*_named_findings(study, answers, groups), *races)
    whole = len(answers) == len(study.launches) and not left
    covered = whole and all(given.covered for given in answers)
    why = tuple(_reasons_of_launches(study, answers))
    verdict, reasons = verdict_of(findings, covered=covered, reasons=(*why, *left))
    if verdict is Verdict.PROVED:
        reasons = why
    first = answers[0] if answers else Answer(verdict=Verdict.UNKNOWN, engine="protocol")
    every = [*answers, *(group.answer for group in groups if group.answer is not None)]
    return replace(
        first,
        verdict=verdict,
        reasons=reasons,
        findings=findings,
        covered=covered,
        assumptions=(*_common_assumptions(study, answers, groups), STREAM, *_at_once(groups)),
        executions=sum(given.executions for given in every),
        undefined=any(given.undefined for given in every),
        cut=any(given.cut for given in every),
        covers=_sum_covers(study, answers, groups),
        filled_once=_filled_once(study, answers),
        launches=tuple(
            LaunchAnswer(entry=launch.entry, gpu=launch.gpu, verdict=given.verdict, covers=given.covers)
            for launch, given in zip(study.launches, answers, strict=False)
        ),
    )


def _filled_once(study: LaunchStudy, answers: Sequence[Answer]) -> tuple[str, ...]:
    """The rings of which no launch of a kernel fills a stage twice."""
    found: dict[str, set[str]] = {}
    for launch, given in zip(study.launches, answers, strict=False):
        names = set(given.filled_once)
        found[launch.entry] = found[launch.entry] & names if launch.entry in found else names
    return tuple(sorted(set[str]().union(*found.values())))


def _at_once(groups: Sequence[GroupAnswer]) -> Iterator[str]:
    """What is assumed of launches that were followed together."""
    if any(group.answer is not None for group in groups):
        yield AT_ONCE


def _named_findings(
    study: LaunchStudy, answers: Sequence[Answer], groups: Sequence[GroupAnswer]
) -> tuple[Finding, ...]:
    """The findings about single launches and about several together, each with the launches that have it."""
    found: dict[object, tuple[Finding, list[int]]] = {}
    places = set()
    for number, given in enumerate(answers):
        for finding in given.findings:
            key = finding.code, finding.message, tuple((a.span, a.access) for a in finding.accesses)
            found.setdefault(key, (finding, []))[1].append(number)
            places.add((key[0], key[2]))
    for group in groups:
        for finding in () if group.answer is None else group.answer.findings:
            key = finding.code, finding.message, tuple((a.span, a.access) for a in finding.accesses)
            if (key[0], key[2]) not in places:
                found.setdefault(key, (finding, [*group.numbers]))
    return tuple(replace(one, said=say("{}: {}", _names(study, numbers), one.said)) for one, numbers in found.values())


def _reasons_of_launches(study: LaunchStudy, answers: Sequence[Answer]) -> Iterator[Reason]:
    """Why single launches have no better answer, once for all that have the same reasons."""
    found: dict[Reasons, list[int]] = {}
    for number, given in enumerate(answers):
        if given.reasons:
            found.setdefault(given.reasons, []).append(number)
    for reasons, numbers in found.items():
        yield Reason(Cause.LAUNCH, _names(study, numbers), because=reasons)


def _names(study: LaunchStudy, numbers: Sequence[int]) -> str:
    """Launches of one entry or several, as text."""
    entries = dict.fromkeys(study.entry(k) for k in numbers)
    more = f" and {len(numbers) - MOST_NAMES} more" if len(numbers) > MOST_NAMES else ""
    if len(numbers) == 1 or len(entries) > 1:
        return ", ".join(map(study.name, numbers[:MOST_NAMES])) + more
    return f"launches {', '.join(str(k + 1) for k in numbers[:MOST_NAMES])}{more} ({next(iter(entries))})"


def _common_assumptions(study: LaunchStudy, answers: Sequence[Answer], groups: Sequence[GroupAnswer]) -> Iterable[str]:
    """What all answers assume, once, and what only some of them assume, with their launches."""
    said: dict[str, list[int]] = {}
    for number, given in enumerate(answers):
        for text in given.assumptions:
            numbers = said.setdefault(text, [])
            if number not in numbers:
                numbers.append(number)
    for group in groups:
        for text in () if group.answer is None else group.answer.assumptions:
            said.setdefault(text, [*group.numbers])
    for text, numbers in said.items():
        yield text if len(numbers) == len(answers) else f"{_names(study, numbers)}: {text}"


def _sum_covers(study: LaunchStudy, answers: Sequence[Answer], groups: Sequence[GroupAnswer]) -> Covers:
    """What is covered of all launches; of one without an answer nothing is."""
    found = [given.covers or uncovered_grid(launch) for launch, given in zip(study.launches, answers, strict=False)]
    joint = [group.answer.covers for group in groups if group.answer is not None and group.answer.covers is not None]
    left = [uncovered_grid(launch).total for launch in study.launches[len(answers) :]]
    return Covers(
        clusters=sum(c.clusters for c in found),
        total=sum(c.total for c in found) + sum(left),
        together=max((c.together for c in (*found, *joint)), default=1),
    )
