"""Generator of barrier programs: threads of one or two CTAs that synchronise, exit, store and load at random.

Flags, branches on what was seen, lanes of one warp and counts that fit nobody put their operations into all orders.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.fuzz.draft import MODELS, Draft, Role
from tests.fuzz.flags import await_flag, set_flag

KINDS = {
    "sync": 20, "arrive": 6, "reduce": 3, "cluster": 8, "warp": 6, "store": 10, "load": 10, "set": 8, "seen": 7,
    "branch": 5, "exit": 2, "fence": 2,
}  # fmt: skip
SIZES = (32, 64, 64, 96)
PLACES = (("shared", "s"), ("global", "x"))


@dataclass(frozen=True, slots=True)
class _Writer:
    random: Random
    clustered: bool

    @property
    def barrier(self) -> str:
        """A barrier, mostly without a count."""
        r = self.random
        return f"{r.choice((0, 0, 1))}{f', {r.choice(SIZES)}' if r.random() < 0.4 else ''}"

    def statements(self, count: int, first: int = 0, *, inside: bool = False) -> tuple[str, ...]:
        """So many statements, those of a branch ``inside`` it."""
        lines: list[str] = []
        for number in range(first, first + count):
            lines += self._statement(number, inside=inside)
        return tuple(lines)

    def _statement(self, n: int, *, inside: bool) -> tuple[str, ...]:
        r = self.random
        kind = r.choices(list(KINDS), list(KINDS.values()))[0]
        name = r.choice(("bar", "bar", "barrier"))
        match kind:
            case "sync":
                return (f"{name}.sync {self.barrier};",)
            case "arrive":
                return (f"{name}.arrive {r.choice((0, 1))}, {r.choice(SIZES)};",)
            case "reduce":
                return f"setp.eq.u32 %p{n}, {r.randrange(2)}, 0;", f"{name}.red.popc.u32 r{n}, {self.barrier}, %p{n};"
            case "cluster" if self.clustered:
                one = f"barrier.cluster.arrive{r.choice(('', '.relaxed', '.release'))};"
                both = (one, f"barrier.cluster.wait{r.choice(('', '.acquire'))};")
                return r.choices((both, both[:1], both[1:]), (6, 1, 1))[0]
            case "warp":
                return (f"bar.warp.sync {r.choice(('0xffffffff', '1', '3'))};",)
            case "store":
                space, place = r.choice(PLACES)
                return (f"st.{space}.u32 [{place}], {n + 1};",)
            case "load":
                space, place = r.choice(PLACES)
                return (f"ld.{space}.u32 r{n}, [{place}];",)
            case "set":
                return set_flag(r)
            case "seen":
                return await_flag(r, f"r{n}")
            case "branch" if not inside:
                body = self.statements(r.randint(1, 2), 10 * (n + 1), inside=True)
                seen = f"ld.{r.choice(('relaxed', 'acquire'))}.gpu.u32 r{n}, [f];"
                other = ("} else {", *self.statements(1, 10 * (n + 1) + 5, inside=True)) if r.random() < 0.3 else ()
                return seen, f"if (r{n} == 1) {{", *body, *other, "}"
            case "exit" if inside or r.random() < 0.5:
                return ("exit;",)
            case "fence":
                return (f"fence.{r.choice(('acq_rel', 'sc'))}.{r.choice(('cta', 'gpu'))};",)
        return ()


def meetings(random: Random) -> Draft:
    """Two to four threads with up to five statements each: in a CTA or two, in warps of their own or of one."""
    count = random.choices((2, 3, 4), (4, 5, 2))[0]
    clustered = random.random() < 0.3
    writer = _Writer(random, clustered)
    warps = [0]
    for _ in range(count - 1):
        warps.append(warps[-1] + (random.random() < 0.75))
    roles = []
    for k, warp in enumerate(warps):
        lane = warps[:k].count(warp)
        cta = min(k, 1) if clustered else 0
        place = f"{'cluster 0, ' if clustered else ''}cta {cta}, warp {warp}, lane {lane}"
        roles.append(Role(f"P{k}", place, writer.statements(random.randint(1, 5))))
    objects = (".shared .u32 s;", ".global .u32 x, f;")
    return Draft("meetings", random.choice(MODELS), objects, tuple(roles), (), "")
