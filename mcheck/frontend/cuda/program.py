"""Runs a program under the recorder of launches, without a GPU."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Final

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass
from mcheck.frontend.cuda.compiled import CompiledSource
from mcheck.frontend.cuda.nvcc import CompileError, Compiler, run_nvcc
from mcheck.frontend.cuda.recorder import built_recorder
from mcheck.frontend.cuda.recording import Line, read_lines

LIMIT: Final = 120.0
"""The seconds that a program gets whose launches are wanted."""
QUIET: Final = 10.0
"""The seconds after its last launch that the ``main`` of a source gets: it compares what a GPU would have computed."""
LOOK: Final = 0.5
"""How often it is looked whether it has launched something, in seconds."""
_LIBRARIES: Final = ("libcuda.so.1", "libcuda.so")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """What a program did under the recorder: its launches, the modules that it brought, and how it ended.

    ``status`` is its exit status, negative for a signal, ``None`` if it was stopped: ``quiet`` seconds after its last
    launch, or because it took too long.
    """

    lines: tuple[Line, ...]
    modules: tuple[tuple[str, str], ...]
    status: int | None
    said: str
    quiet: float | None = None

    @property
    def ending(self) -> str:
        """How the program ended, in words; empty if it succeeded."""
        if self.status is None and self.quiet is not None:
            return f"it launched nothing more for {self.quiet:.0f} s and was stopped"
        if self.status is None:
            return f"it did not end within {LIMIT:.0f} s and was stopped"
        if self.status < 0:
            return f"it was stopped by signal {-self.status} ({_signal_name(-self.status)})"
        return f"it ended with status {self.status}" if self.status else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def run_program(
    command: Sequence[str],
    cache: Path,
    modules: Sequence[str] = (),
    arch: str | None = None,
    *,
    shown: bool,
    quiet: float | None = None,
) -> ProgramRun:
    """Run a command under the recorder; raises ``InputError`` if it cannot be started.

    ``modules`` are PTX files of its kernels; ``arch`` is the target that it is told. What it prints goes to standard
    error if it is to be ``shown``. It is stopped if it launches nothing for ``quiet`` seconds after a launch.
    """
    with tempfile.TemporaryDirectory(prefix="mcheck-run-") as folder:
        environment = _environment(Path(folder), cache, modules, arch)
        record = Path(folder) / "record"
        status, said, patient = _run(command, environment, record, quiet, shown=shown)
        text = record.read_text(encoding="utf-8", errors="replace") if record.exists() else ""
        found = sorted((Path(folder) / "modules").glob("*.ptx"))
        brought = tuple((path.name, path.read_text(encoding="utf-8", errors="replace")) for path in found)
    return ProgramRun(
        lines=tuple(read_lines(text)), modules=brought, status=status, said=said, quiet=None if patient else quiet
    )


def _environment(folder: Path, cache: Path, modules: Sequence[str], arch: str | None) -> Mapping[str, str]:
    library = built_recorder(cache)
    libraries = folder / "libraries"
    for path in (libraries, folder / "modules"):
        path.mkdir()
    for name in _LIBRARIES:
        (libraries / name).symlink_to(library)
    extract = f"{shlex.quote(sys.executable)} -m mcheck.frontend.cuda.fatbin"
    root = str(Path(__file__).parents[3])
    before = os.environ
    capability = re.search(r"\d+", arch or "")
    flags = f"{before.get('NVCC_APPEND_FLAGS', '')} -lineinfo".strip()
    return {
        **before,
        "LD_PRELOAD": _joined(str(library), before.get("LD_PRELOAD")),
        "LD_LIBRARY_PATH": _joined(str(libraries), before.get("LD_LIBRARY_PATH")),
        "MCHECK_RECORD": str(folder / "record"),
        "MCHECK_MODULES": str(folder / "modules"),
        "MCHECK_EXTRACT": f"PYTHONPATH={shlex.quote(_joined(root, before.get('PYTHONPATH')))} {extract}",
        "MCHECK_PTX": ":".join(modules),
        "NVCC_APPEND_FLAGS": flags,
        **({"MCHECK_ARCH": capability[0]} if capability else {}),
    }


def _joined(first: str, rest: str | None) -> str:
    return f"{first}:{rest}" if rest else first


def _run(
    command: Sequence[str], environment: Mapping[str, str], record: Path, quiet: float | None, *, shown: bool
) -> tuple[int | None, str, bool]:
    """The exit status, what was said, and whether the program had all of its time."""
    with tempfile.TemporaryFile() as out:
        try:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True,
                stdout=sys.__stderr__ if shown else out, stderr=None if shown else out,
            )  # fmt: skip
        except OSError as error:
            raise InputError(f"{command[0]} cannot be run: {error.strerror}") from None
        with _ended(process):
            patient = _wait_for(process, record, quiet)
            status = process.poll()
        out.seek(0)
        return status, out.read().decode("utf-8", "replace"), patient


def _wait_for(process: subprocess.Popen[bytes], record: Path, quiet: float | None) -> bool:
    """Wait for the end of a program, for ``LIMIT`` seconds, and no longer than ``quiet`` seconds after a launch: then
    it is false.
    """
    begun = latest = monotonic()
    size = 0
    while (now := monotonic()) < begun + LIMIT:
        if quiet is not None and size and now > latest + quiet:
            return False
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK)
            return True
        if (written := record.stat().st_size if record.exists() else 0) != size:
            size, latest = written, monotonic()
    return True


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """No process of the program's group is left behind, whatever happens."""
    try:
        yield
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def linked_program(made: CompiledSource, compiler: Compiler, flags: Sequence[str], cache: Path) -> Path:
    """The program of a source that has a ``main``, linked once and kept beside its module.

    There is no machine code for the device in it, which nobody runs. The runtime is that of the recorder. The host's
    code is optimised: it fills matrices before it launches anything.
    """
    program = Path(made.path).with_suffix(".main")
    library = built_recorder(cache)
    if made.kept and program.is_file() and program.stat().st_mtime > library.stat().st_mtime:
        return program
    arch = made.target.replace("sm_", "compute_")
    command = [compiler.path, "-O2", "-gencode", f"arch={arch},code={arch}", *compiler.flags, *flags]
    with tempfile.TemporaryDirectory(dir=program.parent, prefix=".new-") as scratch:
        linked = os.path.join(scratch, "program")
        try:
            run_nvcc([*command, "-o", linked, made.source, str(library), "-Xlinker", f"-rpath={cache}"], made.source)
        except CompileError as error:
            error.message = f"nvcc does not link {made.source}, whose main() would tell the launches"
            error.hint = "link it yourself and name it: -- ./program; or give the launch: a file, --grid, --block"
            raise
        os.replace(linked, program)
    return program
