"""NVIDIA's compiler: where it is, and what it makes of a source."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass

TARGETS = ("sm_90a", "sm_100a")
"""The targets that are tried for a source, the first one first."""
WHEELS = "pip install nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-cccl"
HEADERS = "pip install nvidia-cuda-cccl"
LIMIT = 600.0
_CCCL = re.compile(
    r"\b(?:nv|cuda|cub|thrust)/[\w/.]+\"?: No such file|cannot open source file \"(?:nv|cuda|cub|thrust)/"
)
"""A header of the CUDA C++ core libraries is missing, which are a wheel of their own."""
_MIXED = re.compile(r"CUDA compiler and CUDA toolkit headers are incompatible|Unsupported \.version|ptxas fatal")
"""The compiler, its headers or the assembler are of another release than the others, as wheels of PyTorch cause it."""
_NEEDS_SM_100 = re.compile(r"\btcgen05\b|\bclusterlaunchcontrol\b|\bsm_?100|\bSm100|__CUDA_ARCH__\s*>=?\s*1[0-9]{3}\b")
"""What a source, or the PTX made of it, names only if it is for sm_100a."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """An nvcc: its path, its release, and the flags with which it finds the headers of wheels."""

    path: str
    release: str
    flags: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """A text that changes with the compiler."""
        about = os.stat(self.path)
        return f"{self.path} {self.release} {about.st_size} {about.st_mtime_ns} {' '.join(self.flags)}"

    @property
    def root(self) -> str:
        """The folder of the toolkit."""
        return str(Path(self.path).resolve().parents[1])


class CompileError(InputError):
    """The compiler refuses a source; ``said`` is what it wrote."""

    def __init__(self, path: str, said: str) -> None:
        hint = "flags for it stand after --nvcc-flags"
        if _CCCL.search(said):
            hint = f"{HEADERS} brings these headers"
        elif _MIXED.search(said):
            hint = f"parts of CUDA are of different releases{_one_release()}"
        super().__init__(f"nvcc does not compile {path}", hint=hint)
        self.said = said


def _one_release() -> str:
    """How to get the parts of CUDA from wheels of one release: that of the runtime, which PyTorch demands of them."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        release = version("nvidia-cuda-runtime").split(".")[:2]
    except PackageNotFoundError:
        return ""
    wheels = ("nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm", "nvidia-cuda-runtime")
    return ": pip install " + " ".join(f"'{wheel}=={'.'.join(release)}.*'" for wheel in wheels)


def find_compiler(source: str = "kernel.cu") -> Compiler:
    """The nvcc of ``PATH``, of ``CUDA_HOME``, or of the wheels beside the running Python; raises ``InputError`` if
    there is none, with the command that makes a module of ``source`` elsewhere.
    """
    for path, flags in _candidates():
        release = _release(path)
        if release is not None:
            return Compiler(path=path, release=release, flags=flags)
    elsewhere = f"nvcc -ptx -lineinfo -arch=sm_90a {source}, and check {Path(source).stem}.ptx"
    raise InputError(
        "there is no nvcc in PATH, in CUDA_HOME or among the packages of this Python",
        expected=f"{WHEELS} brings one, which needs no GPU and no driver",
        hint=f"or make PTX elsewhere, with {elsewhere}",
    )


def _candidates() -> Iterator[tuple[str, tuple[str, ...]]]:
    found = shutil.which("nvcc")
    if found is not None:
        yield found, ()
    for name in ("CUDA_HOME", "CUDA_PATH"):
        root = os.environ.get(name)
        if root:
            yield os.path.join(root, "bin", "nvcc"), ()
    for folder in sys.path:
        packages = Path(folder) / "nvidia"
        for path in sorted(packages.glob("cu[0-9]*/bin/nvcc"), reverse=True):
            yield str(path), ()
        path = packages / "cuda_nvcc" / "bin" / "nvcc"  # the wheels of CUDA 12, each in a folder of its own
        yield str(path), tuple(f"-I{include}" for include in sorted(packages.glob("cuda_*/include")))
    yield "/usr/local/cuda/bin/nvcc", ()


@cache
def _release(path: str) -> str | None:
    """The release that an nvcc says it is of, such as 13.0; ``None`` if it cannot be run."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"release (\d+\.\d+)", done.stdout)
    return found[1] if done.returncode == 0 and found else None


def likely_targets(text: str, arch: str | None) -> tuple[str, ...]:
    """The targets to try for a source, the likeliest first; ``arch`` is the user's choice."""
    if arch is not None:
        return (arch,)
    return TARGETS[::-1] if _NEEDS_SM_100.search(text) else TARGETS


def needs_other_target(ptx: str, target: str) -> bool:
    """Whether the PTX has instructions that this one of ``TARGETS`` lacks."""
    return target == TARGETS[0] and _NEEDS_SM_100.search(ptx) is not None


def run_compiler(compiler: Compiler, source: str, target: str, flags: Sequence[str], ptx: str, depends: str) -> str:
    """Make PTX of ``source`` for ``target`` in the file ``ptx``, and the list of headers in ``depends``; gives the
    warnings. Raises ``CompileError`` if the compiler refuses.
    """
    command = [compiler.path, "-ptx", "-lineinfo", f"-arch={target}", *compiler.flags, *flags]
    command += ["-MD", "-MF", depends, "-o", ptx, source]
    return run_nvcc(command, source)


def run_nvcc(command: Sequence[str], source: str) -> str:
    """Run the compiler on ``source`` and give its warnings; raises ``CompileError`` if it refuses."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=LIMIT,
            check=False,
        )  # fmt: skip
    except OSError as error:
        raise InputError(f"{command[0]} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"nvcc took more than {LIMIT:.0f} s for {source}") from None
    if done.returncode:
        raise CompileError(source, done.stderr or done.stdout)
    return done.stderr


def read_dependencies(text: str) -> list[str]:
    """The files that a rule of ``make`` names behind its colon, blanks in names included."""
    _, _, rest = text.replace("\\\n", " ").partition(" : ")
    return [part.replace("\\ ", " ") for part in re.split(r"(?<!\\)\s+", rest.strip()) if part]
