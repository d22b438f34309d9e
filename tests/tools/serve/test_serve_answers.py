"""What the server answers: what is not decided is no success, errors have places, fixes were tried."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import LAUNCH, MODULE, PIPELINE, README, REFILL, ROOT, SLOW, edited

from mcheck.base.errors import InputError
from mcheck.base.verdicts import Verdict
from mcheck.checking.fences import examination, repairs
from mcheck.checking.fences.examination import Examined, Limits
from mcheck.checking.run.case import LaunchText, Settings
from mcheck.frontend.cuda.nvcc import CompileError
from mcheck.tools.serve import answering, requests
from mcheck.tools.serve.answering import answer_request
from mcheck.tools.serve.answers import Reply, TextEdit
from mcheck.tools.serve.memory_store import MemoryStore
from mcheck.tools.serve.refusals import refuse
from mcheck.tools.serve.repairs import EditedText
from mcheck.tools.serve.requests import Request, name_text

FENCED = REFILL.replace("[buf], 1;", "[buf], 1; fence.proxy.async.shared::cta;")
QUEUE = ROOT / "tests" / "simt" / "corpus" / "cuda" / "queue.ptx"
"""A module that takes seconds."""
WAITED = PIPELINE.replace("commit_group;", "commit_group;\n  cp.async.wait_group 0;")


def ask(kind: str, text: str | None = None, path: str = "", store: MemoryStore | None = None, **more: Any) -> Reply:
    return answer_request(
        Request(kind=kind, path=path or name_text(None, text), text=text, **more), store or MemoryStore()
    )


def test_a_proof_is_clean_and_decided() -> None:
    reply = ask(requests.CHECK, WAITED)
    answer = reply.answer
    assert (answer.verdict, answer.decided, answer.clean, answer.bugs) == ("proved", True, True, [])
    assert reply.text.startswith("clean ")
    assert not reply.refused


def test_a_bug_has_its_places_and_edits_that_mend_it() -> None:
    answer = ask(requests.CHECK, PIPELINE).answer
    assert (answer.verdict, answer.decided, answer.clean) == ("finding", True, False)
    (bug,) = answer.bugs
    assert (bug.code, bug.severity, bug.place.line, bug.related[0].line) == ("RACE003", "error", 11, 8)
    assert bug.place.source.startswith("ld.shared")
    mended = edited(PIPELINE, [{"line": e.line, "column": e.column, "insert": e.insert} for e in bug.edits])
    assert ask(requests.CHECK, mended).answer.clean is True


LB = """PTX LB
{ .global .u32 x, y, z; }
P@cta 0 { ld.relaxed.gpu.global.u32 r0, [x]; st.relaxed.gpu.global.u32 [y], 1; if (r0 == 1) { st.global.u32 [z], 1; } }
Q@cta 1 { ld.relaxed.gpu.global.u32 r0, [y]; st.relaxed.gpu.global.u32 [x], 1; if (r0 == 1) { st.global.u32 [z], 2; } }
"""


@pytest.mark.daily
@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        ({"path": str(QUEUE), "settings": Settings(timeout=0.5)}, "unknown"),
        ({"path": str(QUEUE), "settings": Settings(timeout=0.5, processor_time=True)}, "unknown"),
        ({"path": str(QUEUE), "settings": Settings(timeout=60, memory=1 << 20)}, "unknown"),
        ({"text": LB, "engine": "protocol"}, "bounded"),
    ],
)
def test_what_is_not_decided_is_neither_clean_nor_wrong(asked: dict[str, Any], verdict: str) -> None:
    reply = ask(requests.CHECK, **asked)
    answer = reply.answer
    assert (answer.verdict, answer.decided, answer.clean) == (verdict, False, None)
    assert answer.why_not_decided
    assert answer.summary.startswith("not decided")
    assert reply.text.startswith("not decided\n")
    assert not reply.refused


def test_outcomes_say_whether_they_are_all() -> None:
    answer = ask(requests.OUTCOMES, FENCED).answer
    assert (answer.decided, answer.complete, answer.holds) == (True, True, False)
    assert [one.state for one in answer.outcomes] == [{"P:r0": 7}]
    assert answer.outcomes[0].witness
    cut = ask(requests.OUTCOMES, SLOW, settings=Settings(timeout=1)).answer
    assert (cut.decided, cut.complete) == (False, False)
    assert cut.holds is not False, "a state may have been seen by then"
    assert cut.why_not_decided


@pytest.mark.parametrize("kind", [requests.CHECK, requests.OUTCOMES, requests.FIX])
def test_a_mistake_is_refused_with_its_place(kind: str) -> None:
    reply = ask(kind, REFILL.replace("st.shared", "st.shered"))
    assert reply.refused
    (error,) = reply.answer.errors
    assert (error.path, error.line) == ("test.litmus", 10)
    assert "did you mean" in error.hint
    assert not reply.answer.decided
    assert "test.litmus:10:" in reply.text


def test_a_module_without_its_launch_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    reply = ask(requests.CHECK, MODULE, path=str(tmp_path / "racy.ptx"))
    assert reply.refused
    assert "grid" in reply.text
    assert reply.answer.clean is None


def test_the_launch_of_a_module_comes_with_the_request() -> None:
    launch = LaunchText(text=json.dumps(LAUNCH), path="launch")
    answer = ask(requests.CHECK, MODULE, launch=launch).answer
    (bug,) = answer.bugs
    assert bug.code == "RACE004"
    fixed = ask(requests.FIX, MODULE, launch=launch).answer
    assert (fixed.fixed, fixed.after, fixed.remaining) == (True, "proved", [])
    assert [edit.insert.strip() for edit in fixed.edits] == ["fence.proxy.async.shared::cta;"]


def test_known_answers_are_found_by_content(tmp_path: Path) -> None:
    store = MemoryStore()
    path = tmp_path / "pipeline.litmus"
    path.write_text(PIPELINE)
    first = ask(requests.CHECK, path=str(path), store=store).answer
    again = ask(requests.CHECK, path=str(path), store=store).answer
    assert (first.cost.cached, again.cost.cached) == (False, True)
    assert again.bugs == first.bugs
    elsewhere = ask(requests.CHECK, PIPELINE, path="other.litmus", store=store).answer
    assert elsewhere.bugs[0].place.path == "other.litmus"
    path.write_text(WAITED)
    assert ask(requests.CHECK, path=str(path), store=store).answer.clean is True


@pytest.mark.daily(least=0)
def test_a_fix_that_leaves_a_bug_is_not_called_fixed() -> None:
    tiles = README[README.index("PTX tiles") :].split("```")[0]
    both = PIPELINE.replace("PTX pipeline", "PTX two") + tiles[tiles.index("producer@") :].replace(
        "cta 0", "cta 1"
    ).replace("N", "2").replace("tile", "full_tile")
    both = both.replace(
        ".shared .align 128 .b8 buf[128];",
        ".shared .align 128 .b8 buf[128];\n  .shared .align 128 .b8 full_tile[128];\n  .shared .b64 full, empty;",
    ).replace("[src + 128*k]", "[src]")
    answer = ask(requests.FIX, both).answer
    assert answer.before == "finding"
    assert answer.fixed is False
    assert answer.summary.startswith("not fixed")
    assert {bug.kind for bug in answer.remaining} == {"deadlock"}
    outcomes = {one.code: (one.helps, one.outcome) for one in answer.tried}
    assert outcomes["RACE003"][0]
    assert not any(helps for code, (helps, _) in outcomes.items() if code.startswith("DEAD"))


RING = """PTX ring
const S = 2, N = 5;
{
  .global .align 128 .b8 src[1024];
  .shared .align 128 .b8 buf[2][128];
  .shared .b64 full[2], empty[2];
}
producer@cta 0, warp 0, lane 0 {
  for s in 0..S {
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 1;
  }
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf[k%S]], [src + 128*k], 128, [full[k%S]];
  }
}
consumer@cta 0, warp 1 {
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    ld.shared.u32 r0, [buf[k%S] + 4*%laneid];
    bar.warp.sync 0xffffffff;
    if (%laneid == 0) { fence.proxy.async; mbarrier.arrive.shared::cta.b64 _, [empty[k%S]]; }
  }
}
"""


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize(
    ("right", "wrong"), [("((k/S)%2)^1", "(k/S)%2"), ("[empty[s]], 1;", "[empty[s]], 32;")], ids=["parity", "count"]
)
def test_what_no_insertion_mends_is_replaced(right: str, wrong: str) -> None:
    racy = RING.replace(right, wrong, 1)
    answer = ask(requests.FIX, racy).answer
    assert (answer.fixed, answer.before, answer.after, answer.changes) == (True, "finding", "proved", [])
    (edit,) = answer.edits
    assert wrong in edit.replaces or edit.replaces in wrong
    mended = edited(racy, [asdict(edit)])
    assert mended == RING
    assert answer.diff.count("\n+ ") == 1
    assert answer.checks > 1


@pytest.mark.daily(days=3, least=0)
def test_a_repair_that_the_request_does_not_prove_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search has limits and a model of its own; what counts is a check as it was asked for."""
    wrong = RING.replace("((k/S)%2)^1", "(k/S)%2", 1)
    found = repairs.find_repairs

    def repaired(*given: Any) -> Any:
        made = found(*given)
        return replace(made, found=tuple(replace(one, text=wrong) for one in made.found))

    monkeypatch.setattr(examination, "find_repairs", repaired)
    answer = ask(requests.FIX, wrong).answer
    assert (answer.fixed, answer.edits, answer.diff) == (False, [], "")
    assert answer.remaining


