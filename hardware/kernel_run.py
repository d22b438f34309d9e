"""Runs the kernels on the GPU of this machine and writes what they left, as JSON.

python3 -m hardware.kernel_run OUT.json
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from hardware.driver import Driver
from hardware.kernels import KERNELS, SHARED, THREADS, Kernel
from mcheck.frontend.ptx import launch_reader, reader
from mcheck.frontend.ptx.launch import Map


def run_kernel(driver: Driver, kernel: Kernel) -> dict[str, str]:
    """What is in ``b`` and ``out`` behind a kernel, in hexadecimal digits."""
    data = kernel.data()
    at = {name: driver.allocate(len(contents)) for name, contents in data.items()}
    for name, contents in data.items():
        driver.write(at[name], contents)
    launch = launch_reader.build_launch(reader.parse_module(kernel.text), launch_reader.from_object(kernel.launch))
    given = next(place for _, place in launch.arguments[3].places if isinstance(place, Map))
    map_ = driver.encode(replace(given.spec, global_address=at[kernel.on]))
    driver.launch(kernel.text, kernel.ctas, THREADS, 0, [at["a"], at["b"], at["out"], map_])
    left = {name: driver.read(at[name], len(data[name])).hex() for name in ("b", "out")}
    for address in at.values():
        driver.free(address)
    return {"text": sha256(kernel.text.encode()).hexdigest(), **left}


def main() -> None:
    """The command line."""
    driver = Driver()
    left: dict[str, dict[str, str]] = {}
    for kernel in KERNELS:
        try:
            left[kernel.name] = run_kernel(driver, kernel)
        except Exception as error:  # noqa: BLE001 - the others may still run, until a context is lost
            print(f"{kernel.name}: {error}")
    about = {"device": driver.device, "version": driver.version, "date": datetime.now(UTC).date().isoformat()}
    Path(sys.argv[1]).write_text(json.dumps({**about, "shared": SHARED, "left": left}, indent=1) + "\n")
    print(f"{len(left)} of {len(KERNELS)} kernels")


if __name__ == "__main__":
    main()
