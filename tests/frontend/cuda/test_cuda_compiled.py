"""PTX of a source: which compiler, for which target, once for each text, with parameters by the names of the source."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.cuda import nvcc as compilers
from mcheck.frontend.cuda.compiled import compile_source, name_parameters, rename_parameters
from mcheck.frontend.cuda.nvcc import CompileError, find_compiler, read_dependencies
from mcheck.frontend.ptx.reader import parse_module

PTX = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry _Z5scalePfi(
	.param .u64 _Z5scalePfi_param_0,
	.param .u32 _Z5scalePfi_param_1
)
{
	.reg .b32 	%r<3>;
	.reg .b64 	%rd<3>;
	ld.param.u64 	%rd1, [_Z5scalePfi_param_0];
	ld.param.u32 	%r1, [_Z5scalePfi_param_1];
	st.global.u32 	[%rd1], %r1;
	ret;
}
"""
SOURCE = f"__global__ void scale(float *x, int factor) {{ *x = factor; }}\n/* ptx\n{PTX}*/\n"


def source(folder: Path, text: str = SOURCE, name: str = "k.cu") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def calls(nvcc: Path) -> list[str]:
    """The compilations."""
    lines = (nvcc / "calls").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line != "--version"]


def test_parameters_have_the_names_of_the_source(nvcc: Path, tmp_path: Path) -> None:
    made = compile_source(source(tmp_path), find_compiler())
    assert (made.target, made.release) == ("sm_90a", "13.0")
    text = Path(made.path).read_text(encoding="utf-8")
    (entry,) = parse_module(text).functions.values()
    assert (entry.name, [p.name for p in entry.parameters]) == ("_Z5scalePfi", ["x", "factor"])
    assert len(text.splitlines()) == len(PTX.splitlines()) + 1, "lines stay where they were"
    (call,) = calls(nvcc)
    assert call.startswith("-ptx -lineinfo -arch=sm_90a ")


def test_parameters_have_the_names_of_a_header(nvcc: Path, tmp_path: Path) -> None:
    header = source(tmp_path, "__global__ void scale(float *values, int by);", "k.cuh")
    path = source(tmp_path, f'#include "{header}"\n/* ptx\n{PTX}*/\n')
    text = Path(compile_source(path, find_compiler()).path).read_text(encoding="utf-8")
    (entry,) = parse_module(text).functions.values()
    assert [p.name for p in entry.parameters] == ["values", "by"]


def test_a_text_is_compiled_once(nvcc: Path, tmp_path: Path) -> None:
    path = source(tmp_path)
    first, again = compile_source(path, find_compiler()), compile_source(path, find_compiler())
    assert (first.kept, again.kept, first.path) == (False, True, again.path)
    assert len(calls(nvcc)) == 1
    source(tmp_path, SOURCE.replace("factor;", "factor + 1;"))
    assert compile_source(path, find_compiler()).path != first.path
    assert not compile_source(path, find_compiler(), flags=("-DX",)).kept
    assert not compile_source(path, find_compiler(), "sm_100a").kept
    assert len(calls(nvcc)) == 4


def test_a_changed_header_is_compiled_again(nvcc: Path, tmp_path: Path) -> None:
    header = tmp_path / "some h.cuh"
    header.write_text("// one\n", encoding="utf-8")
    path = source(
        tmp_path, SOURCE.replace("__global__", f'#include "{str(header).replace(" ", chr(92) + " ")}"\n__global__', 1)
    )
    assert [compile_source(path, find_compiler()).kept for _ in range(2)] == [False, True]
    header.write_text("// two\n", encoding="utf-8")
    assert [compile_source(path, find_compiler()).kept for _ in range(2)] == [False, True]
    header.unlink()
    with pytest.raises(OSError, match=r"some h\.cuh"):
        compile_source(path, find_compiler())


def test_the_target_is_what_the_source_needs(nvcc: Path, tmp_path: Path) -> None:
    assert compile_source(source(tmp_path, SOURCE + "// tcgen05.ld\n"), find_compiler()).target == "sm_100a"
    hidden = SOURCE.replace("\tret;", '\tst.global.u32 \t[%rd1], %r1; // .pragma "tcgen05"\n\tret;')
    assert compile_source(source(tmp_path, hidden), find_compiler()).target == "sm_100a", "as the PTX shows"
    assert compile_source(source(tmp_path, SOURCE + "// not for sm_90a\n"), find_compiler()).target == "sm_100a"
    assert compile_source(source(tmp_path, SOURCE + "// tcgen05\n"), find_compiler(), "sm_90a").target == "sm_90a"


def test_the_errors_of_the_compiler_are_its_own(nvcc: Path, tmp_path: Path) -> None:
    path = source(tmp_path, "#error\n" + SOURCE)
    with pytest.raises(CompileError) as caught:
        compile_source(path, find_compiler())
    assert caught.value.said.startswith(f'{path}(1): error: #error directive: "not so"')
    assert caught.value.message == f"nvcc does not compile {path}"
    assert caught.value.hint == "flags for it stand after --nvcc-flags"
    missing = "info.h:50:10: fatal error: nv/target: No such file or directory"
    assert (CompileError(path, missing).hint or "").startswith("pip install nvidia-cuda-cccl")


