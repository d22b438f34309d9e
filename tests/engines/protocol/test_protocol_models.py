"""Models beside the shipped ones: what the engine still lists, looks at as well, and refuses by name."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from mcheck.base.errors import Unsupported
from mcheck.cat import load_model, parse_model
from mcheck.cat.algebra.tape import compile_model
from mcheck.cat.ast import Model
from mcheck.engines.protocol.analysis.axioms import check_axioms
from mcheck.engines.protocol.analysis.model_equivalence import SHIPPED, has_equivalent_checks, has_equivalent_races
from mcheck.engines.protocol.final_states import answer
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.incremental.unsupported_checks import ASYNC_TAGS, find_unsupported_check, is_synchronous
from mcheck.frontend.litmus import load, parse
from mcheck.ir import ops
from tests.cat.pretty import show_model
from tests.engine_findings import engine_findings
from tests.fuzz.edits import drop_alternative, drop_conjunct, inline, rename
from tests.ir.operation_samples import SAMPLES, run

LITMUS = Path(__file__).parents[3] / "litmus"
CONFLICT = "((W * M | M * W) & loc) \\ (si | IW * _ | _ * IW)"


def edited(old: str, new: str) -> Model:
    """ptx-9.0 with one place of its text changed."""
    text = show_model(load_model("ptx-9.0"))
    assert text.count(old) == 1
    return parse_model(text.replace(old, new), "edited.cat")


@pytest.mark.parametrize("base", SHIPPED)
def test_names_and_order_make_no_difference(base: str) -> None:
    for edit in (rename, inline):
        made = edit(Random(1), load_model(base))
        assert made is not None
        assert has_equivalent_checks(compile_model(made[1]))


@pytest.mark.daily(one_of="heavy")
def test_findings_of_ones_own_leave_the_states() -> None:
    model = edited("flag ~empty range(unborn) \\ started as UB503", "")
    assert not has_equivalent_checks(compile_model(model))
    assert has_equivalent_races(compile_model(model))
    test = load(str(LITMUS / "mbarrier" / "mbarrier-two-phases.litmus"))
    assert answer(test, model, timeout=60).complete
    dropped = edited("irreflexive (rf | fr); causality as Causality", "")
    assert "axioms and the races" in str(answer(test, dropped, timeout=60).reason)


def test_the_order_of_fences_is_followed_where_more_is_a_race() -> None:
    model = edited("let unordered = conflict \\ (related | morally-strong)", "let unordered = conflict")
    test = load(str(LITMUS / "classic" / "2+2W+fence.scs.litmus"))
    here, there = (engine_findings(engine, test, model, timeout=60) for engine in ("protocol", "explicit"))
    assert here.codes == there.codes == {"RACE001"}


FAILED_LOOK = """PTX failed-look
{ .shared .u32 x; .global .u32 flag; .shared .b64 bar; }
P0@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  bar.sync 0, 64;
  st.shared.u32 [x], 1;
  mbarrier.test_wait.parity.shared::cta.b64 %p0, [bar], 0;
  @!%p0 st.relaxed.gpu.global.u32 [flag], 1;
}
P1@cta 0, warp 1, lane 0 {
  bar.sync 0, 64;
  await ld.relaxed.gpu.global.u32 r1, [flag] == 1;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  ld.shared.u32 r0, [x];
}
"""


@pytest.mark.daily(one_of="heavy")
def test_a_look_that_found_the_phase_open_stands_before_what_completes_it() -> None:
    test = parse(FAILED_LOOK, "look.litmus")
    assert engine_findings("protocol", test, load_model("ptx-9.0"), timeout=60).codes == {"RACE001"}
    model = edited("(po \\ regardless | synchronizes)+", "(po \\ regardless | synchronizes | phase-fr)+")
    for engine in ("protocol", "explicit"):
        heard = engine_findings(engine, test, model, timeout=60)
        assert (heard.complete, heard.codes) == (True, frozenset()), engine


@pytest.mark.parametrize("name", ["sc", "ptx-6.0", "ptx-7.5", *SHIPPED])
def test_no_flag_of_a_shipped_model_speaks_of_what_is_not_shown(name: str) -> None:
    assert find_unsupported_check(compile_model(load_model(name))) is None


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("(si | IW * _ | _ * IW)", "(si | _ * IW)", "initial writes"),
        ("((W * M | M * W) & loc)", "(W * M | M * W)", "accesses without a common byte"),
    ],
)
def test_a_flag_that_speaks_of_what_is_not_shown_is_refused(old: str, new: str, what: str) -> None:
    test = load(str(LITMUS / "bulk" / "bulk-two-loads-share-a-source.litmus"))
    given = engine_findings(
        "protocol", test, edited(f"let conflict = {CONFLICT}", f"let conflict = {CONFLICT.replace(old, new)}")
    )
    assert (given.complete, given.findings) == (False, ())
    assert re.fullmatch(f"the flag (RACE0..|Q41) of the model may relate {what}", given.reason)


READERS = """PTX readers
{ .global .u32 x[2] = {1, 2}; .shared .align 16 .u32 d[4]; .global .align 16 .u32 s[4]; .shared .align 8 .b64 bar; }
P@cta 0LANES { ld.global.u32 r0, [x]; MORE }
Q@cta 1 { ld.global.u32 r0, [x+4]; ld.global.u32 r1, [x]; }
"""
COPY = """mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [d], [s], 16, [bar]; ld.global.u32 r1, [s];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;"""


@pytest.mark.daily(days=4)
@pytest.mark.parametrize(
    ("lanes", "more", "codes"),
    [(", warp 0, lane 0..2", "", {"RACE001"}), ("", COPY, {"RACE001", "RACE003"})],
    ids=["lanes", "copy"],
)
@pytest.mark.parametrize("conflict", ["loc", "(R * R & loc)"])
def test_a_flag_may_speak_of_two_reads(conflict: str, lanes: str, more: str, codes: set[str]) -> None:
    """Reads of what nothing writes, and by lanes that do the same, too."""
    model = edited(f"let conflict = {CONFLICT}", f"let conflict = {conflict} \\ (si | IW * _ | _ * IW)")
    test = parse(READERS.replace("LANES", lanes).replace("MORE", more), "readers.litmus")
    here, there = (engine_findings(engine, test, model, timeout=60) for engine in ("protocol", "explicit"))
    assert here.complete
    assert here.codes == there.codes == codes


def test_a_flag_may_speak_of_less() -> None:
    model = edited(f"let conflict = {CONFLICT}", "let conflict = ((W * R | R * W) & loc) \\ (si | IW * _ | _ * IW)")
    assert find_unsupported_check(compile_model(model)) is None


EVERYTHING = """PTX everything
{ .shared .align 8 .b64 bar; .global .u32 x; .global .u64 y; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  atom.relaxed.gpu.add.u32 r0, [x], 1;
  st.relaxed.gpu.u64 [y], 1;
}
"""


@pytest.mark.parametrize("name", ["sc", "ptx-6.0", "ptx-7.5", *SHIPPED])
def test_the_axioms_of_shipped_models_are_followed(name: str) -> None:
    check_axioms(parse(EVERYTHING, "everything.litmus"), compile_model(load_model(name)))


@pytest.mark.parametrize("number", [0, 1, 3, 4, 5, 6, 7, 10])
def test_what_an_axiom_speaks_of_may_be_another(number: int) -> None:
    edits = (rename, inline, drop_alternative, drop_conjunct)
    model = edits[number % len(edits)](Random(number), load_model("ptx-9.3"))
    assert model is not None
    check_axioms(parse(EVERYTHING, "everything.litmus"), compile_model(model[1]))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (" \\ co.2 as Coherence", " as Coherence", "coherence"),
        (") \\ id", ")", "coherence"),
        ("(W * W) & morally-strong & loc", "(W * W) & morally-strong & int & loc", "coherence"),
        (
            "(morally-strong & fr); (morally-strong & co.2)",
            "(morally-strong & int & fr); (morally-strong & int & co.2)",
            "atomics",
        ),
        ("(morally-strong & fr); (morally-strong & co.2)", "(morally-strong & co.2)", "atomics"),
        ("same-access; (morally-strong & co.2); same-access", "same-access; co.2; same-access", "single copies"),
        ("(phase | phase-order | phase-fr)+", "(phase | phase-fr)+", "mbarriers"),
    ],
)
def test_other_demands_are_refused_by_name(old: str, new: str, what: str) -> None:
    with pytest.raises(Unsupported, match=f"does not support what the model requires of {what}"):
        check_axioms(parse(EVERYTHING, "everything.litmus"), compile_model(edited(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        (
            "empty strong-pairs \\ (co.2 | co.2^-1) as",
            "empty po as Other empty strong-pairs \\ (co.2 | co.2^-1) as",
            "Other",
        ),
        (
            "let strong-pairs = ((W * W) & morally-strong & loc) \\ id",
            "let strong-pairs = ((W * W) & sr) \\ id",
            "MoralCoherence",
        ),
        ("empty rmw & (", "empty R & range(rf) as Other empty rmw & (", "Other"),
    ],
)
def test_an_axiom_about_what_is_not_followed_is_refused_by_its_name(old: str, new: str, name: str) -> None:
    with pytest.raises(Unsupported, match=f"does not support the axiom {name} of the model"):
        check_axioms(parse(EVERYTHING, "everything.litmus"), compile_model(edited(old, new)))


def test_an_axiom_that_nothing_can_break_needs_not_be_followed() -> None:
    model = compile_model(edited("empty rmw & (", "empty rmw & po as Other empty rmw & ("))
    check_axioms(parse(FAILED_LOOK, "look.litmus"), model)
    with pytest.raises(Unsupported, match="does not support the axiom Other of the model"):
        check_axioms(parse(EVERYTHING, "everything.litmus"), model)


REMOTE = """PTX remote
{ .shared .u32 x; }
P0@cluster 0, cta 0 { st.relaxed.cluster.shared::cluster.u32 [x@1], 1; }
P1@cluster 0, cta 1 { }
"""


def test_an_axiom_about_what_comes_later_is_refused() -> None:
    model = edited("empty rmw & (", "irreflexive [domain(outlived)]; po^-1; po as Other empty rmw & (")
    given = engine_findings("protocol", parse(REMOTE, "remote.litmus"), model, timeout=60)
    reason = "the axiom Other of the model depends on later events"
    assert (given.complete, given.reason) == (False, reason)


INIT_BEHIND = """PTX init-behind
{ .shared .align 8 .b64 bar; .global .u32 f = 0; }
P0@cta 0, warp 0, lane 0 {
  bar.sync 0, 64;
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.acq_rel.gpu;
  st.relaxed.gpu.global.u32 [f], 1;
}
P1@cta 0, warp 1, lane 0 {
  bar.sync 0, 64;
  await ld.relaxed.gpu.global.u32 r0, [f] == 1;
  fence.acq_rel.gpu;
  mbarrier.arrive.shared::cta.b64 _, [bar];
}
"""


@pytest.mark.daily(one_of="heavy")
def test_an_operation_that_no_axiom_keeps_behind_the_initialisation_may_come_before_it() -> None:
    test = parse(INIT_BEHIND, "init.litmus")
    assert engine_findings("protocol", test, load_model("ptx-9.0"), timeout=60).codes == frozenset()
    model = edited("(base-causality | before-issue | life) as Mbarrier", "(before-issue | life) as Mbarrier")
    assert engine_findings("explicit", test, model, timeout=60).codes == {"UB201"}
    found = check(test, model, timeout=60)
    assert (found.verdict, found.covered) == ("bounded", False)
    assert "mbarrier.init.shared::cta.b64 [bar], 1` may take effect after" in str(found.reason)


def test_that_an_end_comes_behind_what_found_its_object_in_time_is_no_reason() -> None:
    test = load(str(LITMUS / "mbarrier" / "mbarrier-look-then-inval-by-another.litmus"))
    model = edited("let life = (po | synchronizes)+; [INVAL]", "let life = [INVAL]")
    assert engine_findings("explicit", test, model, timeout=60).codes == {"UB201"}
    found = check(test, model, timeout=60)
    assert (found.verdict, found.covered) == ("bounded", False)
    assert "may take effect after" in str(found.reason)


def test_the_read_and_the_write_of_a_reduction_are_of_one_instruction() -> None:
    test = load(str(LITMUS / "reduce" / "reduce-dec-u32.litmus"))
    model = edited("let unordered = conflict \\ (related | morally-strong)", "let unordered = conflict")
    here, there = (engine_findings(engine, test, model, timeout=60) for engine in ("protocol", "explicit"))
    assert here.codes == there.codes == {"RACE004"}


ONE_SIZE = """PTX one-size
{ .global .u32 x; }
P@cta 0 { st.relaxed.gpu.global.u32 [x], 1; }
"""


def test_where_no_access_has_parts_none_is_torn() -> None:
    model = compile_model(edited("same-access; (morally-strong & co.2); same-access", "same-access; co.2; same-access"))
    with pytest.raises(Unsupported, match="single copies"):
        check_axioms(parse(EVERYTHING, "everything.litmus"), model)
    check_axioms(parse(ONE_SIZE, "one-size.litmus"), model)


STORE_BUFFERS = """PTX store-buffers
{ .global .u32 x = 0; .global .u32 y = 0; .global .u32 z = 0; }
P0@cta 0 {
  st.relaxed.gpu.global.u32 [x], 1;
  ld.relaxed.gpu.global.u32 r0, [y];
  setp.eq.u32 %p0, r0, 0;
  @%p0 st.global.u32 [z], 1;
}
P1@cta 1 {
  st.relaxed.gpu.global.u32 [y], 1;
  ld.relaxed.gpu.global.u32 r0, [x];
  setp.eq.u32 %p0, r0, 0;
  @%p0 st.global.u32 [z], 2;
}
"""


@pytest.mark.daily(one_of="heavy")
def test_a_stale_read_may_close_a_circle_of_two_earlier_writes() -> None:
    test = parse(STORE_BUFFERS, "store-buffers.litmus")
    model = edited("empty rmw & (", "irreflexive (po | fr)+; (po; fr) as Buffers empty rmw & (")
    for engine in ("explicit", "protocol"):
        here, there = (engine_findings(engine, test, m, timeout=60) for m in (load_model("ptx-9.0"), model))
        assert (here.complete, here.codes) == (True, {"RACE001"}), engine
        assert (there.complete, there.codes) == (True, frozenset()), engine


BEFORE_THE_WRITE = """PTX before-the-write
{ .global .u32 x = 0; .global .u32 z = 0; }
P0@cta 0 {
  ld.relaxed.gpu.global.u32 r0, [x];
  setp.eq.u32 %p0, r0, 1;
  @%p0 st.global.u32 [z], 1;
}
P1@cta 1 {
  st.relaxed.gpu.global.u32 [x], 1;
  st.global.u32 [z], 2;
}
"""


def test_what_no_execution_begins_with_may_come_in_another_order() -> None:
    """The first order of the steps is none of the model, which lets no read come before a write."""
    test = parse(BEFORE_THE_WRITE, "before-the-write.litmus")
    model = edited("empty rmw & (", "irreflexive fr; morally-strong as Late empty rmw & (")
    for engine in ("explicit", "protocol"):
        given = engine_findings(engine, test, model, timeout=60)
        assert (given.complete, given.codes) == (True, {"RACE001"}), engine


LOAD_BUFFERS = """PTX load-buffers
{ .global .u32 x = 0; .global .u32 y = 0; .global .u32 z = 0; }
P0@cta 0 {
  ld.acquire.gpu.global.u32 r0, [x];
  st.release.gpu.global.u32 [y], 1;
  setp.eq.u32 %p0, r0, 1;
  @%p0 st.global.u32 [z], 1;
}
P1@cta 1 {
  ld.acquire.gpu.global.u32 r0, [y];
  st.release.gpu.global.u32 [x], 1;
  setp.eq.u32 %p0, r0, 1;
  @%p0 st.global.u32 [z], 2;
}
"""


@pytest.mark.daily(one_of="heavy")
def test_a_circle_that_only_the_shipped_axioms_forbid_is_not_taken_for_forbidden() -> None:
    """Without a pattern that ends with the acquire itself both loads may see the stores behind them."""
    test = parse(LOAD_BUFFERS, "load-buffers.litmus")
    assert engine_findings("protocol", test, load_model("ptx-9.0"), timeout=60).codes == frozenset()
    model = edited("([strong-read]; po-loc)?; [R & ACQ] | [strong-read]; po; [acquire-fence]", "[strong-read]; po; [F]")
    assert engine_findings("explicit", test, model, timeout=60).codes == {"RACE001"}
    found = check(test, model, timeout=60)
    assert (found.verdict, found.covered) == ("bounded", False)
    assert "load buffering" in str(found.reason)


def test_circles_are_forbidden_as_long_as_their_axioms_are_the_same() -> None:
    test = parse(LOAD_BUFFERS, "load-buffers.litmus")
    model = edited("irreflexive rounds; happens as Rounds", "")
    for engine in ("explicit", "protocol"):
        given = engine_findings(engine, test, model, timeout=60)
        assert (given.complete, given.codes) == (True, frozenset()), engine


CROSSED = """PTX crossed
{ .global .u32 x = 0; .global .u32 y = 0; .global .u32 z = 0; }
P0@cta 0 {
  await ld.relaxed.gpu.global.u32 r0, [x] == 1;
  st.relaxed.gpu.global.u32 [y], 1;
  st.global.u32 [z], 1;
}
P1@cta 1 {
  await ld.relaxed.gpu.global.u32 r0, [y] == 1;
  st.relaxed.gpu.global.u32 [x], 1;
  st.global.u32 [z], 2;
}
"""
THIN_AIR = "acyclic rf | addr | data | ctrl | waited as NoThinAir"
APART = "acyclic rf | addr | data as NoThinAir acyclic ctrl | waited as Waits"


@pytest.mark.parametrize("other", ["", "acyclic addr | data | ctrl | waited as NoThinAir", APART])
def test_a_model_where_values_come_out_of_thin_air_is_refused(other: str) -> None:
    test, model = parse(CROSSED, "crossed.litmus"), edited(THIN_AIR, other)
    assert engine_findings("explicit", test, model, timeout=60).codes == {"DEAD004", "RACE001"}
    with pytest.raises(Unsupported, match="requires of causes: acyclic rf"):
        check_axioms(test, compile_model(model))


ROUNDS_BY_FLAGS = """PTX rounds-by-flags
{ .global .u32 f = 0; .global .u32 g = 0; .global .u32 x; }
P0@cta 0, warp 0, lane 0 {
  bar.arrive 1, 64;
  st.relaxed.gpu.global.u32 [f], 1;
}
P1@cta 0, warp 1, lane 0 {
  await ld.relaxed.gpu.global.u32 r0, [f] == 1;
  bar.arrive 1, 64;
  st.relaxed.gpu.global.u32 [g], 1;
}
P2@cta 0, warp 2, lane 0 {
  await ld.relaxed.gpu.global.u32 r0, [g] == 1;
  bar.sync 1, 64;
  st.global.u32 [x], 2;
}
P3@cta 0, warp 3, lane 0 {
  await ld.relaxed.gpu.global.u32 r0, [g] == 1;
  st.global.u32 [x], 1;
  bar.arrive 1, 64;
}
"""


@pytest.mark.daily
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("irreflexive rounds; happens as Rounds", ""),
        ("let happens = (po | rf | waited)+", "let happens = (po | waited)+"),
        ("let happens = (po | rf | waited)+", "let happens = (rf | waited)+"),
    ],
)
def test_a_model_where_arrivals_fall_into_any_round_is_refused(old: str, new: str) -> None:
    test, model = parse(ROUNDS_BY_FLAGS, "rounds.litmus"), edited(old, new)
    assert engine_findings("protocol", test, load_model("ptx-9.0"), timeout=60).codes == frozenset()
    assert engine_findings("explicit", test, model, timeout=60).codes == {"RACE001"}
    with pytest.raises(Unsupported, match="requires of causes: irreflexive rounds"):
        check_axioms(test, compile_model(model))


@pytest.mark.daily
@pytest.mark.parametrize("part", ["phase", "barrier", "meet", "rounds", "po & (_ * EXIT)", "exited", "commits"])
def test_what_nothing_in_a_program_waits_for_need_not_be_in_the_axiom(part: str) -> None:
    parts = ["phase", "phase-order \\ (INIT * _)", "barrier", "meet", "rounds", "po & (_ * EXIT)", "exited", "commits"]
    less = edited(f"let waited = {' | '.join(parts)}", f"let waited = {' | '.join(p for p in parts if p != part)}")
    for engine in ("explicit", "protocol"):
        given = engine_findings(engine, parse(STORE_BUFFERS, "store-buffers.litmus"), less, timeout=60)
        assert (given.complete, given.codes) == (True, {"RACE001"}), engine


def test_a_wait_before_an_initialisation_may_be_forbidden_as_well() -> None:
    """An axiom that forbids more circles is none that lacks something."""
    model = compile_model(edited("phase-order \\ (INIT * _)", "phase-order"))
    check_axioms(parse(EVERYTHING, "everything.litmus"), model)


AT_ONCE = """PTX at-once
{ .global .u32 x = 0; .global .u32 y = 0; }
P0@cta 0 { ld.global.u32 r0, [x]; ld.global.u32 r1, [y]; }
P1@cta 1 { ld.global.u32 r0, [x]; st.global.u32 [y], 1; }
"""


@pytest.mark.daily
@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("late & ((R & GEN) * ASYNC)", "((R & GEN) * ASYNC)", "RACE006 of the model may relate accesses without"),
        ("touches-object & (_ * asynchronous)", "(_ * asynchronous)", "UB203 of the model may relate initial writes"),
    ],
)
def test_a_flag_about_copies_is_followed_where_there_are_none(old: str, new: str, name: str) -> None:
    model = edited(old, new)
    for engine in ("explicit", "protocol"):
        given = engine_findings(engine, parse(AT_ONCE, "at-once.litmus"), model, timeout=60)
        assert (given.complete, given.codes) == (True, {"RACE001"}), engine
    test = load(str(LITMUS / "bulk" / "bulk-two-loads-share-a-source.litmus"))
    assert engine_findings("explicit", test, model, timeout=60).codes
    given = engine_findings("protocol", test, model)
    assert (given.complete, name in given.reason) == (False, True)


def test_a_copy_of_whole_words_tears_none() -> None:
    model = edited("same-access; (morally-strong & co.2); same-access", "same-access; co.2; same-access")
    test = load(str(LITMUS / "cp-async" / "cp-async-double-buffer.litmus"))
    here, there = (engine_findings(engine, test, model, timeout=60) for engine in ("protocol", "explicit"))
    assert here.complete
    assert here.codes == there.codes


@pytest.mark.parametrize("count", ["1048576", "1"])
def test_a_flag_about_what_lies_before_is_told_of_an_initialisation_that_is_misused(count: str) -> None:
    """Explicit tells it of every misused operation (9.7.13.15.3 is about what lies before it)."""
    model = edited("[INIT]; mbarrier-object; [MBAR \\ INIT]", "[INIT]; mbarrier-object; [MBAR]")
    first = "" if count != "1" else "mbarrier.init.shared::cta.b64 [bar], 1;"
    test = parse(
        f"PTX t\n{{ .shared .b64 bar; }}\nP0@cta 0 {{\n{first}\nmbarrier.init.shared::cta.b64 [bar], {count};\n}}",
        "t.litmus",
    )
    here, there = (engine_findings(engine, test, model, timeout=60) for engine in ("protocol", "explicit"))
    assert here.codes == there.codes
    assert "UB201" in here.codes


def test_synchronous_operations_have_no_events_of_asynchronous_ones() -> None:
    """Checks of a model that only these could fail are skipped for programs without asynchronous operations."""
    synchronous = [code for code in SAMPLES if is_synchronous(code[-1])]
    assert {type(code[-1]) for code in synchronous} > {ops.Alu, ops.Store, ops.Barrier, ops.MbarrierArrive}
    for code in synchronous:
        states, events = run(code)
        assert not any(event.tags & ASYNC_TAGS or event.issue is not None for event in events)
        assert not any(state.completes for state in states)
