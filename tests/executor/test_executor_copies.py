"""Copies as runs, and the conditions that hold when they execute."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.executor import copies
from mcheck.executor.copies import Run
from mcheck.executor.misuse import Misuse
from mcheck.program.memory import GLOBAL_BASE, SHARED_BASE, SHARED_WINDOW, Cta, Instance, MemObject, MemoryMap

CTAS = (Cta(0, 0, 0, 0), Cta(1, 0, 0, 1), Cta(2, 0, 1, 0))
G = GLOBAL_BASE
S = [SHARED_BASE + number * SHARED_WINDOW for number in range(3)]
MEMORY = MemoryMap(
    (
        Instance(MemObject(name="g", space="global", elem="b8", elem_size=1, size=64), G, G),
        *(
            Instance(MemObject(name="s", space="shared", elem="b8", elem_size=1, size=64), S[c.number], S[c.number], c)
            for c in CTAS
        ),
    )
)


@pytest.mark.parametrize(
    ("size", "src_size", "ignore", "runs"),
    [
        (16, None, False, (Run(0, 0, 16),)),
        (16, 16, False, (Run(0, 0, 16),)),
        (16, 5, False, (Run(0, 0, 5), Run(5, None, 11))),
        (4, 0, False, (Run(0, None, 4),)),
        (8, None, True, (Run(0, None, 8),)),
        (8, 3, True, (Run(0, None, 8),)),
    ],
)
def test_cp_async(size: int, src_size: int | None, ignore: bool, runs: tuple[Run, ...]) -> None:
    assert copies.cp_async(size, src_size, ignore) == runs


@pytest.mark.parametrize(
    ("size", "mask", "runs"),
    [
        (0, None, ()),
        (1024, None, (Run(0, 0, 1024),)),
        (1024, 0xFFFF, (Run(0, 0, 1024),)),
        (32, 0x00FF, (Run(0, 0, 8), Run(16, 16, 8))),
        (32, 0x8001, (Run(0, 0, 1), Run(15, 15, 2), Run(31, 31, 1))),
        (32, 0, ()),
    ],
)
def test_bulk(size: int, mask: int | None, runs: tuple[Run, ...]) -> None:
    assert copies.bulk(size, mask) == runs


@given(st.integers(0, 8), st.integers(0, 0xFFFF))
def test_masked_bytes(chunks: int, mask: int) -> None:
    source = bytes(range(1, 16 * chunks + 1))
    destination = bytearray(len(source))
    copies.apply(copies.bulk(len(source), mask), destination, source)
    assert destination == bytes(b if mask >> i % 16 & 1 else 0 for i, b in enumerate(source))


def test_apply_fills() -> None:
    destination = bytearray(b"xxxxxxxx")
    copies.apply((Run(0, 2, 2), Run(2, None, 5)), destination, b"abcd", b"\xf7\x7f")
    assert destination == b"cd\xf7\x7f\xf7\x7f\xf7x"


def test_multicast() -> None:
    assert copies.multicast(0b101, {0, 1, 2}) == (0, 2)


def places(dst: int, src: int, mbar: int | None, dst_space: str, src_space: str) -> Callable[[], None]:
    return lambda: copies.check_bulk_places(dst, src, mbar, dst_space, src_space, CTAS[0], CTAS)


def tensor(kind: str, shared: int, mbar: int | None, space: str, group: int = 1) -> Callable[[], None]:
    return lambda: copies.check_tensor_places(kind, shared, mbar, space, group, CTAS[0], CTAS)


CHECKS: list[tuple[str, str | None, Callable[[], object]]] = [
    ("mask of nobody", "UB107", lambda: copies.multicast(0, {0})),
    ("mask of an absent CTA", "UB107", lambda: copies.multicast(4, {0, 1})),
    ("mask beyond 16 bits", "UB107", lambda: copies.multicast(0x10001, {0})),
    ("bulk", None, lambda: copies.check_bulk(S[0], G, 64, MEMORY)),
    ("bulk of nothing", None, lambda: copies.check_bulk(S[0] + 64, G, 0, MEMORY)),
    ("bulk of 24", "UB101", lambda: copies.check_bulk(S[0], G, 24, MEMORY)),
    ("bulk source at 8", "UB102", lambda: copies.check_bulk(S[0], G + 8, 16, MEMORY)),
    ("bulk destination at 4", "UB102", lambda: copies.check_bulk(S[0] + 4, G, 16, MEMORY)),
    ("bulk too long", "UB103", lambda: copies.check_bulk(S[0], G, 80, MEMORY)),
    ("bulk from the end", "UB103", lambda: copies.check_bulk(S[0], G + 64, 16, MEMORY)),
    ("cp.async", None, lambda: copies.check_cp_async(S[0], G, 16, None, MEMORY)),
    ("cp.async of 12", "UB101", lambda: copies.check_cp_async(S[0], G, 12, None, MEMORY)),
    ("src-size equal", None, lambda: copies.check_cp_async(S[0], G, 8, 8, MEMORY)),
    ("src-size above", "UB104", lambda: copies.check_cp_async(S[0], G, 8, 9, MEMORY)),
    ("src-size 0 from nowhere", None, lambda: copies.check_cp_async(S[0], G + 4096, 8, 0, MEMORY)),
    ("ignored source from nowhere", None, lambda: copies.check_cp_async(S[0], G + 4096, 8, None, MEMORY, True)),
    ("cp.async from nowhere", "UB103", lambda: copies.check_cp_async(S[0], G + 4096, 8, None, MEMORY)),
    ("cp.async misaligned", "UB102", lambda: copies.check_cp_async(S[0], G + 4, 8, None, MEMORY)),
    ("cp.async misaligned destination", "UB102", lambda: copies.check_cp_async(S[0] + 8, G, 16, None, MEMORY)),
    ("same bytes", "UB106", lambda: copies.check_disjoint([(100, 4), (112, 16)], 120, 4)),
    ("other bytes", None, lambda: copies.check_disjoint([(100, 4), (112, 8)], 120, 4)),
    ("load into the own CTA", None, places(S[0], G, S[0] + 8, "shared::cta", "global")),
    ("load into the peer as cta", "UB105", places(S[1], G, S[0], "shared::cta", "global")),
    ("load into the peer", None, places(S[1], G, S[1], "shared::cluster", "global")),
    ("load into another cluster", "UB105", places(S[2], G, S[2], "shared::cluster", "global")),
    ("mbarrier of the peer", "UB105", places(S[0], G, S[1], "shared::cta", "global")),
    ("mbarrier in global", "UB105", places(S[0], G, G, "shared::cta", "global")),
    ("to the peer", None, places(S[1], S[0], S[1], "shared::cluster", "shared::cta")),
    ("to itself", "UB105", places(S[0], S[0], S[0], "shared::cluster", "shared::cta")),
    ("store from the peer", "UB108", places(G, S[1], None, "global", "shared::cta")),
    ("store", None, places(G, S[0], None, "global", "shared::cta")),
    ("tensor load", None, tensor("load", S[1], S[1], "shared::cluster")),
    ("tensor load, mbarrier elsewhere", "UB105", tensor("load", S[1], S[0], "shared::cluster")),
    ("tensor load, mbarrier in the pair", None, tensor("load", S[1], S[0], "shared::cluster", 2)),
    ("tensor load into the peer as cta", "UB105", tensor("load", S[1], S[1], "shared::cta")),
    ("tensor store from the peer", "UB105", tensor("store", S[1], None, "shared::cta")),
    ("tensor store", None, tensor("store", S[0], None, "shared::cta")),
    ("st.async", None, lambda: copies.check_remote_places(S[0], S[0], CTAS[0], CTAS, other=False)),
    ("st.async apart", "UB105", lambda: copies.check_remote_places(S[0], S[1], CTAS[0], CTAS, other=False)),
    ("red.async at home", "UB105", lambda: copies.check_remote_places(S[0], S[0], CTAS[0], CTAS, other=True)),
    ("global", None, lambda: copies.check_space(G, "global", CTAS[0], CTAS, MEMORY, "address")),
    ("shared as global", "UB108", lambda: copies.check_space(S[0], "global", CTAS[0], CTAS, MEMORY, "address")),
    ("global as shared", "UB108", lambda: copies.check_space(G, "shared::cta", CTAS[0], CTAS, MEMORY, "address")),
    ("peer as shared::cta", "UB108", lambda: copies.check_space(S[1], "shared::cta", CTAS[0], CTAS, MEMORY, "address")),
    ("peer", None, lambda: copies.check_space(S[1], "shared::cluster", CTAS[0], CTAS, MEMORY, "address")),
    ("stranger", "UB108", lambda: copies.check_space(S[2], "shared::cluster", CTAS[0], CTAS, MEMORY, "address")),
    ("nowhere, generic", None, lambda: copies.check_space(7, "generic", CTAS[0], CTAS, MEMORY, "address")),
    ("nowhere", "UB108", lambda: copies.check_space(7, "global", CTAS[0], CTAS, MEMORY, "address")),
]


@pytest.mark.parametrize(("code", "check"), [c[1:] for c in CHECKS], ids=[c[0] for c in CHECKS])
def test_conditions(code: str | None, check: Callable[[], object]) -> None:
    if code is None:
        check()
        return
    with pytest.raises(Misuse) as caught:
        check()
    assert caught.value.code == code
