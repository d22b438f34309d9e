"""A stand-in for nvcc: it finds the PTX in a comment of the source."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

SCRIPT = r"""#!{python}
import os, re, sys
words = sys.argv[1:]
with open(os.path.join(os.path.dirname(__file__), "calls"), "a") as calls:
    calls.write(" ".join(words) + "\n")
if words == ["--version"]:
    print("nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.48")
    sys.exit(0)
if "-ptx" not in words:
    sys.stderr.write("ld: k.o: undefined reference to `other'\\n")
    sys.exit(1)
source = words[-1]
text = open(source).read()
target = next(word for word in words if word.startswith("-arch="))[6:]
if "#error" in text or f"not for {target}" in text:
    sys.stderr.write(f'{source}(1): error: #error directive: "not so"\n\n1 error detected.\n')
    sys.exit(2)
if "#warning" in text:
    sys.stderr.write(f"{source}(2): warning #177-D: variable was declared but never referenced\n")
ptx = re.search(r"/\* ptx\n(.*?)\*/", text, re.DOTALL)[1].replace("sm_90a", target)
here = os.path.abspath(source)
open(words[words.index("-o") + 1], "w").write(ptx + f'\t.file\t1 "{here}"\n')
headers = re.findall(r'#include "(.*?)"', text)
open(words[words.index("-MF") + 1], "w").write("module.ptx : " + " \\\n    ".join([source, *headers]) + "\n")
"""


@pytest.fixture
def nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the compiler, which is the only one; ``calls`` in it has its arguments."""
    folder = tmp_path / "toolkit" / "bin"
    folder.mkdir(parents=True)
    program = folder / "nvcc"
    program.write_text(SCRIPT.replace("{python}", sys.executable), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    return folder
