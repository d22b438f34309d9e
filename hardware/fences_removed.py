"""Runs modules with and without the synchronisation that can go, and compares what they compute and how long they take.

    python3 -m hardware.fences_removed FOLDER [--rounds 1e8] [PATH...]

``hardware/removals.json`` says what goes. Both forms get the same random inputs; what the module as it is computes once
is the reference, which a kernel on the GPU compares with the result of every launch, and clears. Rounds are executions
of the kernels' loops by all CTAs. The time is that of launches without the comparison, in turns; the cycles saved are
those of one CTA in one round, by the highest clock of the SMs. Prints a row per module and writes ``removed.json``;
exit status 1 if a result differs. sm_90 is needed, and no package but this one.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from ctypes import byref, c_char, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p, cast
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from struct import pack

from hardware.driver import MAX_DYNAMIC_SHARED, Driver
from hardware.removals import COMPARISONS, Comparison, Removal, for_driver, read_removals, without
from mcheck.frontend.ptx import launch_reader, reader
from mcheck.frontend.ptx.launch import Buffer, Launch, Map

LEAST = 256
"""Bytes of a buffer whose size is unknown, as nothing is in it."""
TIMED = 30
"""Launches of each form that are timed."""
CLOCK_RATE = 13  # CU_DEVICE_ATTRIBUTE_CLOCK_RATE, in kHz
DIFFER = """.version 8.0
.target sm_90
.address_size 64
.visible .entry differ(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3) {
	.reg .pred %p;
	.reg .b32 %a, %b, %t, %i, %n;
	.reg .b64 %out, %wanted, %count, %words, %at, %k, %step, %x;
	ld.param.u64 %out, [p0];
	ld.param.u64 %wanted, [p1];
	ld.param.u64 %count, [p2];
	ld.param.u64 %words, [p3];
	mov.u32 %t, %tid.x;
	mov.u32 %i, %ctaid.x;
	mov.u32 %n, %ntid.x;
	mad.lo.u32 %t, %i, %n, %t;
	cvt.u64.u32 %k, %t;
	mov.u32 %i, %nctaid.x;
	mul.wide.u32 %step, %i, %n;
NEXT:
	setp.ge.u64 %p, %k, %words;
	@%p bra END;
	shl.b64 %at, %k, 2;
	add.u64 %x, %out, %at;
	ld.global.u32 %a, [%x];
	st.global.u32 [%x], 0xDEADBEEF;
	add.u64 %x, %wanted, %at;
	ld.global.u32 %b, [%x];
	setp.ne.u32 %p, %a, %b;
	@%p red.relaxed.gpu.global.add.u64 [%count], 1;
	add.u64 %k, %k, %step;
	bra NEXT;
END:
	ret;
}
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """The entry and the extents of a launch."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """What two forms of a module did."""

    path: str
    removed: tuple[str, ...]
    rounds: dict[str, int]
    differing: dict[str, int]
    """Words of the results that are not those of the reference."""
    microseconds: dict[str, float]
    """Of a launch, the median."""
    saved: float
    """Cycles of a CTA in a round."""

    def __str__(self) -> str:
        times = " ".join(f"{self.microseconds[form]:>11.2f}" for form in ("with", "without"))
        wrong = f"{self.differing['with']} / {self.differing['without']}"
        rounds = f"{self.rounds['without']:>10.2e}"
        return f"{self.path:<31} {len(self.removed):>7} {rounds} {wrong:>9} {times} {self.saved:>9.1f}"


class Kernel:
    """A kernel with its launch, which stays what it is."""

    def __init__(self, driver: Driver, text: str, shape: Shape, arguments: list[bytes]) -> None:
        module, self.function = c_void_p(), c_void_p()
        driver.call("cuModuleLoadData", byref(module), text.encode() + b"\0")
        driver.call("cuModuleGetFunction", byref(self.function), module, shape.entry.encode())
        if shape.shared:
            driver.call("cuFuncSetAttribute", self.function, MAX_DYNAMIC_SHARED, shape.shared)
        self.driver, self.shape = driver, shape
        self.held = [(c_char * len(each)).from_buffer_copy(each) for each in arguments]
        self.pointers = (c_void_p * len(self.held))(*(cast(byref(each), c_void_p).value for each in self.held))

    def start(self) -> None:
        """Launches it, behind what was launched before."""
        extents = (*self.shape.grid, *self.shape.block, c_uint(self.shape.shared))
        self.driver.call("cuLaunchKernel", self.function, *extents, None, self.pointers, None)


def fill(driver: Driver, size: int, seed: str) -> int:
    """The address of new memory with random numbers: between 0 and 1 as f16, small and positive as f32."""
    drawn = random.Random(seed)
    block = b"".join(pack("<e", drawn.random()) for _ in range(32768))
    address = driver.allocate(size)
    for at in range(0, size, len(block)):
        shift = 16 * (at // len(block) % 4096)  # so that no two rows are the same
        driver.write(address + at, (block[shift:] + block[:shift])[: size - at])
    return address


def place(driver: Driver, comparison: Comparison, launch: Launch) -> tuple[list[bytes], dict[str, tuple[int, int]]]:
    """The arguments of a launch, whose buffers are new, and the addresses and sizes of these, by parameter."""
    buffers: dict[str, tuple[int, int]] = {}
    arguments = []
    for at, argument in enumerate(launch.arguments):
        data = bytearray(argument.data)
        for offset, given in argument.places:
            buffer = given.buffer if isinstance(given, Map) else given
            if not isinstance(buffer, Buffer):
                raise TypeError(f"parameter {at} of {comparison.path} is no address")
            size = buffer.size or LEAST
            address = fill(driver, size, f"{comparison.path} {at}")
            buffers[str(at)] = address, size
            mapped = isinstance(given, Map) and driver.encode(replace(given.spec, global_address=address))
            raw = mapped or pack("<Q", address)
            data[offset : offset + len(raw)] = raw
        arguments.append(bytes(data))
    return arguments, buffers


class Clock:
    """Events of the driver."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.events = driver, (c_void_p(), c_void_p())
        for event in self.events:
            driver.call("cuEventCreate", byref(event), c_uint(0))

    def time(self, kernel: Kernel) -> float:
        """The microseconds of a launch."""
        took = c_float()
        self.driver.call("cuEventRecord", self.events[0], None)
        kernel.start()
        self.driver.call("cuEventRecord", self.events[1], None)
        self.driver.call("cuEventSynchronize", self.events[1])
        self.driver.call("cuEventElapsedTime", byref(took), *self.events)
        return 1000 * took.value


