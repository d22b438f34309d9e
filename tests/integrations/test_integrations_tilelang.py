"""Kernels of TileLang: the launch from what TileLang keeps, and lines that are those of the Python source or none."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.cuda.nvcc import CompileError
from mcheck.integrations import tilelang
from mcheck.integrations.recording.launches import Pointers
from mcheck.integrations.testing import assert_clean, report
from mcheck.integrations.tilelang import Kernel, compile_kernel, confine_lines, tensor_map
from mcheck.integrations.tilelang_lines import with_python_lines
from mcheck.ptx import check

KERNELS = Path(__file__).parents[1] / "simt" / "corpus" / "tilelang" / "kernels.py"


def test_a_line_directive_is_for_one_line() -> None:
    source = 'a;\n#line 5 "k.py"\nb;\nc;\n#line 6 "k.py"\n#pragma unroll\nfor (;;) {\n#line 7 "k.py"\nd;\n}\ne;\n'
    assert confine_lines(source, "g.cu").splitlines() == [
        '#line 2 "g.cu"',
        "a;",
        '#line 5 "k.py"',
        "b;",
        '#line 6 "g.cu"',
        "c;",
        '#line 6 "k.py"',
        "#pragma unroll",
        '#line 6 "k.py"',
        "for (;;) {",
        '#line 7 "k.py"',
        "d;",
        '#line 14 "g.cu"',
        "}",
        "e;",
    ]


def test_lines_without_directives_have_their_own_numbers() -> None:
    found = confine_lines('a;\nb;\n#line 9 "k.py"\nc;\nd;\n', "g.cu").splitlines()
    for k, line in enumerate(found, 1):
        if line.endswith('"g.cu"'):
            assert line == f'#line {k + 1} "g.cu"'


def test_a_line_of_a_macro_of_the_library_is_none() -> None:
    source = 'a;\n#line 839 "/lib/tilelang/macro.py"\nb;\n#line 7 "k.py"\nc;\n#line 3 "/lib/tilelang/macro.py"\nd;\n'
    assert confine_lines(source, "g.cu", "/lib/tilelang").splitlines() == [
        '#line 2 "g.cu"',
        "a;",
        "b;",
        '#line 7 "k.py"',
        "c;",
        '#line 7 "g.cu"',
        "d;",
    ]


PRODUCT = """def make(n):
    @T.prim_func
    def main(left, right, result):
        T.clear(total)
        for step in T.Pipelined(n, num_stages=3):
            T.copy(left[step], left_tile)
            T.copy(right[step], right_tile)
            T.gemm(left_tile, right_tile, total)
        T.copy(total, result)
"""
GENERATED = """#line 4 "{path}"
  clear(total);
  for (int step_1 = 0; step_1 < n; ++step_1) {
    mbarrier[step_1 % 3].wait(1);
    if (elect()) {
      tl::tma_load(right_desc, mbarrier[step_1 % 3], right_tile, step_1);
    }
    #pragma unroll
    for (int i = 0; i < 2; ++i) {
      tl::wgmma_ss<64>(desc_a, desc_b, total);
    }
    tl::warpgroup_wait<0>();
#line 8 "/lib/tilelang/macro.py"
    tl::tma_load(desc, mbarrier[step_1 % 3], other, step_1);
    __syncthreads();  // of the loop
  }
  tl::tma_store(result_desc, total);
  __syncthreads();
