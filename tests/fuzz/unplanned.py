"""Generator of mbarrier counts: threads that arrive, drop, expect, copy and test one to three objects
without a plan, after an initialisation that mostly is published.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.fuzz.draft import MODELS, Draft, Role
from tests.fuzz.flags import await_flag, set_flag

OP = "mbarrier."
KINDS = {
    "arrive": 16, "expecting": 6, "no complete": 3, "drop": 5, "expect": 5, "complete": 5, "copy": 8, "bulk": 5,
    "wait": 12, "state": 6, "look": 6, "read": 8, "write": 5, "flag": 6, "seen": 5, "inval": 1, "wait all": 2,
}  # fmt: skip
WHERE = ".shared::cta.b64"


@dataclass(frozen=True, slots=True)
class _Writer:
    random: Random
    bars: int

    def statement(self, n: int) -> tuple[str, ...]:
        """One statement, or a few that belong together."""
        r = self.random
        bar = f"[b{r.randrange(self.bars)}]"
        sem = r.choice(("", ".release.cta", ".relaxed.cta"))
        match r.choices(list(KINDS), list(KINDS.values()))[0]:
            case "arrive":
                return (f"{OP}arrive{sem}{WHERE} _, {bar}{r.choice(('', '', ', 2'))};",)
            case "expecting":
                return (f"{OP}arrive.expect_tx{sem}{WHERE} _, {bar}, 16;",)
            case "no complete":
                return (f"{OP}arrive.noComplete{WHERE} _, {bar}, 1;",)
            case "drop":
                return (f"{OP}arrive_drop{sem}{WHERE} _, {bar};",)
            case "expect":
                return (f"{OP}expect_tx.relaxed.cta{WHERE} {bar}, 16;",)
            case "complete":
                return (f"{OP}complete_tx.relaxed.cta{WHERE} {bar}, 16;",)
            case "copy":
                copy = ("cp.async.ca.shared.global [s], [g], 16;",) if r.random() < 0.8 else ()
                return *copy, f"cp.async.mbarrier.arrive{r.choice(('', '.noinc'))}{WHERE} {bar};"
            case "bulk":
                return (f"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, {bar};",)
            case "wait":
                way = r.choice(("try_wait", "test_wait"))
                return (f"await {OP}{way}.parity{r.choice(('', '.relaxed.cta'))}{WHERE} {bar}, {r.randrange(2)};",)
            case "state":
                return f"{OP}arrive{WHERE} %rd{n}, {bar};", f"await {OP}try_wait{WHERE} {bar}, %rd{n};"
            case "look":
                look = f"{OP}test_wait.parity{WHERE} %p{n}, {bar}, {r.randrange(2)};"
                return look, f"@%p{n} ld.shared.u32 r{n}, [s];"
            case "read":
                return (f"ld.shared.u32 r{n}, [s];",)
            case "write":
                return (f"st.shared.u32 [s], {n + 1};",)
            case "flag":
                return set_flag(r)
            case "seen":
                return await_flag(r, f"r{n}")
            case "inval":
                return (f"{OP}inval{WHERE} {bar};",)
            case "wait all":
                return ("cp.async.wait_all;",)
        return ()


def unplanned(random: Random) -> Draft:
    """Two or three threads of one CTA, mostly warps of their own, with up to five statements each."""
    count = random.choice((2, 2, 3))
    writer = _Writer(random, random.choice((1, 1, 2, 3)))
    published = random.random() < 0.8
    apart = random.random() < 0.8
    roles = []
    for k in range(count):
        lines: list[str] = []
        if not k:
            lines += [f"{OP}init.shared::cta.b64 [b{b}], {random.choice((1, 2, 2, 3))};" for b in range(writer.bars)]
        if published:
            lines.append("barrier.sync 0;")
        for n in range(random.randint(1, 5)):
            lines += writer.statement(n)
        place = f"cta 0, warp {k}, lane 0" if apart or k < 2 else "cta 0, warp 1, lane 1"
        roles.append(Role(f"P{k}", place, tuple(lines)))
    objects = [f".shared .align 8 .b64 b{k};" for k in range(writer.bars)]
    objects += [".global .align 16 .b8 g[16];", ".shared .align 16 .b8 s[16];", ".global .u32 f;"]
    return Draft("unplanned", random.choice(MODELS), tuple(objects), tuple(roles), (), "")
