"""Synchronisation that a proof needs, and that it does not."""

from pathlib import Path

import pytest

from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.fences import examination
from mcheck.checking.fences.candidates import apply_edits, find_sites
from mcheck.checking.fences.costs import read_costs
from mcheck.checking.fences.examination import CONDITION, Limits, examine
from mcheck.checking.fences.instructions import Instruction, find_test_instructions
from mcheck.checking.fences.removal import Removals
from mcheck.checking.fences.weakenings import weaker_forms
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.checking.run.single import load_model, load_program
from tests.engine_findings import engine_findings

LITMUS = Path("litmus")
KERNEL = LITMUS / "kernels/A05-same-thread-without-proxy-fence-fixed.litmus"
MP = """PTX mp
{ x = 0; f = 0; }
 P0@cta 0,gpu 0       | P1@cta 1,gpu 0        ;
 st.relaxed.gpu x, 1  | ld.relaxed.gpu r0, f  ;
 fence.acq_rel.gpu    | fence.acq_rel.gpu     ;
 st.relaxed.gpu f, 1  | ld.relaxed.gpu r1, x  ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
CLUSTER = """PTX cluster
{
  .shared .b32 x;
}
a@cta 0 {
  barrier.cluster.arrive;
  st.shared.u32 [x], 1;
  barrier.cluster.wait;
}
"""
BARRIERS = """PTX barriers
{
  .shared .b32 x, y;
}
a@cta 0, warp 0 {
  bar.sync 1, 64;
  if (%laneid == 0) { st.shared.u32 [x], 1; }
  bar.sync 1, 64;
}
b@cta 0, warp 1 {
  bar.sync 1, 64;
  if (%laneid == 0) { st.shared.u32 [y], 1; }
  bar.sync 1, 64;
}
"""


def examined(text: str, folder: Path) -> Removals:
    path = folder / "t.litmus"
    path.write_text(text, encoding="utf-8")
    found = examine(str(path), Limits(timeout=60))
    assert found.removals is not None, found.reason
    return found.removals


def check(text: str, path: Path = KERNEL) -> Verdict:
    return check_case(Case(str(path), text=text), Settings(timeout=20), Options()).verdict


def written(instruction: str) -> Instruction:
    return Instruction(0, len(instruction), 1, instruction, "P")


def test_the_only_proxy_fence_is_needed_and_of_two_one_can_go(tmp_path: Path) -> None:
    text = KERNEL.read_text()
    fence = next(i for i in find_test_instructions(text, "t") if i.text.startswith("fence.proxy"))
    once = examined(text, tmp_path)
    assert any(each.edit.start == fence.start and each.codes for each in once.needed)
    doubled = text[: fence.end] + " " + fence.text + text[fence.end :]
    twice = examined(doubled, tmp_path)
    assert sum(each.edit.instruction == fence.text for each in twice.removable) == 2
    assert sum(edit.instruction == fence.text for edit in twice.together) == 1
    assert check(apply_edits(doubled, twice.together)) == Verdict.PROVED


def test_comments_are_no_candidates_and_guards_and_other_lines_stay() -> None:
    text = """PTX t
{ .global .u32 x = 0; }
P@cta 0 {
  .reg .pred p; setp.eq.u32 p, 0, 0;
  // fence.sc.gpu;
  @p fence.sc.gpu; /* fence.sc.gpu; */ @!p
    fence.acq_rel.gpu;
}
"""
    sites = find_sites(find_test_instructions(text, "t"), read_costs())
    assert [(site.copies[0].line, site.copies[0].text) for site in sites] == [
        (6, "@p fence.sc.gpu;"),
        (6, "@!p\n    fence.acq_rel.gpu;"),
    ]
    edits = sites[0].removals[0].edits + sites[1].removals[0].edits
    assert apply_edits(text, edits).count("\n") == text.count("\n")
    assert sites[0].chains[0][0].edits[0].replacement == "@p fence.acq_rel.gpu;"


@pytest.mark.parametrize(
    ("instruction", "chains"),
    [
        ("fence.sc.gpu;", [["fence.acq_rel.gpu;", "fence.acquire.gpu;"], ["fence.acq_rel.gpu;", "fence.release.gpu;"],
                           ["fence.sc.cluster;", "fence.sc.cta;"]]),
        ("membar.sys;", [["membar.gl;", "membar.cta;"]]),
        ("fence.proxy.async;", [["fence.proxy.async.shared::cluster;", "fence.proxy.async.shared::cta;"],
                                ["fence.proxy.async.global;"]]),
        ("fence.mbarrier_init.release.cluster;", []),
        ("ld.acquire.cluster.u32 r0, [x];", [["ld.relaxed.cluster.u32 r0, [x];"], ["ld.acquire.cta.u32 r0, [x];"]]),
        ("atom.acq_rel.cta.add.u32 r0, [x], 1;", [
            ["atom.acquire.cta.add.u32 r0, [x], 1;", "atom.relaxed.cta.add.u32 r0, [x], 1;"],
            ["atom.release.cta.add.u32 r0, [x], 1;", "atom.relaxed.cta.add.u32 r0, [x], 1;"]]),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 16;",
         [["mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [b], 16;"]]),
        ("await mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 [b], 0;",
         [["await mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 [b], 0;"],
          ["await mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 [b], 0;"]]),
        ("barrier.cluster.arrive.release.aligned;", [["barrier.cluster.arrive.relaxed.aligned;"]]),
        ("bar.sync 1, 64;", [["bar.warp.sync 0xffffffff;"]]),
    ],
)  # fmt: skip
def test_weaker_forms_keep_the_rest_of_the_instruction(instruction: str, chains: list[list[str]]) -> None:
    assert list(map(list, weaker_forms(written(instruction)))) == chains


def test_a_wait_for_groups_may_be_for_fewer_of_them() -> None:
    pending, read = weaker_forms(written("cp.async.bulk.wait_group 1;"))[::-1]
    assert pending[0] == "cp.async.bulk.wait_group 2;"
    assert read == ("cp.async.bulk.wait_group.read 1;",)


def test_a_cell_of_a_column_is_a_candidate_and_the_answer_to_the_condition_has_to_stay(tmp_path: Path) -> None:
    found = examined(MP, tmp_path)
    needed = {(each.edit.line, each.edit.instruction): each.codes for each in found.needed}
    assert needed[5, "fence.acq_rel.gpu"] == (CONDITION,)
    fences = [each.edit for each in found.removable if each.edit.instruction.startswith("fence")]
    assert {edit.replacement for edit in fences} == {"fence.release.gpu", "fence.acquire.gpu"}
    weaker = apply_edits(MP, found.together)
    assert "fence.release.gpu" in weaker
    assert "fence.acquire.gpu" in weaker
    answers = [run_case(Case("t.litmus", text=text), Settings()).verdict for text in (MP, weaker)]
    assert answers == [Verdict.FAIL, Verdict.FAIL]


def test_an_order_that_is_needed_is_told_with_what_happens_without_it(tmp_path: Path) -> None:
    text = MP.replace(" fence.acq_rel.gpu    | fence.acq_rel.gpu     ;\n", "")
    text = text.replace("st.relaxed.gpu f", "st.release.gpu f").replace("ld.relaxed.gpu r0", "ld.acquire.gpu r0")
    found = examined(text, tmp_path)
    told = {(each.edit.instruction, each.edit.replacement): each.codes for each in found.needed}
    assert told["st.release.gpu f, 1", "st.relaxed.gpu f, 1"] == (CONDITION,)
    assert told["ld.acquire.gpu r0, f", "ld.relaxed.gpu r0, f"] == (CONDITION,)


def test_the_two_halves_of_a_barrier_go_together(tmp_path: Path) -> None:
    (pair,) = (each for each in examined(CLUSTER, tmp_path).removable if each.candidate.removes)
    assert sorted(edit.instruction for edit in pair.candidate.edits) == [
        "barrier.cluster.arrive;",
        "barrier.cluster.wait;",
    ]


def test_a_barrier_that_several_roles_name_goes_from_all_of_them(tmp_path: Path) -> None:
    found = examined(BARRIERS, tmp_path)
    assert {each.edit.line for each in found.needed if each.candidate.removes} == {6, 8, 11, 13}
    both = [each.candidate.edits for each in found.removable if each.candidate.removes]
    assert [[edit.line for edit in edits] for edits in both] == [[6, 11], [8, 13]]
    assert [edit.line for edit in found.together if edit.replacement is None] == [6, 8, 11, 13]


def test_what_is_a_finding_or_open_is_no_candidate(tmp_path: Path) -> None:
    found = examined(MP, tmp_path)
    assert all(each.trial.is_proved for each in found.removable)
    assert all(each.trial.verdict is Verdict.FINDING for each in found.needed)


IDIOMS = (
    "barriers/MP+barrier.cluster", "bulk/bulk-dsm-copy", "bulk/bulk-proxy-raw-global-flag-fenced",
    "bulk/bulk-proxy-raw-mbarrier-writer-fence", "bulk/bulk-proxy-war-reader-fence",
    "bulk/bulk-slot-released-at-cluster-scope", "bulk/bulk-store-read-wait-then-overwrite-source",
    "cp-async/cp-async-reader-finished-then-refill", "cp-async/cp-async-wait-then-release-flag", "classic/IRIW+acqs",
    "fences/SB+fence.sc+fence.acq_rel", "fences/SB+membar.gls", "fences/Fence-SC+twice",
    "mbarrier/mbarrier-both-relaxed-with-fences", "mbarrier/mbarrier-init-published-in-cluster",
    "mbarrier/mbarrier-remote-arrive-restricted-fence", "proxies/Alias+fence+block",
    "reduce/reduce-after-generic-atomic-fenced", "tensor/tensor-load-waited-in-another-thread",
    "tensor/tensor-map-replaced-by-another-cta",
)  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("idiom", [*IDIOMS[:2], *(pytest.param(name, marks=pytest.mark.slow) for name in IDIOMS[2:])])
def test_the_enumerating_engines_say_the_same_of_the_edited_programs(idiom: str) -> None:
    path = LITMUS / f"{idiom}.litmus"
    found = examine(str(path), Limits(timeout=120))
    assert found.removals is not None, found.reason
    assert found.removals.removable or found.removals.needed
    text, before = path.read_text(), run_case(Case(str(path)), Settings()).verdict
    for each in (*found.removals.removable, *found.removals.needed):
        changed = apply_edits(text, each.candidate.edits)
        program = load_program(str(path), text=changed)
        model = load_model(program.model or "ptx-9.0")
        for engine in ("explicit", "z3"):
            told = engine_findings(engine, program, model)
            if CONDITION in each.codes:
                answer = run_case(Case(str(path), text=changed), Settings(engine=engine)).verdict
                assert answer.is_of_condition
                assert answer is not before
            elif each.trial.is_proved:
                assert told.complete, told.reason
                assert not {finding.code for finding in told.findings if finding.severity == "error"}
            else:
                assert told.codes & {*each.codes} or told.causes & {*each.codes}, (engine, each)


@pytest.mark.daily(days=4, least=0)
@pytest.mark.parametrize(
    "name",
    [
        "fences/Fence-SC+twice",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                "bulk/bulk-slot-released-at-cluster-scope",
                "fences/SB+membar.gls",
                "mbarrier/mbarrier-both-relaxed-with-fences",
                "mbarrier/mbarrier-remote-arrive-restricted-fence",
            )
        ),
    ],
)
def test_fences_removed_in_groups_are_those_that_can_go_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = LITMUS / f"{name}.litmus"

    def claims() -> list[object]:
        found = examine(str(path), Limits(timeout=120)).removals
        assert found is not None
        return [(each.candidate, each.trial) for each in (*found.removable, *found.needed)]

    grouped = claims()
    monkeypatch.setattr(examination, "MONOTONE", frozenset())
    assert grouped == claims()


def test_a_group_of_fences_takes_one_check(tmp_path: Path) -> None:
    fences = "  fence.acq_rel.cta;\n" * 8
    found = examined(f"PTX t\n{{ .shared .u32 x; }}\nP@cta 0 {{\n{fences}  st.shared.u32 [x], 1;\n}}\n", tmp_path)
    assert len(found.removable) == 8
    assert all(len(each.proved_with) == 8 for each in found.removable)
    assert found.trials == 1


def test_a_fence_becomes_weaker_in_its_order_and_in_its_scope(tmp_path: Path) -> None:
    found = examined(
        "PTX t\n{ .shared .u32 x; .global .u32 f; }\n"
        "a@cta 0, warp 0, lane 0 { st.shared.u32 [x], 1; fence.sc.gpu; st.relaxed.cta.global.u32 [f], 1; }\n"
        "b@cta 0, warp 1, lane 0 { await ld.acquire.cta.global.u32 r0, [f] == 1; ld.shared.u32 r1, [x]; }\n",
        tmp_path,
    )
    assert {each.edit.replacement for each in found.removable} == {
        "fence.acq_rel.gpu;", "fence.release.gpu;", "fence.sc.cta;",
    }  # fmt: skip
    assert [edit.replacement for edit in found.together] == ["fence.release.cta;"]
    assert found.saved == 4999


def test_arrivals_become_relaxed_in_a_group(tmp_path: Path) -> None:
    arrive = "  mbarrier.arrive.shared::cta.b64 _, [m];\n"
    found = examined(
        f"PTX t\n{{ .shared .align 8 .b64 m; }}\nP@cta 0 {{\n  mbarrier.init.shared::cta.b64 [m], 4;\n{arrive * 4}}}\n",
        tmp_path,
    )
    assert [each.edit.replacement for each in found.removable] == [
        "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [m];"
    ] * 4
    assert found.trials == 1
