"""Sketches with a mistake that shows in no round before the thirtieth."""

from __future__ import annotations

from tests.engines.protocol.sketches import changed
from tests.engines.protocol.unbounded import gemm, ring

REGISTERS = ".reg .b32 n, s, q; .reg .pred p;"


def counted(step: str, more: str = "", stages: int = 2) -> str:
    """The ring whose consumer goes by a counter in a register, which ``step`` advances: its stage and its parity."""
    await_ = "await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;\n    ld"
    return changed(
        ring(stages),
        (".reg .b32 n;", REGISTERS),
        (
            await_,
            f"""shr.u32 q, n, {stages.bit_length() - 1}; and.b32 q, q, 1;
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], q;
    {step}
    ld""",
        ),
        ("    \n  }\n}\n", f"    {more}\n  }}\n}}\n"),
    )


def stored(address: str, wait: str) -> str:
    """The ring whose consumer hands on what it reads, by copies of its own to ``address``."""
    return changed(
        ring(),
        (".shared .align 128 .b8  buf", ".global .align 128 .b8 out[128*N + 8192];\n  .shared .align 128 .b8  buf"),
        (
            "    \n  }\n}\n",
            f"""    if (%laneid == 0) {{
      cp.async.bulk.global.shared::cta.bulk_group [{address}], [buf[0]], 128;
      cp.async.bulk.commit_group;
      {wait}
    }}
  }}
}}
""",
        ),
        ("r0, [buf[k%S] + 4*%laneid];\n    fence.proxy.async.shared::cta;", "r0, [buf[k%S] + 4*%laneid];"),
    )


FENCE = "fence.proxy.async.shared::cta;"
LATE = {
    "bytes-in-a-round": ring(bytes_="1024 + 16*(k == 40)"),
    "bytes-by-a-quotient": ring(2, bytes_="1024 + 16*(k/45)"),
    "parity-flips-with-the-tile": ring(parity="(k/S + k/64)%2"),
    "parity-of-six-bits": ring(3, parity="((k & 63)/S)%2"),
    "a-fence-that-ends": changed(ring(2), (FENCE, f"if (k < 64) {{ {FENCE} }}")),
    "a-fence-of-many-rounds": changed(ring(2), (FENCE, f"if (k % 48 != 47) {{ {FENCE} }}")),
    "a-counter-of-six-bits": counted("add.u32 n, n, 1; and.b32 n, n, 0x3F; setp.ge.u32 p, n, 63; @p mov.u32 n, 1;"),
    "an-arrival-too-many": ring(
        2, more="add.u32 n, n, 1; setp.eq.u32 p, n, 50; @p mbarrier.arrive.shared::cta.b64 _, [empty[0]];"
    ).replace(".reg .b32 n;", REGISTERS),
    "a-source-that-ends": changed(ring(), ("src[1024*N + 1024]", "src[65536]")),
    "the-last-round": ring(4, parity="((k + S*(k == N-1))/S)%2"),
    "results-that-come-round": changed(
        gemm(1), ("[out + 128*C*t +", "[out + 128*(t%32) +"),
        ("    cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;"),
    ),
}  # fmt: skip
"""All of them go wrong with 90 rounds."""