@pytest.mark.parametrize("text", [None, "__global__ void k() {}\n// edited\n"])
def test_the_launch_beside_a_source_is_that_of_its_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    """A source that is edited is compiled in a folder of its own."""
    source, seen = tmp_path / "k.cu", []
    source.write_text("__global__ void k() {}\n")
    (tmp_path / "k.launch.json").write_text('{"grid": 1, "block": 32}')

    def answer(request: Request, _: MemoryStore) -> Reply:
        seen.append(request)
        assert Path(request.path).read_text() == (text or source.read_text())
        return refuse(request, InputError("enough"))

    monkeypatch.setitem(answering._ANSWERS, requests.FIX, answer)
    answer_request(Request(kind=requests.FIX, path=str(source), text=text), MemoryStore())
    assert seen[0].launch is not None
    assert seen[0].launch.path == str(tmp_path / "k.launch.json")
    assert seen[0].path != str(source)


def test_what_a_compiler_refuses_is_told_with_its_lines() -> None:
    said = (
        'ring.cu(20): error: identifier "__pipeline_wait_prior" is undefined\n'
        "      __pipeline_wait_prior(1);\n      ^\n"
        "In file included from /usr/include/one.h:1:\n"
        '/usr/include/two.h:41:8: error: #error "incompatible"\n'
        "1 error detected in the compilation of ring.cu.\n"
    )
    reply = refuse(Request(kind=requests.CHECK, path="ring.cu"), CompileError("ring.cu", said))
    places = [(error.path, error.line, error.message) for error in reply.answer.errors]
    assert places[1:] == [
        ("ring.cu", 20, 'identifier "__pipeline_wait_prior" is undefined'),
        ("/usr/include/two.h", 41, '#error "incompatible"'),
    ]
    assert "ring.cu:20:1: identifier" in reply.text
    odd = refuse(Request(kind=requests.CHECK, path="ring.cu"), CompileError("ring.cu", "nvcc fatal   : no input\n"))
    assert odd.answer.errors[-1].message == "nvcc fatal   : no input"


