"""The relations that grow with an execution are those of the whole execution: on random graphs, whatever comes when."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model, parse_model
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.cat.algebra.tape import compile_model
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.execution import machine
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.incremental import compilation as compiling
from mcheck.engines.protocol.incremental import full_evaluation, indistinguishable
from mcheck.engines.protocol.incremental import state as growing
from mcheck.engines.protocol.incremental.entries import LARGE, Entry, Masks, bits
from mcheck.engines.protocol.incremental.full_evaluation import evaluate
from mcheck.engines.protocol.incremental.kinds import DYNAMIC
from mcheck.engines.protocol.incremental.window import Window
from mcheck.engines.protocol.passes import passes_without
from mcheck.events.event import Event, MbarrierStep
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from tests.engines.protocol.sketches import ring

PROGRAM = """PTX threads
{ .global .u32 x; .shared .align 8 .b64 b; }
P@cta 0, warp 0..2, lane 0 { st.global.u32 [x], 1; }
Q@cta 1 { st.global.u32 [x], 2; }
"""
KINDS: tuple[frozenset[Tag], ...] = tuple(
    frozenset(tags)
    for tags in (
        (Tag.R, Tag.M, Tag.WEAK, Tag.GEN, Tag.SHARED),
        (Tag.W, Tag.M, Tag.WEAK, Tag.GEN, Tag.SHARED),
        (Tag.R, Tag.M, Tag.ACQ, Tag.GEN, Tag.GLOBAL),
        (Tag.W, Tag.M, Tag.REL, Tag.GEN, Tag.GLOBAL),
        (Tag.R, Tag.M, Tag.WEAK, Tag.ASYNC, Tag.SHARED),
        (Tag.W, Tag.M, Tag.WEAK, Tag.ASYNC, Tag.SHARED),
        (Tag.F, Tag.ACQ_REL, Tag.GEN),
        (Tag.F, Tag.SC, Tag.GEN),
        (Tag.F, Tag.PROXYFENCE, Tag.ASYNC, Tag.BOTH),
        (Tag.F, Tag.PROXYFENCE, Tag.ASYNC, Tag.PRELEASE),
        (Tag.F, Tag.PROXYFENCE, Tag.ASYNC, Tag.PACQUIRE),
        (Tag.F, Tag.RESTRICTED, Tag.REL, Tag.GEN),
        (Tag.F, Tag.RESTRICTED, Tag.ACQ, Tag.GEN),
        (Tag.MBAR, Tag.GEN, Tag.ARRIVE, Tag.REL),
        (Tag.MBAR, Tag.GEN, Tag.WAIT, Tag.ACQ),
        (Tag.MBAR, Tag.GEN, Tag.INIT),
        (Tag.B, Tag.BARRIVE),
        (Tag.B, Tag.BWAIT),
        (Tag.ISSUE,),
        (Tag.GROUPWAIT,),
        (Tag.MBAR, Tag.GEN, Tag.COMPLETE, Tag.ASYNCSIGNAL),
    )
)
SCOPED = frozenset((Tag.ACQ, Tag.REL, Tag.ACQ_REL, Tag.SC))


def entry_of(random: Random, window: Window, program: Program, number: int, before: list[int], stale: bool) -> Entry:
    thread = random.randrange(len(program.threads))
    tags = random.choice(KINDS)
    outside = {Tag.ASYNC, Tag.M} <= tags or Tag.ASYNCSIGNAL in tags
    event = Event(
        (thread, number),
        program.threads[thread].code[0],
        tags,
        None if outside else number,
        number,
        program.threads[thread].place.cta.number,
        address=0x1000 + 4 * random.randrange(3),
        size=4 if Tag.M in tags else 0,
        scope=random.choice(("cta", "cluster", "gpu")) if tags & SCOPED else None,
        mbarrier=MbarrierStep(1 << 40, "arrive") if Tag.MBAR in tags else None,
        spaces=frozenset(("shared::cta",)) if Tag.RESTRICTED in tags or random.random() < 0.3 else frozenset(),
    )
    exact = Tag.M in tags and random.random() < 0.5
    edges = {} if outside else {"po": before[thread]}
    for name in sorted(DYNAMIC - {"po", "co", "rf"}):
        if random.random() < 0.12:
            edges[name] = random.getrandbits(30) & random.getrandbits(30) & window.all
    for name in ("co", "rf") if exact else ():
        if random.random() < 0.4:
            edges[name] = random.getrandbits(30) & window.exact
    back = {}
    if stale and random.random() < 0.2:
        back = {random.choice(("co", "phase-fr", "phase-order")): random.getrandbits(30) & window.all}
    return window.entry(event, thread, edges=edges, back=back, exact=exact, instruction=number)


@pytest.mark.daily
@pytest.mark.parametrize("name", ["ptx-9.0", "ptx-9.3", "ptx-7.5", "sc"])
@pytest.mark.parametrize(("often", "large"), [(0, LARGE), (compiling.MIN_COUNT, LARGE), (0, 0)])
def test_what_grows_is_what_the_whole_says(name: str, often: int, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a function for every kind of event, with the one for all, and with equal sets kept once from the first."""
    monkeypatch.setattr(compiling, "MIN_COUNT", often)
    monkeypatch.setattr(compiling, "LARGE", large)
    monkeypatch.setattr(growing, "LARGE", large)
    monkeypatch.setattr(growing, "MAX_EQUAL", 3)
    monkeypatch.setattr(growing, "_COMPILED", {})
    program = parse(PROGRAM, "threads.litmus")
    tape = tape_of(load_model(name))
    chained: set[int] = set()
    for seed in range(12):
        random = Random(seed)
        window, before = Window(program, tape), [0] * len(program.threads)
        stale = random.random() < 0.3
        for number in range(random.randrange(5, 20)):
            entry = entry_of(random, window, program, number, before, stale)
            broken, flags = window.add(entry)
            if broken is not None:
                break
            if entry.event.order is not None:
                before[entry.thread] |= entry.bit
            kept = {n: list(column) for n, column in window.cols.items()}
            asked = {*window.compiled.stored, *(c.node for c in window.checks)} - window.compiled.deferred
            whole = evaluate(window, frozenset(asked))
            for n in window.compiled.stored:
                assert all(kept[n][k] == whole[n][k] for k in bits(window.all)), (seed, number, n)
            for flag in {c.name for c in window.checks if c.role == "flag"}:
                said = 0
                for f in flags:
                    said |= (f.pairs | (entry.bit if f.own else 0)) if f.name == flag else 0
                assert said == _flagged(window, whole, flag, entry), (seed, number, flag)
        chained |= window.compiled.chained.keys()
    assert chained or not name.startswith("ptx-9"), "nothing was computed from the latest events of a closure"


