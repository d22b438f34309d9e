"""Tensor maps that a kernel edits, and clusters that it wins: what is followed, and what is found without an order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from mcheck.answers.result import Answer, Covers
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.isa.opcode import read_opcode
from mcheck.simt.execution.launch_answers import CancelResponses, following_clusters, query_function

CORPUS = Path(__file__).parent / "corpus" / "cuda"


def text_of(name: str, old: str = "", new: str = "") -> str:
    """A module of the corpus, one place of it replaced."""
    text = (CORPUS / f"{name}.ptx").read_text(encoding="utf-8")
    if old:
        assert re.search(old, text)
        text = re.sub(old, new, text, count=1)
    return text


def ask(name: str, text: str, **more: object) -> Answer:
    """The answer about the text, launched as the module of the corpus is."""
    read = parse_module(text)
    given = {**json.loads((CORPUS / f"{name}.json").read_text(encoding="utf-8")), **more}
    question = Question(about=Completeness.FINDINGS, timeout=60)
    return answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)


def test_a_map_is_copied_edited_published_and_used() -> None:
    found = ask("tensormap_edit", text_of("tensormap_edit"), grid=1)
    assert found.verdict == "proved", found.reason
    found = ask("tensormap_edit", text_of("tensormap_edit"))
    assert (found.verdict, found.covers) == ("proved", Covers(clusters=4, total=4)), "each has a map of its own"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (r"fence\.proxy\.tensormap::generic\.acquire.*", "", "RACE009"),
        (r"(?s)(tensormap\.replace.*?)bar\.warp\.sync \s*-1;", r"\1", "RACE002"),
        (r"st\.shared\.u32 \s*\[%r1\], %r4;", "", "UB404"),
    ],
)
def test_a_map_that_is_not_ready_is_found(old: str, new: str, code: str) -> None:
    found = ask("tensormap_edit", text_of("tensormap_edit", old, new))
    assert code in {f.code for f in found.findings} or (code == "UB404" and found.verdict == "unknown"), found


@pytest.mark.parametrize("field", [{"interleave_layout": "16B"}, {"box_dim": [512, 8]}])
def test_a_map_of_the_launch_that_is_none_is_told_where_a_copy_uses_it(field: dict[str, object]) -> None:
    given = json.loads((CORPUS / "tensor_reduce.json").read_text(encoding="utf-8"))
    fields = next(p["tensormap"] for p in given["params"].values() if isinstance(p, dict) and "tensormap" in p)
    fields.update(field)
    found = ask("tensor_reduce", text_of("tensor_reduce"), **given)
    assert {f.code for f in found.findings} == {"UB404"}, found


def test_clusters_are_won_or_not() -> None:
    found = ask("stolen_tiles", text_of("stolen_tiles"))
    assert found.verdict == "bounded", found.reason
    assert "clusterlaunchcontrol wins at most" in (found.reason or "")
    assert ":83:" in (found.reason or "")
    assert found.executions == 3


def test_where_the_grid_has_no_other_cluster_none_is_won() -> None:
    found = ask("stolen_tiles", text_of("stolen_tiles"), grid=1)
    assert found.verdict == "proved", found.reason


@pytest.mark.daily
@pytest.mark.parametrize(
    ("old", "kind"),
    [
        (r"(?<=\n)\tbar\.sync \s*0;\n(?=\tbra)", "race"),
        (r"fence\.proxy\.async::generic\.release[^;]*;", "race"),
        (r"mbarrier\.arrive\.expect_tx[^;]*;", "deadlock"),
        (r"@%p3 bra \s*\$L__BB0_6;", "race"),
    ],
)
def test_an_answer_that_is_asked_for_or_read_too_early_is_found(old: str, kind: str) -> None:
    found = ask("stolen_tiles", text_of("stolen_tiles", old, ""))
    assert found.verdict == "finding", found.reason
    assert kind in {f.kind for f in found.findings}


def test_an_answer_at_the_end_of_the_address_space_is_told() -> None:
    found = ask("stolen_tiles", text_of("stolen_tiles", r"(try_cancel\S*\s+)\[[^]]*\]", r"\1[-1]"))
    assert {f.code for f in found.findings} == {"UB102"}


def test_answers_give_clusters_in_the_order_of_the_grid() -> None:
    read = parse_module(text_of("stolen_tiles"))
    given = {"grid": [2, 2, 1], "block": [128, 1, 1]}
    places = following_clusters(build_launch(read, from_object(given)), 9)
    assert places == [(1, 0, 0), (0, 1, 0), (1, 1, 0)]
    answers = CancelResponses(tuple(places[:1]))
    first, second = (np.array([answers.next_response()], np.uint64) for _ in range(2))
    won, place = (
        query_function(read_opcode(("clusterlaunchcontrol", "query_cancel", "is_canceled", "pred", "b128"))),
        query_function(read_opcode(("clusterlaunchcontrol", "query_cancel", "get_first_ctaid", "v4", "b32", "b128"))),
    )
    assert won is not None
    assert place is not None
    assert (int(won(first)[0][0]), int(won(second)[0][0])) == (1, 0)
    assert [int(x[0]) for x in place(first)] == [1, 0, 0]


def test_a_loop_whose_end_depends_on_data_is_left() -> None:
    """Its rounds cannot be known: some are followed, and the answer says at which branch."""
    text = """.version 8.0
