"""Protocols of counters and flags in global memory, of any size."""

from __future__ import annotations


def grid_barrier(
    ctas: int, rounds: int, *, release: str = "release", acquire: str = "acquire", scope: str = "gpu", few: int = 0,
    test: str = ">=",
) -> str:  # fmt: skip
    """A barrier of all CTAs by a counter that only grows, twice in each round: between tiles that neighbours read. A
    wait is for ``few`` arrivals less.
    """
    arrive = f"red.{release}.{scope}.global.add.u32 [met], 1;"
    wait = f"await ld.{acquire}.{scope}.global.u32 r0, [met] {test}"
    return f"""PTX grid-barrier
    {{ .global .u32 met = 0; .global .u32 tile[{ctas}]; }}
    block@cta 0..{ctas}, warp 0, lane 0 {{
      for k in 0..{rounds} {{
        st.global.u32 [tile + 4*%ctaid.x], k;
        {arrive}
        {wait} {ctas}*(2*k + 1) - {few};
        ld.global.u32 r1, [tile + 4*((%ctaid.x + 1)%{ctas})];
        {arrive}
        {wait} {ctas}*(2*k + 2) - {few};
      }}
    }}
    """


def exchange_of_flags(ctas: int, rounds: int) -> str:
    """A barrier of all CTAs, each of which sets a flag of its own and has a lane for each of the others."""
    return f"""PTX exchange-of-flags
    {{ .global .u32 flag[{ctas}]; }}
    block@cta 0..{ctas}, warp 0 {{
      for k in 0..{rounds} {{
        bar.warp.sync 0xffffffff;
        if (%laneid == 0) {{ st.release.gpu.global.u32 [flag + 4*%ctaid.x], k + 1; }}
        if (%laneid < {ctas}) {{ await ld.acquire.gpu.global.u32 r0, [flag + 4*%laneid] >= k + 1; }}
        bar.warp.sync 0xffffffff;
      }}
    }}
    """


def histogram(ctas: int, lanes: int, *, arrive: str = "red.release.gpu") -> str:
    """Counts that all CTAs add to, read once all have arrived."""
    who = f"warp 0, lane 0..{lanes}" if lanes <= 32 else f"warp 0..{lanes // 32}"
    return f"""PTX histogram
    {{ .global .align 128 .u32 bins[{lanes}]; .global .u32 arrived = 0; }}
    block@cta 0..{ctas}, {who} {{
      red.relaxed.gpu.global.add.u32 [bins + 4*%tid.x], 1;
      bar.sync 0;
      if (%tid.x == 0) {{
        {arrive}.global.add.u32 [arrived], 1;
        await ld.acquire.gpu.global.u32 r0, [arrived] == {ctas};
      }}
      bar.sync 0;
      ld.global.u32 r1, [bins + 4*({lanes} - 1 - %tid.x)];
    }}
    """


def turns(ctas: int, *, adds: bool, release: str = "release", first: str = "%ctaid.x") -> str:
    """CTAs that add to one sum in their order: each waits for its turn, and gives it to the next one."""
    give = f"red.{release}.gpu.global.add.u32 [turn], 1;" if adds else (
        f"st.{release}.gpu.global.u32 [turn], %ctaid.x + 1;"
    )  # fmt: skip
    return f"""PTX turns
    {{ .global .u32 turn = 0; .global .u32 sum = 0; }}
    block@cta 0..{ctas}, warp 0, lane 0 {{
      await ld.acquire.gpu.global.u32 r0, [turn] == {first};
      ld.global.u32 r1, [sum];
      st.global.u32 [sum], 5;
      {give}
    }}
    """


def arrivals_of_warps(ctas: int, rounds: int) -> str:
    """A grid barrier at which every lane arrives and one of each CTA waits for all."""
    return f"""PTX arrivals-of-warps
    {{ .global .u32 met = 0; }}
    block@cta 0..{ctas}, warp 0 {{
      for k in 0..{rounds} {{
        red.release.gpu.global.add.u32 [met], 1;
        bar.sync 0;
        if (%tid.x == 0) {{ await ld.acquire.gpu.global.u32 r0, [met] >= {32 * ctas}*(k + 1); }}
        bar.sync 0;
      }}
    }}
    """
