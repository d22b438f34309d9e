"""Programs with a planted bug each, and how one that makes requests edits a text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
REFILL = re.search(r"```ptx title=refill.litmus\n(.*?)```", README, re.DOTALL)[1]
"""A store before a bulk copy, without a proxy fence."""
PIPELINE = """PTX pipeline
"each lane copies a word, another lane reads it"
{
  .global .align 128 .b8 src[128];
  .shared .align 128 .b8 buf[128];
}
W@cta 0, warp 0 {
  cp.async.ca.shared.global [buf + 4*%laneid], [src + 4*%laneid], 4;
  cp.async.commit_group;
  bar.warp.sync 0xffffffff;
  ld.shared.u32 r0, [buf + 4*(31 - %laneid)];
}
"""
"""A read without a wait for the copy."""
HAND_OVER = (ROOT / "tests" / "simt" / "hand_over.ptx").read_text(encoding="utf-8")
MODULE = HAND_OVER.replace("\tfence.proxy.async.shared::cta;\n", "")
"""A module that stores to a bulk copy without a proxy fence."""
LAUNCH = {"grid": 1, "params": {"rows": 1, "out": {"buffer": 256}}}
SLOW = (
    "PTX slow\n{ .global .u32 x[64]; }\n"
    + "".join(
        f"P{k}@cta {k} {{\n"
        + "".join(f"  atom.relaxed.gpu.global.add.u32 r{i}, [x + 4 * {i}], 1;\n" for i in range(8))
        + "}\n"
        for k in range(6)
    )
    + "exists ("
    + " /\\ ".join(f"P{k}:r{i} == 1" for k in range(6) for i in range(8))
    + ")\n"
)
"""Too many executions for any engine, and too many final states."""


def edited(text: str, edits: Sequence[Mapping[str, Any]]) -> str:
    """The text with the edits of an answer, each at its line and column."""
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda e: (-e["line"], -e["column"])):
        line, at, old = lines[edit["line"] - 1], edit["column"] - 1, edit.get("replaces", "")
        assert line[at : at + len(old)] == old
        lines[edit["line"] - 1] = line[:at] + edit["insert"] + line[at + len(old) :]
    return "\n".join(lines)