.target sm_90
.address_size 64
.entry k(.param .u64 src) {
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  .shared .align 4 .b8 s[4];
  ld.param.u64 %rd1, [src];
LOOP:
  bar.sync 0;
  ld.global.u32 %r1, [%rd1];
  setp.lt.u32 %p1, %r1, 7;
  @%p1 bra LOOP;
  ret;
}
"""
    read = parse_module(text)
    given = {"entry": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "params": {"src": {"buffer": 64}}}
    question = Question(about=Completeness.FINDINGS, timeout=60)
    found = answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)
    assert found.verdict == "bounded"
    assert "control depends on data" in (found.reason or "")


@pytest.mark.parametrize(("passed", "verdict"), [("", "proved"), ("st.shared.u32 [s], 1;", "bounded")])
def test_a_branch_on_data_over_arithmetic_alone_goes_either_way_to_the_same_effect(passed: str, verdict: str) -> None:
    text = f""".version 8.0
.target sm_90
.address_size 64
.entry k(.param .u64 src) {{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  .shared .align 4 .b8 s[4];
  ld.param.u64 %rd1, [src];
  ld.global.u32 %r1, [%rd1];
  mov.u32 %r2, 0;
  setp.lt.u32 %p1, %r1, 7;
  @%p1 bra OVER;
  mul.lo.u32 %r2, %r1, 3;
  {passed}
OVER:
  st.global.u32 [%rd1+32], %r2;
  ret;
}}
"""
    read = parse_module(text)
    given = {"entry": "k", "grid": [1, 1, 1], "block": [1, 1, 1], "params": {"src": {"buffer": 64}}}
    question = Question(about=Completeness.FINDINGS, timeout=60)
    found = answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)
    assert found.verdict == verdict, found.reason


def test_a_tensor_map_that_nobody_knows_is_told_with_the_line_of_its_copy() -> None:
    text = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 map) {
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  .shared .align 128 .b8 buf[128];
  .shared .align 8 .b64 full;
  ld.param.u64 %rd1, [map];
  mov.u32 %r1, full;
  mov.u32 %r2, buf;
  mbarrier.init.shared::cta.b64 [%r1], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;
  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {0}], [%r1];
  ret;
}
"""
    read = parse_module(text)
    given = {"grid": [1], "block": [1], "params": {"map": {"buffer": 128}}}
    question = Question(about=Completeness.FINDINGS, timeout=60)
    found = answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)
    assert (found.verdict, found.reason) == ("unknown", "<ptx>:15:3: a tensor map with unknown contents")


READ_ONLY = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 g)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [g];
  mov.u32 %r1, 7;
  st.global.u32 [%rd1+OFFSET], %r1;
  ld.global.nc.u32 %r2, [%rd1];
  st.global.u32 [%rd1+4], %r2;
  ret;
}
"""


@pytest.mark.parametrize(("offset", "verdict"), [("0", "unknown"), ("8", "proved")])
def test_a_load_that_is_not_coherent_is_of_memory_that_nobody_writes(offset: str, verdict: str) -> None:
    read = parse_module(READ_ONLY.replace("OFFSET", offset))
    given = from_object({"grid": [1], "block": [1], "params": {"g": {"buffer": 16}}})
    found = answer_launch(
        read, build_launch(read, given), load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60)
    )
    assert found.verdict == verdict, found.reason
    if verdict == "unknown":
        assert found.reason == "line 11 reads through the non-coherent cache what line 10 writes (9.7.9.9)"


def test_bytes_that_are_discarded_are_not_taken_for_those_that_were_stored() -> None:
    text = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .pred %p; .reg .b32 %t; .reg .b64 %a;
  ld.param.u64 %a, [out]; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0;
  @%p st.global.u32 [%a], 1;
  @!%p discard.global.L2 [%a], 128;
  ret;
}
"""
    read = parse_module(text)
    given = from_object({"grid": [1], "block": [64], "params": {"0": {"buffer": 128}}})
    question = Question(about=Completeness.FINDINGS, timeout=60)
    found = answer_launch(read, build_launch(read, given), load_model("ptx-9.0"), question)
    assert found.verdict == "bounded"
    assert "the bytes that 'discard' destroys were not followed" in (found.reason or "")
