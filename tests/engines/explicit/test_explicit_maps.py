"""Tensor maps as values: the same bytes for the same fields, whatever other maps there were before."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from mcheck.ir.memory import TensorMapSpec
from mcheck.semantics.tensor_map_values import decode, encode

SPEC = TensorMapSpec(
    global_address=64, elemtype="u32", rank=1, global_dim=(8,), global_stride=(), element_stride=(1,), box_dim=(4,)
)


def test_what_was_encoded_before_changes_nothing() -> None:
    others = [encode(replace(SPEC, global_address=128 * k)) for k in range(3)]
    here = encode(SPEC)
    assert here not in others
    assert decode(here) == SPEC
    code = (
        "from mcheck.semantics.tensor_map_values import encode\n"
        "from mcheck.ir.memory import TensorMapSpec\nprint(encode("
        f"{SPEC!r}))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(said.stdout) == here
