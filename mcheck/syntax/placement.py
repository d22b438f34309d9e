"""Places: from ``cta 0, warp 1..5`` to threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mcheck.errors import Span
from mcheck.program.memory import Cta
from mcheck.program.program import Place
from mcheck.syntax.codes import did_you_mean, problem
from mcheck.syntax.expressions import constant
from mcheck.syntax.lexer import NAME, Tokens
from mcheck.syntax.scope import Scope

KEYS = ("gpu", "cluster", "cta", "warp", "lane")
LIMITS = {"gpu": 1 << 10, "cluster": 1 << 20, "cta": 1 << 20, "warp": 1 << 10, "lane": 32}
MAX_THREADS = 4096
WARP = 32


@dataclass(frozen=True, slots=True)
class Placement:
    """What stands behind ``NAME@``: a half-open range per key that is given."""

    name: str
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """The places of every placement in order, and the size of each (gpu, cluster)."""

    threads: tuple[tuple[Place, ...], ...]
    ctas: tuple[Cta, ...]
    clustered: bool
    sizes: dict[tuple[int, int], int]
    warps: dict[int, int]


def placement(tokens: Tokens, scope: Scope, name: str, at: int, ends: tuple[str, ...]) -> Placement:
    """Parses ``@key N, key A..B``; token ``at`` is the name. ``ends`` may follow."""
    if tokens.text != "@":
        raise problem("LIT040", tokens.span(at), name=name, expected=f"{name}@cta 0", hint="say where it runs")
    tokens.at += 1
    ranges: dict[str, tuple[int, int]] = {}
    while tokens.text not in ends:
        key_at = tokens.at
        key = tokens.text
        if tokens.kind != NAME:
            raise tokens.unexpected("one of " + ", ".join(KEYS))
        if key not in KEYS:
            raise problem(
                "LIT041", tokens.span(), found=f"'{key}'", expected="one of " + ", ".join(KEYS),
                hint=did_you_mean(key, KEYS),
            )  # fmt: skip
        tokens.at += 1
        if key in ranges:
            raise problem("LIT042", tokens.span(key_at), key=key)
        ranges[key] = _range(tokens, scope, key)
        if not tokens.accept(","):
            break
    if tokens.text not in ends:
        hint = "does the row above lack its ';'?" if ends == ("",) and tokens.on_new_line() else None
        expected = "',' or " + " or ".join(f"'{end}'" if end else "the end of the cell" for end in ends)
        raise tokens.unexpected(expected, hint)
    return Placement(name, ranges, tokens.span_since(at))


def _range(tokens: Tokens, scope: Scope, key: str) -> tuple[int, int]:
    at = tokens.at
    low = constant(tokens, scope, f"a {key} number")
    high = low + 1
    if tokens.accept(".."):
        high = constant(tokens, scope, f"a {key} number")
        if high <= low:
            raise problem("LIT043", tokens.span_since(at), low=low, high=high, expected="a half-open range: low..high")
    if low < 0 or high > LIMITS[key]:
        value = low if low < 0 else high - 1
        raise problem("LIT044", tokens.span_since(at), key=key, value=value, expected=f"0 to {LIMITS[key] - 1}")
    return low, high


def enumerate_threads(placements: Sequence[Placement]) -> Grid:
    """The threads of all placements with their CTAs; raises ``InputError`` where one place is taken twice."""
    clustered = any("cluster" in item.ranges for item in placements)
    total = 0
    for item in placements:
        count = 1
        for word in KEYS:
            low, high = item.ranges.get(word, (0, 1))
            count *= high - low
        if "warp" in item.ranges and "lane" not in item.ranges:
            count *= WARP
        total += count
        if total > MAX_THREADS:
            raise problem("LIT049", item.span, count=total, limit=MAX_THREADS)
    keys: set[tuple[int, int, int]] = set()
    for item in placements:
        keys.update(_ctas(item, clustered))
    sizes: dict[tuple[int, int], int] = {}
    for gpu, cluster, rank in keys:
        sizes[gpu, cluster] = max(sizes.get((gpu, cluster), 0), rank + 1)
    ctas = {key: Cta(number, *key) for number, key in enumerate(sorted(keys))}
    warps = _explicit_warps(placements, ctas, clustered)
    taken: dict[tuple[int, int, int], str] = {}
    free: dict[int, int] = {}
    threads: list[tuple[Place, ...]] = []
    for item in placements:
        places: list[Place] = []
        lone = "warp" not in item.ranges and "lane" not in item.ranges
        for key in _ctas(item, clustered):
            cta = ctas[key]
            if lone:
                warp = free.get(cta.number, 0)
                used = warps.setdefault(cta.number, set())
                while warp in used:
                    warp += 1
                used.add(warp)
                free[cta.number] = warp + 1
                slots = [(warp, 0)]
            else:
                lanes = item.ranges.get("lane", (0, WARP))
                slots = [(warp, lane) for warp in range(*item.ranges.get("warp", (0, 1))) for lane in range(*lanes)]
            for warp, lane in slots:
                slot = (cta.number, warp, lane)
                if slot in taken:
                    raise problem("LIT045", item.span, name=item.name, other=taken[slot], hint=_where(cta, warp, lane))
                taken[slot] = item.name
                places.append(Place(cta, warp, lane))
        threads.append(tuple(places))
    highest = {number: max(used) + 1 for number, used in warps.items() if used}
    return Grid(tuple(threads), tuple(ctas.values()), clustered, sizes, highest)


def _ctas(item: Placement, clustered: bool) -> list[tuple[int, int, int]]:
    """(gpu, cluster, rank) of every CTA of a placement, in order; without clusters every CTA is one of its own."""
    gpus = range(*item.ranges.get("gpu", (0, 1)))
    clusters = range(*item.ranges.get("cluster", (0, 1)))
    ranks = range(*item.ranges.get("cta", (0, 1)))
    if not clustered:
        return [(gpu, cta, 0) for gpu in gpus for cta in ranks]
    return [(gpu, cluster, rank) for gpu in gpus for cluster in clusters for rank in ranks]


def _explicit_warps(
    placements: Sequence[Placement], ctas: dict[tuple[int, int, int], Cta], clustered: bool
) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for item in placements:
        if "warp" in item.ranges or "lane" in item.ranges:
            for key in _ctas(item, clustered):
                found.setdefault(ctas[key].number, set()).update(range(*item.ranges.get("warp", (0, 1))))
    return found


def _where(cta: Cta, warp: int, lane: int) -> str:
    return f"gpu {cta.gpu}, cluster {cta.cluster}, cta {cta.rank}, warp {warp}, lane {lane} has one thread"
