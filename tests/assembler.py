"""NVIDIA's assembler for tests. Its answers are kept in pytest's cache by its version, the options and the text."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.isa.agreement import ptxas


@dataclass(frozen=True, slots=True)
class Assembler:
    """The program at ``path``; ``kept`` is the folder of its answers, if there is one."""

    path: Path
    version: str
    kept: Path | None

    def assemble(self, text: str, *options: str) -> tuple[int, str]:
        """The exit status for a text and what is said of it; a test with a text that is too new is skipped."""
        status, said = self._keep(text, options)
        if "Unsupported .version" in said:
            pytest.skip(f"this ptxas is too old: {said.splitlines()[0]}")
        return status, said

    def _keep(self, text: str, options: tuple[str, ...]) -> tuple[int, str]:
        if self.kept is None:
            return self._run(text, options)
        key = hashlib.sha256(json.dumps([self.version, options, text]).encode()).hexdigest()
        file = self.kept / f"{key}.json"
        if not file.exists():
            answer = json.dumps(self._run(text, options))
            written = file.with_suffix(f".{os.getpid()}")
            written.write_text(answer, encoding="utf-8")
            written.replace(file)  # at once: another process may look for it
        status, said = json.loads(file.read_text(encoding="utf-8"))
        return status, said

    def _run(self, text: str, options: tuple[str, ...]) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "m.ptx"
            source.write_text(text, encoding="utf-8")
            command = [str(self.path), *options, str(source), "-o", str(Path(folder) / "m.cubin")]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="session")
def assembler(request: pytest.FixtureRequest) -> Assembler:
    """The assembler that is installed; without one the test is skipped."""
    path = ptxas.find()
    if path is None:
        pytest.skip("no ptxas: the PyPI package nvidia-cuda-nvcc is not installed")
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    cache = getattr(request.config, "cache", None)  # there is none with -p no:cacheprovider
    return Assembler(path, version, cache and cache.mkdir("ptxas"))
