"""Building the folder of the playground: the page, Pyodide, and mcheck with its dependencies, self-contained."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from mcheck import __version__
from mcheck.base.errors import InputError
from mcheck.base.resources import litmus
from mcheck.cat.model_files import models_directory

PACKAGE = Path(__file__).resolve().parents[2]
STATIC = Path(__file__).parent / "static"
STYLE = PACKAGE / "report" / "site" / "templates" / "style.css"
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
"""The files of the npm package ``pyodide`` that a browser loads."""
EXAMPLES = (
    "classic/MP+rel+acq", "classic/MP+rlx+rlx", "classic/IRIW+rlx", "bulk/bulk-ring-one-slot-no-fence",
    "bulk/bulk-ring-one-slot", "mbarrier/mbarrier-arrive-drop-publishes", "liveness/Await+never",
    "kernels/P15-full-empty-ring", "kernels/A07-warp-reduce-without-proxy-fence",
)  # fmt: skip
LEFT_OUT = {"cli", "generate", "integrations", "lsp", "__pycache__", "tests"}
_COMPILE = """
import { loadPyodide } from "./pyodide.mjs";
import fs from "node:fs";
const py = await loadPyodide();
for (const name of process.argv.slice(2)) {
  py.FS.writeFile("/in.zip", new Uint8Array(fs.readFileSync(name)));
  py.runPython(`
import py_compile, zipfile
with zipfile.ZipFile("/in.zip") as given, zipfile.ZipFile("/out.zip", "w", zipfile.ZIP_DEFLATED) as made:
    for name in given.namelist():
        if not name.endswith(".py"):
            made.writestr(name, given.read(name)); continue
        open("/m.py", "wb").write(given.read(name))
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile("/m.py", cfile="/m.pyc", dfile=name, invalidation_mode=mode, doraise=True)
        made.write("/m.pyc", name + "c")
`);
  fs.writeFileSync(name, py.FS.readFile("/out.zip"));
}
"""


def build(folder: str, pyodide: str, z3: str | None = None, home: str = "") -> None:
    """Write the playground into ``folder``, which must be new or empty.

    ``pyodide`` is the folder of the npm package, ``z3`` a wheel of z3-solver for it, ``home`` the address to which the
    name at the top of the page leads. Raises ``InputError``.
    """
    target, source = Path(folder), Path(pyodide)
    absent = [name for name in PYODIDE if not (source / name).is_file()]
    if absent:
        hint = "npm install pyodide, and name node_modules/pyodide"
        raise InputError(f"{pyodide} is not the package pyodide: {absent[0]} is missing", hint=hint)
    if z3 is not None and not Path(z3).is_file():
        raise InputError(f"wheel {z3} does not exist")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"cannot write {folder}: the folder is not empty", hint="name a new or an empty folder")
    try:
        target.resolve().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.resolve().parent) as scratch:
            draft = Path(scratch) / "playground"
            draft.mkdir()
            _fill(draft, source, Path(z3) if z3 is not None else None, home)
            if target.is_dir():
                target.rmdir()
            os.replace(draft, target)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from None


def _fill(draft: Path, pyodide: Path, z3: Path | None, home: str) -> None:
    for name in PYODIDE:
        shutil.copyfile(pyodide / name, draft / name)
    for file in (*sorted(STATIC.iterdir()), STYLE):
        if file.is_file():
            shutil.copyfile(file, draft / file.name)
    _archive(draft / "mcheck.zip", _mcheck())
    _archive(draft / "networkx.zip", _installed("networkx"))
    _compile(draft, ("mcheck.zip", "networkx.zip"))
    if z3 is not None:
        shutil.copyfile(z3, draft / z3.name)
    facts = {"version": __version__, "z3": z3.name if z3 is not None else "", "home": home, "examples": _examples()}
    (draft / "playground.json").write_text(json.dumps(facts), encoding="utf-8")


def _examples() -> list[dict[str, str]]:
    """The examples: litmus tests for outcomes and kernel sketches for findings."""
    folder = Path(litmus())
    return [
        {
            "name": name.rpartition("/")[2],
            "mode": "check" if name.startswith("kernels/") else "run",
            "text": path.read_text(encoding="utf-8"),
        }
        for name in EXAMPLES
        if (path := folder / f"{name}.litmus").is_file()
    ]


def _mcheck() -> Iterator[tuple[Path, str]]:
    for path in _sources(PACKAGE, (".py", ".cat", ".md")):
        yield path, f"mcheck/{path.relative_to(PACKAGE).as_posix()}"
    models = models_directory()
    for path in sorted(models.rglob("*.cat")):
        yield path, f"mcheck/_data/models/{path.relative_to(models).as_posix()}"


def _installed(name: str) -> Iterator[tuple[Path, str]]:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    for path in _sources(root, (".py",)):
        yield path, f"{name}/{path.relative_to(root).as_posix()}"


def _sources(root: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root).parts
        if path.suffix in suffixes and not LEFT_OUT.intersection(inside[:-1]):
            yield path


def _archive(path: Path, files: Iterator[tuple[Path, str]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, name in files:
            archive.write(file, name)


def _compile(draft: Path, names: tuple[str, ...]) -> None:
    """Compile the archives with Pyodide's Python if Node is installed, for a faster first answer."""
    node = shutil.which("node")
    if node is None:
        return
    script = draft / "compile.mjs"
    script.write_text(_COMPILE, encoding="utf-8")
    before = {name: (draft / name).read_bytes() for name in names}
    done = subprocess.run([node, script.name, *names], cwd=draft, capture_output=True, check=False)
    script.unlink()
    if done.returncode:
        for name, data in before.items():
            (draft / name).write_bytes(data)
