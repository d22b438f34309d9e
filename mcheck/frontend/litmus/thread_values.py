"""What names stand for in a thread: addresses of objects, and the special registers (PTX ISA 10)."""

from __future__ import annotations

from mcheck.frontend.litmus.codes import problem
from mcheck.frontend.litmus.placement import Grid
from mcheck.ir.expr import Binary, Const, Expr, Name
from mcheck.ir.memory import Cta, MemoryMap
from mcheck.ir.program import Place
from mcheck.ir.resolve import Fold


class Addresses:
    """Base addresses and element strides by name, for every CTA."""

    __slots__ = ("_bases", "ctas", "ranks", "strides")

    def __init__(self, memory: MemoryMap, ctas: tuple[Cta, ...]) -> None:
        self._bases: dict[str, int | dict[int, int]] = {}
        self.strides: dict[str, tuple[int, ...]] = {}
        self.ctas = ctas
        self.ranks = {(cta.gpu, cta.cluster, cta.rank): cta for cta in ctas}
        for instance in memory.instances:
            item = instance.object
            if instance.cta is None:
                self._bases[item.name] = instance.base
            else:
                found = self._bases.setdefault(item.name, {})
                assert isinstance(found, dict)
                found[instance.cta.number] = instance.base
            if item.dims and item.name not in self.strides:
                stride = item.elem_size
                strides: list[int] = []
                for dim in reversed(item.dims):
                    strides.append(stride)
                    stride *= dim
                self.strides[item.name] = tuple(reversed(strides))

    def has(self, name: str) -> bool:
        """Whether there is an object ``name``."""
        return name in self._bases

    def is_shared(self, name: str) -> bool:
        """Whether the object ``name`` exists once per CTA."""
        return isinstance(self._bases.get(name), dict)

    def base(self, name: str, cta: Cta) -> int | None:
        """The address of object ``name`` as seen from ``cta``."""
        found = self._bases.get(name)
        return found.get(cta.number) if isinstance(found, dict) else found

    def resolve(self, name: Name, cta: Cta, fold: Fold) -> Expr:
        """The address of ``name[i]@rank`` as seen from ``cta``."""
        if name.rank is not None:
            rank = fold(name.rank)
            if not isinstance(rank, Const):
                raise problem("LIT065", name.span)
            peer = self.ranks.get((cta.gpu, cta.cluster, rank.value))
            if peer is None:
                raise problem("LIT061", name.span, rank=rank.value)
            cta = peer
        base = self.base(name.name, cta)
        if base is None:
            raise problem("LIT018", name.span, name=name.name)
        found: Expr = Const(base)
        for index, stride in zip(name.indices, self.strides.get(name.name, ()), strict=False):
            value = fold(index)
            if isinstance(value, Const) and isinstance(found, Const):
                found = Const(found.value + value.value * stride)
            else:
                found = Binary("+", found, Binary("*", value, Const(stride)))
        return found


def special_registers(place: Place, grid: Grid) -> dict[str, int]:
    """The special registers of a thread (PTX ISA 10) that its placement determines."""
    cta = place.cta
    widest = max(grid.sizes.values()) if grid.clustered else 1
    size = grid.sizes[cta.gpu, cta.cluster] if grid.clustered else 1
    lane = place.lane
    full = 0xFFFFFFFF
    warps = grid.warps.get(cta.number, 1)
    found = {
        "laneid": lane,
        "warpid": place.warp,
        "nwarpid": warps,
        "tid.x": 32 * place.warp + lane,
        "ntid.x": 32 * warps,
        "ctaid.x": cta.cluster * widest + cta.rank,
        "nctaid.x": max(peer.cluster * widest + peer.rank for peer in grid.ctas if peer.gpu == cta.gpu) + 1,
        "clusterid.x": cta.cluster,
        "cluster_ctarank": cta.rank,
        "cluster_ctaid.x": cta.rank,
        "cluster_nctarank": size,
        "cluster_nctaid.x": size,
        "is_explicit_cluster": int(grid.clustered),
        "lanemask_eq": 1 << lane,
        "lanemask_lt": (1 << lane) - 1,
        "lanemask_le": (2 << lane) - 1,
        "lanemask_ge": full & ~((1 << lane) - 1),
        "lanemask_gt": full & ~((2 << lane) - 1),
    }
    for name in ("tid", "ctaid", "clusterid", "cluster_ctaid"):
        found[f"{name}.y"] = found[f"{name}.z"] = 0
    for name in ("ntid", "nctaid", "cluster_nctaid"):
        found[f"{name}.y"] = found[f"{name}.z"] = 1
    return found
