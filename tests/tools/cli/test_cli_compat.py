"""The peers' suites through the command line; they lie beside the checkout and are no part of the project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[4] / "shared" / "compat"
ROWS = {"ptx-6.0-liveness": 38, "ptx-6.0-spec": 60, "ptx-7.5-liveness": 38, "ptx-7.5-spec": 126}


@pytest.mark.daily
@pytest.mark.skipif(not FOLDER.is_dir(), reason="the peers' suites are not beside this checkout")
@pytest.mark.parametrize("table", sorted(ROWS))
def test_every_row(mcheck: Callable, table: str) -> None:
    model, _, prop = table.rpartition("-")
    done = mcheck("run", "-q", "--expect", FOLDER / f"{table}.csv", "--model", model, "--property", prop)
    assert done.out == f"{ROWS[table]} tests: {ROWS[table]} ok, 0 mismatches, 0 unknown, 0 errors\n"
    assert done.status == 0
