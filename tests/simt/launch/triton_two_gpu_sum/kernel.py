"""Two GPUs add up what both have: each tells the other by a flag for each program."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def two_gpu_sum(source, mine, theirs, my_flags, their_flags, target, TWIN: tl.constexpr):
    program = tl.program_id(0)
    at = program * 64 + tl.arange(0, 64)
    value = tl.load(source + at)
    tl.store(mine + at, value)
    tl.debug_barrier()
    if TWIN == 1:
        tl.atomic_xchg(their_flags + program, 1, sem="release", scope="gpu")
    else:
        tl.atomic_xchg(their_flags + program, 1, sem="release", scope="sys")
    if TWIN == 2:
        while tl.atomic_cas(my_flags + program, 1, 0, sem="relaxed", scope="sys") != 1:
            pass
    else:
        while tl.atomic_cas(my_flags + program, 1, 0, sem="acquire", scope="sys") != 1:
            pass
    tl.store(target + at, value + tl.load(theirs + at))


def build(twin):
    floats = dict.fromkeys(("source", "mine", "theirs"), "*fp32")
    signature = floats | {"my_flags": "*i32", "their_flags": "*i32", "target": "*fp32", "TWIN": "constexpr"}
    source = ASTSource(two_gpu_sum, signature, {"TWIN": twin})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 2})
