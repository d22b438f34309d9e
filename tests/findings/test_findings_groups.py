"""Groups: one for each bug, joined only where one edit fixes all, consequences behind their causes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcheck.base.errors import Span
from mcheck.base.phrase import Actor, Code, Part, Site, Thing, say
from mcheck.findings.finding import Access, CompiledLine, Finding
from mcheck.findings.fix import (
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
    Point,
    Property,
    Publish,
    Repeat,
    ToCome,
    advise,
)
from mcheck.findings.fix_words import mentioned
from mcheck.findings.groups import causes, group_findings
from mcheck.findings.one_place import place_for_all, place_in_gap
from mcheck.findings.trace import Step, StepKind
from mcheck.findings.waits import OfMbarrier, Wait

GENERIC = Fix((Meet(),))


def insert(code: str, line: int, *given: Given, after: bool = True, leaves: int | None = None) -> Fix:
    return Fix((Insert(codes=(code,), points=(Point(Site(line), after),), given=given, leaves=leaves),))


def access(
    line: int, source: int, access: str = "read", *, call: int = 0, instruction: str = "ld.shared.u32"
) -> Access:
    chain = (Span("k.cu", source, 5), *((Span("k.cu", call, 3),) if call else ()))
    return Access(
        thread=f"warp{line % 4}[0]", instruction=instruction, span=Span("k.ptx", line, 1), object="buf@0",
        bytes=(4 * line, 4 * line + 4), access=access, source=chain,
    )  # fmt: skip


def race(first: Access, second: Access, fix: Fix = GENERIC, code: str = "RACE003") -> Finding:
    return Finding(
        code=code, kind="race", severity="error", said=("a race",), accesses=(first, second), fixes=(fix,),
        lines=tuple(CompiledLine(s.line, (Span("k.cu", s.line // 10, 1),)) for s in mentioned((fix,))),
    )  # fmt: skip


def members(*findings: Finding) -> list[tuple[int, ...]]:
    return [group.members for group in group_findings(findings)]


def test_an_unrolled_loop_is_one_group() -> None:
    found = [race(access(line, 20, "write"), access(line + 1, 22)) for line in (100, 200, 300)]
    (group,) = group_findings(found)
    assert (group.code, group.members, group.pairs, group.follows) == ("RACE003", (0, 1, 2), 1, None)


def test_calls_of_one_function_are_places_of_their_own() -> None:
    one, other = (race(access(line, 8, "write", call=call), access(50, 22)) for line, call in ((100, 13), (200, 19)))
    assert members(one, other) == [(0,), (1,)]


def test_a_test_that_nothing_repeats_is_one_bug_whatever_comes_too_early() -> None:
    one, other, far = (
        race(
            access(first, first // 10, "write"),
            access(50, 22),
            Fix((Repeat(Code("mbarrier.try_wait"), Site(test), Site(50)),)),
        )
        for first, test in ((100, 90), (210, 90), (320, 300))
    )
    assert members(one, other, far) == [(0, 1), (2,)]


def test_other_codes_and_severities_are_other_groups() -> None:
    found = race(access(100, 20, "write"), access(110, 22))
    assert members(found, replace(found, code="RACE001"), replace(found, severity="review")) == [(0,), (1,), (2,)]


def test_columns_tell_the_threads_of_a_table_apart() -> None:
    def cell(column: int) -> Access:
        return Access(thread="P0", instruction="st x, 1", span=Span("t.litmus", 4, column), object="x", access="write")

    assert members(race(cell(2), cell(14)), race(cell(2), cell(26))) == [(0,), (1,)]


def wait(leaves: int, line: int) -> Fix:
    return insert(f"cp.async.wait_group {leaves}", line, Given(Condition.HANDS_OVER), after=False, leaves=leaves)


def test_one_wait_at_one_source_line_fixes_several_pairs_and_the_strongest_is_shown() -> None:
    notes = (IdleWait(Site(7), ("leaves the 2 latest groups pending",)), IdleWait(Site(9), ("leaves the latest",)))
    found = [
        race(access(100, 13, "write"), access(110, 22), wait(1, 201).noted(notes[0])),
        race(access(120, 19, "write"), access(130, 23), wait(0, 205).noted(notes[1])),
    ]
    (group,) = group_findings(found)
    assert (group.members, group.pairs) == ((1, 0), 2)


def test_waits_at_other_lines_are_other_bugs() -> None:
    found = [
        race(access(100, 13, "write"), access(110, 22), wait(1, 201)),
        race(access(120, 19, "write"), access(130, 23), wait(1, 311)),
    ]
    assert members(*found) == [(0,), (1,)]


@pytest.mark.parametrize("note", [None, Known("warp1[0]", "warp0[0]", Site(457), "bar.sync 0", 3)])
def test_fixes_of_the_catalogue_join_nothing(note: Known | None) -> None:
    found = [race(access(100, 13, "write"), access(110, 22), GENERIC.noted(note), "RACE001"),
             race(access(120, 19, "write"), access(130, 23), GENERIC.noted(note), "RACE001")]  # fmt: skip
    assert members(*found) == [(0,), (1,)]


def unordered(*places: tuple[int, str], buffer: str = "buf@0", fix: Fix = GENERIC) -> Finding:
    """A race of two accesses at lines of the source."""
    first, second = (replace(access(10 * line, line, kind), object=buffer) for line, kind in places)
    return race(first, second, fix, "RACE001")


def test_what_one_barrier_orders_is_one_bug() -> None:
    """A tile is written in three places and read in one: the barrier is missing before that; and the finding to show
    is not one that a barrier of the warp would fix.
    """
    warp = insert("bar.warp.sync 0xffffffff", 980, after=False)
    found = [
        unordered((70, "write"), (98, "read"), fix=warp),
        unordered((77, "write"), (98, "read")),
        unordered((85, "write"), (98, "read")),
    ]
    (group,) = group_findings(found)
    assert (group.members, group.pairs) == ((1, 2, 0), 3)


def in_rounds(finding: Finding, *rounds: str) -> Finding:
    """A finding whose trace goes from its first access to its last one, in these rounds of a loop."""
    ends = zip(finding.accesses, rounds, strict=True)
    steps = (
        Step(thread=one.thread, instruction="", kind=StepKind.READ, span=one.span, iteration=at) for one, at in ends
    )
    return replace(finding, trace=tuple(steps))


def test_a_loop_that_reads_what_it_wrote_lacks_one_barrier() -> None:
    before, again = unordered((45, "write"), (50, "read")), unordered((50, "read"), (50, "write"))
    assert [sorted(group) for group in members(before, in_rounds(again, "#6", "#1"))] == [[0, 1]]


@pytest.mark.parametrize("rounds", [("#1", "#1"), ("", "")])
@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_line_that_races_with_itself_in_one_round_lacks_more_than_a_barrier_before_it(
    kind: str, rounds: tuple[str, str]
) -> None:
    itself = in_rounds(unordered((50, kind), (50, "write")), *rounds)
    assert members(unordered((45, "write"), (50, kind)), itself) == [(0,), (1,)]


def after(line: int, operation: str = "bar.sync 0") -> Fix:
    """The fix of a race of threads that have met at a line of the source."""
    return GENERIC.noted(Known("warp1[0]", "warp0[0]", Site(10 * line), operation, 3))


@pytest.mark.parametrize("line", [5, 20])
def test_a_barrier_before_or_behind_all_accesses_leaves_one_bug(line: int) -> None:
    found = [unordered((at, "write"), (15, "read"), fix=after(line)) for at in (10, 12)]
    assert members(*found) == [(0, 1)]


def test_a_barrier_between_the_writes_of_a_loop_leaves_two_bugs() -> None:
    """Write, barrier, write, read: one barrier is missing before the read, and another at the end of the round."""
    found = [unordered((at, "write"), (15, "read"), fix=after(11)) for at in (10, 12)]
    assert members(*found) == [(0,), (1,)]


def test_what_is_handed_over_otherwise_lacks_no_barrier() -> None:
    found = [unordered((at, "write"), (15, "read"), fix=after(5, "mbarrier.arrive.b64")) for at in (10, 12)]
    assert members(*found) == [(0,), (1,)]


def test_a_tile_that_is_written_before_and_behind_the_read_lacks_two_barriers() -> None:
    assert members(unordered((10, "write"), (12, "read")), unordered((14, "write"), (12, "read"))) == [(0,), (1,)]


@pytest.mark.parametrize(
    "other",
    [
        unordered((20, "write"), (98, "read"), buffer="tile@0"),
        unordered((20, "write"), (99, "read")),
        unordered((20, "write"), (98, "write")),
        replace(unordered((20, "write"), (98, "read")), code="RACE010"),
        unordered((20, "write"), (98, "read"), fix=insert("bar.sync 0", 200, after=False)),
    ],
)
def test_other_objects_places_and_codes_are_other_bugs(other: Finding) -> None:
    assert members(unordered((10, "write"), (98, "read")), other) == [(0,), (1,)]


def test_no_barrier_orders_global_memory() -> None:
    found = [unordered((line, "write"), (98, "read"), buffer="out") for line in (10, 20)]
    assert members(*found) == [(0,), (1,)]


def test_one_fence_before_one_hand_over() -> None:
    def missing(after: int, over: int) -> Finding:
        before = Given(Condition.BEFORE_HAND_OVER, Site(over))
        return race(
            access(after, after // 10),
            access(400, 40, "write"),
            insert("fence.proxy.async", after, Given(Condition.EACH_THREAD), before),
            "RACE006",
        )

    assert members(missing(111, 301), missing(121, 305)) == [(0, 1)]
    assert members(missing(111, 301), missing(121, 315)) == [(0,), (1,)]


def uninitialised(init: int, use: int) -> Finding:
    return replace(
        race(access(use, use), access(use, use), Fix((Publish(Site(init), Site(use)),)), "UB201"),
        kind="undefined",
        accesses=(access(use, use),),
    )


def test_one_barrier_stands_behind_all_initialisations_or_there_are_two() -> None:
    assert members(uninitialised(40, 90), uninitialised(50, 80)) == [(0, 1)]
    assert members(uninitialised(40, 60), uninitialised(70, 80)) == [(0,), (1,)], "a use between the two"


def test_the_shortest_trace_is_shown() -> None:
    step = Step(thread="P", instruction="i", kind=StepKind.READ)
    found = [replace(race(access(100, 20, "write"), access(110, 22)), trace=(step,) * n) for n in (3, 2)]
    assert members(*found) == [(1, 0)]


def test_a_deadlock_follows_from_the_mbarrier_that_it_waits_for() -> None:
    misuse = Finding(
        code="UB205", kind="undefined", severity="error", accesses=(access(70, 7),),
        said=say("{}{}: 1 arrival in phase 1, which has 0 pending", Actor("warp0[0]"), Thing("full[0]", 0)),
    )  # fmt: skip
    stuck = Finding(
        code="DEAD003", kind="deadlock", severity="error", accesses=(access(90, 9),),
        said=say("wait forever: warp1[0] at {} (i) waits for parity 0 (phase 0) of {}", Site(90), Thing("full[1]", 0)),
    )  # fmt: skip
    groups = group_findings((misuse, stuck))
    assert [(g.code, g.follows) for g in groups] == [("UB205", None), ("DEAD003", 0)]
    assert [g.code for g in causes(groups)] == ["UB205"]
    apart = replace(stuck, said=(Thing("empty[1]", 0),))
    assert [g.follows for g in group_findings((misuse, apart))] == [None, None]


def undefined(code: str, at: Access, *said: Part) -> Finding:
    return Finding(code=code, kind="undefined", severity="error", said=said, accesses=(at,), fixes=(advise("Wait"),))


def test_one_wait_that_lacks_is_one_bug_for_all_uses_of_the_registers() -> None:
    uses = [undefined("UB702", access(line, line // 10), "uses what ", Site(50), " writes") for line in (60, 70)]
    assert members(*uses) == [(0, 1)]
    assert members(uses[0], undefined("UB702", access(80, 8), "uses what ", Site(40), " writes")) == [(0,), (1,)]


def test_tensor_memory_that_is_freed_too_early_is_one_bug() -> None:
    assert members(*(undefined("UB604", access(line, line // 10), "accesses columns") for line in (60, 70))) == [(0, 1)]


def test_a_race_of_one_warp_follows_from_its_barrier_that_leaves_lanes_out() -> None:
    meets = access(80, 8, instruction="bar.warp.sync 255")
    found = undefined("UB109", meets, "the member mask leaves out the executing lane")
    own = race(access(60, 6, "write"), access(100, 10), code="RACE001")
    assert [(g.code, g.follows) for g in group_findings((own, found))] == [("UB109", None), ("RACE001", 0)]
    other = race(access(61, 6, "write"), access(100, 10), code="RACE001")
    assert {g.follows for g in group_findings((other, found))} == {None}


def test_a_copy_that_outlives_its_cta_follows_from_the_missing_wait_for_it() -> None:
    copy = access(70, 7, "write", instruction="cp.async.bulk.shared::cluster")
    outlives = Finding(code="UB501", kind="undefined", severity="review", said=("exits",), accesses=(copy,))
    groups = group_findings((outlives, race(copy, access(90, 9))))
    assert [(g.code, g.members, g.follows) for g in groups] == [("RACE003", (1,), None), ("UB501", (0,), 0)]
    other = replace(outlives, accesses=(access(75, 8, "write"),))
    assert [g.follows for g in group_findings((other, race(copy, access(90, 9))))] == [None, None]


def refilled(read: int, copy: int, *, call: int = 0, fence: bool = False) -> Finding:
    """A copy at a line of the source, or of a function that line ``call`` calls, overwrites what a line reads."""
    fix = Fix((BeforeIssue(Site(10 * read), Site(10 * copy), fence),))
    lines = (CompiledLine(10 * copy, access(10 * copy, copy, call=call).source), CompiledLine(10 * read, ()))
    found = race(access(10 * read, read), access(10 * copy, copy, "write", call=call), fix)
    return replace(found, lines=lines)


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        (refilled(36, 29), refilled(37, 30), True),  # copies before reads in a loop
        (refilled(26, 29), refilled(27, 30), True),  # and behind them
        (refilled(36, 21, call=29), refilled(37, 22, call=29), True),  # a function copies both
        (refilled(36, 29), refilled(57, 50), False),  # two loops
        (refilled(36, 29), refilled(37, 30, fence=True), False),
    ],
)
def test_tiles_of_two_arrays_that_are_refilled_too_early_lack_one_barrier(
    first: Finding, second: Finding, joined: bool
) -> None:
    assert members(first, second) == ([(0, 1)] if joined else [(0,), (1,)])


@pytest.mark.parametrize(("calls", "joined"), [((23, 23), True), ((23, 25), False)])
def test_a_barrier_after_a_call_is_one_for_all_that_it_reads(calls: tuple[int, int], joined: bool) -> None:
    def reads(line: int, call: int) -> Finding:
        told = insert("bar.sync 0", line, Given(Condition.EACH_OF_CTA))
        first = access(line, line // 10, call=call)
        found = race(first, access(300, 30, "write", call=29), told, "RACE001")
        return replace(found, lines=(CompiledLine(line, first.source),))

    assert members(reads(100, calls[0]), reads(120, calls[1])) == ([(0, 1)] if joined else [(0,), (1,)])


def test_a_statement_that_has_to_be_strong_is_one_bug_whichever_call_it_is_in() -> None:
    def reset(line: int, call: int) -> Finding:
        told = Fix((Change(what=Property.STRENGTH, sites=(Site(line),), new="st.relaxed.gpu", subject=("the write",)),))
        write = access(line, 15, "write", call=call)
        return replace(race(access(90, 14), write, told, "RACE001"), lines=(CompiledLine(line, write.source),))

    assert members(reset(100, 29), reset(200, 31)) == [(0, 1)]


def test_lines_of_the_barrier_that_is_missing_join_no_more_than_the_fix_of_the_catalogue() -> None:
    found = [
        unordered((70, "write"), (98, "read"), fix=Fix((Meet(first=Site(700), second=Site(980)),))),
        unordered((77, "write"), (98, "read"), fix=Fix((Meet(first=Site(770), second=Site(980)),))),
    ]
    assert members(*found) == [(1, 0)]  # the second names the place that does for both


@pytest.mark.parametrize(("line", "follows"), [(400, 0), (410, None)])
def test_an_mbarrier_that_goes_before_its_signal_follows_from_the_missing_wait_for_that(
    line: int, follows: int | None
) -> None:
    early = race(access(370, 37), access(280, 28, "write"), Fix((Await(signal=Site(400), before=Site(280)),)))
    ends = access(line, line // 10, instruction="tcgen05.commit"), access(500, 50, instruction="mbarrier.inval")
    gone = Finding(code="UB215", kind="undefined", severity="error", said=("gone",), accesses=ends)
    assert sorted((g.code, g.follows) for g in group_findings([gone, early])) == [("RACE003", None), ("UB215", follows)]


def test_a_deadlock_at_the_hand_over_of_a_slot_that_is_refilled_too_early_is_its_consequence() -> None:
    early = race(
        access(370, 37),
        access(280, 28, "write"),
        replace(insert("bar.warp.sync 0xffffffff", 370), why=say("at {} x", Site(400))),
    )
    waits = Finding(
        code="DEAD003", kind="deadlock", severity="error", said=("wait forever",), accesses=(access(260, 26),),
    )  # fmt: skip
    for line, follows in ((400, 0), (390, None)):
        helper = Helper("warp1[0]", Site(line), Site(260), ())
        stuck = replace(waits, fixes=(advise("Nothing on {}", Thing("e")).noted(ToCome(Thing("e"), (helper,))),))
        known = tuple(CompiledLine(s.line, (Span("k.cu", s.line // 10, 1),)) for s in mentioned(stuck.fixes))
        assert [group.follows for group in group_findings([early, replace(stuck, lines=known)])] == [None, follows]


def lacking(fix: Fix, gap: tuple[int, ...], first: int, second: int) -> Finding:
    return replace(
        race(access(10 * first, first, "write"), access(10 * second, second), fix), gap=tuple(map(CompiledLine, gap))
    )


@pytest.mark.parametrize("fix", [Fix((HandOver(Site(9), Site(5), "P"),)), Fix((Meet(first=Site(5), second=Site(9)),))])
def test_races_that_one_barrier_orders_are_one_bug_and_the_narrowest_place_is_shown(fix: Fix) -> None:
    assert members(lacking(fix, (40, 50, 60), 4, 9), lacking(fix, (60, 70), 6, 8)) == [(1, 0)]


def test_two_buffers_that_lack_a_barrier_each_are_two_bugs() -> None:
    fix = Fix((Meet(first=Site(5), second=Site(9)),))
    assert members(lacking(fix, (40, 50), 4, 6), lacking(fix, (70, 80), 7, 9)) == [(0,), (1,)]


def test_a_barrier_and_a_wait_at_one_place_are_two_bugs() -> None:
    barrier = Fix((HandOver(Site(9), Site(5), "P"),))
    assert members(lacking(barrier, (50,), 4, 9), lacking(wait(1, 201), (50,), 3, 8)) == [(0,), (1,)]


def test_a_slot_that_is_refilled_too_early_for_want_of_the_same_barrier_follows() -> None:
    early, refill = Fix((HandOver(Site(9), Site(5), "P"),)), Fix((BeforeIssue(Site(9), Site(4)),))
    groups = group_findings([lacking(early, (50, 60), 4, 9), lacking(refill, (60, 90), 9, 3)])
    assert [group.follows for group in groups] == [None, 0]
    apart = group_findings([lacking(early, (50,), 4, 9), lacking(refill, (90,), 8, 3)])
    assert [group.follows for group in apart] == [None, None]


def called(line: int, source: int, kind: str, *calls: int) -> Access:
    """An access in a function that is called at these lines, the innermost first."""
    at = access(line, source, kind)
    return replace(at, source=(*at.source, *(Span("k.cu", call, 3) for call in calls)))


def in_function(line: int, call: int, *, copy: int = 4, read: int = 8) -> Finding:
    """A function that is called at a line lacks a barrier before its read."""
    fix = insert("bar.sync 0", line + 1, Given(Condition.EACH_OF_CTA), after=False)
    first, second = called(line, copy, "write", call), called(line + 1, read, "read", call)
    return replace(race(first, second, fix, "RACE001"), lines=(CompiledLine(line + 1, second.source),))


def test_a_barrier_that_a_function_lacks_is_one_bug_however_often_it_is_inlined() -> None:
    (group,) = group_findings([in_function(100, 20), in_function(200, 22), in_function(300, 24)])
    assert (group.members, group.pairs) == ((0, 1, 2), 1)
    assert members(in_function(100, 20), in_function(200, 22, read=9)) == [(0,), (1,)]


def test_copies_by_one_wrapper_are_told_apart_by_its_calls() -> None:
    """A barrier inside of the wrapper would be behind both copies, but it does not belong there."""

    def unready(line: int, call: int) -> Finding:
        fix = Fix((Meet(first=Site(line), second=Site(line + 2)),))
        first, second = called(line, 4, "write", call), access(line + 2, call + 2)
        behind = CompiledLine(line, first.source), CompiledLine(line + 1, (Span("k.cu", call + 1, 3),))
        return replace(race(first, second, fix), gap=behind)

    assert members(unready(100, 20), unready(200, 30)) == [(0,), (1,)]
    assert members(unready(100, 20), unready(200, 20)) == [(0, 1)]


def test_a_place_in_a_function_stands_for_all_of_its_calls() -> None:
    """A loop calls a function whose last read lacks a barrier before the next call, and so does the call before it."""
    fix = Fix((Meet(first=Site(101), second=Site(100)),))
    again = replace(
        race(called(101, 8, "read", 24), called(100, 4, "write", 24), fix),
        gap=(CompiledLine(101, (Span("k.cu", 8, 5),)),),
    )
    before = replace(
        race(called(51, 8, "read", 20), called(100, 4, "write", 24), fix),
        gap=(CompiledLine(51, (Span("k.cu", 8, 5), Span("k.cu", 20, 3))), CompiledLine(60, (Span("k.cu", 22, 3),))),
    )
    assert members(again, before) == [(0, 1)]
    elsewhere = replace(before, gap=before.gap[1:])
    assert members(again, elsewhere) == [(0,), (1,)]


def unawaited(line: int, *calls: int) -> Finding:
    """A read that does not wait for the copy of another function."""
    fix = Fix((Await(signal=Site(100), before=Site(line)),))
    return race(called(100, 10, "write", 50), called(line, line // 10, "read", *calls), fix)


@pytest.mark.parametrize(("calls", "cause"), [((15, 60), "RACE003"), ((15, 70), "UB212"), ((), "UB212")])
def test_an_arrival_ahead_follows_from_the_wait_that_its_function_lacks(calls: tuple[int, ...], cause: str) -> None:
    """Another warp of the role arrives than the one whose read was found; of another function, it may be the cause."""
    early = undefined("UB212", replace(called(342, 34, "write", *calls), instruction="mbarrier.arrive"))
    found = [unawaited(331, 60), replace(early, severity="error", fixes=(GENERIC,))]
    assert [group.code for group in causes(group_findings(found))] == [cause]


@pytest.mark.parametrize("calls", [(15, 60), (15, 70), ()])
def test_what_is_for_review_does_not_stand_above_the_error_that_may_follow_from_it(calls: tuple[int, ...]) -> None:
    early = undefined("UB212", replace(called(342, 34, "write", *calls), instruction="mbarrier.arrive"))
    groups = group_findings([replace(early, severity="review", fixes=(GENERIC,)), unawaited(331, 60)])
    assert [(group.code, group.follows) for group in groups] == [("RACE003", None), ("UB212", 0)]


@pytest.mark.parametrize(("waiter", "follows"), [("warp2[1..31]", 0), ("warp3[1..31]", None)])
def test_a_wait_of_a_warp_that_the_copies_do_not_wait_for_follows(waiter: str, follows: int | None) -> None:
    overwritten = race(access(42, 10), access(43, 12, "write"), Fix((BeforeIssue(Site(42), Site(43)),)))
    goal = OfMbarrier(
        bar=Thing("full"), parity=0, meant=0, now=2, pending=1, expected=1, announced=0, received=0
    )  # fmt: skip
    stuck = replace(overwritten, code="DEAD003", kind="deadlock", accesses=(access(45, 9),), fixes=(GENERIC,))
    stuck = replace(stuck, waits=(Wait(waiter, Site(45), goal),))
    assert [group.follows for group in group_findings([overwritten, stuck])] == [None, follows]


def test_what_follows_from_a_consequence_follows_from_the_cause_that_is_found_later() -> None:
    """A ring that goes on without its consumers: copies meet copies, and arrivals come ahead of phases."""
    fix = Fix((Await(signal=Site(100), before=Site(100)),))
    copies = race(called(100, 10, "write", 50), called(100, 10, "write", 50), fix)
    ahead = undefined("UB212", replace(access(100, 11), instruction="mbarrier.arrive"))
    read = race(
        called(100, 10, "write", 50), called(331, 33, "read", 60), Fix((Await(signal=Site(100), before=Site(331)),))
    )
    groups = group_findings([replace(ahead, fixes=(GENERIC,)), copies, read])
    assert [(g.code, g.members, g.follows) for g in groups if g.follows is None] == [("RACE003", (2,), None)]
    assert {g.follows for g in groups} == {None, 0}


def test_a_barrier_is_shown_where_it_does_for_all_races_of_its_bug() -> None:
    behind = [CompiledLine(110, (Span("k.cu", 11, 3),)), CompiledLine(120, (Span("k.cu", 12, 3),))]
    between = replace(
        race(access(100, 10, "write"), access(130, 13), Fix((HandOver(Site(130), Site(110), "P"),))), gap=tuple(behind)
    )
    before = insert("bar.sync 0", 120, Given(Condition.EACH_OF_CTA), after=False)
    first = replace(race(access(120, 12, "write"), access(140, 14), before), gap=tuple(behind[:1]))
    gap = frozenset({place_in_gap(behind[0])})
    moved = place_for_all(between, gap, [between, first])
    (step,) = moved.fixes[0].steps
    assert isinstance(step, Insert)
    assert (step.codes, step.points) == (("bar.sync 0",), (Point(Site(110), after=True),))
    assert place_for_all(between, gap, [between]) == between  # nobody knows whether all threads come by
    assert place_for_all(between, frozenset(map(place_in_gap, behind)), [between, first]) == between
