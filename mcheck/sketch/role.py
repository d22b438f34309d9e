"""The class ``Role``: the code of a range of threads, one method per instruction and ``ptx`` for all others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mcheck.sketch.text import Expr, Ref, address, show

if TYPE_CHECKING:
    from collections.abc import Callable


HERE = str(Path(__file__).parent)


def locate_caller() -> tuple[str, int]:
    """File and line of the first frame outside this package."""
    frame = sys._getframe(1)  # noqa: SLF001 - cheap access to the line of the caller
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(HERE) or frame.f_code.co_filename.endswith("contextlib.py")
    ):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


class Role:
    """A role under construction, used in a ``with`` block or as the decorator of a function that takes it."""

    laneid = Expr("%laneid")
    warpid = Expr("%warpid")
    rank = Expr("%cluster_ctarank")

    def __init__(self, name: str, placement: str) -> None:
        self.name = name
        self.placement = placement
        self.lines: list[tuple[str, tuple[str, int]]] = []
        self._depth = 1
        self._fresh = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __call__(self, body: Callable[[Role], None]) -> Callable[[Role], None]:
        body(self)
        return body

    # --- text ---------------------------------------------------------------------------------------------

    def ptx(self, instruction: str) -> None:
        """Add any instruction in PTX syntax; the semicolon is optional."""
        self._line(instruction.strip().rstrip(";") + ";")

    def _line(self, text: str) -> None:
        self.lines.append(("  " * self._depth + text, locate_caller()))

    @contextmanager
    def when(self, condition: object) -> Iterator[None]:
        """Add a branch: the body is executed if ``condition`` holds, such as ``t.laneid`` or ``"%laneid == 0"``."""
        self._line(f"if ({show(condition)}) {{")
        self._depth += 1
        yield
        self._depth -= 1
        self._line("}")

    def elected(self, lane: int = 0) -> AbstractContextManager[None]:
        """Add a branch whose body is executed by one lane of each warp."""
        return self.when(f"%laneid == {lane}")

    @contextmanager
    def loop(self, variable: str, low: object, high: object) -> Iterator[Expr]:
        """Add a loop of the block form; a Python loop works too and is unrolled."""
        self._line(f"for {variable} in {show(low)}..{show(high)} {{")
        self._depth += 1
        yield Expr(variable)
        self._depth -= 1
        self._line("}")

    def register(self) -> str:
        """A fresh register."""
        self._fresh += 1
        return f"r{100 + self._fresh}"

    # --- mbarriers ------------------------------------------------------------------------------------------

    def init(self, bar: Ref, count: object) -> None:
        self.ptx(f"mbarrier.init.shared::cta.b64 {address(bar)}, {show(count)}")

    def inval(self, bar: Ref) -> None:
        self.ptx(f"mbarrier.inval.shared::cta.b64 {address(bar)}")

    def arrive(self, bar: Ref, *, sem: str = "release", scope: str | None = None) -> None:
        """``mbarrier.arrive``; by default at cluster scope on the mbarrier of a peer CTA."""
        scope = scope or ("cluster" if bar.rank is not None else "cta")
        self.ptx(f"mbarrier.arrive.{sem}.{scope}.{bar.window}.b64 _, {address(bar)}")

    def arrive_expect_tx(self, bar: Ref, tx: object) -> None:
        scope = "cluster" if bar.rank is not None else "cta"
        self.ptx(f"mbarrier.arrive.expect_tx.release.{scope}.{bar.window}.b64 _, {address(bar)}, {show(tx)}")

    def expect_tx(self, bar: Ref, tx: object) -> None:
        self.ptx(f"mbarrier.expect_tx.relaxed.cta.{bar.window}.b64 {address(bar)}, {show(tx)}")

    def wait(self, bar: Ref, parity: object, *, sem: str = "acquire", scope: str = "cta") -> None:
        """Block until the phase of this parity is complete."""
        self.ptx(f"await mbarrier.try_wait.parity.{sem}.{scope}.shared::cta.b64 {address(bar)}, {show(parity)}")

    # --- copies ----------------------------------------------------------------------------------------------

    def bulk_load(self, dst: Ref, src: Ref, size: object, bar: Ref, *, multicast: object | None = None) -> None:
        """``cp.async.bulk`` from global to shared memory, with complete-tx on ``bar``."""
        form = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        places = f"{address(dst)}, {address(src)}, {show(size)}, {address(bar)}"
        if multicast is None:
            self.ptx(f"{form} {places}")
        else:
            mask = self.register()
            self.ptx(f"mov.u16 {mask}, {show(multicast)}")
            self.ptx(f"{form}.multicast::cluster {places}, {mask}")

    def bulk_store(self, dst: Ref, src: Ref, size: object) -> None:
        self.ptx(f"cp.async.bulk.global.shared::cta.bulk_group {address(dst)}, {address(src)}, {show(size)}")

    def bulk_reduce(self, dst: Ref, src: Ref, size: object, op: str = "add", kind: str = "u32") -> None:
        form = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{kind}"
        self.ptx(f"{form} {address(dst)}, {address(src)}, {show(size)}")

    def commit_group(self) -> None:
        self.ptx("cp.async.bulk.commit_group")

    def wait_group(self, pending: int = 0, *, read: bool = False) -> None:
        self.ptx(f"cp.async.bulk.wait_group{'.read' if read else ''} {pending}")

    def cp_async(self, dst: object, src: object, size: int = 16) -> None:
        self.ptx(f"cp.async.{'cg' if size == 16 else 'ca'}.shared.global {address(dst)}, {address(src)}, {size}")

    def cp_async_commit(self) -> None:
        self.ptx("cp.async.commit_group")

    def cp_async_wait(self, pending: int = 0) -> None:
        self.ptx(f"cp.async.wait_group {pending}")

    def cp_async_arrive(self, bar: Ref, *, noinc: bool = False) -> None:
        self.ptx(f"cp.async.mbarrier.arrive{'.noinc' if noinc else ''}.shared::cta.b64 {address(bar)}")

    # --- memory, fences, barriers --------------------------------------------------------------------------------

    def ld(self, place: Ref, kind: str = "u32", register: str | None = None) -> str:
        """A weak load; returns its register."""
        target = register or self.register()
        self.ptx(f"ld.{place.window}.{kind} {target}, {address(place)}")
        return target

    def st(self, place: Ref, value: object, kind: str = "u32") -> None:
        self.ptx(f"st.{place.window}.{kind} {address(place)}, {show(value)}")

    def fence(self, sem: str = "acq_rel", scope: str = "cta") -> None:
        self.ptx(f"fence.{sem}.{scope}")

    def fence_proxy_async(self, space: str | None = None) -> None:
        self.ptx("fence.proxy.async" + (f".{space}" if space else ""))

    def fence_mbarrier_init(self) -> None:
        self.ptx("fence.mbarrier_init.release.cluster")

    def sync(self, number: int = 0, threads: int | None = None) -> None:
        self.ptx(f"bar.sync {number}" + (f", {threads}" if threads is not None else ""))

    def bar_arrive(self, number: int, threads: int) -> None:
        self.ptx(f"bar.arrive {number}, {threads}")

    def syncwarp(self, mask: int = 0xFFFFFFFF) -> None:
        self.ptx(f"bar.warp.sync {mask:#x}")

    def cluster_arrive(self, *, relaxed: bool = False) -> None:
        self.ptx(f"barrier.cluster.arrive.{'relaxed' if relaxed else 'release'}")

    def cluster_wait(self) -> None:
        self.ptx("barrier.cluster.wait.acquire")

    def cluster_sync(self) -> None:
        """Arrive and wait."""
        self.cluster_arrive()
        self.cluster_wait()

    def exit(self) -> None:
        self.ptx("exit")