"""


def test_lines_without_directives_are_those_of_calls_and_loops_with_the_names(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(PRODUCT, encoding="utf-8")
    generated = GENERATED.replace("{path}", str(tmp_path / "kernel.py"))
    lines = with_python_lines(generated, "/lib/tilelang").splitlines()
    at = {text.strip(): before for before, text in pairwise(lines) if not text.startswith("#line")}
    named = {text: re.findall(r"^#line (\d+)", before) for text, before in at.items()}
    assert {text: int(found[0]) for text, found in named.items() if found} == {
        "clear(total);": 4,
        "for (int step_1 = 0; step_1 < n; ++step_1) {": 5,
        "mbarrier[step_1 % 3].wait(1);": 5,
        "if (elect()) {": 5,
        "tl::tma_load(right_desc, mbarrier[step_1 % 3], right_tile, step_1);": 7,
        "#pragma unroll": 5,
        "for (int i = 0; i < 2; ++i) {": 5,
        "tl::wgmma_ss<64>(desc_a, desc_b, total);": 8,
        "tl::warpgroup_wait<0>();": 8,
        "tl::tma_load(desc, mbarrier[step_1 % 3], other, step_1);": 5,  # both copies name the loop alone
        "__syncthreads();  // of the loop": 5,
        "tl::tma_store(result_desc, total);": 9,
    }
    assert lines[-1] == "  __syncthreads();"
    assert not lines[-2].startswith("#line")


def test_a_source_whose_kernel_cannot_be_read_keeps_its_lines() -> None:
    generated = GENERATED.replace("{path}", "/nowhere/kernel.py")
    assert with_python_lines(generated, "/lib/tilelang") == generated


ARGUMENTS = (6, 2, SimpleNamespace(name="a"), 512, 256, 2, 1024, 64, 32, 1, 1, 0, 3, 2, 0)


def test_a_tensor_map_has_the_fields_of_the_call_that_encodes_it() -> None:
    def pointer(name: str) -> dict[str, Any]:
        return {"buffer": name}

    kind = SimpleNamespace(value="__tvm_tensormap_create_tiled")
    assert tensor_map((kind, object(), *ARGUMENTS), pointer, int) == {
        "global_address": {"buffer": "a"},
        "elemtype": "f16",
        "rank": 2,
        "global_dim": [512, 256],
        "global_stride": [1024],
        "box_dim": [64, 32],
        "element_stride": [1, 1],
        "interleave_layout": "none",
        "swizzle_mode": "128B",
        "fill_mode": "zero",
    }
    other = SimpleNamespace(value="__tvm_tensormap_create_im2col")
    with pytest.raises(InputError, match="the tensor map of 'a' is not tiled"):
        tensor_map((other, object(), *ARGUMENTS), pointer, int)


def test_there_is_nothing_to_name_without_pointers() -> None:
    assert Pointers().finish({"params": {"0": 1}}) == ({"params": {"0": 1}}, "")


@pytest.mark.daily(days=3, least=0)
def test_a_compiled_kernel_brings_its_launch(tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "simt" / "corpus" / "tilelang"
    launch = json.loads((folder / "product_sm90.json").read_text(encoding="utf-8"))
    text = (folder / "product_sm90.ptx").read_text(encoding="utf-8")
    assert assert_clean(Kernel(text, launch, "")).verdict == "proved"
    path = tmp_path / "kernel.ptx"
    path.write_text(text, encoding="utf-8")
    assert assert_clean(Kernel(text, launch, "", str(path))).path == str(path)


def test_what_nvcc_refuses_comes_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_cuda(source: str, *_: object, **__: object) -> bytes:
        said = 'cuda_toolkit.h:41: #error "CUDA compiler and CUDA toolkit headers are incompatible"'
        raise RuntimeError(f"{source}Compilation error:\n{said}")

    contrib = SimpleNamespace(nvcc=SimpleNamespace(compile_cuda=compile_cuda))
    monkeypatch.setitem(sys.modules, "tilelang", SimpleNamespace(contrib=contrib))
    monkeypatch.setitem(sys.modules, "tilelang.contrib", contrib)
    with pytest.raises(CompileError) as raised:
        tilelang._compile("__global__ void k() {}\n", "sm_90a", (), Path())
    (note,) = raised.value.__notes__
    assert note.startswith("cuda_toolkit.h:41")
    assert "hint: parts of CUDA are of different releases" in note


# --- with TileLang ------------------------------------------------------------------------------------------------

installed = pytest.mark.skipif(
    find_spec("tilelang") is None or find_spec("torch") is None, reason="TileLang and PyTorch are not installed"
)


def kernels() -> Any:
    spec = importlib.util.spec_from_file_location("tilelang_kernels", KERNELS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@installed
def test_a_product_is_proved_with_its_maps() -> None:
    kernel = compile_kernel(kernels().product(256, 128, 512, (64, 64, 64), 3), "sm_90a")
    assert (kernel.launch["grid"], kernel.launch["block"]) == ([2, 4, 1], [256, 1, 1])
    assert kernel.launch["params"]["2"] == {"buffer": 256 * 128 * 2}  # type: ignore[index,call-overload]
    assert check(kernel.ptx, kernel.launch).verdict == "proved"


@installed
def test_what_is_no_kernel_is_said() -> None:
    import tilelang

    made = kernels().product(256, 128, 512, (64, 64, 64), 3)
    with pytest.raises(InputError, match="function is not a TileLang kernel"):
        compile_kernel(kernels().product, "sm_90a")
    with pytest.raises(InputError, match=r"a T\.prim_func takes no arguments"):
        compile_kernel(made, "sm_90a", arguments={"m": 1})
    with pytest.raises(InputError, match="is compiled with arguments="):
        compile_kernel(tilelang.jit(kernels().product), "sm_90a")


@installed
def test_a_function_of_jit_is_compiled_with_its_options_into_a_folder(tmp_path: Path) -> None:
    import tilelang

    plain = tilelang.jit(kernels().product)
    sizes = {"m": 256, "n": 128, "k": 512, "tile": (64, 64, 64), "stages": 3}
    kernel = compile_kernel(plain, "sm_90a", arguments=sizes, folder=tmp_path)
    assert kernel.path is not None
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".cu", ".json", ".ptx"]
    assert Path(kernel.path).with_suffix(".cu").read_text(encoding="utf-8") == kernel.source
    other = compile_kernel(plain, "sm_90a", arguments={**sizes, "stages": 2}, folder=tmp_path)
    assert other.path is not None
    assert Path(other.path).stem.partition("-")[0] == Path(kernel.path).stem.partition("-")[0]
    assert other.path != kernel.path
    assert assert_clean(kernel).path == kernel.path
    assert check(kernel.path).verdict == "proved"
    key = tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED
    alike = compile_kernel(tilelang.jit(kernels().product, pass_configs={key: True}), "sm_90a", arguments=sizes)
    assert (kernel.launch["block"], alike.launch["block"]) == ([256, 1, 1], [128, 1, 1])


@installed
def test_a_finding_is_at_the_line_of_the_source() -> None:
    import tilelang.language as T  # noqa: N812 - its name everywhere

    @T.prim_func
    def main(numbers: T.Tensor((4,), "int32")):  # type: ignore[no-untyped-def,valid-type]
        with T.Kernel(4, threads=64) as row:
            numbers[row] = T.get_thread_binding()

    kernel = compile_kernel(main, "sm_90a")
    answer = check(kernel.ptx, kernel.launch)
    assert [finding.code for finding in answer.findings] == ["RACE001"]
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = lines.index("            numbers[row] = T.get_thread_binding()") + 1
    said = report(answer)
    assert f"{Path(__file__).name}:{line}:" in said.splitlines()[2]
    assert "`numbers` is written twice" in said
