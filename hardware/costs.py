"""Measures the cycles of fences, barriers, waits and orders on the GPU of this machine, alone and under load.

    python3 -m hardware.costs FOLDER [NAME...]

Writes ``costs.json``, all that was measured, and ``costs.toml``, a table for ``mcheck fences --costs``. *Alone* is one
cluster (one CTA, or two where a cluster barrier is measured); *under load*, all SMs are full of CTAs, and stores are in
flight: those of the thread itself and those of three CTAs of four, which only store. A number is the median of the
rounds of all CTAs, less the median of what stands for nothing in its place. sm_90 and a driver that takes PTX 8.6 are
needed, and no other package.
"""

from __future__ import annotations

import json
import sys
from ctypes import byref, c_int, c_size_t, c_ubyte, c_uint64
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from struct import unpack

from hardware.driver import CudaError, Driver
from hardware.synchronisations import CASES, LOADERS, ROUNDS, WORK, Case, write_module

LAUNCHES = 5
WARM_UP = 8
"""Rounds of each CTA that do not count."""
MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
NOT_MEASURED = {"tcgen05.fence": 5.0, "tcgen05.wait": 60.0}
"""Cycles of instructions that sm_90 does not have, as rough numbers."""
EDIT = {"insert": 1, "replace": 1, "move": 1, "size": 1000}
LIFTED = (
    ("fence.acq_rel.cta", "fence.acq_rel.cluster", "fence.acq_rel.gpu", "fence.acq_rel.sys"),
    ("fence.sc.cta", "fence.sc.cluster", "fence.sc.gpu", "fence.sc.sys"),
    *((f"fence.acq_rel.{scope}", f"fence.sc.{scope}") for scope in ("cta", "cluster", "gpu", "sys")),
    ("fence.proxy.async.shared::cta", "fence.proxy.async.shared::cluster", "fence.proxy.async"),
    ("fence.proxy.async.global", "fence.proxy.async"),
    ("cp.async.bulk.wait_group.read", "cp.async.bulk.wait_group"),
    ("barrier.cluster.arrive.relaxed", "barrier.cluster.arrive"),
)
"""Weaker instructions first: a table in which a stronger one costs less would order repairs by noise."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Cycles of one case."""

    case: Case
    alone: float
    loaded: float

    def __str__(self) -> str:
        return f"{self.case.name:<46} {self.alone:>9.1f} {self.loaded:>9.1f}"


class Bench:
    """A GPU with the memory that the kernels use."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        device, count = c_int(), c_int()
        driver.call("cuCtxGetDevice", byref(device))
        driver.call("cuDeviceGetAttribute", byref(count), MULTIPROCESSORS, device)
        self.multiprocessors = count.value
        self.most = 8 * self.multiprocessors
        self.work = driver.allocate(WORK + 8192 * self.most)
        self.cycles = driver.allocate(8 * ROUNDS * self.most)
        self.done = driver.allocate(4096)

    def time(self, case: Case, loaded: bool, base: bool = False) -> float:
        """The median cycles of a round."""
        ctas = 4 * self.multiprocessors // 8 * 8 if loaded else case.cluster
        warps = max(case.warps, LOADERS) if loaded else case.warps
        text = write_module(case, loaded, base)
        found: list[int] = []
        for _ in range(LAUNCHES):
            self.driver.call("cuMemsetD8_v2", c_uint64(self.done), c_ubyte(0), c_size_t(4096))
            self.driver.launch(text, ctas, 32 * warps, 0, [self.cycles, self.work, self.done, ROUNDS])
            kept = unpack(f"<{ROUNDS * ctas}Q", self.driver.read(self.cycles, 8 * ROUNDS * ctas))
            for cta in range(ctas):
                if cta // case.cluster % 4 == 0:
                    found += kept[ROUNDS * cta + WARM_UP : ROUNDS * (cta + 1)]
        return float(median(found))

    def measure(self, case: Case) -> Measured:
        """The cycles of one execution, alone and under load."""
        alone, loaded = (
            (self.time(case, load) - self.time(case, load, base=True)) / case.times for load in (False, True)
        )
        return Measured(case, alone, loaded)


def to_costs(found: list[Measured]) -> dict[str, dict[str, float]]:
    """The tables of ``mcheck fences --costs``: cycles under load, at least one."""
    cycles = {each.case.stands_for: max(1.0, round(each.loaded)) for each in found if each.case.stands_for}
    for names in LIFTED:
        for weaker, stronger in pairwise(names):
            if weaker in cycles and stronger in cycles:
                cycles[stronger] = max(cycles[stronger], cycles[weaker])
    by_name = {each.case.name: each.loaded for each in found}
    wider = {"cluster": _added(by_name, "mbarrier.try_wait, cluster", "mbarrier.try_wait")}
    for scope in ("gpu", "sys"):
        wider[scope] = max(
            wider["cluster"], _added(by_name, f"ld.acquire.{scope} - relaxed", "ld.acquire.cta - relaxed")
        )
    return {"cycles": {**cycles, **NOT_MEASURED}, "wider": wider, "edit": dict(EDIT)}


def _added(cycles: dict[str, float], wide: str, narrow: str) -> float:
    return max(0.0, round(cycles.get(wide, 0.0) - cycles.get(narrow, 0.0)))


def to_toml(tables: dict[str, dict[str, float]], about: str) -> str:
    """The tables as TOML."""
    lines = [
        f"# What synchronisation costs, in cycles of an SM: {about}.",
        "# Made by hardware/costs.py, which says what was measured.",
        "# The longest name that an instruction begins with counts.",
    ]
    for table, values in tables.items():
        lines += ["", f"[{table}]", *(f'"{name}" = {value:g}' for name, value in values.items())]
    return "\n".join([*lines, ""])


def main() -> int:
    """The command line."""
    folder, wanted = Path(sys.argv[1]), tuple(sys.argv[2:])
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(Driver())
    date = datetime.now(UTC).date().isoformat()
    print(f"{bench.driver.device}, driver {bench.driver.version}, {bench.multiprocessors} SMs\n")
    print(f"{'cycles':<46} {'alone':>9} {'loaded':>9}", flush=True)
    found, failed = [], 0
    for case in CASES:
        if wanted and not case.name.startswith(wanted):
            continue
        try:
            found.append(bench.measure(case))
            print(found[-1], flush=True)
        except CudaError as error:
            failed += 1
            print(f"{case.name}: {error}", flush=True)
    about = {"device": bench.driver.device, "version": bench.driver.version, "date": date, "rounds": ROUNDS * LAUNCHES}
    rows = [{"name": m.case.name, "key": m.case.stands_for, "alone": m.alone, "loaded": m.loaded} for m in found]
    (folder / "costs.json").write_text(json.dumps({**about, "cycles": rows}, indent=1) + "\n", encoding="utf-8")
    where = f"{about['device']}, driver {about['version']}, {date}, all SMs with stores in flight"
    (folder / "costs.toml").write_text(to_toml(to_costs(found), where), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
