"""A whole CUDA program for ``mcheck cuda``: the modules that it brings, each with the launches that it makes of it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcheck.base.errors import InputError
from mcheck.base.records import dataclass
from mcheck.checking.check.cuda_sources import recorded_entries, recorded_text
from mcheck.frontend.cuda.compiled import cache_folder, name_parameters, usable_folder
from mcheck.frontend.cuda.program import ProgramRun, run_program
from mcheck.frontend.cuda.recording import compose_recording
from mcheck.frontend.ptx import reader
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.source_signatures import SUFFIXES, shortest_name


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedProgram:
    """The modules that were written, each with a launch file beside it, the sources as which those in the cache are
    known to people, and what is to be said about them.
    """

    paths: tuple[str, ...]
    sources: Mapping[str, str]
    notes: tuple[str, ...]


def record_program(command: Sequence[str], folder: str | None, arch: str | None) -> RecordedProgram:
    """Run a program under the recorder and write what it launched to ``folder``, or to the cache; raises
    ``InputError``.
    """
    cache = usable_folder(cache_folder())
    run = run_program(command, cache, (), arch, shown=True)
    said = " ".join(command)
    paths, notes = [], []
    sources: dict[str, str] = {}
    for name, text in run.modules:
        try:
            module = reader.parse_module(text, name)
        except InputError as error:
            notes.append(f"{name} cannot be read: {error.message}")
            continue
        if not any(line["entry"] in module.entries for line in run.lines):
            continue
        module_text = _relative_files(name_parameters(text, map(_source_text, module.files.values()), module))
        named = reader.parse_module(module_text, name) if module_text != text else module
        recording = compose_recording(run.lines, named.parameter_names, dict(named.all_variables))
        if recording is None:
            continue
        path = _write(_stem(name, run.modules), module_text, recording.text, folder, cache)
        paths.append(path)
        source = None if folder else _source_of(named, name)
        if source is not None and source not in sources.values():
            sources[path] = source
        shown = sources.get(path, path)
        kernels = dict.fromkeys(shortest_name(e, named.entries) for e in recorded_entries(recording))
        notes += [f"{shown}: {recorded_text(recording)} of {', '.join(kernels)}"]
        notes += [f"{shown}: {note}" for note in recording.notes]
    if not paths:
        raise InputError(
            f"{said} made no launch that could be recorded", expected=_expected(run), hint=run.ending or None
        )
    if run.ending:
        notes.append(f"{said}: {run.ending}; what it had launched by then is checked")
    return RecordedProgram(paths=tuple(paths), sources=sources, notes=tuple(notes))


def _expected(run: ProgramRun) -> str:
    if run.lines:
        return "launches of kernels whose PTX the program has"
    return (
        "a CUDA program with PTX of its kernels (nvcc -arch=sm_90a puts it in), whose runtime is shared or not "
        "stripped; mcheck check kernel.cu -- ./program compiles the kernels itself"
    )


def _source_of(module: Module, name: str) -> str | None:
    """The source that a module was compiled from, if it can be read: the file after which the module is named."""
    stem = Path(name).stem.rpartition("-")[0]
    readable = [path for path in module.files.values() if path.endswith(SUFFIXES) and os.path.isfile(path)]
    return next((path for path in readable if Path(path).stem == stem), None)


def _source_text(path: str) -> str:
    if not path.endswith(SUFFIXES) or not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _relative_files(module: str) -> str:
    """The module with the sources in the current folder as a user names them."""
    return re.sub(rf'(?m)^(\s*\.file\s+\d+\s+"){re.escape(os.getcwd())}/', r"\1", module)


def _stem(name: str, modules: Sequence[tuple[str, str]]) -> str:
    """The name of the source of a module, with the digest of its text if it is that of several modules."""
    stem = Path(name).stem
    source = stem.rpartition("-")[0]
    alike = sum(Path(other).stem.rpartition("-")[0] == source for other, _ in modules)
    return source if source and alike == 1 else stem


def _write(stem: str, module: str, launch: str, folder: str | None, cache: Path) -> str:
    """Write a module and its launch file; in the cache, in a folder that is named after both."""
    target = Path(folder) if folder else cache / hashlib.sha256((module + launch).encode()).hexdigest()[:20]
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{stem}.json").write_text(launch, encoding="utf-8")
    path = target / f"{stem}.ptx"
    path.write_text(module, encoding="utf-8")
    return str(path)
