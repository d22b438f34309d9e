"""Who commits the wgmma-groups of a warpgroup."""

from __future__ import annotations

import pytest

from mcheck.events import warpgroups
from mcheck.frontend.litmus import parse

SKETCH = """PTX committers
{{ .global .b32 x; }}
quiet@warp 0, lane 0 {{ st.global.u32 [x], 1; }}
loud@warp {warp}, lane 0..3 {{ wgmma.commit_group.sync.aligned; }}
"""


def test_the_code_of_a_program_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    decide = warpgroups.is_committer
    monkeypatch.setattr(warpgroups, "is_committer", lambda thread: read.append(thread.index) or decide(thread))
    near, far = (parse(SKETCH.format(warp=warp), "committers.litmus", every=True) for warp in (1, 4))
    group, other = near.threads[-1].place.warpgroup, far.threads[-1].place.warpgroup
    assert group != other
    for program, asked, expected in ((near, group, 3), (near, other, 0), (far, other, 3), (far, group, 0)):
        found = warpgroups.committing_threads(program, asked)
        assert len(found) == expected
        assert all(program.threads[k].role == "loud" for k in found)
    assert len(read) == len(near.threads) + len(far.threads)
