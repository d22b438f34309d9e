"""What clusters do alone, computed from one cluster of their class, against the execution of each."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.base.budget import Limit
from mcheck.checking.modules.pairs.counted_grid import find_representatives
from mcheck.simt.grid.pairs.class_executions import ClassExecutions
from mcheck.simt.grid.pairs.reduction import NotReducible
from tests.fuzz.class_grids import difference, differences_of
from tests.fuzz.last_blocks import Plan, launch_of, read, write
from tests.fuzz.pair_answers import build

SEEDS = 40
FEW = 8
SECONDS = 60.0
COUNT = """setp.ne.u32 %p6, %r2, 0;
@%p6 bra COUNTED;
fence.acq_rel.gpu;
atom.relaxed.gpu.global.add.u32 %r6, [%a3], 1;
COUNTED:"""

ATTACKS = {
    "a word of the first CTA is loaded again, and decides":
        "mul.wide.u32 %a10, %r1, 4;\nadd.s64 %a10, %a1, %a10;\nst.global.u32 [%a10], 1;\nld.global.u32 %r9, [%a1];\n"
        "setp.eq.u32 %p1, %r9, 1;\n@%p1 st.global.u32 [%a2], 1;",
    "two lanes store values that coincide in one CTA":
        "mul.lo.u32 %r9, %r2, %r1;\nst.global.u32 [%a2], %r9;",
    "two lanes store values that differ in the first CTA, and not in another":
        "setp.eq.u32 %p1, %r2, 0;\nselp.u32 %r9, 3, %r1, %p1;\nst.global.u32 [%a2], %r9;",
    "lanes store to places that coincide in one CTA":
        "mul.lo.u32 %r9, %r2, %r1;\nmul.wide.u32 %a10, %r9, 4;\nadd.s64 %a10, %a1, %a10;\nst.global.u32 [%a10], 1;",
    "a lane has read what it stores to, another one in each CTA":
        "add.u32 %r9, %r1, %r2;\nmul.wide.u32 %a10, %r9, 4;\nadd.s64 %a10, %a1, %a10;\nld.global.u32 %r10, [%a10];\n"
        "st.global.u32 [%a1+8], 1;",
    "the parity of the CTA is stored":
        "and.b32 %r9, %r1, 1;\nst.shared.u32 [said], %r9;\nbar.sync 0;\nld.shared.u32 %r10, [said];\n"
        "setp.eq.u32 %p1, %r10, 1;\n@%p1 st.global.u32 [%a2], 1;",
    "quotients and clamps":
        "div.u32 %r9, %r1, 3;\nmin.u32 %r10, %r1, 4;\nmad.lo.u32 %r9, %r9, 8, %r10;\nmul.wide.u32 %a10, %r9, 4;\n"
        "add.s64 %a10, %a1, %a10;\nst.global.u32 [%a10], 1;",
    "as many rounds as the coordinate says":
        "mov.u32 %r9, 0;\nAGAIN:\nld.global.u32 %r10, [%a1];\nadd.u32 %r9, %r9, 1;\nsetp.le.u32 %p1, %r9, %r1;\n"
        "@%p1 bra AGAIN;",
    "a vector, and one of its words":
        "mul.wide.u32 %a10, %r1, 8;\nadd.s64 %a10, %a1, %a10;\nst.global.v2.u32 [%a10], {%r1, 1};\n"
        "ld.global.u32 %r9, [%a1+4];\nsetp.eq.u32 %p1, %r9, 1;\n@%p1 st.global.u32 [%a2], 1;",
    "a table of given contents decides":
        "mul.wide.u32 %a10, %r1, 4;\nadd.s64 %a10, %a4, %a10;\nld.global.u32 %r9, [%a10];\nsetp.eq.u32 %p1, %r9, 0;\n"
        "@%p1 st.global.u32 [%a2], 1;",
    "a flag of each CTA, with its number":
        "mul.wide.u32 %a10, %r1, 4;\nadd.s64 %a10, %a1, %a10;\nst.release.gpu.global.u32 [%a10], %r1;",
    "a strong store that meets a word of some CTA":
        "mul.wide.u32 %a10, %r1, 4;\nadd.s64 %a10, %a1, %a10;\nst.global.u32 [%a10], 1;\n"
        "st.relaxed.gpu.global.u32 [%a1+12], 2;\nld.global.u32 %r9, [%a1+12];",
}  # fmt: skip


@pytest.mark.parametrize("seed", range(FEW))
def test_random_clusters_do_what_their_class_says(seed: int) -> None:
    assert difference(Random(f"classes/{seed}"))[0] == ""


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(FEW, SEEDS))
def test_more_random_clusters_do_what_their_class_says(seed: int) -> None:
    assert difference(Random(f"classes/{seed}"))[0] == ""


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_may_differ_in_one_cluster_is_not_computed(attack: str) -> None:
    assert differences_of(f"{ATTACKS[attack]}\n{COUNT}", [9])[0] == ""


def test_a_last_block_of_many_ctas_is_executed_a_few_times() -> None:
    module, launch = read(Plan(clusters=600, threads=2))
    found = find_representatives(module, launch, Limit(SECONDS))
    assert found.pairs
    assert found.left == 600


def test_clusters_that_differ_are_as_many_as_can_be_executed() -> None:
    plan = Plan(clusters=300, threads=1, store="st.relaxed.gpu.global.u32 [%a6], 1;")
    with pytest.raises(NotReducible, match=r"more than 160 clusters|share words by strong accesses"):
        find_representatives(*read(plan), Limit(SECONDS))


def test_no_class_is_looked_for_where_clusters_take_the_places_of_others() -> None:
    cancel = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [said], [part];"
    text = write(Plan(clusters=9)).replace(".version 8.7", ".version 8.8").replace("sm_90", "sm_100")
    module, launch = build(text.replace("DONE:", f"DONE:\n{cancel}"), launch_of(Plan(clusters=9)), cooperative=False)
    assert ClassExecutions(module, launch, [(k, 0, 0) for k in range(9)], lambda *_: pytest.fail("executed")).apart
