"""Sketches of loops of any number of rounds whose copies end by groups, by arrives for copies, or by states."""

from __future__ import annotations


def tiles(
    stages: int = 3, warps: int = 2, wait: str = "cp.async.wait_group S-2;", meet: str = "bar.sync 0;",
    slot: str = "(k+S-1)%S", behind: str = "cp.async.commit_group;", within: str = "",
) -> str:  # fmt: skip
    """The loop of a tiled kernel: threads load ``stages`` - 1 tiles ahead by ``cp.async``, and read each other's."""
    tile = 512 * warps
    return f"""PTX any-tiles
const S = {stages}, N = any;
{{
  .global .align 128 .b8 src[{tile}*N + {tile}];
  .shared .align 128 .b8 buf[S][{tile}];
}}
w@cta 0, warp 0..{warps} {{
  for s in 0..S-1 {{
    if (s < N) {{ cp.async.cg.shared.global [buf[s] + 16*%tid.x], [src + {tile}*s + 16*%tid.x], 16; }}
    cp.async.commit_group;
  }}
  for k in 0..N {{
    {wait}
    {meet}
    ld.shared.u32 r0, [buf[k%S] + (16*%tid.x + 16)%{tile}];
    if (k + S - 1 < N) {{
      cp.async.cg.shared.global [buf[{slot}] + 16*%tid.x], [src + {tile}*(k+S-1) + 16*%tid.x], 16;
      {within}
    }}
    {behind}
  }}
  cp.async.wait_all;
}}
"""


def arrives(
    arrive: str = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full[k%S]];",
    release: str = "mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];", target: str = "full[k%S]",
) -> str:  # fmt: skip
    """A producer warp whose lanes copy by ``cp.async`` and have an mbarrier told of it; nobody commits a group."""
    return f"""PTX any-arrives
const S = 2, N = any;
{{
  .global .align 128 .b8 src[512*N + 512];
  .shared .align 128 .b8 buf[S][512];
  .shared .b64 full[S], empty[S];
}}
producer@cta 0, warp 0 {{
  if (%laneid == 0) {{
    for s in 0..S {{
      mbarrier.init.shared::cta.b64 [full[s]], 32;
      mbarrier.init.shared::cta.b64 [empty[s]], 32;
    }}
  }}
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    cp.async.cg.shared.global [buf[k%S] + 16*%laneid], [src + 512*k + 16*%laneid], 16;
    {arrive.replace("[full[k%S]]", f"[{target}]")}
  }}
}}
consumer@cta 0, warp 1 {{
  bar.sync 0;
  for k in 0..N {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    ld.shared.u32 r0, [buf[k%S] + 4*%laneid];
    {release}
  }}
}}
"""


def stores(
    stages: int = 2, wait: str = ".read S-1", fence: str = "fence.proxy.async.shared::cta;", to: str = "256*k",
    end: str = "cp.async.bulk.wait_group 0;", before: str = "",
) -> str:  # fmt: skip
    """A ring of tiles that two warps write and one thread stores by bulk copies, a group each."""
    return f"""PTX any-stores
const S = {stages}, N = any;
{{
  .global .align 128 .b8 out[256*N + 1024];
  .shared .align 128 .b8 buf[S][256];
}}
w@cta 0, warp 0..2 {{
  for k in 0..N {{
    if (%tid.x == 0) {{ cp.async.bulk.wait_group{wait}; }}
    bar.sync 0;
    st.shared.u32 [buf[k%S] + 4*%tid.x], 1;
    {fence}
    bar.sync 0;
    if (%tid.x == 0) {{
      {before}
      cp.async.bulk.global.shared::cta.bulk_group [out + {to}], [buf[k%S]], 256;
      cp.async.bulk.commit_group;
    }}
  }}
  if (%tid.x == 0) {{ {end} }}
}}
"""


def states(
    wait: str = "await mbarrier.try_wait.shared::cta.b64 [bar], t;", count: int = 64, keep: str = "", behind: str = "",
) -> str:  # fmt: skip
    """Two warps that meet in every round at an mbarrier, each thread by the state that its arrive has returned."""
    return f"""PTX any-states
const N = any;
{{
  .shared .u32 buf[2][64];
  .shared .b64 bar;
}}
w@cta 0, warp 0..2 {{
  .reg .b64 t, old;
  .reg .pred p;
  if (%tid.x == 0) {{ mbarrier.init.shared::cta.b64 [bar], {count}; }}
  bar.sync 0;
  mbarrier.arrive.shared::cta.b64 old, [bar];
  await mbarrier.try_wait.shared::cta.b64 [bar], old;
  for k in 0..N {{
    st.shared.u32 [buf[k%2][%tid.x]], k;
    mbarrier.arrive.shared::cta.b64 t, [bar];
    {wait}
    ld.shared.u32 r0, [buf[k%2][(%tid.x + 1)%64]];
    {keep}
  }}
  {behind}
}}
"""


LAST = "if (k + 1 < N) { cp.async.wait_group 1; } else { cp.async.wait_group 0; }"
SPUN = "L: mbarrier.try_wait.shared::cta.b64 p, [bar], t; @!p bra L;"
RIGHT = {
    "tiles": tiles(), "tiles-of-two": tiles(2), "tiles-of-four": tiles(4, 1), "arrives": arrives(),
    "tiles-that-wait-for-the-last": tiles(wait=LAST, behind="", within="cp.async.commit_group;"),
    "tiles-and-two-waits": tiles(2, behind="cp.async.commit_group; cp.async.wait_group 0;"), "stores": stores(),
    "stores-of-three": stores(3), "stores-that-end": stores(wait=" S-1"),
    "stores-to-few-places": stores(4, " 3", to="256*(k%4)"),
    "stores-and-reads": stores(4, " 3; cp.async.bulk.wait_group.read 1", to="256*(k%4)"), "states": states(),
    "states-spun": states(SPUN),
}  # fmt: skip
"""Nothing is wrong with these."""
WRONG = {
    "a-group-too-many-is-pending": tiles(wait="cp.async.wait_group S-1;"), "nobody-meets": tiles(meet=""),
    "the-slot-that-is-read": tiles(slot="(k+S)%S"), "few-groups-at-the-end": tiles(behind="",
        within="cp.async.commit_group;"),
    "an-arrive-that-tells-of-nothing": arrives("mbarrier.arrive.shared::cta.b64 _, [full[k%S]];"),
    "an-arrive-that-raises-the-count": arrives("cp.async.mbarrier.arrive.shared::cta.b64 [full[k%S]];"),
    "an-arrive-for-the-other-slot": arrives(target="full[(k+1)%S]"),
    "one-store-too-many-is-read": stores(wait=".read S"), "no-fence": stores(fence=""),
    "stores-that-are-only-read": stores(wait=".read 0", to="0"), "a-store-too-late": stores(5, " 4", to="256*(k%4)"),
    "stores-and-reads-of-five": stores(4, " 3; cp.async.bulk.wait_group.read 1", to="256*(k%3)"),
    "too-few-arrive": states(count=32), "nobody-waits": states("mbarrier.test_wait.shared::cta.b64 p, [bar], t;"),
    "the-state-of-the-first-arrive": states(keep="await mbarrier.try_wait.shared::cta.b64 [bar], old;"),
    "the-state-of-the-first-arrive-behind": states(behind="await mbarrier.try_wait.shared::cta.b64 [bar], old;"),
}  # fmt: skip
"""An error shows with some small number of rounds."""
