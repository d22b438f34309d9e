"""Random cases for the chip, each a program in block form with its input data: the generator is decided by its seed.

A case is one thread that brings a known pattern into shared memory, executes what is tested, waits for it and, where
the wait is for an mbarrier, looks whether more bytes were counted than expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hardware.data import SPECIAL
from hardware.maps import FLOATS, SIZES, Map, start, strides, tiled


@dataclass(frozen=True, slots=True)
class Case:
    """``data`` names, per object, the kind of its contents and the key that decides them (see ``hardware.data``)."""

    name: str
    group: str
    text: str
    data: dict[str, tuple[str, str]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The case as a JSON object."""
        return {"name": self.name, "group": self.group, "text": self.text, "data": self.data}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Case:
        """The case that ``to_json`` wrote."""
        data = {name: (kind, key) for name, (kind, key) in value["data"].items()}
        return Case(value["name"], value["group"], value["text"], data)


def cases(seed: int = 1) -> list[Case]:
    """All cases, in a fixed order."""
    out: list[Case] = []
    for group, count, maker in _PLAN:
        for k in range(count):
            rng = Random(f"{seed}/{group}/{k}")
            name = f"{group}-{k:03d}"
            text, data = maker(rng, k)
            kinds = {obj: (kind, f"{seed}/{name}/{obj}") for obj, kind in data.items()}
            out.append(Case(name, group, f"PTX {name}\n{text}", kinds))
    return out


Made = tuple[str, dict[str, str]]


# --- programs -----------------------------------------------------------------------------------------

_SHARED = "shared::cluster"


