"""``mcheck fences``: its options, and that its answer does not depend on how many processes work on it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

KERNEL = "litmus/kernels/A05-same-thread-without-proxy-fence-fixed.litmus"
MODULE = Path("tests/simt/corpus/cuda/cp_async_groups.ptx")


def test_the_answer_does_not_depend_on_the_processes(mcheck: Any) -> None:
    alone, beside = (mcheck("fences", "-j", jobs, "--format", "json", KERNEL) for jobs in (1, 2))
    assert alone.status == beside.status == 0
    assert json.loads(alone.out) == json.loads(beside.out)
    assert json.loads(alone.out)["results"][0]["needed"]


def test_the_launch_of_a_module_may_be_given(mcheck: Any, tmp_path: Path) -> None:
    copy = tmp_path / "groups.ptx"
    shutil.copy(MODULE, copy)
    without = mcheck("fences", "-j", 1, copy)
    assert without.status == 2
    given = mcheck("fences", "-j", 1, "--launch", MODULE.with_suffix(".json"), copy)
    assert given.status == 0
    assert "cp.async.wait_group 1; (cp_async_groups.cu:21) is needed: RACE003" in given.out
