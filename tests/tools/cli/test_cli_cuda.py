"""``mcheck check kernel.cu`` and ``mcheck cuda``, with a stand-in for nvcc; with nvcc itself where it is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcheck.base.errors import InputError
from mcheck.checking.check import cuda_programs
from mcheck.checking.check.cuda_programs import RecordedProgram
from mcheck.frontend.cuda.nvcc import find_compiler

Mcheck = Callable[..., Any]
compiled = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler to build the recorder with")

PTX = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry _Z4passPfi(
	.param .u64 _Z4passPfi_param_0,
	.param .u32 _Z4passPfi_param_1
)
.maxntid 64
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<6>;
	.reg .b64 	%rd<3>;
	.shared .align 4 .b8 tile[256];
	ld.param.u64 	%rd1, [_Z4passPfi_param_0];
	ld.param.u32 	%r1, [_Z4passPfi_param_1];
	mov.u32 	%r2, %tid.x;
	shl.b32 	%r3, %r2, 2;
	mov.u32 	%r4, tile;
	add.u32 	%r4, %r4, %r3;
	.loc	1 3 5
	st.shared.u32 	[%r4], %r1;
	xor.b32 	%r3, %r3, 128;
	mov.u32 	%r4, tile;
	add.u32 	%r4, %r4, %r3;
	.loc	1 4 5
	ld.shared.u32 	%r5, [%r4];
	setp.eq.u32 	%p1, %r1, 0;
	@%p1 st.global.u32 	[%rd1], %r5;
	ret;
}
"""
SOURCE = f"""__global__ void pass(float *out, int rounds) {{
  __shared__ int tile[64];
  tile[threadIdx.x] = rounds;
  int other = tile[threadIdx.x ^ 32];
  if (!rounds) *out = other;
}}
/* ptx
{PTX}*/
"""
LAUNCH = {"entry": "pass", "grid": 1, "block": 64, "params": {"out": {"buffer": 256}, "rounds": 3}}


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nvcc: Path) -> Path:
    """A source with a missing __syncthreads(), in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = Path("k.cu")
    path.write_text(SOURCE, encoding="utf-8")
    return path


def checked(mcheck: Mcheck, *arguments: object) -> Any:
    """The only result of ``mcheck check`` as JSON."""
    done = mcheck("check", "--format", "json", *arguments)
    assert done.status == 1, done.err
    (found,) = json.loads(done.out)["results"]
    return found


def lines(result: Any) -> set[tuple[str, int]]:
    """The places in the source of the accesses of the first finding."""
    return {(a["source"][0]["path"], a["source"][0]["line"]) for a in result["findings"][0]["accesses"]}


# --- one source ---------------------------------------------------------------------------------------------------


def test_a_source_is_checked_with_options(kernel: Path, mcheck: Mcheck) -> None:
    found = checked(
        mcheck, kernel, "--grid", "1", "--block", "64", "--param", "rounds=3", "--entry", "pass(float*, int)"
    )
    assert (found["path"], found["findings"][0]["code"]) == ("k.cu", "RACE001")
    assert lines(found) == {("k.cu", 3), ("k.cu", 4)}
    assert "k.cu as nvcc 13.0 compiles it for sm_90a" in found["assumptions"]


@pytest.mark.parametrize(
    ("statement", "verdict", "cause", "said"),
    [
        ("@%p1 bra $end;", "bounded", "gap", "k.cu:6:3: control depends on data"),
        ("@%p1 tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];", "unknown", "not-followed", "(k.cu:6)"),
    ],
)
def test_a_reason_names_the_line_of_the_source(
    kernel: Path, mcheck: Mcheck, statement: str, verdict: str, cause: str, said: str
) -> None:
    """The folder of compiled modules says nothing to a reader."""
    read = "ld.global.u32 %r5, [%rd1]; setp.eq.u32 %p1, %r5, 0; .reg .f32 %f<5>;"
    ptx = PTX.replace("xor.b32", f"{read}\n\t.loc\t1 6 3\n\t{statement}\n$end:\n\tbar.sync 0;\n\txor.b32")
    kernel.write_text(SOURCE.replace(PTX, ptx), encoding="utf-8")
    Path("k.json").write_text(json.dumps(LAUNCH), encoding="utf-8")
    done = mcheck("check", kernel, "--format", "json")
    (found,) = json.loads(done.out)["results"]
    assert found["verdict"] == verdict, done.out
    (reason,) = found["reasons"]
    assert reason["cause"] == cause
    assert said in reason["text"]
    assert ".ptx" not in reason["text"]
    if "source" in reason:
        assert reason["path"].endswith(".ptx"), "the place in the module"
        assert reason["source"] == [{"path": "k.cu", "line": 6, "column": 3}]
    assert said in " ".join(mcheck("check", kernel).out.split())


@pytest.mark.daily
@pytest.mark.parametrize("name", ["k.launch.json", "k.json", "k.launch.toml"])
def test_the_launch_stands_beside_the_source(kernel: Path, mcheck: Mcheck, name: str) -> None:
    toml = "grid = 1\nblock = 64\n[params]\nrounds = 3\nout = {buffer = 256}\n"
    Path(name).write_text(toml if name.endswith("toml") else json.dumps(LAUNCH), encoding="utf-8")
    assert lines(checked(mcheck, kernel)) == {("k.cu", 3), ("k.cu", 4)}
    assert lines(checked(mcheck, ".")) == {("k.cu", 3), ("k.cu", 4)}, "in a folder too"


def test_a_folder_names_the_sources_without_a_launch(kernel: Path, mcheck: Mcheck, litmus: Callable[..., Path]) -> None:
    litmus("mp")
    done = mcheck("check", ".")
    assert "no launch file beside k.cu: skipped; name sources themselves (*.cu), and the main()" in done.err
    Path("mp.litmus").unlink()
    done = mcheck("check", ".")
    assert done.status == 2
    assert "hint: name sources themselves (*.cu), and the main() of each is run" in done.err


def test_without_a_launch_a_file_to_fill_in_is_printed(kernel: Path, mcheck: Mcheck) -> None:
    done = mcheck("check", kernel)
    assert done.status == 2
    assert "nothing says how the kernels of k.cu are launched (pass)" in done.err
    text = done.err[done.err.index('{"entry"') :]
    assert '"rounds": "?"' in text
    assert '"block": "?",  // threads of a CTA, at most 64' in text
    Path("k.launch.json").write_text(text, encoding="utf-8")
    done = mcheck("check", kernel)
    assert done.status == 2
    assert "PTX103" in done.err, "what is left open is pointed at"
    filled = text.replace('"grid": "?"', '"grid": 1').replace('"block": "?"', '"block": 64').replace('"?"', "3")
    Path("k.launch.json").write_text(filled, encoding="utf-8")
    assert lines(checked(mcheck, kernel)) == {("k.cu", 3), ("k.cu", 4)}


def test_a_mistake_in_the_launch_is_not_said_of_the_compiled_module(kernel: Path, mcheck: Mcheck) -> None:
    dynamic = SOURCE.replace("\t.shared .align 4 .b8 tile[256];\n", "")
    head = ".visible .entry"
    kernel.write_text(dynamic.replace(head, f".extern .shared .align 4 .b8 tile[];\n{head}"), encoding="utf-8")
    done = mcheck("check", kernel, "--grid", "1", "--block", "64", "--param", "rounds=3")
    assert done.status == 2
    assert "the launch does not give shared" in done.err
    assert ".ptx" not in done.err
    assert "hint: --shared N" in done.err


def test_errors_of_the_compiler_are_shown_as_it_says_them(kernel: Path, mcheck: Mcheck) -> None:
    kernel.write_text("#error\n" + SOURCE, encoding="utf-8")
    done = mcheck("check", kernel, "--grid", "1")
    assert done.status == 2
    assert done.err.startswith('k.cu(1): error: #error directive: "not so"\n')
    assert "nvcc does not compile k.cu" in done.err


@pytest.mark.daily(days=3, least=0)
def test_several_files_of_all_kinds(kernel: Path, mcheck: Mcheck, litmus: Callable[..., Path], nvcc: Path) -> None:
    Path("k.json").write_text(json.dumps(LAUNCH), encoding="utf-8")
    Path("m.ptx").write_text(PTX, encoding="utf-8")
    Path("m.json").write_text(json.dumps({"grid": 1, "block": 64, "params": {"1": 3}}), encoding="utf-8")
    Path("bad.cu").write_text("#error\n" + SOURCE, encoding="utf-8")
    done = mcheck("check", "--format", "json", "bad.cu", litmus("mp"), kernel, "m.ptx")
    assert done.status == 2
    results = json.loads(done.out)["results"]
    assert [(os.path.basename(r["path"]), r["verdict"]) for r in results] == [
        ("bad.cu", "error"), ("mp.litmus", "finding"), ("k.cu", "finding"), ("m.ptx", "finding"),
    ]  # fmt: skip


@pytest.mark.daily(days=3, least=0)
def test_sources_that_are_compiled_alike_are_said_once(kernel: Path, mcheck: Mcheck) -> None:
    kernel.with_suffix(".launch.json").write_text(json.dumps(LAUNCH), encoding="utf-8")
    done = mcheck("check", kernel)
    (alone,) = [line for line in done.err.splitlines() if "compiled for" in line]
    for name in ("l", "m"):
        Path(f"{name}.cu").write_text(SOURCE, encoding="utf-8")
        Path(f"{name}.launch.json").write_text(json.dumps(LAUNCH), encoding="utf-8")
    done = mcheck("check", ".")
    said = [line for line in done.err.splitlines() if "compiled for" in line]
    assert said == [f"3 sources {alone.removeprefix('k.cu: ')}"]


def test_a_source_without_a_kernel(kernel: Path, mcheck: Mcheck) -> None:
    head = "\n".join(PTX.splitlines()[:3])
    kernel.write_text(f"/* ptx\n{head}\n*/\n", encoding="utf-8")
    done = mcheck("check", kernel)
    assert done.status == 2
    assert "k.cu has no kernel" in done.err
    assert "mcheck cuda -- ./program" in " ".join(done.err.split())


@pytest.mark.daily(days=4, least=0)
@compiled
def test_a_main_that_cannot_be_linked(kernel: Path, mcheck: Mcheck, nvcc: Path) -> None:
    """The stand-in links nothing, as nvcc does not where other sources are needed."""
    kernel.write_text(f"{SOURCE}int main() {{ return other(); }}\n", encoding="utf-8")
    done = mcheck("check", kernel)
    assert done.status == 2
    assert "undefined reference" in done.err
    assert "nvcc does not link k.cu" in done.err
    done = mcheck("check", kernel, "--no-run")
    assert "nothing says how the kernels of k.cu are launched (pass)" in done.err


def test_flags_and_the_target_go_to_the_compiler(kernel: Path, mcheck: Mcheck, nvcc: Path) -> None:
    arguments = ("--grid", "1", "--block", "64", "--param", "1=3")
    mcheck("check", kernel, *arguments, "--arch", "100a", "--nvcc-flags", "-I 'a b' -DX=1")
    assert "sm_80, sm_90a" in mcheck("check", kernel, *arguments, "--arch", "hopper").err
    (call,) = (line for line in (nvcc / "calls").read_text(encoding="utf-8").splitlines() if line != "--version")
    assert call.startswith("-ptx -lineinfo -arch=sm_100a -I a b -DX=1 ")


def test_a_kept_answer_is_that_of_the_launch(kernel: Path, mcheck: Mcheck) -> None:
    Path("k.json").write_text(json.dumps(LAUNCH), encoding="utf-8")
    assert checked(mcheck, kernel, "--cache", "answers")["verdict"] == "finding"
    Path("k.json").write_text(json.dumps({**LAUNCH, "block": 32}), encoding="utf-8")
    done = mcheck("check", kernel, "--cache", "answers", "--format", "json")
    assert json.loads(done.out)["results"][0]["verdict"] == "proved", "nobody writes what one warp reads"
    assert "block 32" in done.out


def test_a_missing_compiler_is_one_error(kernel: Path, mcheck: Mcheck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcheck.frontend.cuda.nvcc._candidates", lambda: iter(()))
    done = mcheck("check", kernel, "--grid", "1")
    assert done.status == 2
    assert "pip install nvidia-cuda-nvcc" in done.err
    assert "nvcc -ptx -lineinfo" in done.err


def test_a_module_takes_the_names_of_its_source(kernel: Path, mcheck: Mcheck) -> None:
    Path("m.ptx").write_text(f'{PTX}\t.file\t1 "{kernel.resolve()}"\n', encoding="utf-8")
    common = ("m.ptx", "--grid", "1", "--block", "64")
    assert checked(mcheck, *common, "--param", "rounds=3")["verdict"] == "finding"
    done = mcheck("check", *common, "--param", "round=3")
    assert "pass has no parameter round" in done.err
    assert "one of its parameters: out, rounds" in done.err
    kernel.unlink()
    done = mcheck("check", *common, "--param", "rounds=3")
    assert "parameter 0 (_Z4passPfi_param_0), parameter 1 (_Z4passPfi_param_1)" in " ".join(done.err.split())


# --- programs -----------------------------------------------------------------------------------------------------

HOST = r"""
#include <stddef.h>
typedef struct { unsigned x, y, z; } dim3;
int cudaMalloc(void **, size_t);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *);
int main(int argc, char **argv) {
  static const char stub;
  dim3 grid = {1, 1, 1}, block = {64, 1, 1};
  void *out; int rounds = argc - 1;
  void *arguments[2] = {&out, &rounds};
  __cudaRegisterFunction(NULL, &stub, NULL, argc > 3 ? "another" : "_Z4passPfi");
  cudaMalloc(&out, 256);
  for (int k = 0; k < 3; ++k) cudaLaunchKernel(&stub, grid, block, arguments, 0, NULL);
  return argc > 2;
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a program that launches the kernel of ``k.cu``; its runtime is that of the recorder."""
    from mcheck.integrations.cuda import build

    folder = tmp_path_factory.mktemp("host")
    build(folder / "libhost.so")
    (folder / "host.c").write_text(HOST, encoding="utf-8")
    subprocess.run(["cc", "-o", "host", "host.c", "./libhost.so"], check=True, cwd=folder)
    return folder


@pytest.fixture
def host(kernel: Path, built: Path) -> str:
    """The program, in the folder of the test."""
    for name in ("host", "libhost.so"):
        shutil.copy2(built / name, name)
    return "./host"


@compiled
@pytest.mark.daily(one_of="a program")
def test_the_launches_of_a_program(kernel: Path, host: str, mcheck: Mcheck) -> None:
    done = mcheck("check", kernel, "--format", "json", "--", host, "one")
    assert done.status == 1, done.err
    assert "k.cu: 1 launch (2 more of the same) of ./host one" in done.err
    (found,) = json.loads(done.out)["results"]
    assert lines(found) == {("k.cu", 3), ("k.cu", 4)}
    assert "the launches that ./host one made, recorded without a GPU" in found["assumptions"]


@compiled
@pytest.mark.daily(one_of="a program")
def test_a_program_that_fails_later_counts_up_to_there(kernel: Path, host: str, mcheck: Mcheck) -> None:
    done = mcheck("check", kernel, "--", host, "one", "two")
    assert done.status == 1
    assert "./host one two: it ended with status 1; what it had launched by then is checked" in done.err


@compiled
@pytest.mark.daily(one_of="a program")
def test_a_program_that_launches_nothing_of_the_source(kernel: Path, host: str, mcheck: Mcheck) -> None:
    done = mcheck("check", kernel, "--", host, "one", "two", "three")
    assert done.status == 2
    said = " ".join(done.err.split())
    assert "without a GPU ./host one two three launched nothing; it ended with status 1" in said
    assert "no module of MCHECK_PTX" not in said
    assert "the program has no PTX of another" in said
    assert mcheck("check", kernel, "--", "./no-such-program").status == 2


@compiled
@pytest.mark.daily(one_of="a program")
def test_a_module_and_a_program(kernel: Path, host: str, mcheck: Mcheck) -> None:
    Path("m.ptx").write_text(PTX, encoding="utf-8")
    assert checked(mcheck, "m.ptx", "--", host, "one")["path"] == "m.ptx"


def test_behind_a_test_two_dashes_end_the_options(mcheck: Mcheck, litmus: Callable[..., Path]) -> None:
    assert "2 files" in mcheck("check", litmus("mp"), "--", litmus("other")).out


def test_a_program_has_to_be_named(mcheck: Mcheck) -> None:
    done = mcheck("cuda", "--keep", "x")
    assert done.status == 2
    assert "mcheck cuda -- ./a.out" in done.err


def test_modules_of_a_program_are_named_by_their_sources(
    kernel: Path, mcheck: Mcheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Path("cache") / "k.ptx"
    module.parent.mkdir()
    module.write_text(PTX.replace(".visible", '.file 1 "k.cu"\n.visible'), encoding="utf-8")
    module.with_suffix(".json").write_text(json.dumps(LAUNCH | {"params": {"0": {"buffer": 256}, "1": 3}}), "utf-8")
    recorded = RecordedProgram(paths=(str(module),), sources={str(module): "k.cu"}, notes=("k.cu: 1 launch of pass",))
    monkeypatch.setattr(cuda_programs, "record_program", lambda *_: recorded)
    done = mcheck("cuda", "--", "./a.out")
    assert (done.status, done.err) == (1, "k.cu: 1 launch of pass\n")
    assert done.out.startswith("race      k.cu\n")
    assert mcheck("cuda", "--write-baseline", "known.json", "--", "./a.out").status == 0
    assert mcheck("cuda", "--baseline", "known.json", "--", "./a.out").status == 0


@pytest.mark.daily(days=4, least=0)
@compiled
def test_a_program_without_modules(kernel: Path, host: str, mcheck: Mcheck) -> None:
    done = mcheck("cuda", "--", host, "one")
    assert done.status == 2
    assert "./host one made no launch that could be recorded" in done.err


# --- with nvcc ----------------------------------------------------------------------------------------------------

RING = (Path(__file__).parent / "ring.cu").read_text(encoding="utf-8")


def has_nvcc() -> bool:
    try:
        return shutil.which("cc") is not None and bool(find_compiler())
    except InputError:
        return False


@pytest.mark.slow
@compiled
@pytest.mark.skipif(not has_nvcc(), reason="no nvcc: pip install nvidia-cuda-nvcc nvidia-cuda-runtime")
def test_a_ring_and_its_main_and_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mcheck: Mcheck) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("ring.cu").write_text(RING, encoding="utf-8")
    late = RING.splitlines().index("    acc += buf[k % STAGES][TILE - 1 - t].x;") + 1
    found = checked(mcheck, "ring.cu")
    assert {f["code"] for f in found["findings"]} == {"RACE003"}
    assert ("ring.cu", late) in lines(found)
    told = mcheck("check", "ring.cu").out
    assert f"{late} |     acc += buf[k % STAGES][TILE - 1 - t].x;" in told  # the line of the source, not of the module
    assert f"instead of 2 at line {late - 2}" in told
    assert mcheck("check", "ring.cu", "--write-baseline", "known.json").status == 0
    Path("ring.cu").write_text(RING.replace("__global__", "\n\n__global__"), encoding="utf-8")
    assert mcheck("check", "ring.cu", "--baseline", "known.json").status == 0
    Path("ring.cu").write_text(RING, encoding="utf-8")
    nvcc = find_compiler()
    subprocess.run([nvcc.path, *nvcc.flags, "-lineinfo", "-arch=sm_90a", "ring.cu", "-o", "ring"], check=True)
    done = mcheck("cuda", "--keep", "kept", "--format", "json", "--", "./ring")
    assert done.status == 1, done.err
    assert sorted(os.listdir("kept")) == ["ring.json", "ring.ptx"]
    assert "ring.cu" in (Path("kept") / "ring.ptx").read_text(encoding="utf-8")
    (result,) = json.loads(done.out)["results"]
    assert {f["code"] for f in result["findings"]} == {"RACE003"}
    done = mcheck("cuda", "--", "./ring")
    assert done.out.startswith("race      ring.cu\n")
    assert "ring.cu: 1 launch of ring\n" in done.err
    Path("ring.cu").write_text(RING.replace("wait<2>()", "wait<1>()"), encoding="utf-8")
    done = mcheck("check", "ring.cu", "--format", "json")
    assert (done.status, json.loads(done.out)["results"][0]["verdict"]) == (0, "proved"), done.err


GUARDED = """#include <cuda_pipeline.h>
__global__ void sums(const float4 *in, float *out, int rows) {
  __shared__ float4 row[3][64];
  int lane = threadIdx.x;
  float sum = 0;
  for (int r = 0; r < 2; ++r) {
    __pipeline_memcpy_async(&row[r][lane], in + r * 64 + lane, 16);
    __pipeline_commit();
  }
  for (int r = 0; r < rows; ++r) {
    __pipeline_wait_prior(1);
    __syncthreads();
    if (r + 2 < rows) __pipeline_memcpy_async(&row[(r + 2) % 3][lane], in + (r + 2) * 64 + lane, 16);
    __pipeline_commit();
    sum += row[r % 3][63 - lane].x;
  }
  out[lane] = sum;
}
int main() {
  float4 *in; float *out;
  cudaMalloc(&in, 10 * 64 * 16); cudaMalloc(&out, 64 * 4);
  sums<<<1, 64>>>(in, out, 10);
  cudaDeviceSynchronize();
}
"""


@pytest.mark.slow
@compiled
@pytest.mark.skipif(not has_nvcc(), reason="no nvcc: pip install nvidia-cuda-nvcc nvidia-cuda-runtime")
def test_a_barrier_in_a_branch_leaves_the_rounds_that_do_not_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mcheck: Mcheck
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("sums.cu").write_text(GUARDED, encoding="utf-8")
    assert mcheck("check", "sums.cu").status == 0
    Path("sums.cu").write_text(GUARDED.replace("    __syncthreads();\n", ""), encoding="utf-8")
    wait = GUARDED.splitlines().index("    __pipeline_wait_prior(1);") + 1
    done = mcheck("check", "sums.cu")
    assert re.search(rf"fix: bar.sync 0 .* after lines? {wait}\b", done.out)
    assert "1 bug (" in done.out