@pytest.mark.parametrize(
    "definitions",
    [
        "let rec near = po | rf",
        "let rec near = po | far and far = (rf & ext) | co",
        "let rec near = po | (near; far) and far = rf & ext",
    ],
)
def test_definitions_need_not_recur(definitions: str) -> None:
    program = parse(PROGRAM, "threads.litmus")
    tape = compile_model(parse_model(f'"m"\n{definitions}\nflag ~empty (near; near) as RACE001', "m.cat"))
    found = 0
    for seed in range(6):
        random = Random(seed)
        window, before = Window(program, tape), [0] * len(program.threads)
        for number in range(12):
            entry = entry_of(random, window, program, number, before, stale=False)
            _, flags = window.add(entry)
            if entry.event.order is not None:
                before[entry.thread] |= entry.bit
            asked = {*window.compiled.stored, *(c.node for c in window.checks)} - window.compiled.deferred
            said = 0
            for flag in flags:
                said |= flag.pairs | (entry.bit if flag.own else 0)
            assert said == _flagged(window, evaluate(window, frozenset(asked)), "RACE001", entry), (seed, number)
            found |= said
    assert found


@pytest.mark.daily
@pytest.mark.parametrize("name", ["ptx-9.0", "ptx-9.3", "ptx-9.5"])
def test_what_follows_from_other_columns_is_not_stored(name: str) -> None:
    program = parse(PROGRAM, "threads.litmus")
    window = Window(program, tape_of(load_model(name)))
    random = Random(0)
    before = [0] * len(program.threads)
    for number in range(60):  # so that the window has a column for whatever the model says
        window.add(entry_of(random, window, program, number, before, stale=False))
    for number, tags in enumerate((KINDS[5], KINDS[20]), 60):
        event = Event(
            (0, number), program.threads[0].code[0], tags, None, number, 0, address=0x1000,
            size=4 if Tag.M in tags else 0, mbarrier=MbarrierStep(1 << 40, "arrive") if Tag.MBAR in tags else None,
        )  # fmt: skip
        entry = window.entry(event, 0, edges={}, instruction=number)
        window.add(entry)
        held = {window.tape.code[n].op for n, column in window.cols.items() if column[entry.slot]}
        assert "and" not in held, tags
    groups = {n for n, i in enumerate(window.tape.code) if i.op == "base" and i.name in ("scta", "scluster", "sgpu")}
    kept = {k for n in window.compiled.stored for k in (window.tape.code[n].a, window.tape.code[n].b)}
    assert groups
    assert not groups & kept, "what an event is related to within its CTA follows from what it is related to"


