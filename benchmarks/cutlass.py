"""Products by CUTLASS, compiled here and checked: the verdict, the seconds, and what was assumed.

    python -m benchmarks.cutlass [--only TEXT,…] [--timeout SECONDS] [--folder FOLDER] [--python PYTHON]

Wants CUTLASS's headers and the compiler of CUDA beside a Python (``pip install nvidia-cutlass nvidia-cuda-nvcc
nvidia-cuda-runtime nvidia-cuda-cccl``) and a C compiler; no GPU, and nothing else is fetched. ``cutlass_product.cu``
is compiled for each schedule, its host side is run against the recorder of launches (``mcheck.integrations.cuda``), and
the module is checked with the launch so recorded. What is compiled stays in the folder and is not compiled again: a
schedule takes nvcc one to two minutes.

CUTLASS 4.2 lets a CTA arrive on a barrier of another one with the scope ``.cta``, the default, which is too narrow
(RACE010; so does its source of August 2026). For sm_100 it waits for the last load from tensor memory alone (UB702),
and with two SMs initialises the mbarrier by which they free it behind the last fence (UB201). A row follows for the
module with these mended.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import spent

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "cutlass_product.cu"
HEAD = f"{'schedule':<34} {'verdict':<8} {'found':<26} {'seconds':>7} {'lines':>6}"
MENDS = (
    (r"mbarrier\.arrive\.shared::cluster\.b64", r"mbarrier.arrive.release.cluster.shared::cluster.b64"),
    (r"mbarrier\.try_wait\.parity\.shared::cta\.b64", r"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"),
    (r"(?m)^(\s*tcgen05\.ld\..*)$", r"\1 tcgen05.wait::ld.sync.aligned;"),
    (r"barrier\.cluster\.arrive\.relaxed", r"fence.mbarrier_init.release.cluster; \g<0>"),
)
"""Scopes of a cluster, a wait behind every load from tensor memory, a fence behind all that is initialised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A way to compute the product: names of CUTLASS, the tile in M and N, the CTAs of a cluster in M."""

    name: str
    arch: str
    mainloop: str
    epilogue: str
    tile: tuple[int, int]
    cluster: int = 1

    def defines(self) -> list[str]:
        """The macros of the source."""
        said = {
            "ARCH": f"cutlass::arch::Sm{self.arch[:-1]}", "TILE_M": self.tile[0], "TILE_N": self.tile[1],
            "CLUSTER": self.cluster, "SCHEDULE": self.mainloop, "EPILOGUE": self.epilogue,
        }  # fmt: skip
        return [f"-D{name}={value}" for name, value in said.items()]


_TMA = "KernelTmaWarpSpecialized"
SCHEDULES = (
    Schedule(name="warp-specialised", arch="90a", mainloop=_TMA, epilogue="TmaWarpSpecialized", tile=(64, 128)),
    Schedule(name="ping-pong", arch="90a", mainloop=f"{_TMA}Pingpong", epilogue="TmaWarpSpecialized", tile=(64, 128)),
    Schedule(
        name="cooperative, cluster of 2", arch="90a", mainloop=f"{_TMA}Cooperative",
        epilogue="TmaWarpSpecializedCooperative", tile=(128, 128), cluster=2,
    ),
    Schedule(name="sm_100", arch="100a", mainloop=f"{_TMA}1SmSm100", epilogue="TmaWarpSpecialized1Sm", tile=(128, 128)),
    Schedule(
        name="sm_100, two SMs", arch="100a", mainloop=f"{_TMA}2SmSm100", epilogue="TmaWarpSpecialized2Sm",
        tile=(256, 128), cluster=2,
    ),
    Schedule(
        name="cp.async, cooperative", arch="90a", mainloop="KernelCpAsyncWarpSpecializedCooperative",
        epilogue="TmaWarpSpecializedCooperative", tile=(128, 128),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The folders of the compilers of a Python."""

    cuda: Path
    cutlass: Path

    @staticmethod
    def of(python: str) -> Tools:
        """Raises ``FileNotFoundError`` if a package is not there."""
        asked = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        packages = Path(
            subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
        )
        cuda = next(iter(sorted((packages / "nvidia").glob("cu*"))), packages / "nvidia" / "cu13")
        cutlass = packages / "cutlass_library" / "source"
        for place in (cuda / "bin" / "nvcc", cuda / "include" / "cccl", cutlass / "include" / "cutlass"):
            if not place.exists():
                raise FileNotFoundError(
                    f"{place} is not there: see python -m benchmarks.cutlass --help for the packages"
                )
        return Tools(cuda=cuda, cutlass=cutlass)

    def compile(self, schedule: Schedule, folder: Path) -> None:
        """``program`` and the module ``cutlass_product.ptx``; no machine code, which nobody runs."""
        arch = f"compute_{schedule.arch}"
        runtime = next((self.cuda / "lib").glob("libcudart.so.*"))
        headers = (self.cutlass / "include", self.cutlass / "tools" / "util" / "include",
                   self.cuda / "include" / "cccl", self.cuda / "include")  # fmt: skip
        command = [
            self.cuda / "bin" / "nvcc",
            "-std=c++17",
            "-O1",
            "-cudart",
            "none",
            "-gencode",
            f"arch={arch},code={arch}",
        ]
        command += ["-lineinfo", "-w", "--expt-relaxed-constexpr", "--keep", "--keep-dir", folder]
        command += [f"-I{header}" for header in headers]
        # The driver's library comes with a driver; what is called of it the recorder has.
        command += ["-Xlinker", "--unresolved-symbols=ignore-in-object-files", *schedule.defines()]
        subprocess.run(
            [*command, "-Xlinker", runtime, SOURCE, "-o", folder / "program"],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )

    def record(self, schedule: Schedule, folder: Path) -> None:
        """``launch.json``, of the launch that the program would do."""
        from mcheck.integrations.cuda import build

        build(folder / "recorder.so")
        environment = {
            **os.environ, "LD_PRELOAD": str(folder / "recorder.so"), "LD_LIBRARY_PATH": str(self.cuda / "lib"),
            "MCHECK_PTX": "cutlass_product.ptx", "MCHECK_ARCH": schedule.arch[:-1],
        }  # fmt: skip
        subprocess.run([folder / "program"], cwd=folder, env=environment, check=True, capture_output=True, text=True)
        next(folder.glob("*-1.json")).replace(folder / "launch.json")