def compare(driver: Driver, comparison: Comparison, removed: tuple[Removal, ...], rounds: float) -> Row:
    """Runs both forms of a module."""
    launch = launch_reader.build_launch(
        reader.parse_module(comparison.text), launch_reader.from_object(comparison.launch)
    )
    arguments, buffers = place(driver, comparison, launch)
    shape = Shape(launch.entry, launch.grid, launch.block, launch.shared)
    texts = {"with": comparison.text, "without": without(comparison.text, removed)}
    kernels = {form: Kernel(driver, for_driver(text), shape, arguments) for form, text in texts.items()}
    out, size = buffers[comparison.result]
    wanted, count = driver.allocate(size), driver.allocate(8)
    kernels["with"].start()
    driver.call("cuMemcpyDtoD_v2", c_uint64(wanted), c_uint64(out), c_size_t(size))
    words = [pack("<Q", each) for each in (out, wanted, count, size // 4)]
    check = Kernel(driver, DIFFER, Shape("differ", (264, 1, 1), (256, 1, 1)), words)
    check.start()  # clears the result
    done, differing = {}, {}
    for form, least in (("without", rounds), ("with", rounds / 10)):
        driver.write(count, bytes(8))
        launches = max(1, round(least / (comparison.ctas * comparison.rounds)))
        for launched in range(launches):
            kernels[form].start()
            check.start()
            if launched % 256 == 255:
                driver.wait()
        driver.wait()
        done[form] = launches * comparison.ctas * comparison.rounds
        differing[form] = int.from_bytes(driver.read(count, 8), "little")
    clock = Clock(driver)
    times: dict[str, list[float]] = {form: [] for form in kernels}
    for _ in range(TIMED):
        for form, kernel in kernels.items():
            times[form].append(clock.time(kernel))
    middle = {form: median(found) for form, found in times.items()}
    for address in (*(address for address, _ in buffers.values()), wanted, count):
        driver.free(address)
    waves = comparison.rounds * max(1.0, comparison.ctas / 264)
    saved = (middle["with"] - middle["without"]) / 1000 * frequency(driver) / waves
    shown = tuple(f"{each.line}: {each.instruction} -> {each.replacement or 'nothing'}" for each in removed)
    return Row(comparison.path, shown, done, differing, middle, saved)


def frequency(driver: Driver) -> int:
    """The highest clock of the SMs, in kHz."""
    device, rate = c_int(), c_int()
    driver.call("cuCtxGetDevice", byref(device))
    driver.call("cuDeviceGetAttribute", byref(rate), CLOCK_RATE, device)
    return rate.value


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("paths", nargs="*", help="modules of the corpus, without .ptx")
    parser.add_argument("--rounds", type=float, default=1e8)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    driver, removals = Driver(), read_removals()
    print(f"{driver.device}, driver {driver.version}\n")
    print(f"{'module':<31} {'changes':>7} {'rounds':>10} {'differ':>9} {'us with':>11} {'without':>11} {'cycles':>9}")
    rows = []
    for comparison in COMPARISONS:
        if options.paths and comparison.path not in options.paths:
            continue
        began = time.perf_counter()
        rows.append(compare(driver, comparison, removals[comparison.path], options.rounds))
        print(f"{rows[-1]}   {time.perf_counter() - began:.1f} s", flush=True)
    about = {"device": driver.device, "version": driver.version, "date": datetime.now(UTC).date().isoformat()}
    kept = [{name: getattr(row, name) for name in Row.__slots__} for row in rows]
    (options.folder / "removed.json").write_text(
        json.dumps({**about, "modules": kept}, indent=1) + "\n", encoding="utf-8"
    )
    return 1 if any(sum(row.differing.values()) for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
