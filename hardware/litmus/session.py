"""One test on the GPU: launches under one setting after the other, then more under the one that showed most."""

from __future__ import annotations

import random
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hardware.litmus import settings, tally
from hardware.litmus.device import Device
from hardware.litmus.formula import holds
from hardware.litmus.stress import BOUND, FREE, PERMUTE, SCATTER, WHOLE, Geometry, Preset, alone, geometry

SCRATCH_BYTES = 1 << 23
T = TypeVar("T")


@dataclass(slots=True)
class Seen:
    """What a test showed: counts by state, and instances and hits of what was looked for by setting."""

    states: Counter[tuple[int, ...]] = field(default_factory=Counter)
    stuck: int = 0
    lost: int = 0
    by: dict[str, list[int]] = field(default_factory=dict)

    @property
    def instances(self) -> int:
        """All instances that ran to their end."""
        return sum(self.states.values())


def tune(presets: Sequence[T], seconds: float, once: Callable[[T], tuple[float, float]]) -> None:
    """Launches under every setting, then for the rest of the time more often under the one that showed most."""
    end = time.monotonic() + seconds
    scores = {preset: once(preset) for preset in presets}
    ranked = sorted(presets, key=lambda p: scores[p], reverse=True)
    turn = 0
    while time.monotonic() < end:
        # three launches of the best for each of the others
        once(ranked[0] if turn % 4 else ranked[turn // 4 % len(ranked)])
        turn += 1


def alone_in_ctas(test: dict[str, Any]) -> bool:
    """Whether an instance of the test has CTAs of its own."""
    return test.get("placement") == "whole"


def presets_of(test: dict[str, Any]) -> tuple[Preset, ...]:
    """The settings that a test is tried under."""
    if alone_in_ctas(test):
        return WHOLE
    return FREE if test["free"] else BOUND


def geometry_of(test: dict[str, Any], preset: Preset, registers: int) -> Geometry:
    """The launch of a test under a setting."""
    maps = any("maps" in o for o in test["objects"])
    if alone_in_ctas(test):
        each = sum(o["stride"] for o in test["objects"])
        return alone(preset, ctas=test["ctas"], warps=test["warps"], block=test["block"], bytes_each=each, maps=maps)
    return geometry(
        preset,
        ctas=test["ctas"],
        warps=test["warps"],
        barriers=test["barriers"],
        block=test["block"],
        slots=test["slots"],
        free=test["free"],
        maps=maps,
        registers=registers,
    )


class Session:
    """A device, by default the first one, with the two common kernels loaded."""

    def __init__(self, common: bytes, seed: int, number: int = 0) -> None:
        self.device = Device(number)
        module = self.device.load(common)
        self.tally = self.device.entry(module, "tally")
        self.fill = self.device.entry(module, "fill")
        self.scratch = self.device.take(SCRATCH_BYTES)
        self.table = self.device.take(tally.TABLE_BYTES)
        self.line = self.device.take(4096)
        self.kept = self.device.used
        self.random = random.Random(seed)
        self.modules: dict[int, Any] = {}

    def module(self, number: int, image: bytes) -> Any:
        """A module of tests; the one before it is forgotten."""
        if number not in self.modules:
            for old in self.modules.values():
                self.device.unload(old)
            self.modules = {number: self.device.load(image)}
        return self.modules[number]

    def run(self, test: dict[str, Any], image: bytes, seconds: float) -> Seen:
        """Runs a test for about that long."""
        module = self.module(test["module"], image)
        function = self.device.entry(module, test["entry"])
        presets = presets_of(test)
        registers = self.device.registers(function)
        shapes = {p.name: geometry_of(test, p, registers) for p in presets}
        self.device.allow_shared(function, max(g.shared for g in shapes.values()))
        seen = Seen()
        tune(presets, seconds, lambda preset: self.once(test, function, preset, shapes[preset.name], seen))
        return seen

    def once(
        self, test: dict[str, Any], function: Any, preset: Preset, shape: Geometry, seen: Seen
    ) -> tuple[float, float]:
        """One launch; the share of what is looked for, and how evenly the states are spread."""
        device = self.device
        device.reset(self.kept)
        count = shape.instances
        results = device.take(8 * count * max(test["slots"], 1))
        stuck = device.take(4 * count)
        device.zero(stuck, 4 * count)
        maps = any("maps" in o for o in test["objects"])
        scatter = list(SCATTER) if preset.scatter and not maps else [1] * len(SCATTER)
        if preset.scatter:
            self.random.shuffle(scatter)
        objects = self.places(test["objects"], count, scatter)
        for number, item in enumerate(test["objects"]):
            if "alias" not in item:
                self.initialise(item, objects, number, count)
        line = self.line
        if alone_in_ctas(test):
            line = device.take(4 * count)
            device.zero(line, 4 * count)
        device.zero(self.line, 4096)
        device.zero(self.table, tally.TABLE_BYTES)
        parameter = self.parameter(test, preset, shape, objects, results, stuck, line)
        device.launch(function, shape.grid, shape.block, shape.shared, parameter)
        places = []
        for w in test["watched"]:
            if "slot" in w:
                places.append(tally.Place(results + 8 * count * w["slot"], 1, 8, w["size"]))
            else:
                base, multiplier = objects[w["object"]]
                stride = test["objects"][w["object"]]["stride"]
                places.append(tally.Place(base + w["offset"], multiplier, stride, w["size"]))
        return self.count(test, seen, preset.name, count, places, stuck)

    def count(
        self,
        test: dict[str, Any],
        seen: Seen,
        name: str,
        count: int,
        places: list[tally.Place],
        stuck: int,
        out: int = 0,
    ) -> tuple[float, float]:
        """Adds what the instances of a launch show to ``seen``; ``out`` of them are marked as stuck to be left out."""
        device = self.device
        # Where nothing is watched it is counted how many instances come to their end, all of which are alike.
        counted = places or [tally.Place(stuck, 1, 4, 4)]
        device.launch(self.tally, 264, 256, 0, tally.parameters(count, stuck, self.table, counted))
        device.wait()
        found, gave_up, lost = tally.read(device.driver.read(self.table, tally.TABLE_BYTES), len(places))
        seen.stuck += gave_up - out
        seen.lost += lost
        count -= out
        labels, sizes = [w["label"] for w in test["watched"]], {w["label"]: w["size"] for w in test["watched"]}
        hits = 0
        for values, number in found.items():
            seen.states[values] += number
            if holds(test["aim"], dict(zip(labels, values, strict=True)), sizes):
                hits += number
        row = seen.by.setdefault(name, [0, 0])
        row[0] += count
        row[1] += hits
        common = max(found.values(), default=0)
        if test["aim"] is True:
            row[1] -= hits
            hits = 0
        rare = min(hits, count - hits)  # where what is asked for is the rule, the exceptions are looked for
        return (rare / count, 1 - common / count)

    def places(self, items: list[dict[str, Any]], count: int, scatter: list[int]) -> list[tuple[int, int]]:
        """The address of each global object, and what scatters its instances; an alias lies as its target does. A
        texture or a surface has a handle for an address.
        """
        device = self.device
        aliased = {item["alias"] for item in items if "alias" in item}
        found: list[tuple[int, int]] = []
        for number, item in enumerate(items):
            if "proxy" in item:
                base, multiplier = found[item["of"]]
                size = item["stride"] * count
                handle = device.texture(base, size) if item["proxy"] == "texture" else device.surface(size)
                found.append((handle, multiplier))
                continue
            if "alias" in item:
                base, multiplier = found[item["alias"]]
                found.append((device.other_address(base), multiplier))
                continue
            take = device.take_twice if number in aliased else device.take
            found.append((take(item["stride"] * count), scatter[number % len(scatter)]))
        return found

    def initialise(self, item: dict[str, Any], objects: list[tuple[int, int]], number: int, count: int) -> None:
        """The initial contents of a global object, for all instances; those of a surface are those of its object."""
        base, stride = objects[number][0], item["stride"]
        if "proxy" in item:
            if item["proxy"] == "surface":
                self.device.fill_surface(base, objects[item["of"]][0], stride * count)
            return
        if "maps" in item:
            data = [
                self.device.maps(
                    m["spec"],
                    objects[m["object"]][0] + m["offset"],
                    m["stride"],
                    count,
                )
                for m in item["maps"]
            ]
            together = b"".join(d[128 * n : 128 * n + 128] for n in range(count) for d in data)
            self.device.driver.write(base, together)
            return
        image = bytes.fromhex(item["init"]).ljust(stride, b"\0")
        if not any(image):
            self.device.zero(base, stride * count)
            return
        at = self.device.take(stride)
        self.device.driver.write(at, image)
        values = (base, at, stride // 4, stride // 4 * count)
        self.device.launch(self.fill, 264, 256, 0, *(struct.pack("<Q", v) for v in values))

    def parameter(
        self,
        test: dict[str, Any],
        preset: Preset,
        shape: Geometry,
        objects: list[tuple[int, int]],
        results: int,
        stuck: int,
        line: int,
    ) -> bytes:
        """The parameter of the test's kernel."""
        apart = alone_in_ctas(test)
        free = not apart and test["free"]
        meets = apart or (preset.line and test["cluster"] == 1)
        head = {
            "rounds": shape.rounds,
            "mask": shape.instances - 1,
            "copies": shape.copies,
            "groups": shape.groups - 1,
            "seed": self.random.getrandbits(32),
            "delay": preset.delay,
            "warm": preset.warm & 0xFFFFFFFF,
            "pipe": preset.pipe,
            "noise": preset.noise,
            "line": line if meets else 0,
            "turn": self.random.randrange(16),
            "spread": int(preset.spread),
            "pause": 1500 if test["pause"] else 0,
            "results": results,
            "stuck": stuck,
            "scratch": self.scratch,
            "shift": self.random.randrange(test["turns"]) if apart else 0,
            "loud": shape.loud,
            "done": self.line,
        }
        values = [head[name] for name in settings.FIELDS]
        values += [value for pair in objects for value in pair]
        if apart:
            return struct.pack(f"<{len(values)}Q", *values)
        permute = preset.permute
        values += [self.random.choice(PERMUTE) if permute and c and free else 1 for c in range(test["ctas"])]
        for thread in range(test["threads"]):
            values += [self.random.choice(PERMUTE) if permute and thread else 1, 5 * thread if permute else 0]
        return struct.pack(f"<{len(values)}Q", *values)
