"""Generator of mbarrier lifetimes: threads that initialise, invalidate and use one or two objects at random.

Flags, waits and copies put their operations into all orders, those that no interleaving shows among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.fuzz.draft import MODELS, Draft, Role

OP = "mbarrier."
KINDS = {
    "init": 28, "inval": 8, "arrive": 16, "expect": 4, "complete": 4, "wait": 10, "set": 10, "seen": 12, "load": 2,
    "meet": 3, "copy": 3,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Writer:
    random: Random
    clustered: bool
    bars: int
    flags: int
    home: int
    """The thread that initialises objects most often."""

    @property
    def bar(self) -> str:
        """One of the objects, which a cluster has in its first CTA."""
        return f"[b{self.random.randrange(self.bars)}{'@0' if self.clustered else ''}]"

    @property
    def flag(self) -> str:
        return f"[f{self.random.randrange(self.flags)}]"

    def statement(self, thread: int, number: int) -> tuple[str, ...]:
        """A statement of a thread; none where it would be one about an object of another CTA that has no such form."""
        r = self.random
        kind = r.choices(list(KINDS), list(KINDS.values()))[0]
        scope = "cluster" if self.clustered else "cta"
        where = f".{scope}.shared::{scope}.b64"
        own = not self.clustered or thread == 0
        sem = r.choice(("relaxed", "release"))
        match kind:
            case "init" if own and (thread == self.home or r.random() < 0.25):
                return (f"{OP}init.shared::cta.b64 {self.bar}, {r.choice((1, 1, 2))};",)
            case "inval" if own:
                return (f"{OP}inval.shared::cta.b64 {self.bar};",)
            case "arrive":
                return (f"{OP}arrive.{sem}{where} _, {self.bar};",)
            case "expect" | "complete":
                return (f"{OP}{kind}_tx.relaxed{where} {self.bar}, 16;",)
            case "wait" if own:
                sem = r.choice(("acquire", "relaxed"))
                return (f"await {OP}try_wait.parity.{sem}.{scope}.shared::cta.b64 {self.bar}, {r.randrange(2)};",)
            case "set":
                return (f"st.{sem}.gpu.u32 {self.flag}, 1;",)
            case "seen":
                sem = r.choice(("acquire", "relaxed"))
                return (f"await ld.{sem}.gpu.u32 r{number}, {self.flag} == 1;",)
            case "load":
                return (f"ld.relaxed.gpu.u32 r{number}, {self.flag};",)
            case "meet":
                return ("barrier.cluster.arrive;", "barrier.cluster.wait;") if self.clustered else ("bar.sync 0;",)
            case "copy":
                to = "[s@0]" if self.clustered else "[s]"
                return (
                    f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes {to}, [g], 16, {self.bar};",
                )
        return ()


def lives(random: Random) -> Draft:
    """Two or three threads of one CTA, or of two of a cluster, with up to five statements each."""
    count = random.choice((2, 2, 3))
    clustered = random.random() < 0.3
    writer = _Writer(random, clustered, random.choice((1, 1, 2)), random.choice((1, 2)), random.randrange(count))
    roles = []
    for k in range(count):
        lines = [line for n in range(random.randint(1, 5)) for line in writer.statement(k, n)]
        roles.append(Role(f"P{k}", f"cluster 0, cta {min(k, 1)}" if clustered else "cta 0", tuple(lines)))
    objects = [f".shared .align 8 .b64 b{k};" for k in range(writer.bars)]
    objects += [".global .align 16 .b8 g[16];", ".shared .align 16 .b8 s[16];"]
    objects += [f".global .u32 f{k};" for k in range(writer.flags)]
    return Draft("lives", random.choice(MODELS), tuple(objects), tuple(roles), (), "")