def rows(schedule: Schedule, tools: Tools, folder: Path, timeout: float) -> Iterator[str]:
    """The row of a schedule and what it assumes; another one where something has to be mended."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "program").exists():
        tools.compile(schedule, folder)
    if not (folder / "launch.json").exists():
        tools.record(schedule, folder)
    text = (folder / "cutlass_product.ptx").read_text(encoding="utf-8")
    yield from checked(schedule.name, text, folder / "launch.json", timeout)
    if schedule.cluster > 1 or schedule.arch == "100a":
        for pattern, new in MENDS:
            text = re.sub(pattern, new, text)
        yield from checked(f"{schedule.name}, mended", text, folder / "launch.json", timeout)


def checked(name: str, text: str, launch: Path, timeout: float) -> Iterator[str]:
    """The row of a module."""
    from mcheck.ptx import check

    before = spent()
    answer = check(text, launch, timeout=timeout)
    found = ", ".join(sorted({f.code for f in answer.findings})) or "-"
    seconds, lines = spent() - before, text.count("\n")
    yield f"{name:<34} {answer.verdict:<8} {found:<26} {seconds:>7.1f} {lines:>6}"
    said = [answer.reason] if answer.reason else []
    for line in [*said, *answer.assumptions]:
        short = re.sub(r"\b_Z\w{40,}", "the kernel", line)
        yield textwrap.fill(short, 118, initial_indent="    - ", subsequent_indent="      ")


def main() -> int:
    """Prints the table; exit status 2 if a package is missing or a program does not compile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds per module")
    parser.add_argument("--folder", type=Path, default=Path("build") / "cutlass", help="where what is compiled stays")
    parser.add_argument("--python", default=sys.executable, help="the Python beside which the packages are")
    options = parser.parse_args()
    parts = [part.strip() for part in options.only.split(",") if part.strip()]
    try:
        tools = Tools.of(options.python)
        print(HEAD)
        for schedule in SCHEDULES:
            if parts and not any(part in schedule.name for part in parts):
                continue
            folder = options.folder.resolve() / re.sub(r"\W+", "-", schedule.name)
            for row in rows(schedule, tools, folder, options.timeout):
                print(row, flush=True)
    except FileNotFoundError as error:
        print(error)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"{error.cmd[0]} ended with {error.returncode}\n{error.stderr}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