def test_insertions_are_told_in_terms_of_the_text_as_it_was() -> None:
    text = EditedText("one\ntwo\nthree")

    def at(line: int, column: int, insert: str) -> TextEdit:
        return TextEdit(path="x", line=line, column=column, insert=insert)

    text = text.with_edits([at(2, 1, "A\n"), at(3, 6, "!")])
    assert str(text) == "one\nA\ntwo\nthree!"
    text = text.with_edits([at(2, 2, "B"), at(3, 4, "?"), at(1, 1, "0 ")])
    assert str(text) == "0 one\nAB\ntwo?\nthree!"
    told = [{"line": e.line, "column": e.column, "insert": e.insert} for e in text.edits("x")]
    assert edited("one\ntwo\nthree", told) == str(text)


def test_replacements_are_told_in_terms_of_the_text_as_it_was() -> None:
    def at(line: int, column: int, insert: str, replaces: str = "") -> TextEdit:
        return TextEdit(path="x", line=line, column=column, insert=insert, replaces=replaces)

    text = EditedText("wait 3;\nread;\n").with_edits([at(1, 1, "wait 2", "wait 3"), at(2, 1, "fence; ")])
    assert str(text) == "wait 2;\nfence; read;\n"
    text = text.with_edits([at(1, 6, "1;", "2;"), at(2, 1, "", "fence; re")])
    assert str(text) == "wait 1;\nad;\n"
    told = [(e.line, e.column, e.insert, e.replaces) for e in text.edits("x")]
    assert told == [(1, 1, "wait 1;", "wait 3;"), (2, 1, "", "re")]


