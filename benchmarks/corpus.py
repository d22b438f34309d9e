"""Compiles the modules of ``tests/simt/corpus`` again: by nvcc, triton, tilelang and CuTe DSL.

    python -m benchmarks.corpus [--only TEXT,…] [--check]

Wants the compilers beside the Python that runs it (``tests/simt/corpus/README.md`` names the packages of PyPI); no
GPU. A module whose compiler is not installed is left as it is, and said so. ``--check`` writes nothing and tells
which modules the installed compilers would change (another release of a compiler usually changes some).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "simt" / "corpus"
_PATH = re.compile(r'^(\s*\.file\s+\d+\s+")(?:[^"]*/)?([^"/]*")(?:,.*)?$')
_STRING = re.compile(r"^\$\w+:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A module as it is kept, and the launch that its compiler's integration gives (None: it is kept by hand)."""

    text: str
    launch: dict[str, Any] | None = None


class Missing(Exception):
    """A compiler that is not installed."""


def lean(text: str, header: str) -> str:
    """The module without what only a debugger reads: sections, folders of source files, remarks on ``.loc`` lines.

    The strings that ``.loc`` refers to stay, empty, so that the module still assembles.
    """
    kept = [header]
    lines = iter(text.splitlines())
    for line in lines:
        section = re.match(r"\s*\.section\s+(\.debug_\w+)", line)
        if section:
            body = _section(line, lines)
            if section[1] == ".debug_str":
                labels = [entry for entry in body if _STRING.match(entry)]
                kept += ["\t.section\t.debug_str", "\t{", *(f"{label}\n.b8 0" for label in labels), "\t}"]
            continue
        line = _PATH.sub(r"\1\2", line)
        if line.lstrip().startswith(".loc"):
            line = line.partition("//")[0]
        kept.append(line.rstrip())
    return "\n".join(kept).rstrip() + "\n"


def _section(first: str, lines: Iterator[str]) -> list[str]:
    """The lines of a section up to its closing brace."""
    body, depth, opened = [], 0, False
    line = first
    while True:
        depth += line.count("{") - line.count("}")
        opened |= "{" in line
        body.append(line)
        if opened and depth == 0:
            return body
        line = next(lines)


def cuda(folder: Path, entry: dict[str, Any]) -> Built:
    """nvcc's module of a CUDA C++ source for one architecture."""
    text = run_nvcc(folder / entry["source"], entry["arch"])
    version = importlib.metadata.version("nvidia-cuda-nvcc")
    return Built(text=lean(text, f"// {entry['source']} by nvcc {version} -arch={entry['arch']}"))


def run_nvcc(source: Path, arch: str, *more: Path, defines: Iterable[str] = ()) -> str:
    """The module that nvcc makes of ``source``, with ``more`` folders of headers and ``defines`` (``NAME=VALUE``)."""
    root = _nvidia()
    headers = [f"-I{folder}" for folder in (*more, root / "include" / "cccl", root / "include")]
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "module.ptx"
        command = [str(root / "bin" / "nvcc"), "-ptx", "-std=c++17", f"-arch={arch}", "-lineinfo", "-w", *headers]
        command += [*(f"-D{name}" for name in defines), source.name, "-o", str(target)]
        subprocess.run(command, cwd=source.parent, check=True, capture_output=True, text=True)
        return target.read_text(encoding="utf-8")


def _nvidia() -> Path:
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations if spec else None) or ():
        for root in sorted(Path(place).glob("cu*")):
            if (root / "bin" / "nvcc").exists() and (root / "include" / "cccl").exists():
                return root
    raise Missing("nvidia-cuda-nvcc, nvidia-cuda-runtime, nvidia-cuda-cccl")


def triton(folder: Path, entry: dict[str, Any]) -> Built:
    """The module of a Triton or Gluon kernel, and its launch by the integration."""
    if importlib.util.find_spec("triton") is None:
        raise Missing("triton")
    from mcheck.integrations.arguments import Tensor
    from mcheck.integrations.triton import launch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = _function(folder / entry["source"], entry["function"])(**entry["arguments"])
    asked = entry["launch"]
    given = {
        name: Tensor(shape=tuple(value["shape"]), dtype=value["dtype"]) if isinstance(value, dict) else value
        for name, value in asked["arguments"].items()
    }
    said = ", ".join(f"{name}={value}" for name, value in entry["arguments"].items())
    version = importlib.metadata.version("triton")
    header = f"// {entry['source']}: {entry['function']}({said}) by triton {version}"
    return Built(text=lean(compiled.asm["ptx"], header), launch=launch(compiled, asked["grid"], given))


