"""What findings of modules call mbarriers and the stages of rings."""

from __future__ import annotations

from mcheck.base.errors import Span
from mcheck.base.phrase import plain
from mcheck.ir.memory import SHARED_BASE, Cta, Instance, MemObject, MemoryMap
from mcheck.ptx import check
from mcheck.report.deadlocks import describe_deadlock
from mcheck.simt.traces.address_names import KernelTerms
from mcheck.simt.traces.mbarrier_roles import Use, find_stages, index_roles
from tests.simt.rings import LAUNCH, ring

FEW = LAUNCH | {"params": {"source": {"buffer": None}, "rounds": 5}}


def _use(*words: str, lines: tuple[int, ...] = ()) -> Use:
    return Use({"init", *words}, {Span("kernel.ptx", line, 1) for line in lines})


def test_an_mbarrier_is_called_by_its_use() -> None:
    assert _use("bytes", "arrive", "wait").role == "full"
    assert _use("arrive", "wait", "feeds").role == "empty"
    assert _use("arrive", "wait").role == "bar"
    assert _use("feeds").role == "bar"


def test_each_use_is_an_array() -> None:
    roles = {("smem", 0): "full", ("smem", 8): "empty", ("smem", 16): "full"}
    assert index_roles(roles) == {("smem", 0): ("full", 0), ("smem", 8): ("empty", 0), ("smem", 16): ("full", 1)}


def test_two_rings_beside_each_other_are_told_by_their_instructions() -> None:
    keys = {("smem", 8 * k): _use("bytes", lines=(10 + k, 20)) for k in range(3)}
    values = {("smem", 24 + 8 * k): _use("bytes", lines=(30,)) for k in range(2)}
    expected = {("smem", 8 * k): (k, 3) for k in range(3)} | {("smem", 24 + 8 * k): (k, 2) for k in range(2)}
    assert find_stages(keys | values) == expected


def test_mbarriers_of_no_period_have_no_stage() -> None:
    assert find_stages({("smem", at): _use("bytes", lines=(10,)) for at in (0, 8, 64)}) == {}
    assert find_stages({("smem", 0): _use("bytes", lines=(10,))}) == {}


def test_mbarriers_of_two_rings_of_one_use_are_named_by_their_places() -> None:
    """Which of the rings is meant by a name made of the use alone, the reader of the source cannot tell."""
    storage = MemObject(name="storage", space="shared", elem="b8", elem_size=1, size=40)
    terms = KernelTerms(MemoryMap((Instance(storage, SHARED_BASE, SHARED_BASE, Cta(0, 0, 0, 0)),)), ())
    keys = {("storage", 8 * k): _use("bytes", lines=(10,)) for k in range(2)}
    terms.__dict__["_uses"] = keys | {("storage", 16): _use("bytes", lines=(30,)), ("storage", 24): _use("arrive")}
    places = [str(terms.thing_at(SHARED_BASE + at)) for at in (0, 8, 16, 24)]
    assert places == [
        "storage@0 (stage 0 of 2)",
        "storage@0 + 0x8 (stage 1 of 2)",
        "storage@0 + 0x10",
        "storage@0 + 0x18",
    ]


def test_a_deadlock_names_the_mbarriers_of_a_ring() -> None:
    text = ring(3).replace("[empty+8], 32", "[empty+8], 33")
    (finding,) = check(text, FEW).findings
    assert "of empty[1] (empty@0 + 0x8, stage 1 of 3), which is in phase 0" in finding.message
    assert "Initialise empty[1] (empty@0 + 0x8, stage 1 of 3) at line 25 with count 32 instead of 33" in finding.missing


def test_a_race_names_the_stage_that_a_copy_fills() -> None:
    found = check(ring(2, fence=""), FEW).findings
    assert found
    assert all(", stage 0 of 2: the generic read by" in f.message for f in found)
    assert {a.object for f in found for a in f.accesses} == {"tile@0"}


def test_one_mbarrier_of_a_use_has_no_index() -> None:
    text = ring(1).replace("[full+0], 1", "[full+0], 2")
    (finding,) = check(text, FEW).findings
    assert "of full (full@0), which is in phase 0" in finding.message


def test_mbarriers_have_the_names_of_their_variables() -> None:
    text = ring(3).replace("[empty+8], 32", "[empty+8], 33").replace("empty", "released")
    (finding,) = check(text, FEW).findings
    assert "of released[1] (released@0 + 0x8, stage 1 of 3), which is in phase 0" in finding.message


def test_mbarriers_beside_others_in_one_variable_are_called_by_their_use_and_place() -> None:
    """A name as the source has them would be looked for there in vain."""
    text = ring(1).replace("[full+0], 1", "[full+0], 2").replace("full[1]", "full[2]")
    (finding,) = check(text.replace("full", "storage"), FEW).findings
    assert "of the full mbarrier at storage@0, which is in phase 0" in finding.message
    assert "waits for phase 0 of the full mbarrier at storage" in plain(describe_deadlock(finding))
