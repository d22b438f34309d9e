"""Repairs of modules: what the findings name is inserted, or a wait waits for more; each is checked."""

from __future__ import annotations

import pytest

from benchmarks.modules import Case, cases
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.fences.examination import Examined, Limits, examine_text
from mcheck.checking.run.case import Case as File
from mcheck.checking.run.case import Options, Settings

TWINS = {case.label: case for case in cases() if case.edits}
FENCE = "insert fence.proxy.async.shared::cta"
ONE_FENCE = "cuda/bulk_store one-round-of-four-without-fence"


def mend(case: Case, trials: int = 400, seconds: float = 120) -> Examined:
    limits = Limits(timeout=seconds, processor_time=True, trials=trials)
    return examine_text(str(case.path), case.text(), None, limits)


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    ("label", "kind"),
    [
        (ONE_FENCE, (FENCE,)),
        ("cuda/bulk_store no-proxy-fence", (FENCE,) * 4),
        ("cuda/bulk_store no-barrier-before-the-store", ("insert bar.sync 0",)),
        ("cuda/bulk_store reads-not-awaited", ("pending groups",)),
        ("cuda/bulk_store no-commit", ("insert cp.async.bulk.commit_group",) * 2),
        ("cuda/bulk_to_peer bytes-more", ("bytes",)),
        ("cuda/bulk_to_peer no-wait", ("loop around a test",)),
        ("cuda/bulk_to_peer barrier-of-the-block", ("barrier of the cluster",)),
        ("cuda/bulk_to_peer no-last-barrier", ("insert cluster barrier at the end",)),
        ("cuda/block_reduce no-barrier-before-the-read", ("insert barrier",)),
    ],
)
def test_a_twin_is_mended_and_proved(label: str, kind: tuple[str, ...]) -> None:
    case = TWINS[label]
    found = mend(case)
    assert found.repairs is not None
    assert [repair.kind for repair in found.repairs.found] == [kind]
    assert found.fixed == found.repairs.found[0].text
    again = check_case(File(str(case.path), text=found.fixed), Settings(timeout=60), Options())
    assert again.verdict is Verdict.PROVED


@pytest.mark.daily(days=3, least=0)
def test_fewer_groups_are_pending_at_each_copy_of_a_wait() -> None:
    found = mend(TWINS["cuda/bulk_store reads-not-awaited"])
    assert found.fixed is not None
    assert "wait_group.read 2" in found.text
    assert "wait_group.read 2" not in found.fixed
    assert found.fixed.count("wait_group.read 1") == found.text.count("wait_group.read 2")


@pytest.mark.daily(least=0)
def test_what_no_edit_mends_says_so() -> None:
    found = mend(TWINS["cuda/queue one-place-for-a-warp"])
    assert found.repairs is not None
    assert found.repairs.found == ()
    assert "none is proved" in (found.reason or "")


@pytest.mark.daily(days=3, least=0)
def test_trials_are_limited() -> None:
    found = mend(TWINS["cuda/bulk_store no-proxy-fence"], trials=1)
    assert found.repairs is not None
    assert found.repairs.trials == 1
    assert "--trials 1" in (found.reason or "")