def test_masks_by_key_are_those_of_the_events_that_were_added() -> None:
    """Whatever is asked for in between, whatever is dropped, and whichever copy goes on."""
    for seed in range(40):
        random = Random(seed)
        masks, plain = Masks(), dict[object, int]()
        for slot in random.sample(range(300), 60):
            key = random.randrange(6)
            masks.add(key, slot)
            plain[key] = plain.get(key, 0) | 1 << slot
            match random.randrange(8):
                case 0:
                    asked = random.randrange(7)
                    assert masks.get(asked) == plain.get(asked, 0), seed
                case 1:
                    keep = random.getrandbits(300)
                    masks.drop(keep)
                    plain = {k: left for k, mask in plain.items() if (left := mask & keep)}
                case 2:
                    left_behind, masks = masks, masks.copy()
                    left_behind.add(random.randrange(6), 300)
                case 3:
                    masks.put(key, masks.get(5))
                    plain[key] = plain.get(5, 0)
        assert {k: mask for k, mask in masks.by_key.items() if mask} == {k: m for k, m in plain.items() if m}, seed


@pytest.mark.parametrize(("least", "most"), [(3, 1 << 30), (3, 1), (1 << 20, 1)])
def test_rows_of_several_parts_tell_the_same_events_apart(
    least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(3)
    program = parse(PROGRAM, "threads.litmus")
    window = Window(program, tape_of(load_model("ptx-9.0")))
    before = [0] * len(program.threads)
    for number in range(70):
        entry = entry_of(random, window, program, number, before, stale=False)
        window.add(entry)
        if entry.event.order is not None:
            before[entry.thread] |= entry.bit
    watched = window.all & random.getrandbits(70) & random.getrandbits(70)
    groups = [[k for k in bits(window.all & ~watched) if k % 2 == number] for number in range(2)]
    whole = indistinguishable._classify(window, watched, groups, lambda: None, (), 0)
    monkeypatch.setattr(indistinguishable, "MAX_CELLS", most)
    parts = indistinguishable._classify(window, watched, groups, lambda: None, (), least)
    assert whole is not None
    classes = [{frozenset(k for k in whole if whole[k] == n) for n in set(whole.values())}]
    if parts is not None:
        classes.append({frozenset(k for k in parts if parts[k] == n) for n in set(parts.values())})
    assert len({frozenset(c) for c in classes}) == 1
    assert (parts is None) == (least > len(whole))


def test_equal_sets_of_late_events_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse(PROGRAM, "threads.litmus")
    window = Window(program, tape_of(load_model("ptx-9.0")))
    monkeypatch.setattr(growing, "MAX_EQUAL", 2)
    sets = [1 << 3000 + k | 1 for k in range(3)]
    assert [window.one_of_equal(x) for x in sets] == sets
    for k in (2, 1):
        assert window.one_of_equal(1 << 3000 + k | 1) is sets[k]


def test_events_of_an_instruction_are_known_until_they_are_dropped() -> None:
    program = parse(PROGRAM, "threads.litmus")
    random = Random(1)
    window = Window(program, tape_of(load_model("ptx-9.0")))
    entries = []
    for number in range(3):
        entry = entry_of(random, window, program, number, [0] * len(program.threads), stale=False)
        entry.thread, entry.instruction = 0, "one"
        window.add(entry)
        entries.append(entry)
    saved = window.save()
    every = sum(entry.bit for entry in entries)
    assert window.static("si", entries[-1], entries[-1].bit) == (every, every ^ entries[-1].bit)
    window._drop(every ^ entries[0].bit)
    assert window.static("si", entries[-1], entries[-1].bit)[0] == every ^ entries[0].bit
    window.restore(saved)
    assert window.static("si", entries[-1], entries[-1].bit)[0] == every


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("seed", range(12))
def test_an_event_that_is_not_added_leaves_no_trace(seed: int) -> None:
    """It would be related as it is once it is added, and the window says the same of what comes then."""
    program = parse(PROGRAM, "threads.litmus")
    random = Random(seed)
    window, before = Window(program, tape_of(load_model("ptx-9.0"))), [0] * len(program.threads)
    for number in range(16):
        entry = entry_of(random, window, program, number, before, stale=False)
        said, members = window.find_relations_of(entry)
        assert entry.slot not in bits(window.all)
        assert all(not column[entry.slot] for column in window.cols.values())
        bit = 1 << entry.slot
        assert not any(x & bit for column in window.cols.values() for x in column)
        broken, _ = window.add(entry)
        if broken is not None:
            break
        assert said == {n: column[entry.slot] for n, column in window.cols.items()}
        assert members == {n: m >> entry.slot & 1 for n, m in window.masks.items()}
        if entry.event.order is not None:
            before[entry.thread] |= entry.bit


@pytest.mark.daily
@pytest.mark.parametrize("name", ["ptx-9.0", "ptx-9.5", "sc"])
def test_an_axiom_is_violated_whether_or_not_flags_are_asked_for(name: str) -> None:
    """By a trial of several events, of which each may order earlier ones; what comes after the trial is as before."""
    program = parse(PROGRAM, "threads.litmus")
    violated, held, fewer = 0, 0, 0
    for seed in range(4):
        random = Random(seed)
        window, before = Window(program, tape_of(load_model(name))), [0] * len(program.threads)
        for number in range(14):
            saved = window.save()
            tried = [entry_of(random, window, program, 2 * number + k, before, stale=True) for k in range(2)]
            whole = [window.add(entry)[0] for entry in tried]
            columns = {n: list(column) for n, column in window.cols.items()}
            asked = window.compiled.sources_of(n for n in window.wanted if n not in window.flagged)
            again = window.compiled.turned
            fewer += again is not None and again.for_axioms < again.nodes
            window.restore(saved)
            saved = window.save()
            for entry, broken in zip(tried, whole, strict=True):
                assert window.add(entry, flags=False) == (broken, []), (seed, number)
                if broken is not None:
                    break
            else:
                held += 1
                assert all(window.cols[n] == columns[n] for n in window.cols if n in asked), (seed, number)
            violated += whole != [None, None]
            window.restore(saved)
            saved = window.save()
            if window.add(tried[0])[0] is not None:
                window.restore(saved)
            elif tried[0].event.order is not None:
                before[tried[0].thread] |= tried[0].bit
    assert violated > 1, "no axiom was violated"
    assert held > 1, "every trial violated an axiom"
    assert fewer or name == "sc", "what flags alone need was computed all the same"


def _flagged(window: Window, whole: dict[int, list[int]], flag: str, entry: Entry) -> int:
    found = 0
    for check_ in window.checks:
        if check_.name == flag and check_.role == "flag" and check_.node not in window.compiled.deferred:
            column = whole[check_.node]
            found |= column[entry.slot] | sum(1 << k for k in bits(window.all) if column[k] & entry.bit)
    return found


FAULTS = (
    ("", ""),
    ("    fence.proxy.async.shared::cta;\n", ""),
    ("1024;", "512;"),
    ("    mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];\n", ""),
)


@pytest.mark.parametrize(("old", "new"), FAULTS)
def test_what_is_forgotten_changes_no_answer(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ring(rounds=12)
    text = text.replace(old, new) if old else text
    monkeypatch.setattr(machine, "MERGE_THRESHOLD", 24)
    monkeypatch.setattr("mcheck.engines.protocol.reduction.event_merging.MERGE_THRESHOLD", 24)
    answers = []
    for without in (("event-merging",), ()):
        passes = passes_without(without)
        given = check(parse(text, "ring.litmus"), load_model("ptx-9.0"), timeout=60, passes=passes)
        answers.append((given.verdict, sorted({f.code for f in given.findings})))
    assert answers[0] == answers[1]


TICKETS = """PTX drawn
{ .global .u32 n; }
one@cta 0..3 { .reg .u32 a; atom.acq_rel.gpu.global.add.u32 a, [n], 1; }
exists (one[0]:a == 2)
"""


def drawn_tickets() -> Answer:
    """The answer that asks the model also whether an atomic may come between another one and what that has read."""
    asked = passes_without(["unsplit-atomics"])
    return check(parse(TICKETS, "drawn.litmus"), load_model("ptx-9.0"), timeout=60, passes=asked)


def test_what_the_first_axioms_need_is_not_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all relations are computed again, each node is, but those of a recursive definition, once."""
    asked: list[int] = []
    most: list[int] = []
    compute, recompute = full_evaluation._node, Window._recompute

    def noted(window: Window, n: int, *given: Any) -> Any:
        if window.tape.group_of[n] < 0:
            asked.append(n)
        return compute(window, n, *given)

    def watched(window: Window, *given: Any, flags: bool) -> Any:
        asked.clear()
        result = recompute(window, *given, flags=flags)
        most.append(max(Counter(asked).values(), default=0))
        return result

    monkeypatch.setattr(full_evaluation, "_node", noted)
    monkeypatch.setattr(Window, "_recompute", watched)
    assert drawn_tickets().verdict
    assert max(most) == 1


def test_a_split_atomic_is_found_without_causality_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """8.10.3: where an atomic would come between the two halves of another, nothing else is computed again."""
    whole: list[bool] = []
    found: list[tuple[str | None, bool]] = []
    evaluate, recompute = Window._evaluate, Window._recompute

    def noted(window: Window, *given: Any) -> Any:
        whole.append(True)
        return evaluate(window, *given)

    def watched(window: Window, *given: Any, flags: bool) -> Any:
        whole.clear()
        result = recompute(window, *given, flags=flags)
        found.append((result[0], bool(whole)))
        return result

    monkeypatch.setattr(Window, "_evaluate", noted)
    monkeypatch.setattr(Window, "_recompute", watched)
    assert drawn_tickets().verdict
    split = [evaluated for axiom, evaluated in found if axiom == "Atomicity"]
    assert split
    assert not any(split)
    assert any(evaluated for _, evaluated in found)


MBARRIER = (
    frozenset((Tag.MBAR, Tag.GEN, Tag.ARRIVE, Tag.REL)),
    frozenset((Tag.MBAR, Tag.GEN, Tag.WAIT, Tag.ACQ)),
    frozenset((Tag.MBAR, Tag.GEN, Tag.WAIT)),
)


@pytest.mark.parametrize("name", ["ptx-9.0", "ptx-9.5"])
def test_a_wait_that_finds_an_earlier_phase_is_related_as_the_whole_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait comes before the operations of later phases. Those come after all that precedes it anyway, so that no two
    earlier operations are related anew, and a cycle is seen without computing all relations again.
    """
    again: list[bool] = []
    recompute = Window._recompute

    def watched(window: Window, *given: Any, flags: bool) -> Any:
        again.append(True)
        return recompute(window, *given, flags=flags)

    monkeypatch.setattr(Window, "_recompute", watched)
    program = parse(PROGRAM, "threads.litmus")
    tape = tape_of(load_model(name))
    led_back, cycles = 0, 0
    for seed in range(40):
        random = Random(seed)
        window, before = Window(program, tape), [0] * len(program.threads)
        arrived: dict[int, int] = {}
        every: dict[int, int] = {}
        for number in range(16):
            thread, newest = random.randrange(len(program.threads)), max(arrived, default=0)
            tags = random.choice(MBARRIER)
            phase = random.randrange(newest + 1) if Tag.WAIT in tags else newest + random.randrange(2)
            event = Event(
                (thread, number), program.threads[thread].code[0], tags, number, number,
                program.threads[thread].place.cta.number, scope="cta", mbarrier=MbarrierStep(1 << 40, "arrive"),
            )  # fmt: skip
            edges = {"po": before[thread], "phase-order": sum(m for p, m in every.items() if p < phase)}
            back = {}
            if Tag.WAIT in tags:
                edges["phase"] = arrived.get(phase - 1, 0)
                back = {"phase-fr": sum(m for p, m in arrived.items() if p >= phase)}
            again.clear()
            entry = window.entry(event, thread, edges=edges, back=back, instruction=number)
            broken, _ = window.add(entry)
            axioms = [c for c in window.axioms if c.test == "irreflexive"]
            asked = {*window.compiled.stored, *(c.node for c in axioms)} - window.compiled.deferred
            kept = {n: list(column) for n, column in window.cols.items()}
            whole = evaluate(window, frozenset(asked))
            if not again:
                led_back += any(back.values())
                cycles += broken is not None and any(back.values())
                assert broken in {None, *(c.name for c in axioms if window._is_violated(c, whole))}, (seed, number)
            assert (broken is None) == (not any(window._is_violated(c, whole) for c in axioms)), (seed, number)
            if broken is not None:
                break
            for n in window.compiled.stored:
                assert all(kept[n][k] == whole[n][k] for k in bits(window.all)), (seed, number, n)
            before[thread] |= entry.bit
            every[phase] = every.get(phase, 0) | entry.bit
            if Tag.ARRIVE in tags:
                arrived[phase] = arrived.get(phase, 0) | entry.bit
    assert led_back > 60
    assert cycles > 20


EVERY_SECOND_PHASE = """PTX every-second-phase
{ .shared .align 8 .b64 full, empty, turn; }
producer@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 1;
  mbarrier.init.shared::cta.b64 [turn], 1;
  bar.sync 0;
  for k in 0..8 {
    mbarrier.arrive.shared::cta.b64 _, [full];
    await mbarrier.try_wait.parity.shared::cta.b64 [empty], k%2;
    mbarrier.arrive.shared::cta.b64 _, [full];
    await mbarrier.try_wait.parity.shared::cta.b64 [full], 1;
    mbarrier.arrive.shared::cta.b64 _, [turn];
  }
}
consumer@cta 0, warp 1, lane 0 {
  bar.sync 0;
  for k in 0..8 {
    await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
    mbarrier.arrive.shared::cta.b64 _, [empty];
    await mbarrier.try_wait.parity.shared::cta.b64 [turn], k%2;
  }
}
"""


def test_that_a_wait_cannot_find_an_earlier_phase_is_found_without_all_relations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the phases that a wait could find by their parity, it finds the last one only: the turn says so."""
    again: list[bool] = []
    led_back: list[bool] = []
    add, recompute = Window.add, Window._recompute

    def watched(window: Window, *given: Any, flags: bool) -> Any:
        again.append(True)
        return recompute(window, *given, flags=flags)

    def noted(window: Window, entry: Entry, **given: Any) -> Any:
        led_back.append(bool(entry.back))
        return add(window, entry, **given)

    monkeypatch.setattr(Window, "add", noted)
    monkeypatch.setattr(Window, "_recompute", watched)
    given = check(parse(EVERY_SECOND_PHASE, "phases.litmus"), load_model("ptx-9.0"), timeout=60)
    assert (given.verdict, given.executions) == ("proved", 1)
    assert sum(led_back) > 8
    assert not again
