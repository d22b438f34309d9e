"""Strong bulk copies (PTX ISA 9.4, 9.7.10.28.4.1) in random programs.

Those of ``strong_copies`` hand data on by them: a thread writes a word and copies to global memory what another one
copies from there, which then may read the word.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.draft import Draft, Role

_COPY = "cp.async.bulk."
_SCOPES = ("cta", "cluster", "gpu", "gpu", "sys")
_NEAR = ("cta", "cluster", "cluster")
"""The scopes of a copy between two CTAs."""


def sometimes_strong(random: Random, line: str, probability: float = 0.3) -> str:
    """A bulk copy, which now and then is a strong one."""
    if not line.startswith(_COPY) or random.random() >= probability:
        return line
    name, rest = line.split(" ", 1)
    form = name.removeprefix(_COPY)
    scope = random.choice(_NEAR if form.startswith("shared::cluster.shared::cta") else _SCOPES)
    return f"{_COPY}relaxed.{scope}.{form}.b128 {rest}"


WAITS = ("", "", "", ".read", ".sync_restrict::proxy::async")
"""How a wait for a bulk group ends."""
_MODELS = ("ptx-9.5", "ptx-9.5", "ptx-9.3", "ptx-9.0")
_SET_UP = ("mbarrier.init.shared::cta.b64 [bar], 1;", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;")


def strong_copies(random: Random) -> Draft:
    """Two or three threads that copy 16 bytes to and from one place in global memory, mostly by strong copies."""
    apart = random.random() < 0.7
    count = random.choice((2, 2, 2, 3))
    kinds = ["send", random.choice(("take", "take", "take", "send"))]
    kinds += [random.choice(("send", "take", "reduce", "touch"))] * (count - 2)
    strong = "reduce" not in kinds and "touch" not in kinds and random.random() < 0.7
    roles = [
        Role(f"T{k}", f"cta {k if apart else 0}", tuple(_lines(random, kind, k, apart, strong)))
        for k, kind in enumerate(kinds)
    ]
    read = (
        f"{role.name}:{r}" for role in roles for r in ("r0", "r1") if any(f" {r}, [" in line for line in role.lines)
    )
    shown = (*read, "f[0]")
    objects = (
        ".global .align 16 .u32 f[4];",
        ".global .u32 data;",
        *(f".shared .align 16 .u32 s{k}[4];" for k in range(count)),
        ".shared .align 8 .b64 bar;",
    )
    return Draft("strong", random.choice(_MODELS), objects, tuple(roles), shown, "")


def _lines(random: Random, kind: str, k: int, apart: bool, strong: bool) -> list[str]:
    """What a thread does; now and then a statement is missing. Where all copies are ``strong`` what they bring may
    steer it: what a race brings steers differently before different engines.
    """
    s, share = f"s{k}", 1.0 if strong else 0.6
    fence = random.choice(("fence.acq_rel.gpu;", "fence.acq_rel.gpu;", "fence.acq_rel.cta;", "fence.acquire.gpu;"))
    match kind:
        case "take":
            copy = f"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [{s}], [f], 16, [bar];"
            sem = random.choice(("", ".relaxed.cta"))
            after = random.choice(("ld.weak.global.u32 r1, [data];", f"st.weak.global.u32 [data], {k + 2};"))
            lines = [
                *_SET_UP,
                sometimes_strong(random, copy, share),
                f"await mbarrier.try_wait.parity{sem}.shared::cta.b64 [bar], 0;",
                fence,
                f"ld.shared.u32 r0, [{s}];",
                random.choice((after, f"if (r0 == 1) {{ {after} }}")) if strong else after,
            ]
        case "touch":
            lines = [fence, "ld.relaxed.gpu.global.u32 r0, [f];", "ld.weak.global.u32 r1, [data];"]
        case _:
            name, end = ("cp.reduce.async.bulk", ".add.u32") if kind == "reduce" else ("cp.async.bulk", "")
            copy = f"{name}.global.shared::cta.bulk_group{end} [f], [{s}], 16;"
            lines = [
                f"st.shared.v4.u32 [{s}], {{{k + 1}, {k + 1}, {k + 1}, {k + 1}}};",
                "fence.proxy.async.shared::cta;",
                random.choice(("st.weak.global.u32 [data], 1;", "ld.weak.global.u32 r1, [data];")),
                fence,
                sometimes_strong(random, copy, share),
                "cp.async.bulk.commit_group;",
                f"cp.async.bulk.wait_group{random.choice(WAITS)} 0;",
            ]
    if not apart and random.random() < 0.4:
        lines.insert(random.randrange(len(lines) + 1), "bar.sync 0;")
    return [line for line in lines if random.random() < 0.95]