def test_a_page_explains_a_code_and_a_wrong_one_is_refused() -> None:
    answer = ask(requests.EXPLAIN, path="-", code="race004").answer
    assert (answer.code, answer.kind) == ("RACE004", "race")
    assert ask(requests.CHECK, answer.correct).answer.clean is True
    assert ask(requests.CHECK, answer.incorrect).answer.bugs[0].code == "RACE004"
    wrong = ask(requests.EXPLAIN, path="-", code="RACE0004")
    assert wrong.refused
    assert "did you mean RACE004" in wrong.text


@pytest.mark.daily(days=3, least=0)
def test_fences_of_a_proved_sketch(tmp_path: Path) -> None:
    path = tmp_path / "waited.litmus"
    path.write_text(WAITED)
    answer = ask(requests.FENCES, path=str(path)).answer
    assert answer.decided
    assert [(one.line, one.without_it) for one in answer.needed] == [(10, ["RACE003"]), (11, ["RACE003"])]
    path.write_text(PIPELINE)
    answer = ask(requests.FENCES, path=str(path)).answer
    assert (answer.decided, answer.verdict) == (False, "finding")


def test_fences_have_the_limit_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Limits] = []

    def examine(path: str, limits: Limits, settings: Settings) -> Examined:
        seen.append(limits)
        return Examined(path, Verdict.UNKNOWN, None, "no answer")

    monkeypatch.setattr(examination, "examine", examine)
    answer = ask(requests.FENCES, path="x.litmus", settings=Settings(timeout=3, processor_time=True)).answer
    assert (answer.decided, answer.why_not_decided) == (False, ["no answer"])
    assert seen == [Limits(timeout=3, processor_time=True)]


def test_fences_have_a_limit_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def examine(path: str, limits: Limits, settings: Settings) -> Examined:
        held = bytearray(300 << 20)
        return Examined(path, Verdict.PROVED, None, f"{len(held)} {limits.timeout}")

    monkeypatch.setattr(examination, "examine", examine)
    answer = ask(requests.FENCES, path="x.litmus", settings=Settings(memory=128 << 20)).answer
    assert (answer.decided, answer.verdict) == (False, "unknown")
    assert "memory" in answer.why_not_decided[0]
    answer = ask(requests.FENCES, path="x.litmus", settings=Settings(memory=1 << 30)).answer
    assert answer.why_not_decided == [f"{300 << 20} None"]


def test_a_diff_of_an_absolute_path_can_be_applied_from_the_root(tmp_path: Path) -> None:
    at = tmp_path / "pipeline.litmus"
    at.write_text(PIPELINE)
    lines = ask(requests.FIX, path=str(at)).answer.diff.splitlines()
    assert lines[:2] == [f"--- a{at}", f"+++ b{at}"]
