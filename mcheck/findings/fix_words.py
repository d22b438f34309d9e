"""Fixes in words, in terms of PTX: the only place that makes sentences of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcheck.base.phrase import (
    A_BARRIER,
    CLUSTER_BARRIER,
    Aside,
    Code,
    Phrase,
    Site,
    Sites,
    Thing,
    capital,
    join,
    plain,
    say,
    sites,
    things,
)
from mcheck.findings.fix import (
    Advise,
    Await,
    BeforeIssue,
    Change,
    Condition,
    Fix,
    Given,
    HandOver,
    Helper,
    IdleWait,
    Insert,
    Known,
    Meet,
    Note,
    Property,
    Publish,
    Remark,
    Repeat,
    Step,
    ToCome,
    insertions,
)

_HAND_OVER = say("{}, or a release that is acquired", A_BARRIER)
_TENSOR_HAND_OVER = say(
    "{}, a barrier or an mbarrier, {}",
    Code("tcgen05.fence::before_thread_sync"),
    Code("tcgen05.fence::after_thread_sync"),
)
_CONDITIONS = {
    Condition.EACH_THREAD: "in every thread that executes it",
    Condition.EACH_THREAD_OF: "in every thread that executes {}",
    Condition.EACH_OF_CTA: "in every thread of the CTA",
    Condition.EACH_OF_CLUSTER: "in every thread of the cluster",
    Condition.BEFORE: "before {}",
    Condition.AFTER: "after {}",
    Condition.BEFORE_HAND_OVER: "before the hand-over at {}",
    Condition.AFTER_HAND_OVER: "after what hands {} over",
    Condition.BEFORE_ANY_HAND_OVER: "before it hands the bytes over",
    Condition.BEFORE_RELEASE: "before its CTA releases the bytes",
    Condition.AFTER_ACQUIRE: "after the acquire in that CTA",
    Condition.WAITS_FOR_COPY: "which waits for the copy",
    Condition.HANDS_OVER: "which hands the bytes over",
    Condition.RELEASES_MAP: "which releases the map to its readers",
    Condition.RELAXED_WAIT: "whose wait is relaxed and acquires nothing",
}


def text_of(fixes: Iterable[Fix]) -> str:
    """All that is said of fixes, as text."""
    return " ".join(plain(phrase) for fix in fixes for phrase, _ in tell(fix))


def mentioned(fixes: Iterable[Fix]) -> dict[Site, None]:
    """The places that fixes name, in the order of their words, and those that only edits need."""
    given = tuple(fixes)
    named = [site for fix in given for phrase, _ in tell(fix) for site in sites(phrase)]
    return dict.fromkeys((*named, *(point.site for step in insertions(given) for point in step.points)))


def things_in(fixes: Iterable[Fix]) -> Iterator[Thing]:
    """The objects that fixes name."""
    return (thing for fix in fixes for phrase, _ in tell(fix) for thing in things(phrase))


def tell(fix: Fix) -> Iterator[tuple[Phrase, bool]]:
    """The sentences of a fix, the first one what to do; and of each whether it is a detail for those who ask."""
    said = words(fix)
    yield (*(said if isinstance(fix.steps[0], Advise) else capital(said)), "."), False
    if fix.instead is not None:
        given = say(", if {}: ", fix.instead.given) if fix.instead.given else (" ",)
        yield ("Or", *given, *_steps(fix.instead.steps), "."), False
    for note in fix.notes:
        yield (*_remark(note), "."), note.detail if isinstance(note, Note) else not isinstance(note, ToCome)


def told_shortly(fix: Fix) -> Iterator[Phrase]:
    """The sentences of a fix up to the first detail."""
    for phrase, detail in tell(fix):
        if detail:
            return
        yield phrase


def words(fix: Fix) -> Phrase:
    """What to do, as a clause without a capital letter."""
    said = _steps(fix.steps)
    if fix.others:
        said += (", or make ", *join([_subject(change) for change in fix.others]))
    if fix.provided:
        said += (", ", *fix.provided)
    if fix.also:
        said += ("; ", *fix.also)
    return (*said, ": ", *fix.why) if fix.why else said


def _steps(steps: tuple[Step, ...]) -> Phrase:
    """Steps as one clause; a hand-over follows on what it hands over."""
    said = [*_strengthen(steps)] or [_step(one) for one in steps]
    if len(steps) > 1 and isinstance(steps[-1], HandOver):
        return (*join(said[:-1]), ", then ", *said[-1])
    return join(said, last=", and " if any(isinstance(s, Insert) and s.given for s in steps[:-1]) else " and ")


def _strengthen(steps: tuple[Step, ...]) -> Iterator[Phrase]:
    """Of waits that leave too many groups pending, those at all places that need one number, at once."""
    waits = [(one, one.weak) for one in steps if isinstance(one, Insert) and one.weak is not None]
    if 1 < len(waits) == len(steps):
        alike = dict.fromkeys((one.codes, weak.pending) for one, weak in waits)
        for codes, pending in alike:
            at = Sites(
                tuple(weak.site for one, weak in waits if (one.codes, weak.pending) == (codes, pending)), " and "
            )
            yield say("execute {} instead of {} at {}", _codes(codes), str(pending), at)


def _step(step: Step) -> Phrase:
    match step:
        case Insert():
            return _insert(step)
        case Change():
            return _change(step)
        case Await():
            return _await(step)
        case Repeat():
            why = say("a single test may answer false, and {} then comes too early", step.early)
            return say("repeat the {} at {} until it answers true: {}", step.code, step.test, why)
        case Meet():
            return _meet(step)
        case BeforeIssue():
            over = ", with fence.proxy.async before that" if step.fence else ""
            way = say("{}, or a release that the issuing thread acquires", A_BARRIER)
            return say("order {} before the issue of the operation at {}: {}{}", step.first, step.issue, way, over)
        case HandOver(after=Site() as waited, to=Site() as second, tensor=False):
            other = "or a release that is acquired"
            return say("put {} between the wait at {} and {}, {}", step.barrier, waited, second, other)
        case HandOver():
            after = say("after the wait at {} in {}, ", step.after, step.thread) if step.after is not None else ()
            to = say(" to {}: {}", step.to, _TENSOR_HAND_OVER if step.tensor else _HAND_OVER) if step.to else ()
            return say("{}hand over{}", after, to)
        case Publish(fence=fence) if fence:
            first = say("execute {} after {}, in the thread that initialises", Code(fence), step.init)
            return say("{}, and {} between that and {}", first, CLUSTER_BARRIER, step.use) if step.cluster else first
        case Publish(cluster=True):
            return say("let {} stand in both CTAs between {} and {}", CLUSTER_BARRIER, step.init, step.use)
        case Publish():
            between = say("between the mbarrier.init at {} and {}", step.init, step.use)
            return say("put a barrier such as {} {}", Code("bar.sync 0"), between)
        case Advise():
            return step.text


def _given(given: tuple[Given, ...], *, several: bool = False) -> Phrase:
    said: Phrase = ()
    for one in given:
        template = "which hand the bytes over" if several and one.condition is Condition.HANDS_OVER else ""
        sites = (one.site,) if one.site is not None else ()
        said += (", ", *say(template or _CONDITIONS[one.condition], *sites))
    return said


def _codes(codes: tuple[str, ...]) -> Phrase:
    return join([(Code(code),) for code in codes], "; ", "; ")


def _insert(step: Insert) -> Phrase:
    codes = _codes(step.codes)
    if step.weak is not None:
        return say("execute {} instead of {} at {}", codes, str(step.weak.pending), step.weak.site)
    if len(step.points) > 1 and len({place.after for place in step.points}) == 1:
        every = Sites(tuple(place.site for place in step.points), " and ")
        places: Phrase = ("after " if step.points[0].after else "before ", every)
    else:
        places = join([("after " if place.after else "before ", place.site) for place in step.points])
    where = (" ", *places) if places else say(" in {}", step.thread) if step.thread else ()
    because = say(", for {}", step.because) if step.because else ()
    return say("execute {}{}{}{}", codes, where, _given(step.given, several=len(step.points) > 1), because)


def _change(step: Change) -> Phrase:
    lines = join([("at ", site) for site in {site.line: site for site in step.sites}.values()], " and ")
    at = Sites(step.sites)
    match step.what:
        case Property.SCOPE if step.subject:
            return say("give {} scope .{}", step.subject, step.new)
        case Property.SCOPE:
            spelled = f" ({', '.join(dict.fromkeys(step.spelled))})" if step.spelled else ""
            old = f" instead of .{step.old}" if step.old else ""
            return say("give scope .{}{}{}{}", step.new, spelled, old, (" ", *lines) if lines else ())
        case Property.SEMANTICS | Property.STRENGTH:
            return say("make {}", _subject(step))
        case Property.COUNT:
            many = "stage" if step.stages == 2 else f"{step.stages - 1} stages"
            others = f" (as the other {many})" if step.stages > 1 else ""
            return say(
                "initialise {} {} with count {} instead of {}{}", step.subject, lines, step.new, step.old, others
            )
        case Property.BYTES:
            return say("expect {} bytes {} instead of {}", step.new, lines, step.old)
        case Property.PARITY if not step.new:
            return say(
                "flip the parity of the wait for {} {} after each round of the ring (`phase ^= 1`)", step.subject, lines
            )
        case Property.PARITY:
            return say("wait for parity {} instead of {} of {} {}", step.new, step.old, step.subject, lines)
        case Property.BARRIER:
            return say("give {} a barrier of its own: {} instead of {} at {}", step.subject, step.new, step.old, at)
        case Property.THREADS:
            return say("count {} threads at {}", step.new, at)


def _subject(change: Change) -> Phrase:
    """What an instruction becomes: ``the st of line 3 .release.gpu``."""
    return (*change.subject, " ", Code(change.new) if change.what is Property.STRENGTH else change.new)


def _await(step: Await) -> Phrase:
    signal = step.signal
    if step.commit:
        goal = say("the phase of {} that the tcgen05.commit at {} completes", step.phases[0].bar, signal)
    elif step.phases:
        named = [_phase(phase.number or 0, phase.bar) for phase in step.phases]
        goal = say("{}, which the operation at {} completes,", join(named, " and "), signal)
    elif step.mbarrier:
        goal = say("{} that {} signals", Code("the phase of the mbarrier"), signal)
    else:
        goal = say("the completion of {}", signal)
    if step.far:
        goal = say("let a thread of its CTA wait for {}{}", goal, " and hand over" if step.before else "")
    else:
        goal = say("wait for {}", goal)
    other = ", or take over from a thread that did" if step.or_other else ""
    where = say(" before {}{}", step.before, other) if step.before is not None else ()
    thread = say(" in {}", step.thread) if step.thread else ()
    fence = say(", and execute {} behind the wait", Code("tcgen05.fence::after_thread_sync")) if step.commit else ()
    return (*goal, *where, *thread, *_given(step.given), *fence)


def _phase(number: int, bar: Thing) -> Phrase:
    return say("phase {} (parity {}) of {}", str(number), str(number % 2), bar)


def _meet(step: Meet) -> Phrase:
    hand_over = "release after the first access and acquire before the second"
    if step.first is not None and step.second is not None:
        return say("put {} between {} and {}, or {}", A_BARRIER, step.first, step.second, hand_over)
    return say("{}, or put {} between them", hand_over, step.barrier) if step.barrier is not None else (hand_over,)


# --- what an execution showed -----------------------------------------------------------------------------------


def _remark(note: Remark) -> Phrase:
    match note:
        case Note():
            return note.text
        case IdleWait():
            return say("The wait at {} {}", note.at, note.does)
        case Known():
            step = f", step {note.step}" if note.step is not None else ""
            return say(
                "What {} knows of {} ends with {}{}", note.thread, note.other, note.at, Aside(f" ({note.code}{step})")
            )
        case ToCome():
            kind = "write" if note.write else "signal"
            return say("Still to {} {}: {}", kind, note.bar, join([_helper(h) for h in note.helpers], "; ", "; "))


def _helper(helper: Helper) -> Phrase:
    are = "are" if helper.several else "is"
    return say("{} at {}, which {} stuck at {}{}", helper.threads, helper.signal, are, helper.stuck, helper.waits)