def tilelang(folder: Path, entry: dict[str, Any]) -> Built:
    """The module that nvcc makes of what TileLang generates; torch, which TileLang imports, may be missing."""
    if importlib.util.find_spec("tilelang") is None:
        raise Missing("tilelang")
    from benchmarks import torchless

    torchless.install()
    import tilelang
    from tilelang import tvm
    from tilelang.engine import lower

    program = _function(folder / entry["source"], entry["function"])(**entry["arguments"])
    target = tvm.target.Target({"kind": "cuda", "arch": entry["arch"]})
    with target:
        generated = lower(program, target=target, enable_device_compile=False).kernel_source
    home = Path(tilelang.__file__).parent
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / f"{entry['function']}.cu"
        source.write_text(generated, encoding="utf-8")
        text = run_nvcc(source, entry["arch"], home / "src", home / "3rdparty" / "cutlass" / "include")
    said = ", ".join(f"{name}={value}" for name, value in entry["arguments"].items())
    versions = (
        f"tilelang {importlib.metadata.version('tilelang')}, nvcc {importlib.metadata.version('nvidia-cuda-nvcc')}"
    )
    return Built(
        text=lean(text, f"// {entry['source']}: {entry['function']}({said}) by {versions} -arch={entry['arch']}")
    )


def cute(folder: Path, entry: dict[str, Any]) -> Built:
    """The module of a kernel in CuTe DSL, which is told by its environment what to compile for and what to keep."""
    if importlib.util.find_spec("nvidia_cutlass_dsl") is None:
        raise Missing("nvidia-cutlass-dsl")
    source = Path(entry["source"])
    with tempfile.TemporaryDirectory() as scratch:
        kept = {"CUTE_DSL_ARCH": entry["arch"], "CUTE_DSL_KEEP": "ptx", "CUTE_DSL_DUMP_DIR": scratch}
        call = f"from {source.stem} import {entry['function']} as f; f(**{entry['arguments']})"
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", call],
            cwd=folder,
            env={**os.environ, **kept, "CUTE_DSL_LINEINFO": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            check=True,
            capture_output=True,
            text=True,
        )
        text = next(Path(scratch).glob("*.ptx")).read_text(encoding="utf-8")
    said = ", ".join(f"{name}={value}" for name, value in entry["arguments"].items())
    version = importlib.metadata.version("nvidia-cutlass-dsl")
    header = f"// {source}: {entry['function']}({said}) by nvidia-cutlass-dsl {version} for {entry['arch']}"
    return Built(text=lean(text, header))


def _function(path: Path, name: str) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location(f"corpus_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return getattr(module, name)  # type: ignore[no-any-return]


BUILDERS = {"cuda": cuda, "cute": cute, "triton": triton, "gluon": triton, "tilelang": tilelang}


def report_failure(name: str, error: Missing | subprocess.CalledProcessError) -> int:
    """Print why a module was not built; returns 1 if its compiler failed, 0 if there is none."""
    if isinstance(error, Missing):
        print(f"{name}: left as it is, for want of {error}")
        return 0
    print(f"{name}: FAILED\n{error.stderr}")
    return 1


def changed(path: Path, text: str) -> bool:
    """Whether the file at ``path`` holds something else."""
    return not path.exists() or path.read_text(encoding="utf-8") != text


def main() -> int:
    """Builds the chosen modules; exit status 1 if one failed, or with ``--check`` would change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--check", action="store_true", help="write nothing, tell what would change")
    options = parser.parse_args()
    parts = [part for part in options.only.split(",") if part]
    bad = 0
    for path in sorted(FOLDER.glob("*/*.toml")):
        name = f"{path.parent.name}/{path.stem}"
        if parts and not any(part in name for part in parts):
            continue
        entry = tomllib.loads(path.read_text(encoding="utf-8"))
        try:
            built = BUILDERS[path.parent.name](path.parent, entry)
        except (Missing, subprocess.CalledProcessError) as error:
            bad += report_failure(name, error)
            continue
        files = {path.with_suffix(".ptx"): built.text}
        if built.launch is not None:
            files[path.with_suffix(".json")] = json.dumps(built.launch, indent=1) + "\n"
        news = [file for file, text in files.items() if changed(file, text)]
        print(f"{name}: {'changed' if news else 'as it was'}")
        if options.check:
            bad += bool(news)
        else:
            for file in news:
                file.write_text(files[file], encoding="utf-8")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
