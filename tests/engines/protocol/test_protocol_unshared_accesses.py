"""Which loads and stores are found to touch bytes that no other thread and no other kind of access touches."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model, parse_model
from mcheck.engines.protocol.analysis.unshared_accesses import find_unshared_accesses
from mcheck.frontend.litmus import parse
from tests.cat.pretty import show_model
from tests.engine_findings import engine_findings

PROGRAM = """PTX own-elements
{
  .global .align 16 .b8 d[64], e[16];
  .shared .align 16 .b8 buf[64];
  .shared .align 8 .b64 bar;
  %s
}
a@cta 0, warp 0, lane 0 {
  .reg .b64 a;
  st.global.u32 [d], 1;
  st.global.v2.u32 [d+8], {1, 2};
  st.shared.u32 [buf], 1;
}
b@cta 0, warp 1, lane 0 {
  .reg .b64 a;
  .reg .b32 r;
  st.global.u32 [d+4], 1;
  %s;
}
"""


def unshared(line: str, declarations: str = "") -> set[str]:
    """The instructions of the program that are found, the spaces taken out."""
    program = parse(PROGRAM % (declarations, line), "unshared.litmus")
    found = find_unshared_accesses(program)
    return {op.text.replace(" ", "").rstrip(";") for op in program.operations if id(op) in found}


FIRST, PAIR, SECOND = "st.global.u32[d],1", "st.global.v2.u32[d+8],{1,2}", "st.global.u32[d+4],1"


def test_each_thread_has_its_bytes_of_an_object() -> None:
    assert unshared("bar.sync 1") == {FIRST, PAIR, SECOND}


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("st.global.u8 [d+15], 1", {FIRST, SECOND}),
        ("st.global.u8 [d+16], 1", {FIRST, PAIR, SECOND, "st.global.u8[d+16],1"}),
        ("st.global.u64 [d], 1", {PAIR}),
        ("st.global.u64 [d+4], 1", {FIRST}),
    ],
)
def test_bytes_that_another_thread_touches_too_are_shared(line: str, kept: set[str]) -> None:
    """Also where only one of them does, and through an access in between."""
    assert unshared(line) >= kept
    assert unshared(line) & {FIRST, PAIR, SECOND} == kept & {FIRST, PAIR, SECOND}


@pytest.mark.parametrize(
    "line",
    [
        "ld.global.u32 r, [d+32]",
        "st.volatile.global.u32 [d+32], 1",
        "st.relaxed.gpu.global.u32 [d+32], 1",
        "red.relaxed.gpu.global.add.u32 [d+32], 1",
        "cp.async.cg.shared.global [buf+16], [d+32], 16",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf+16], [d+32], 16, [bar]",
        "cp.async.bulk.global.shared::cta.bulk_group [d+32], [buf+16], 16",
        "await ld.global.u32 r, [d+32] == 0",
        "st.u32 [a], 1",
        "ld.u32 r, [a]",
    ],
)
def test_other_kinds_of_access_leave_the_object_out(line: str) -> None:
    """They may be strong, asynchronous or anywhere, or give a register what the stores of the object have written."""
    assert unshared(line) & {FIRST, PAIR, SECOND} == set()


@pytest.mark.parametrize(
    "head",
    [
        "x[4]; .global .align 16 .b32 y[4]; m @ multimem aliases x, y",
        "x[4] written by earlier grid",
        "x[4] read by earlier grid",
    ],
)
def test_nothing_is_found_of_what_has_a_second_name_or_another_grid_touches(head: str) -> None:
    text = "PTX t { .global .align 16 .b32 %s; } a@cta 0 { st.global.u32 [x], 1; }"
    for declared, count in ((head, 0), ("x[4]", 1)):
        assert len(find_unshared_accesses(parse(text % declared, "unshared.litmus"))) == count


@pytest.mark.parametrize("line", ["cp.async.cg.shared.global [buf+16], [e], 16", "ld.shared.u32 r, [a]"])
def test_what_is_elsewhere_does_not_matter(line: str) -> None:
    assert unshared(line) == {FIRST, PAIR, SECOND}


@pytest.mark.parametrize("flag", ["po-loc & (W * W)", "conflict & int", "(W & GEN) \\ IW"])
def test_a_flag_of_ones_own_may_speak_of_them(flag: str) -> None:
    """Of two accesses of one thread, or of one alone."""
    text, old = show_model(load_model("ptx-9.0")), "generic-race \\ scope-missing as RACE001"
    assert text.count(old) == 1
    model = parse_model(text.replace(old, f"({flag}) as RACE001"), "own.cat")
    program = parse("PTX t { .global .u32 x; } a@cta 0 { st.global.u32 [x], 1; st.global.u32 [x], 2; }", "own.litmus")
    for engine in ("protocol", "explicit"):
        found = engine_findings(engine, program, model, timeout=60)
        assert (found.complete, found.codes) == (True, {"RACE001"}), engine