def test_warnings_of_a_kept_module_are_kept(nvcc: Path, tmp_path: Path) -> None:
    path = source(tmp_path, "#warning\n" + SOURCE)
    first, again = compile_source(path, find_compiler()), compile_source(path, find_compiler())
    assert (
        first.warnings == again.warnings == f"{path}(2): warning #177-D: variable was declared but never referenced\n"
    )


def test_a_damaged_cache_is_filled_anew(nvcc: Path, tmp_path: Path) -> None:
    path = source(tmp_path)
    made = compile_source(path, find_compiler())
    (Path(made.path).parent / "made.json").write_text("{", encoding="utf-8")
    assert not compile_source(path, find_compiler()).kept
    Path(made.path).unlink()
    assert not compile_source(path, find_compiler()).kept
    assert compile_source(path, find_compiler()).kept


def test_a_cache_that_cannot_be_written_is_elsewhere(
    nvcc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert compile_source(source(tmp_path), find_compiler()).path.startswith(f"{tmp_path}/mcheck-")


def test_without_a_compiler_one_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compilers, "_candidates", lambda: iter([(str(tmp_path / "nvcc"), ())]))
    with pytest.raises(InputError) as caught:
        find_compiler()
    assert caught.value.expected is not None
    assert caught.value.hint is not None
    assert "pip install nvidia-cuda-nvcc" in caught.value.expected
    assert "nvcc -ptx -lineinfo -arch=sm_90a kernel.cu" in caught.value.hint


def test_the_compiler_of_cuda_home_and_of_wheels(nvcc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("CUDA_HOME", str(nvcc.parent))
    assert find_compiler().path == str(nvcc / "nvcc")
    monkeypatch.delenv("CUDA_HOME")
    wheel = tmp_path / "site" / "nvidia" / "cuda_nvcc"
    (wheel / "bin").mkdir(parents=True)
    (wheel.parent / "cuda_runtime" / "include").mkdir(parents=True)
    (wheel / "bin" / "nvcc").write_bytes((nvcc / "nvcc").read_bytes())
    (wheel / "bin" / "nvcc").chmod(0o755)
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    found = find_compiler()
    assert found.path == str(wheel / "bin" / "nvcc")
    assert found.flags == (f"-I{wheel.parent / 'cuda_runtime' / 'include'}",)


def test_names_that_mean_something_else_are_not_taken() -> None:
    def names(declared: str, ptx: str = PTX) -> list[str]:
        (entry,) = (f for f in parse_module(name_parameters(ptx, [declared])).functions.values() if f.entry)
        return [p.name.removeprefix("_Z5scalePfi_") for p in entry.parameters]

    assert names("__global__ void scale(float *ld, int n)") == ["param_0", "n"], "an opcode"
    lanes = PTX.replace("\tret;", "\tmov.u32 \t%r2, %tid.x; // x\n\tret;") + '.file 1 "x.cu"\n'
    assert names("__global__ void scale(float *x, int u32)", lanes) == ["x", "u32"], "parts of other words"
    assert names("__global__ void scale(float *x)") == ["param_0", "param_1"], "another kernel"
    assert names("__global__ void scale(float *x, int n); __global__ void scale(float *y, int n);") == [
        "param_0",
        "param_1",
    ]
    tile = PTX.replace(".visible", ".shared .align 4 .b8 _ZZ5scalePfiE4tile[64];\n.visible")
    assert names("__global__ void scale(float *tile, int n)", tile) == ["param_0", "n"], "the name of a variable"


def test_rules_of_make_are_read() -> None:
    text = "module.ptx : a.cu \\\n    /usr/include/x.h \\\n    with\\ blank.h\n"
    assert read_dependencies(text) == ["a.cu", "/usr/include/x.h", "with blank.h"]


@pytest.mark.parametrize(
    "said",
    [
        'cuda_toolkit.h:41:8: error: #error "CUDA compiler and CUDA toolkit headers are incompatible, please check"',
        "ptxas /tmp/k.ptx, line 9; fatal   : Unsupported .version 9.5; current version is '9.2'",
    ],
)
def test_wheels_of_several_releases_are_brought_to_that_of_the_runtime(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch demands one release of the runtime, and pip takes the newest of the compiler."""
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "13.2.86")
    hint = CompileError("k.cu", said).hint or ""
    assert "are of different releases" in hint
    for wheel in ("nvcc", "crt", "runtime"):
        assert f"'nvidia-cuda-{wheel}==13.2.*'" in hint
    assert "'nvidia-nvvm==13.2.*'" in hint

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert (CompileError("k.cu", said).hint or "").endswith("are of different releases")


def test_parameters_take_the_names_that_are_identifiers_and_free() -> None:
    head = ".version 9.0\n.target sm_90a\n.address_size 64\n"
    entry = ".visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1, .param .u32 k_param_2)\n{\n\tret;\n}\n"
    named = rename_parameters(head + entry, lambda _: ["x_ptr", "t[0]", "ret"])
    assert named == (head + entry).replace("k_param_0", "x_ptr")
