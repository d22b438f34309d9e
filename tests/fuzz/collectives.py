"""Generator of programs with warp-collective instructions: vote, shfl, match, elect, bar.warp.sync.

Two or three lanes of a warp, and now and then another warp, without a plan: lanes that are not in their mask, that come
to different instructions, exit, or wait for each other by a flag meanwhile, and branches on what came out.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.fuzz.draft import MODELS, Draft, Role
from tests.fuzz.flags import await_flag, set_flag

KINDS = {
    "vote": 10, "shuffle": 10, "match": 6, "elect": 8, "warp": 6, "barrier": 3, "store": 10, "load": 10, "set": 5,
    "seen": 5, "branch": 8, "exit": 2,
}  # fmt: skip
MASKS = ("0xffffffff",) * 6 + ("3",) * 3 + ("7", "7", "1", "2")
PLACES = (("shared", "s"), ("global", "x"))


@dataclass(frozen=True, slots=True)
class _Writer:
    random: Random
    results: list[str]
    """The registers with numbers that the thread has so far."""

    def statements(self, count: int, first: int = 0, *, inside: bool = False) -> tuple[str, ...]:
        """So many statements, those of a branch ``inside`` it."""
        lines: list[str] = []
        for number in range(first, first + count):
            lines += self._statement(number, inside=inside)
        return tuple(lines)

    def _result(self, n: int) -> str:
        self.results.append(f"r{n}")
        return f"r{n}"

    def _value(self, n: int) -> tuple[tuple[str, ...], str]:
        """A register to bring, and the lines that fill it."""
        if self.results and self.random.random() < 0.6:
            return (), self.random.choice(self.results)
        return (f"mov.u32 r{n}5, {self.random.randrange(3)};",), f"r{n}5"

    def _statement(self, n: int, *, inside: bool) -> tuple[str, ...]:
        r = self.random
        mask = r.choice(MASKS)
        match r.choices(list(KINDS), list(KINDS.values()))[0]:
            case "vote":
                filled, value = self._value(n)
                asks = f"setp.eq.u32 %p{n}, {value}, 1;"
                if r.random() < 0.5:
                    return *filled, asks, f"vote.sync.ballot.b32 {self._result(n)}, %p{n}, {mask};"
                told = f"selp.u32 {self._result(n)}, 1, 0, %q{n};"
                return *filled, asks, f"vote.sync.{r.choice(('any', 'all', 'uni'))}.pred %q{n}, %p{n}, {mask};", told
            case "shuffle":
                filled, value = self._value(n)
                how = r.choice(("idx", "bfly", "up", "down"))
                clamp = 0 if how == "up" else 31
                source = r.choice((0, 1, 1, 2))
                return *filled, f"shfl.sync.{how}.b32 {self._result(n)}, {value}, {source}, {clamp}, {mask};"
            case "match":
                filled, value = self._value(n)
                return *filled, f"match.{r.choice(('any', 'all'))}.sync.b32 {self._result(n)}, {value}, {mask};"
            case "elect":
                return f"elect.sync _|%p{n}, {mask};", f"@%p{n} st.shared.u32 [s], {n + 1};"
            case "warp":
                return (f"bar.warp.sync {mask};",)
            case "barrier":
                return (f"{r.choice(('bar', 'barrier'))}.sync 0;",)
            case "store":
                filled, value = self._value(n)
                space, place = r.choice(PLACES)
                return *filled, f"st.{space}.u32 [{place}], {value};"
            case "load":
                space, place = r.choice(PLACES)
                return (f"ld.{space}.u32 {self._result(n)}, [{place}];",)
            case "set":
                return set_flag(r)
            case "seen":
                return await_flag(r, f"r{n}")
            case "branch" if not inside and self.results:
                asked = r.choice(self.results)
                body = self.statements(r.randint(1, 2), 10 * (n + 1), inside=True)
                other = ("} else {", *self.statements(1, 10 * (n + 1) + 5, inside=True)) if r.random() < 0.4 else ()
                return f"if ({asked} == {r.randrange(3)}) {{", *body, *other, "}"
            case "exit" if inside:
                return ("exit;",)
        return ()


def collectives(random: Random) -> Draft:
    """Two or three lanes of a warp with up to five statements each, and now and then a thread of another warp."""
    count = random.choices((2, 3), (6, 3))[0]
    places = [f"cta 0, warp 0, lane {k}" for k in range(count)]
    if random.random() < 0.4:
        places[-1 if count > 2 else count :] = ["cta 0, warp 1, lane 0"]
    roles = []
    shown: list[str] = []
    for k, place in enumerate(places):
        writer = _Writer(random, [])
        roles.append(Role(f"P{k}", place, writer.statements(random.randint(1, 5))))
        shown += [f"P{k}:{name}" for name in writer.results[:3]]
    objects = (".shared .u32 s;", ".global .u32 x, f;")
    return Draft("collectives", random.choice(MODELS), objects, tuple(roles), tuple(shown[:6]), "exists (x == 9)")
