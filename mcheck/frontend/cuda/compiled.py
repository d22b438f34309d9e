"""PTX of CUDA C++ sources, compiled once for each text.

A folder of the cache holds the module with parameters named as in the source, and the digests of the headers that it
was compiled from. The names of parameters are replaced only where nothing else in the module has the name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mcheck import __version__
from mcheck.base.errors import InputError
from mcheck.base.records import dataclass
from mcheck.base.user_cache import user_cache_folder
from mcheck.frontend.cuda.nvcc import (
    CompileError,
    Compiler,
    likely_targets,
    needs_other_target,
    read_dependencies,
    run_compiler,
)
from mcheck.frontend.litmus.source import read_source
from mcheck.frontend.ptx import reader
from mcheck.frontend.ptx.memory_layout import short_name
from mcheck.frontend.ptx.module import Function, Module
from mcheck.frontend.ptx.source_signatures import match_signature, read_signatures

KEPT = 200
"""The maximum number of modules in the cache."""
_FORM = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSource:
    """The module made of ``source`` for ``target``; ``path`` is that of the module. ``warnings`` are the compiler's."""

    source: str
    path: str
    target: str
    release: str
    warnings: str = ""
    kept: bool = False


def compile_source(
    source: str, compiler: Compiler, arch: str | None = None, flags: Sequence[str] = (), folder: Path | None = None
) -> CompiledSource:
    """The PTX of ``source``, from the cache in ``folder`` if it is there; raises ``InputError``.

    Without ``arch``, the target is the one that the source seems to need; a second one is tried if that fails.
    """
    text = read_source(source)
    targets = likely_targets(text, arch)
    first: CompileError | None = None
    for target in targets:
        try:
            found = _compile_for(source, text, compiler, target, tuple(flags), folder or cache_folder())
        except CompileError as error:
            first = first or error
            continue
        other = next((t for t in targets if t != target), None)
        if first is None and other is not None and needs_other_target(_read(found.path), target):
            try:
                return _compile_for(source, text, compiler, other, tuple(flags), folder or cache_folder())
            except CompileError:
                return found
        return found
    assert first is not None
    raise first


def cache_folder() -> Path:
    """The folder of the cache: ``mcheck/ptx`` in that of the user."""
    return Path(user_cache_folder("ptx"))


def _compile_for(
    source: str, text: str, compiler: Compiler, target: str, flags: tuple[str, ...], folder: Path
) -> CompiledSource:
    made = {
        "source": os.path.abspath(source), "text": text, "target": target, "flags": flags, "form": _FORM,
        "compiler": compiler.identity, "mcheck": __version__,
        "environment": [os.environ.get(f"NVCC_{word}_FLAGS", "") for word in ("PREPEND", "APPEND")],
    }  # fmt: skip
    key = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:20]
    entry = usable_folder(folder) / key
    module = entry / f"{Path(source).stem}.ptx"
    warnings = _kept(entry, module)
    if warnings is not None:
        return CompiledSource(
            source=source, path=str(module), target=target, release=compiler.release, warnings=warnings, kept=True
        )
    with _scratch(entry.parent) as scratch:
        ptx, depends = os.path.join(scratch, "module.ptx"), os.path.join(scratch, "module.d")
        warnings = run_compiler(compiler, source, target, flags, ptx, depends)
        headers = _digests(read_dependencies(_read(depends)), compiler.root)
        named = name_parameters(_read(ptx), [text, *map(_read, headers)])
        entry.mkdir(exist_ok=True)
        _write(module, named, scratch)
        _write(entry / "made.json", json.dumps({"warnings": warnings, "headers": headers}), scratch)
    _prune(entry.parent)
    return CompiledSource(source=source, path=str(module), target=target, release=compiler.release, warnings=warnings)


# --- the cache --------------------------------------------------------------------------------------------------


def usable_folder(folder: Path) -> Path:
    """The folder, or one of the system for temporary files if it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    other = Path(tempfile.gettempdir()) / f"mcheck-{os.getuid()}" / "ptx"
    other.mkdir(parents=True, exist_ok=True, mode=0o700)
    if other.stat().st_uid != os.getuid():
        raise InputError(f"neither {folder} nor {other} can be written, where compiled modules are kept")
    return other


@contextmanager
def _scratch(folder: Path) -> Iterator[str]:
    path = tempfile.mkdtemp(prefix=".new-", dir=folder)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _kept(entry: Path, module: Path) -> str | None:
    """The compiler's warnings of a module that is in the cache and whose headers are as they were; else ``None``."""
    try:
        made = json.loads(_read(entry / "made.json"))
        if not module.is_file() or any(_digest(path) != digest for path, digest in made["headers"].items()):
            return None
        os.utime(entry)
    except (OSError, ValueError, KeyError, AttributeError):
        return None
    return str(made["warnings"])


def _digests(paths: Sequence[str], toolkit: str) -> Mapping[str, str]:
    """The digests of the files that are not the toolkit's, whose release is part of the key."""
    real = [(path, os.path.realpath(path)) for path in paths]
    return {path: _digest(path) for path, found in real if not found.startswith(toolkit + os.sep)}


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, text: str, scratch: str) -> None:
    with tempfile.NamedTemporaryFile("w", dir=scratch, delete=False, encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, path)


def _prune(folder: Path) -> None:
    """Delete the modules that were not used for the longest time, beyond ``KEPT``."""
    with suppress(OSError):
        entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
        for entry in sorted(entries, key=lambda e: e.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(entry, ignore_errors=True)


def _read(path: str | Path) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


# --- names of parameters ----------------------------------------------------------------------------------------


def name_parameters(ptx: str, sources: Iterable[str], module: Module | None = None) -> str:
    """The module with the parameters of its entries named as ``sources`` name them: the file that was compiled and the
    headers that it includes. ``module`` is what has been read of it, if it has been.
    """
    signatures = tuple(s for text in sources if "__global__" in text for s in read_signatures(text))

    def names(entry: Function) -> Sequence[str]:
        signature = match_signature(entry, signatures)
        return [said.name for said in signature.parameters] if signature is not None else ()

    return rename_parameters(ptx, names, module)


def rename_parameters(ptx: str, names: Callable[[Function], Sequence[str]], module: Module | None = None) -> str:
    """The module with the parameters of its entries named by ``names``, as many as it gives.

    A name that occurs in the module, or is the short name of one of its variables, is not taken, nor is one that is no
    identifier.
    """
    try:
        module = module or reader.parse_module(ptx)
    except InputError:
        return ptx  # it is reported when the module is checked
    code = re.sub(r'"[^"\n]*"|//[^\n]*', " ", ptx)
    taken = set(re.findall(r"(?<![.\w$%])[A-Za-z_$%][\w$]*", code)) | _variable_names(module)
    renamed: dict[str, str] = {}
    for name in module.entries:
        entry = module.functions[name]
        pairs = zip(entry.parameters, names(entry), strict=False)
        renamed |= {formal.name: said for formal, said in pairs if said.isidentifier() and said not in taken}
    if not renamed:
        return ptx
    return re.sub(r"[A-Za-z_$][\w$]*", lambda found: renamed.get(found[0], found[0]), ptx)


def _variable_names(module: Module) -> set[str]:
    owners = [module.variables, *(f.variables for f in module.functions.values())]
    return {short_name(name) for variables in owners for name in variables}