def load_text(m: Map, coords: list[int], mode: str, shift: int, info: list[int] | None = None, *, more: int = 0) -> str:
    """A load over a known pattern; ``r1`` tells whether the phase after it needs bytes."""
    rank = len(m.dims)
    room = -(-(m.image_bytes + shift + 128 + more) // 128) * 128
    extra = "" if info is None else ", {" + ", ".join(map(str, info)) + "}"
    return (
        "{\n"
        f"  .global .align 128 .b8 t[{-(-m.tensor_bytes // 16) * 16}];\n"
        f"  .global .align 128 .b8 old[{room}];\n"
        f"  .shared .align 1024 .b8 buf[{room}];\n  .shared .align 8 .b64 first, full;\n{m.text()}"
        "}\np@cta 0 {\n"
        "  mbarrier.init.shared::cta.b64 [first], 1;\n  mbarrier.init.shared::cta.b64 [full], 1;\n"
        "  fence.proxy.async;\n"
        f"  mbarrier.arrive.expect_tx.shared::cta.b64 _, [first], {room};\n"
        f"  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [old], {room}, [first];\n"
        "  await mbarrier.try_wait.parity.shared::cta.b64 [first], 0;\n"
        f"  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {m.box_bytes};\n"
        f"  cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes "
        f"[buf + {shift}], [tm, {{{', '.join(map(str, coords))}}}], [full]{extra};\n"
        "  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;\n"
        "  mbarrier.arrive.shared::cta.b64 _, [full];\n"
        "  mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 1;\n"
        "}\n"
    )


def store_text(m: Map, coords: list[int], mode: str, shift: int, reduce: str | None = None) -> str:
    """A store or reduction of an image that a bulk copy has brought."""
    rank = len(m.dims)
    room = -(-(m.image_bytes + shift) // 128) * 128
    head = "cp.async.bulk.tensor" if reduce is None else "cp.reduce.async.bulk.tensor"
    op = "" if reduce is None else f".{reduce}"
    return (
        "{\n"
        f"  .global .align 128 .b8 t[{-(-m.tensor_bytes // 16) * 16 + 64}];\n"
        f"  .global .align 128 .b8 old[{room}];\n"
        f"  .shared .align 1024 .b8 buf[{room}];\n  .shared .align 8 .b64 first;\n{m.text()}"
        "}\np@cta 0 {\n"
        "  mbarrier.init.shared::cta.b64 [first], 1;\n  fence.proxy.async;\n"
        f"  mbarrier.arrive.expect_tx.shared::cta.b64 _, [first], {room};\n"
        f"  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [old], {room}, [first];\n"
        "  await mbarrier.try_wait.parity.shared::cta.b64 [first], 0;\n"
        f"  {head}.{rank}d.global.shared::cta{op}.{mode}.bulk_group "
        f"[tm, {{{', '.join(map(str, coords))}}}], [buf + {shift}];\n"
        "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n"
        "}\n"
    )


def _shift(rng: Random, m: Map) -> int:
    """Where in the buffer the image starts: anywhere that is aligned."""
    return 128 * rng.randint(0, 9) if m.swizzle != "none" else 128 * rng.randint(0, 2)


def _tile_load(rng: Random, k: int) -> Made:
    swizzle = rng.choice(["none", "32B", "64B", "128B", "128B"])
    elemtype = rng.choice(["u8", "u16", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64"])
    m = tiled(rng, 1 + k % 5, elemtype, swizzle)
    return load_text(m, start(rng, m, negative=True), "tile", _shift(rng, m)), {"t": "random", "old": "random"}


def _load_at_16(rng: Random, k: int) -> Made:
    """Shared addresses that are aligned to 16 bytes but not to 128."""
    m = tiled(rng, 1 + k % 3, rng.choice(["u8", "f16", "f32"]), ("none", "32B", "64B", "128B")[k % 4], 512)
    shift = 128 * rng.randint(0, 2) + 16 * rng.randint(1, 7)
    return load_text(m, start(rng, m, negative=True), "tile", shift), {"t": "random", "old": "random"}


def _store_at_16(rng: Random, k: int) -> Made:
    m = tiled(rng, 1 + k % 3, rng.choice(["u8", "f16", "f32"]), ("none", "64B")[k % 2], 512)
    shift = 128 * rng.randint(0, 2) + 16 * rng.randint(1, 7)
    m.fill = "zero"
    return store_text(m, start(rng, m, negative=False), "tile", shift), {"t": "random", "old": "random"}


def _nan_load(rng: Random, k: int) -> Made:
    m = tiled(rng, 1 + k % 5, FLOATS[k % len(FLOATS)], rng.choice(["none", "64B", "128B"]), 1024)
    m.fill = "nan"
    kind = "random" if "tf32" not in m.elemtype and "ftz" not in m.elemtype else "f32"
    return load_text(m, start(rng, m, negative=True), "tile", 0), {"t": kind, "old": "random"}


def _rounded_load(rng: Random, k: int) -> Made:
    m = tiled(rng, 1 + k % 3, ("tf32", "tf32.ftz", "f32.ftz", "f32")[k % 4], "none", 512)
    return load_text(m, [0] * len(m.dims), "tile", 0), {"t": "f32", "old": "random"}


def _rounded_store(rng: Random, k: int) -> Made:
    m = tiled(rng, 1 + k % 3, ("tf32", "tf32.ftz", "f32.ftz", "f32")[k % 4], "none", 512)
    return store_text(m, [0] * len(m.dims), "tile", 0), {"t": "random", "old": "f32"}


def _tile_store(rng: Random, k: int) -> Made:
    m = tiled(rng, 1 + k % 5, rng.choice(["u8", "u16", "u32", "f16", "f32", "f64", "u64"]),
              rng.choice(["none", "32B", "64B", "128B"]), 1024)  # fmt: skip
    m.fill = "zero"
    return store_text(m, start(rng, m, negative=False), "tile", _shift(rng, m)), {"t": "random", "old": "random"}


def _trap_store(rng: Random, k: int) -> Made:
    m = tiled(rng, 2 + k % 4, "u16", "none", 512)
    m.fill = "zero"
    coords = [0] * len(m.dims)
    coords[k % len(coords)] = -8 if k % len(coords) == 0 else -1
    return store_text(m, coords, "tile", 0), {"t": "random", "old": "random"}


def _trap_start(rng: Random, k: int) -> Made:
    m = tiled(rng, 1 + k % 5, rng.choice(["u8", "u16", "f32"]), "none", 512)
    coords = [0] * len(m.dims)
    coords[0] = 16 // m.size + (rng.randint(1, 16 // m.size - 1))
    if k % 2:
        return store_text(m, coords, "tile", 0), {"t": "random", "old": "random"}
    return load_text(m, coords, "tile", 0), {"t": "random", "old": "random"}


def im2col(rng: Random, rank: int, *, store: bool = False) -> tuple[Map, list[int], list[int]]:
    """An im2col map, a start inside its pixel box, and offsets."""
    elemtype = rng.choice(["u8", "f16", "f32"]) if not store else rng.choice(["u8", "u16", "u32"])
    size = SIZES[elemtype]
    swizzle = rng.choice(["none", "none", "32B", "64B", "128B"])
    span = 64 if swizzle == "none" else int(swizzle[:-1])
    channels = 16 * rng.randint(1, span // 16) // size
    spatial = [rng.randint(2, 6) for _ in range(rank - 2)]
    dims = [rng.randint(1, 2 * channels), *spatial, rng.randint(1, 3)]
    lower = [rng.randint(0 if store else -2, 1) for _ in spatial]
    upper = [max(rng.randint(-1, 0 if store else 2), lo + 1 - n) for n, lo in zip(spatial, lower, strict=True)]
    m = Map(elemtype, dims, strides(rng, size, dims), [], [rng.choice([1, 1, 2, 3]) for _ in dims], swizzle)
    m.fill = "nan" if elemtype in FLOATS and rng.random() < 0.3 else "zero"
    m.lower, m.upper, m.channels, m.pixels = lower, upper, channels, rng.randint(1, 30)
    base = [rng.randint(lo, n - 1 + up) for lo, up, n in zip(lower, upper, spatial, strict=True)]
    grain = 16 // size
    coords = [grain * rng.randint(0, max(0, dims[0] // grain)), *base, rng.randint(0, dims[-1] - 1)]
    return m, coords, [rng.randint(0, 3) for _ in spatial]


def _im2col_load(rng: Random, k: int) -> Made:
    m, coords, offsets = im2col(rng, 3 + k % 3)
    return load_text(m, coords, "im2col", _shift(rng, m), offsets), {"t": "random", "old": "random"}


def _im2col_store(rng: Random, k: int) -> Made:
    m, coords, _ = im2col(rng, 3 + k % 3, store=True)
    return store_text(m, coords, "im2col_no_offs", _shift(rng, m)), {"t": "random", "old": "random"}


# --- reductions ---------------------------------------------------------------------------------------

TO_GLOBAL = [
    *(("add", t) for t in ("u32", "s32", "u64", "f32", "f64", "f16", "bf16")),
    *((op, t) for op in ("min", "max") for t in ("u32", "s32", "u64", "s64", "f16", "bf16")),
    ("inc", "u32"), ("dec", "u32"),
    *((op, t) for op in ("and", "or", "xor") for t in ("b32", "b64")),
]  # fmt: skip
TO_SHARED = [
    ("add", "u32"), ("add", "s32"), ("add", "u64"),
    *((op, t) for op in ("min", "max") for t in ("u32", "s32")),
    ("inc", "u32"), ("dec", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b32"),
]  # fmt: skip
FLOAT_REDUCTIONS = [(op, t) for op, t in TO_GLOBAL if t in ("f32", "f64", "f16", "bf16")]
BY_TENSOR = [(op, t) for op, t in TO_GLOBAL if t != "f64"]


def _bulk_reduce(rng: Random, k: int) -> Made:
    op, type_ = TO_GLOBAL[k % len(TO_GLOBAL)]
    size = 16 * rng.choice([16, 24, 32, 48])
    noftz = ".noftz" if type_ in ("f16", "bf16") and op == "add" else ""
    return _reduce_text(f"{op}{noftz}.{type_}", size), {"t": type_, "old": type_}


def _reduce_text(what: str, size: int) -> str:
    return (
        f"{{\n  .global .align 128 .b8 t[{size}];\n  .global .align 128 .b8 old[{size}];\n"
        f"  .shared .align 128 .b8 buf[{size}];\n  .shared .align 8 .b64 first;\n}}\np@cta 0 {{\n"
        "  mbarrier.init.shared::cta.b64 [first], 1;\n  fence.proxy.async;\n"
        f"  mbarrier.arrive.expect_tx.shared::cta.b64 _, [first], {size};\n"
        f"  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [old], {size}, [first];\n"
        "  await mbarrier.try_wait.parity.shared::cta.b64 [first], 0;\n"
        f"  cp.reduce.async.bulk.global.shared::cta.bulk_group.{what} [t], [buf], {size};\n"
        "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n}\n"
    )


def _cluster_reduce(rng: Random, k: int) -> Made:
    op, type_ = TO_SHARED[k % len(TO_SHARED)]
    size = 16 * rng.choice([8, 16, 24])
    text = (
        f"{{\n  .global .align 128 .b8 g[{size}], h[{size}];\n"
        f"  .shared .align 128 .b8 from[{size}], to[{size}];\n  .shared .align 8 .b64 first, full;\n}}\n"
        "a@cluster 0, cta 0 {\n"
        "  mbarrier.init.shared::cta.b64 [first], 1;\n  fence.proxy.async;\n"
        f"  mbarrier.arrive.expect_tx.shared::cta.b64 _, [first], {size};\n"
        f"  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [from], [g], {size}, [first];\n"
        "  await mbarrier.try_wait.parity.shared::cta.b64 [first], 0;\n"
        "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n"
        f"  cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op}.{type_} "
        f"[to@1], [from], {size}, [full@1];\n"
        "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n}\n"
        "b@cluster 0, cta 1 {\n"
        "  mbarrier.init.shared::cta.b64 [first], 1;\n  mbarrier.init.shared::cta.b64 [full], 1;\n"
        "  fence.mbarrier_init.release.cluster;\n  fence.proxy.async;\n"
        f"  mbarrier.arrive.expect_tx.shared::cta.b64 _, [first], {size};\n"
        f"  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [h], {size}, [first];\n"
        "  await mbarrier.try_wait.parity.shared::cta.b64 [first], 0;\n"
        f"  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {size};\n"
        "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n"
        "  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;\n"
        "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n}\n"
    )
    return text, {"g": type_, "h": type_}


def _tensor_reduce(rng: Random, k: int) -> Made:
    op, type_ = BY_TENSOR[k % len(BY_TENSOR)]
    elemtype = {"b32": "u32", "b64": "u64"}.get(type_, type_)
    m = tiled(rng, 1 + k % 4, elemtype, rng.choice(["none", "32B", "128B"]), 768)
    m.fill = "zero"
    coords = start(rng, m, negative=False)
    return store_text(m, coords, "tile", _shift(rng, m), op), {"t": type_, "old": type_}


def _rounded_reduce(rng: Random, k: int) -> Made:
    op, elemtype = [("add", "f32.ftz"), ("add", "f32")][k % 2]
    m = tiled(rng, 1 + k % 3, elemtype, "none", 512)
    m.fill = "zero"
    return store_text(m, [0] * len(m.dims), "tile", 0, op), {"t": "f32", "old": "f32"}


def _im2col_reduce(rng: Random, k: int) -> Made:
    op = ("add", "max", "inc", "xor")[k % 4]
    m, coords, _ = im2col(rng, 3 + k % 3, store=True)
    m.elemtype = "u32"
    m.channels = max(4, m.channels // 4 * 4)
    m.swizzle = "none"
    m.strides = strides(rng, 4, m.dims)
    coords[0] = 4 * rng.randint(0, m.dims[0] // 4)
    return store_text(m, coords, "im2col_no_offs", 0, op), {"t": "u32", "old": "u32"}


# --- plain copies -------------------------------------------------------------------------------------


def _cp_async(rng: Random, k: int) -> Made:
    """A few copies of all sizes, source sizes and ignore-src."""
    lines = []
    for slot in range(8):
        size = rng.choice([4, 8, 16])
        cache = "cg" if size == 16 and rng.random() < 0.5 else "ca"
        extra = ""
        choice = rng.random()
        if choice < 0.5:
            extra = f", {rng.randint(0, size)}"
        elif choice < 0.7:
            extra = ", %p0"
        elif choice < 0.9:
            extra = ", %p1"
        lines.append(f"  cp.async.{cache}.shared.global [buf + {16 * slot}], [t + {16 * slot}], {size}{extra};\n")
    wait = "  cp.async.wait_all;\n" if k % 2 else "  cp.async.commit_group;\n  cp.async.wait_group 0;\n"
    text = (
        "{\n  .global .align 128 .b8 t[128], old[128];\n  .shared .align 128 .b8 buf[128];\n"
        "  .shared .align 8 .b64 first;\n}\np@cta 0 {\n"
        "  mbarrier.init.shared::cta.b64 [first], 1;\n  fence.proxy.async;\n"
        "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [first], 128;\n"
        "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [old], 128, [first];\n"
        "  await mbarrier.try_wait.parity.shared::cta.b64 [first], 0;\n"
        "  setp.ne.u32 %p0, 0, 0;\n  setp.eq.u32 %p1, 0, 0;\n" + "".join(lines) + wait + "}\n"
    )
    return text, {"t": "random", "old": "random"}


def _bulk_copy(rng: Random, k: int) -> Made:
    """Global to shared, shared to global, and both, of several sizes."""
    size = 16 * rng.randint(1, 40)
    a, b = 16 * rng.randint(0, 7), 16 * rng.randint(0, 7)
    text = (
        f"{{\n  .global .align 128 .b8 t[{size + 256}], u[{size + 256}], old[{size + 256}];\n"
        f"  .shared .align 128 .b8 buf[{size + 256}];\n  .shared .align 8 .b64 first, full;\n}}\np@cta 0 {{\n"
        "  mbarrier.init.shared::cta.b64 [first], 1;\n  mbarrier.init.shared::cta.b64 [full], 1;\n"
        "  fence.proxy.async;\n"
        f"  mbarrier.arrive.expect_tx.shared::cta.b64 _, [first], {size + 256};\n"
        f"  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [old], {size + 256}, [first];\n"
        "  await mbarrier.try_wait.parity.shared::cta.b64 [first], 0;\n"
        f"  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {size};\n"
        f"  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf + {a}], [t + {b}], {size}, [full];\n"
        "  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;\n"
        f"  cp.async.bulk.global.shared::cta.bulk_group [u + {b}], [buf + {16 * rng.randint(0, 7)}], {size};\n"
        "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n}\n"
    )
    return text, {"t": "random", "u": "random", "old": "random"}


def _multicast(rng: Random, k: int) -> Made:
    """A bulk or tensor load to some CTAs of a cluster of two, each with its own count of bytes."""
    size = 16 * rng.randint(4, 24)
    mask = (1, 2, 3)[k % 3]
    waiting = [r for r in (0, 1) if mask >> r & 1]
    expect = {r: f"  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {size};\n" if r in waiting else ""
              for r in (0, 1)}  # fmt: skip
    wait = {r: "  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;\n" if r in waiting else "" for r in (0, 1)}
    both = "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n"

    def fill(rank: int) -> str:
        return (
            "  mbarrier.init.shared::cta.b64 [first], 1;\n  mbarrier.init.shared::cta.b64 [full], 1;\n"
            "  fence.mbarrier_init.release.cluster;\n  fence.proxy.async;\n"
            f"  mbarrier.arrive.expect_tx.shared::cta.b64 _, [first], {size};\n"
            "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
            f"[buf], [old{rank}], {size}, [first];\n"
            "  await mbarrier.try_wait.parity.shared::cta.b64 [first], 0;\n"
        )

    copy = (
        "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        f"[buf], [t], {size}, [full], {mask};\n"
    )
    text = (
        f"{{\n  .global .align 128 .b8 t[{size}], old0[{size}], old1[{size}];\n"
        f"  .shared .align 128 .b8 buf[{size}];\n  .shared .align 8 .b64 first, full;\n}}\n"
        f"a@cluster 0, cta 0 {{\n{fill(0)}{expect[0]}{both}{copy}{wait[0]}{both}}}\n"
        f"b@cluster 0, cta 1 {{\n{fill(1)}{expect[1]}{both}{wait[1]}{both}}}\n"
    )
    return text, {"t": "random", "old0": "random", "old1": "random"}


def _to_peer(rng: Random, k: int) -> Made:
    """Shared memory of one CTA to that of another."""
    text, data = _cluster_reduce(rng, k)
    lines = []
    for line in text.splitlines():
        if "cp.reduce" in line:
            head, operands = line.split(" [to@1]")
            del head
            line = f"  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [to@1]{operands}"
        lines.append(line)
    return "\n".join(lines) + "\n", dict.fromkeys(data, "random")


# --- mbarriers ----------------------------------------------------------------------------------------


def _mbarrier(rng: Random, k: int) -> Made:
    """Random operations that stay legal, both answers looked at after each; the state is followed here by itself."""
    expected = rng.randint(1, 4)
    phase, pending, tx = 0, expected, 0
    lines = [f"  mbarrier.init.shared::cta.b64 [bar], {expected};\n"]
    probes = 0

    def probe() -> None:
        nonlocal probes
        for parity in (phase & 1, 1 - (phase & 1)):
            lines.append(f"  mbarrier.test_wait.parity.shared::cta.b64 %p{probes}, [bar], {parity};\n")
            probes += 1

    probe()
    for _ in range(rng.randint(4, 9)):
        choice = rng.random()
        amount = 16 * rng.randint(1, 4)
        if choice < 0.2 and pending > 0:
            lines.append(f"  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], {amount};\n")
            tx += amount
        elif choice < 0.5:
            back = tx if tx > 0 and rng.random() < 0.7 else amount
            if pending == 0 and back > tx:
                back = tx
            if back <= 0:
                continue
            lines.append(f"  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], {back};\n")
            tx -= back
        elif pending > 0:
            count = rng.randint(1, pending)
            if rng.random() < 0.3:
                lines.append(f"  mbarrier.arrive.expect_tx.shared::cta.b64 %rd{probes}, [bar], {amount};\n")
                tx, pending = tx + amount, pending - 1
            elif rng.random() < 0.2 and expected > 1:
                lines.append(f"  mbarrier.arrive_drop.shared::cta.b64 %rd{probes}, [bar];\n")
                expected, pending = expected - 1, pending - 1
            else:
                lines.append(f"  mbarrier.arrive.shared::cta.b64 %rd{probes}, [bar], {count};\n")
                pending -= count
        if pending == 0 and tx == 0:
            phase, pending = phase + 1, expected
        probe()
    return "{\n  .shared .align 8 .b64 bar;\n}\np@cta 0 {\n" + "".join(lines) + "}\n", {}


def _fresh(rng: Random, k: int) -> Made:
    """Both parities on a fresh barrier (H7), and expect-tx after the last arrival (H6)."""
    test = "  mbarrier.test_wait.parity.shared::cta.b64 %p{}, [bar], {};\n"
    amount = 16 * rng.randint(1, 64)
    if k % 2 == 0:
        body = f"  mbarrier.init.shared::cta.b64 [bar], {rng.randint(1, 9)};\n" + test.format(0, 0) + test.format(1, 1)
    else:
        body = (
            "  mbarrier.init.shared::cta.b64 [bar], 1;\n"
            f"  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], {amount};\n"
            "  mbarrier.arrive.shared::cta.b64 _, [bar];\n" + test.format(0, 0)
            + f"  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], {amount};\n"
            + test.format(1, 0) + test.format(2, 1)
        )  # fmt: skip
    return "{\n  .shared .align 8 .b64 bar;\n}\np@cta 0 {\n" + body + "}\n", {}


# --- whole programs -----------------------------------------------------------------------------------


def _ring(rng: Random, k: int) -> Made:
    """A full/empty ring of one producer and some consumers, each of which adds up its words and stores the sum."""
    consumers, slots, rounds = 1 + k % 3, 1 + k % 2, rng.randint(3, 7)
    size = 16 * rng.randint(1, 16)
    wait = "  await mbarrier.try_wait.parity.shared::cta.b64"
    text = (
        f"{{\n  .global .align 128 .b8 t[{size * rounds}];\n  .global .u32 sums[{consumers}];\n"
        f"  .shared .align 128 .b8 buf[{slots}][{size}];\n"
        f"  .shared .align 8 .b64 full[{slots}], empty[{slots}];\n}}\n"
        f"const S = {slots}, N = {rounds};\n"
        "producer@cta 0, warp 0, lane 0 {\n  for s in 0..S {\n    mbarrier.init.shared::cta.b64 [full[s]], 1;\n"
        f"    mbarrier.init.shared::cta.b64 [empty[s]], {consumers};\n  }}\n  fence.proxy.async;\n  bar.sync 0;\n"
        f"  for k in 0..N {{\n  {wait} [empty[k%S]], ((k/S)%2)^1;\n"
        f"    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], {size};\n"
        "    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        f"[buf[k%S]], [t + {size}*k], {size}, [full[k%S]];\n  }}\n}}\n"
        f"consumer@cta 0, warp 1..{consumers + 1}, lane 0 {{\n  mov.u32 r1, 0;\n  bar.sync 0;\n"
        f"  for k in 0..N {{\n  {wait} [full[k%S]], (k/S)%2;\n"
        "    ld.shared.u32 r0, [buf[k%S] + 4*(%warpid-1)];\n    add.u32 r1, r1, r0;\n"
        "    fence.proxy.async.shared::cta;\n    mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];\n  }\n"
        "  st.global.u32 [sums + 4*(%warpid-1)], r1;\n}\n"
    )
    return text, {"t": "random"}


def _cp_async_arrive(rng: Random, k: int) -> Made:
    """Several cp.async and the arrive that waits for them, with and without .noinc."""
    noinc, count = (".noinc", 1) if k % 2 else ("", 1)
    lines = []
    for slot in range(rng.randint(1, 8)):
        size = rng.choice([4, 8, 16])
        lines.append(f"  cp.async.ca.shared.global [buf + {16 * slot}], [t + {16 * slot}], {size};\n")
    arrive = "" if noinc else "  mbarrier.arrive.shared::cta.b64 _, [bar];\n"
    text = (
        "{\n  .global .align 128 .b8 t[128];\n  .global .u32 out[2];\n  .shared .align 128 .b8 buf[128];\n"
        f"  .shared .align 8 .b64 bar;\n}}\np@cta 0 {{\n  mbarrier.init.shared::cta.b64 [bar], {count};\n"
        + "".join(lines)
        + f"  cp.async.mbarrier.arrive{noinc}.shared::cta.b64 [bar];\n{arrive}"
        "  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;\n"
        "  ld.shared.u32 r0, [buf];\n  st.global.u32 [out], r0;\n"
        "  mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 1;\n}\n"
    )
    return text, {"t": "random"}


# --- interleaved layouts ------------------------------------------------------------------------------


def _interleaved(rng: Random, k: int, *, store: bool = False) -> Made:
    """Interleaved layouts: dimension 0 steps over slices of 16 or 32 bytes."""
    width = 32 if k % 2 else 16
    elemtype = rng.choice(["u8", "f16", "f32"]) if not store else rng.choice(["u8", "u16", "u32"])
    rank = 3 + (k // 2) % 3
    size, per = SIZES[elemtype], width // SIZES[elemtype]
    dims = [rng.randint(1, 20), *(rng.randint(1, 5) for _ in range(rank - 1))]
    swizzle = rng.choice(["none", "32B", "64B", "128B"]) if width == 16 else "32B"
    steps = [rng.choice([1, 1, 2, 3]) for _ in dims]
    counts = [rng.randint(1, 3) for _ in dims]
    box = [n * step - rng.randint(0, step - 1) for n, step in zip(counts, steps, strict=True)]
    # The driver wants whole 16 bytes of elements along dimension 0, although it counts slices.
    box[0] = 16 // size
    # Channels: the box counts them, the tensor counts slices of them.
    steps[-2] = rng.choice([1, 1, 1, 2])
    box[-2] = rng.randint(1, 3 * per)
    m = Map(elemtype, dims, strides(rng, width, dims, width), box, steps, swizzle)
    m.interleave = f"{width}B"
    m.fill = "nan" if elemtype in FLOATS and rng.random() < 0.4 else "zero"
    low = 0 if store else -2
    coords = [rng.randint(low, n) for n in dims]
    shift = 128 * rng.randint(0, 9)
    data = {"t": "random", "old": "random"}
    return (store_text(m, coords, "tile", shift) if store else load_text(m, coords, "tile", shift)), data


def _interleaved_store(rng: Random, k: int) -> Made:
    return _interleaved(rng, k, store=True)


def _pairs(rng: Random, k: int) -> Made:
    """Every special value with every other."""
    op, type_ = FLOAT_REDUCTIONS[k]
    size = -(-(len(SPECIAL[type_]) ** 2) * SIZES[type_] // 16) * 16
    noftz = ".noftz" if type_ in ("f16", "bf16") and op == "add" else ""
    return _reduce_text(f"{op}{noftz}.{type_}", size), {"t": f"across {type_}", "old": f"along {type_}"}


_PLAN: list[tuple[str, int, Callable[[Random, int], Made]]] = [
    ("tile-load", 150, _tile_load),
    ("tile-load-at-16", 16, _load_at_16),
    ("tile-store-at-16", 6, _store_at_16),
    ("tile-load-nan", 42, _nan_load),
    ("tile-load-rounded", 16, _rounded_load),
    ("tile-store", 70, _tile_store),
    ("tile-store-rounded", 8, _rounded_store),
    ("tile-store-negative", 12, _trap_store),
    ("tile-start-unaligned", 10, _trap_start),
    ("im2col-load", 90, _im2col_load),
    ("im2col-store", 36, _im2col_store),
    ("bulk-reduce", 2 * len(TO_GLOBAL), _bulk_reduce),
    ("cluster-reduce", len(TO_SHARED), _cluster_reduce),
    ("tensor-reduce", 2 * len(BY_TENSOR), _tensor_reduce),
    ("tensor-reduce-rounded", 6, _rounded_reduce),
    ("im2col-reduce", 8, _im2col_reduce),
    ("cp-async", 30, _cp_async),
    ("bulk-copy", 16, _bulk_copy),
    ("multicast", 9, _multicast),
    ("to-peer", 4, _to_peer),
    ("mbarrier", 50, _mbarrier),
    ("mbarrier-fresh", 8, _fresh),
    ("ring", 6, _ring),
    ("cp-async-arrive", 8, _cp_async_arrive),
    ("reduce-pairs", len(FLOAT_REDUCTIONS), _pairs),
    ("interleaved-load", 60, _interleaved),
    ("interleaved-store", 24, _interleaved_store),
]


def groups() -> Iterator[tuple[str, int]]:
    """The groups of cases and how many there are of each."""
    for group, count, _ in _PLAN:
        yield group, count
