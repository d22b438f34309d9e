"""One test on two GPUs that reach each other's memory: a kernel on each, which meet before every round.

The words of an instance lie in the memory of the first GPU, of the second, or of both in turn. All memory is set before
both GPUs are waited for, and the first round of a launch is not counted: the GPUs need not begin at the same time.
"""

from __future__ import annotations

from ctypes import c_size_t, c_uint, c_uint64
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hardware.litmus import tally
from hardware.litmus.session import Seen, Session, tune
from hardware.litmus.stress import SCATTER, Geometry, Preset, geometry

ROUNDS = 64
MOST_BYTES = 3 << 29
"""Of the memory of a GPU for one launch, were all objects there."""
HOMES = {"0": (0,), "1": (1,), "split": (0, 1), "crossed": (1, 0)}
"""The GPUs of the first global object, the second one, the third as the first, and so on."""
LATE = 8191
"""Cycles: as long as an access of a peer's memory takes, several times."""
APART = (
    Preset("late", line=True, delay=LATE),
    Preset("late, warm all", line=True, delay=LATE, warm=-1),
    Preset("dense, meet", line=True, delay=1023, dense=True),
)
TOGETHER = (
    Preset("few, late", line=True, delay=LATE, few=True),
    Preset("few, meet", line=True, delay=1023, few=True),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A preset, and where the words lie."""

    preset: Preset
    homes: str

    @property
    def name(self) -> str:
        """How results call it."""
        return f"{self.preset.name}, words at {self.homes}"


def settings_of(test: dict[str, Any], homes: list[str]) -> list[Setting]:
    """The settings that a test is tried under."""
    return [Setting(preset, h) for preset in (APART if test["free"] else TOGETHER) for h in homes]


def geometry_of(test: dict[str, Any], preset: Preset, registers: int) -> Geometry:
    """The launch on either GPU; its CTAs are as many groups as the grid of ``Geometry`` has, times those of the GPU."""
    found = geometry(
        preset,
        ctas=max(test["own"]),
        warps=test["warps"],
        barriers=test["barriers"],
        block=test["block"],
        slots=test["slots"],
        free=test["free"],
        maps=False,
        registers=registers,
    )
    each = sum(o["stride"] for o in test["objects"]) + 8 * test["slots"] + 4
    rounds = ROUNDS
    while rounds > 2 and rounds * found.groups * found.copies * found.size * each > MOST_BYTES:
        rounds //= 2
    return replace(found, rounds=rounds)


class PairSession:
    """Two devices with the common kernels loaded; the first one counts."""

    def __init__(self, common: bytes, seed: int, homes: list[str]) -> None:
        self.sides = [Session(common, seed + n, n) for n in range(2)]
        self.homes = homes
        for side, other in (self.sides, self.sides[::-1]):
            side.device.driver.reach(other.device.driver)

    def run(self, test: dict[str, Any], image: bytes, seconds: float) -> Seen:
        """Runs a test for about that long."""
        functions, registers = [], []
        for gpu, side in enumerate(self.sides):
            side.device.driver.use()
            functions.append(side.device.entry(side.module(test["module"], image), test["entries"][gpu]))
            registers.append(side.device.registers(functions[gpu]))
        settings = settings_of(test, self.homes)
        shapes = {s: geometry_of(test, s.preset, max(registers)) for s in settings}
        for side, function in zip(self.sides, functions, strict=True):
            side.device.driver.use()
            side.device.allow_shared(function, max(g.shared for g in shapes.values()))
        seen = Seen()
        tune(settings, seconds, lambda s: self.once(test, functions, s, shapes[s], seen))
        return seen

    def once(
        self, test: dict[str, Any], functions: list[Any], setting: Setting, shape: Geometry, seen: Seen
    ) -> tuple[float, float]:
        """One launch on both; the share of what is looked for, and how evenly the states are spread."""
        first, count = self.sides[0], shape.instances
        for side in self.sides:
            side.device.reset(side.kept)
        results = [side.device.take(8 * count * max(test["slots"], 1)) for side in self.sides]
        stuck = first.device.take(4 * count)
        pattern = HOMES[setting.homes]
        homes = [pattern[n % len(pattern)] for n in range(len(test["objects"]))]
        scatter = first.random.sample(SCATTER, len(SCATTER))
        objects = [
            (self.sides[home].device.take(item["stride"] * count), scatter[n % len(scatter)])
            for n, (home, item) in enumerate(zip(homes, test["objects"], strict=True))
        ]
        for n, (home, item) in enumerate(zip(homes, test["objects"], strict=True)):
            self.sides[home].device.driver.use()
            self.sides[home].initialise(item, objects, n, count)
        round_size = count // shape.rounds
        device = first.device
        device.driver.use()
        device.zero(stuck, 4 * count)
        device.driver.call("cuMemsetD32Async", c_uint64(stuck), c_uint(1), c_size_t(round_size), None)
        device.zero(first.line, 4096)
        device.zero(first.table, tally.TABLE_BYTES)
        self.wait()
        for gpu, (side, function) in enumerate(zip(self.sides, functions, strict=True)):
            side.device.driver.use()
            fill = partial(side.parameter, test, setting.preset, shape, objects)
            grid = shape.groups * test["own"][gpu]
            side.device.launch(function, grid, shape.block, shape.shared, fill(results[gpu], stuck, first.line))
        self.wait()
        places = []
        for w in test["watched"]:
            if "slot" in w:
                at = results[test["slot_gpus"][w["slot"]]] + 8 * count * w["slot"]
                places.append(tally.Place(at, 1, 8, w["size"]))
            else:
                base, multiplier = objects[w["object"]]
                stride = test["objects"][w["object"]]["stride"]
                places.append(tally.Place(base + w["offset"], multiplier, stride, w["size"]))
        device.driver.use()
        return first.count(test, seen, setting.name, count, places, stuck, round_size)

    def wait(self) -> None:
        """Waits for all launches on both."""
        for side in self.sides:
            side.device.driver.use()
            side.device.wait()
