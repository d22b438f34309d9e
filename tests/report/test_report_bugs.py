"""A bug as text: one finding of at most twelve lines, at lines of the source, with the fix in its language."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from benchmarks.modules import Case, cases
from mcheck.base.errors import Span
from mcheck.base.phrase import Lack, Site, Sites, join, say
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Case as Asked
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.checking.run.summary import summarize
from mcheck.findings.finding import Access, CompiledLine
from mcheck.findings.fix import advise
from mcheck.frontend.ptx import launch_reader
from mcheck.report import checked
from mcheck.report.evidence import MEASURED
from mcheck.report.finding import MOST_LINES
from mcheck.report.language_words import Vocabulary, library_of
from mcheck.report.lines import plain

ROOT = Path(__file__).parents[2]
TWINS = {case.label: case for case in cases() if case.edits}
SHOWN = (
    "cuda/cp_async_groups waits-one-group-less",
    "cuda/cp_async_barrier full-not-awaited",
    "cuda/drawn_tiles no-barrier-after-init",
    "cuda/bulk_store no-commit",
    "gluon/hopper_sm90 epilogue-without-fence",
    "triton/matmul_persistent_sm90 epilogue-without-fence",
)


@cache
def answer(label: str) -> Result:
    case: Case = TWINS[label]
    return check_text(case.text(), str(case.path), launch_reader.from_object(case.launch()), Settings(), Options())


def text_of(result: Result, **options: bool) -> str:
    return "\n".join(plain(line) for line in checked.describe(result, **options))


@pytest.mark.daily
@pytest.mark.parametrize("label", SHOWN)
def test_one_bug_is_one_finding_of_twelve_lines(label: str) -> None:
    text = text_of(answer(label))
    headings = [k for k, line in enumerate(text.splitlines()) if re.match(r"  (error|review)\[", line)]
    assert len(headings) == 1
    bug = [line for line in text.splitlines()[headings[0] :] if line.startswith("  ") and not line[2:3].isdigit()]
    assert len(bug) <= MOST_LINES
    assert len(answer(label).findings) >= 3
    assert f"1 bug ({len(answer(label).findings)} findings): " in text


@pytest.mark.daily(days=3, least=0)
def test_the_layout() -> None:
    text = text_of(answer(SHOWN[0])).replace(f"{ROOT}/tests/simt/corpus/cuda/", "")
    assert text.startswith("race      ")
    assert text.split("\n", 1)[1] == (ROOT / "tests/report/bug.txt").read_text(encoding="utf-8").rstrip("\n")


def test_all_shows_each_and_details_show_instructions() -> None:
    result = answer(SHOWN[0])
    assert text_of(result, every=True).count("error[RACE003]") == len(result.findings) == 12
    verbose = text_of(result, verbose=True)
    assert verbose.count("error[RACE003]") == 1
    assert "ld.shared.v4.f32" in verbose
    assert "  trace:" in verbose
    assert "assuming:" in verbose
    for word in ("ld.shared.v4.f32", "trace:", "assuming:"):
        assert word not in text_of(result)


def test_a_source_that_cannot_be_read_leaves_the_module() -> None:
    result = answer(SHOWN[0])
    away = replace(
        result, findings=tuple(replace(f, accesses=tuple(_moved(a) for a in f.accesses)) for f in result.findings)
    )
    text = text_of(away)
    assert re.search(r"--> \S+cp_async_groups\.ptx:\d+:\d+", text)
    assert "ld.shared.v4.f32" in text


def _moved(access: Access) -> Access:
    return replace(access, source=tuple(replace(s, path=f"gone-{s.path}") for s in access.source))


def test_other_files_than_source_code_are_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("password\n" * 99)
    result = answer(SHOWN[0])
    path = str(tmp_path / "secret.txt")
    aside = tuple(
        replace(
            f, accesses=tuple(replace(a, source=tuple(replace(s, path=path) for s in a.source)) for a in f.accesses)
        )
        for f in result.findings
    )
    assert "password" not in text_of(replace(result, findings=aside))


def test_a_line_for_each_bug() -> None:
    (line,) = checked.concise([answer(SHOWN[0])]).splitlines()
    assert re.fullmatch(
        r"\S+cp_async_groups\.cu:2[34]:5: error\[RACE003\] `tile` is read while a cp\.async may still be writing it",
        line,
    )


@pytest.mark.daily(days=4, least=0)
def test_groups_in_json() -> None:
    result = answer(SHOWN[1])
    document = json.loads(checked.document("m", "ptx", [result], summarize([result])))["results"][0]
    groups = document["groups"]
    assert sorted(k for group in groups for k in group["findings"]) == list(range(len(document["findings"])))
    assert all(group["count"] == len(group["findings"]) for group in groups)
    assert [group["code"] for group in groups if "follows" not in group] == ["RACE003"]
    assert {group["code"] for group in groups if group.get("follows") == 0} == {"UB212", "RACE003", "DEAD003"}
    assert [place["line"] for place in groups[0]["source"]] == [45, 36]


RING = """PTX ring
{ .shared .b64 full, empty; }
p@cta 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 1;
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [empty], 0;
  mbarrier.arrive.shared::cta.b64 _, [full];
}
c@cta 0 {
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
  mbarrier.arrive.shared::cta.b64 _, [empty];
}
"""


def checked_text(text: str) -> Result:
    return check_case(Asked("ring.litmus", text=text), Settings(), Options())


def test_a_deadlock_names_its_cycle_and_the_state_of_its_barriers() -> None:
    text = text_of(checked_text(RING))
    assert (
        "error[DEAD003]: deadlock: line 7 (p) waits for phase 0 of `empty`, which line 13 (c) has still to signal; "
        "line 12 (c) waits for phase 0 of `full`, which line 8 (p) has still to signal"
    ) in text
    assert "= state: `empty` is in phase 0, has 0 of 1 arrivals; `full` is in phase 0, has 0 of 1 arrivals" in text


MISCOUNTED = """PTX ring
{ .global .align 128 .b8 src[1024]; .shared .align 128 .b8 buf[2][128]; .shared .align 8 .b64 full[2], empty[2]; }
producer@cta 0, warp 0, lane 0 {
  for s in 0..2 { mbarrier.init.shared::cta.b64 [full[s]], 1; mbarrier.init.shared::cta.b64 [empty[s]], 1; }
  bar.sync 0;
  for k in 0..4 {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%2]], ((k/2)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%2]], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf[k%2]], [src + 128*k], 128, [full[k%2]];
  }
}
consumer@cta 0, warp 1, lane 0..2 {
  bar.sync 0;
  for k in 0..4 {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%2]], (k/2)%2;
    ld.shared.u32 r0, [buf[k%2] + 4*%laneid];
    mbarrier.arrive.shared::cta.b64 _, [empty[k%2]];
  }
}
"""


def test_consequences_in_the_file_of_their_cause_are_lines_of_it() -> None:
    said = [line for line in text_of(checked_text(MISCOUNTED)).splitlines() if "= also: " in line]
    assert said == ["    = also: UB212 at line 17, DEAD003 at line 7 may follow from this"]


@pytest.mark.parametrize(
    ("expectation", "found"),
    [("", "deadlock  ring.litmus"), ("expect deadlock\n", "deadlock  ring.litmus (as expected)")],
)
def test_headlines_say_what_was_found(expectation: str, found: str) -> None:
    assert text_of(checked_text(RING + expectation)).splitlines()[0] == found


def test_clean_is_the_headline_of_what_is_proved() -> None:
    result = checked_text("PTX t\n{ .global .u32 x; }\nP@cta 0 { st.global.u32 [x], 1; }\nexpect clean\n")
    assert result.verdict is Verdict.PROVED
    assert text_of(result).splitlines()[0] == "clean     ring.litmus (proved, as expected)"


@pytest.mark.parametrize(
    ("language", "code", "word"),
    [
        ("cuda", "cp.async.wait_group 1", "__pipeline_wait_prior(1)"),
        ("cutlass", "cp.async.wait_group 1", "cute::cp_async_wait<1>()"),
        ("cutlass", "bar.sync 0", "__syncthreads()"),
        ("gluon", "fence.proxy.async.shared::cta", "fence_async_shared()"),
        ("gluon", "cp.async.bulk.wait_group.read 0", "tma.store_wait(0)"),
        ("gluon", "cp.async.bulk.wait_group 1", "tma.store_wait(1, read_only=False)"),
        ("cuda", "bar.warp.sync 0xffffffff", "__syncwarp()"),
        ("cuda", "bar.warp.sync 0xffff", "__syncwarp(0xffff)"),
        ("cuda", "cp.async.wait_all", "__pipeline_commit(); __pipeline_wait_prior(0)"),
        ("cuda", "fence.proxy.async", "cuda::ptx::fence_proxy_async()"),
        ("triton", ".acquire.gpu", "sem='acquire'"),
        ("triton", "atom.relaxed.gpu.global.add.f32", "tl.atomic_add()"),
        ("cuda", "atom.relaxed.gpu.shared.max.s32", "atomicMax()"),
    ],
)
def test_fixes_in_the_words_of_the_language(language: str, code: str, word: str) -> None:
    words = Vocabulary(language)
    assert words.name(code) == f"{code} (`{word}`)"
    assert words.name(code) == code  # it has been told
    assert Vocabulary(language).annotate(f"execute {code} after it") == f"execute {code} (`{word}`) after it"
    assert Vocabulary("").name(code) == code


@pytest.mark.parametrize(
    ("library", "code", "word"),
    [
        ("pipeline", "the phase of the mbarrier", "consumer_wait()"),
        ("barrier", "the phase of the mbarrier", "wait()"),
        ("groups", "cp.async.wait_all", "cooperative_groups::wait(group)"),
        ("pipeline", "cp.async.commit_group", "producer_commit()"),
        ("pipeline", "arrive on it", "producer_commit()"),
        ("pipeline", "arrive on it afterwards", "consumer_release()"),
        ("pipeline", "Go on to the next stage", "consumer_release()"),
        ("barrier", "arrive on it afterwards", "arrive()"),
        ("barrier", "bar.sync 0", "__syncthreads()"),
    ],
)
def test_words_of_a_library_come_before_those_of_the_language(library: str, code: str, word: str) -> None:
    assert Vocabulary("cuda", library).name(code) == f"{code} (`{word}`)"
    assert Vocabulary("gluon", library).name(code) == Vocabulary("gluon").name(code)


@pytest.mark.parametrize(
    ("path", "library"),
    [
        ("/usr/local/cuda/include/cccl/cuda/pipeline", "pipeline"),
        ("/usr/local/cuda/include/cccl/cuda/__barrier/barrier_block_scope.h", "barrier"),
        ("/usr/local/cuda/include/cooperative_groups/details/async.h", "groups"),
        ("/home/user/cuda/pipeline.cu", ""),
    ],
)
def test_the_library_is_that_of_the_inlined_functions(path: str, library: str) -> None:
    access = Access(thread="warp0", instruction="ld.shared.u32 %r1, [%r2]", source=(Span(path, 1, 1),))
    assert library_of(replace(answer("cuda/bulk_store no-proxy-fence").findings[0], accesses=(access,))) == library


@pytest.mark.parametrize(
    ("numbers", "last", "said"),
    [
        ((1, 2), ", ", "Arrive at line 15"),
        ((1, 2, 3), ", ", "Arrive at lines 15, 16"),
        ((1, 2, 3), " and ", "Arrive at lines 15 and 16"),
    ],
)
def test_a_line_that_a_compiler_made_several_of_is_named_once(numbers: tuple[int, ...], last: str, said: str) -> None:
    result = answer("cuda/bulk_store no-proxy-fence")
    (place,) = {a.source[-1] for a in result.findings[0].accesses if a.source and a.source[-1].line == 15}
    lines = tuple(CompiledLine(n, (replace(place, line=line),)) for n, line in ((1, 15), (2, 15), (3, 16)))
    fix = advise("Arrive at {}", Sites(tuple(map(Site, numbers)), last))
    changed = replace(result.findings[0], fixes=(fix,), lines=lines)
    text = text_of(replace(result, findings=(changed,)))
    assert f"= fix: {said}\n" in text


def test_what_differs_in_the_registers_of_copies_of_a_line_is_said_once() -> None:
    """The iterations of an unrolled loop have registers of their own."""
    result = answer("cuda/bulk_store no-proxy-fence")
    (place,) = {a.source[-1] for a in result.findings[0].accesses if a.source and a.source[-1].line == 15}
    lines = tuple(CompiledLine(n, (replace(place, line=15),)) for n in (1, 2))
    narrow = [say("'{}' at {} has scope .cta, but no thread is near", f"ld [%r{n}]", Site(n)) for n in (1, 2)]
    message = (Lack(join(narrow, "; ", "; ")),)
    fixes = tuple(advise("Widen it at {}", Site(n)) for n in (1, 2))
    changed = replace(result.findings[0], said=message, fixes=fixes, lines=lines)
    text = text_of(replace(result, findings=(changed,)))
    assert text.count("has scope .cta") == 1
    assert "= fix: Widen it at line 15\n" in text


def test_a_barrier_of_a_cta_is_not_named_for_threads_of_several() -> None:
    assert Vocabulary("cuda").name("a barrier") == "a barrier (`__syncthreads()`)"
    assert Vocabulary("cuda", one_cta=False).name("a barrier") == "a barrier"


def test_figures_are_those_of_the_page_about_hopper() -> None:
    page = (ROOT / "docs" / "hopper.md").read_text(encoding="utf-8")
    for row in MEASURED:
        assert f"`{row.test}`" in page
        none = re.search(r"none of ([\d.]+ [GMk])", row.figure)
        assert none is not None
        assert f": 0 of {none[1]}" in page


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    ("label", "fix"),
    [
        (
            "cuda/ring_bulk empty-counts-half",
            "Initialise the empty mbarrier at `memory` + 0x2020 at line 27 with count 128 instead of 64",
        ),
        (
            "cuda/ring_bulk empty-counts-more",
            "Initialise the empty mbarrier at `memory` + 0x2020 at line 27 with count 128 instead of 129",
        ),
        (
            "tilelang/product_sm80 no-barrier-after-the-wait",
            "Put a barrier (`__syncthreads()`) between the wait at line 372 and line",
        ),
    ],
)
def test_the_fix_is_where_the_mistake_is(label: str, fix: str) -> None:
    assert f"= fix: {fix}" in text_of(answer(label))


FRAGMENTS = """.version 8.7
.target sm_80
.address_size 64
.visible .entry k()
{
.shared .align 16 .b8 buf[2048];
.reg .b32 %r<16>;
mov.u32 %r1, %tid.x;
mov.u32 %r2, buf;
shl.b32 %r3, %r1, 4;
add.s32 %r4, %r2, %r3;
st.shared.u32 [%r4], 0;
st.shared.u32 [%r4+1024], 0;
bar.sync 0;
xor.b32 %r5, %r3, 512;
add.s32 %r6, %r2, %r5;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r7, %r8, %r9, %r10}, [%r6];
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r11, %r12}, [%r6+1024];
st.shared.u32 [%r4], 1;
st.shared.u32 [%r4+1024], 1;
ret;
}
"""


def test_one_barrier_is_missing_where_half_of_the_lanes_give_no_address() -> None:
    """The upper lanes of a warp do nothing in ``ldmatrix.x2``."""
    launch = launch_reader.from_object({"grid": [1], "block": [64], "params": {}})
    text = text_of(check_text(FRAGMENTS, "k.ptx", launch, Settings(), Options()))
    assert "1 bug (" in text
    assert "bar.sync 0 before line 19" in text
