"""Names of C++: demangled entries, and parameters as ``__global__`` declarations name them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from mcheck.frontend.ptx.mangled_names import demangle
from mcheck.frontend.ptx.source_signatures import list_entries, read_signatures, resolve_entry, shortest_name

NAMES = {
    "_Z6amperePK6float4Pfi": "ampere(float4 const*, float*, int)",
    "_Z1kILi3EEvPKfi": "k<3>(float const*, int)",
    "_Z4testIfLi128ELb1EEvPKT_PS0_i": "test<float, 128, true>(float const*, float*, int)",
    "_ZN12_GLOBAL__N_16kernelEPf": "(anonymous namespace)::kernel(float*)",
    "_Z1fPA4_fPFvvE": "f(float (*) [4], void (*)())",
    "_Z1gRK4dim3O4dim3": "g(dim3 const&, dim3&&)",
    "_Z1hIJifdEEvDpT_": "h<int, float, double>(int, float, double)",
    "_Z1kILin3ELj4ELm5EEvv": "k<-3, 4u, 5ul>()",
    "_Z1kI6float46__halfEvPKT_S4_PT0_": "k<float4, __half>(float4 const*, float4 const*, __half*)",
    "_ZN3foo3barIiE3bazIfEEvT_i": "foo::bar<int>::baz<float>(float, int)",
    "_Z1kSt4pairIiPfES1_": "k(std::pair<int, float*>, std::pair<int, float*>)",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_demangled(name: str) -> None:
    found = demangle(name)
    assert found is not None
    assert found.text == NAMES[name]


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="no c++filt to compare with")
def test_names_are_demangled_as_by_binutils() -> None:
    done = subprocess.run(["c++filt"], input="\n".join(NAMES), capture_output=True, text=True, check=True)
    for name, theirs in zip(NAMES, done.stdout.splitlines(), strict=True):
        found = demangle(name)
        assert found is not None
        assert theirs.removeprefix("void ").replace("> >", ">>") == found.text


@pytest.mark.parametrize(
    "name", ["kernel", "_Z", "_Z3k", "_Z1kIXadL_Z1fvEEEvv", "_Z999999k", "_Z1k" + "P" * 5000 + "i", "_Z1kS5_"]
)
def test_other_names_stay(name: str) -> None:
    assert demangle(name) is None
    assert shortest_name(name, (name,)) == name


def test_entries_are_named_as_short_as_they_differ() -> None:
    entries = ("_Z1kILi2EEvi", "_Z1kILi3EEvi", "_Z5otherv", "_Z4overi", "_Z4overf", "plain")
    assert list_entries(entries) == ["k<2>", "k<3>", "other", "over(int)", "over(float)", "plain"]
    assert resolve_entry("k< 3 >", entries) == ("_Z1kILi3EEvi",)
    assert resolve_entry("over(float)", entries) == ("_Z4overf",)
    assert resolve_entry("k", entries) == ("_Z1kILi2EEvi", "_Z1kILi3EEvi"), "either"
    assert resolve_entry("_Z5otherv", entries) == ("_Z5otherv",)
    assert resolve_entry("none", entries) == ()


def test_template_arguments_are_named_without_their_types() -> None:
    """As a launch writes them: ``reduce<128>`` where the parameter is unsigned."""
    entries = ("_Z1kILj4EEvv", "_Z1kILm5EEvv", "_Z1kILj5EEvv", "_Z3k4uv")
    assert resolve_entry("k<4>", entries) == ("_Z1kILj4EEvv",)
    assert resolve_entry("k<5ul>", entries) == ("_Z1kILm5EEvv",)
    assert resolve_entry("k<5>", entries) == ("_Z1kILm5EEvv", "_Z1kILj5EEvv"), "either"
    assert resolve_entry("k4", entries) == ()


SOURCE = r"""
// __global__ void commented(int a);
/* __global__ void too(int b); */
const char *text = "__global__ void quoted(int c);";
const char *raw = R"x(__global__ void raw(int d);)x";
extern "C" __global__ void __launch_bounds__(128, 2) plain(const float *__restrict__ in, float* out, int n);
template <int N, typename T = float>
__global__ __cluster_dims__(2, 1, 1) void ring(const __grid_constant__ CUtensorMap tm, T (*rows)[4],
                                               std::pair<int, T> both, int tiles = 1 << 3) { call<<<1, 2>>>(x); }
__global__ void none(void) {}
__global__ void nothing() {}
__global__ void array(float a[], void (*call)(int, int));
template <class... A> __global__ void many(int first, A... rest) {}
__global__ void unnamed(int, float) {}
"""


def test_declarations_of_kernels_are_read() -> None:
    found = {s.name: [(p.name, p.type) for p in s.parameters] for s in read_signatures(SOURCE)}
    assert found == {
        "plain": [("in", "const float *"), ("out", "float*"), ("n", "int")],
        "ring": [("tm", "const  CUtensorMap"), ("rows", "T (*)[4]"), ("both", "std::pair<int, T>"), ("tiles", "int")],
        "none": [], "nothing": [],
        "array": [("a", "float[]"), ("call", "void (*)(int, int)")],
        "many": [("first", "int"), ("", "A... rest")],
        "unnamed": [("", "int"), ("", "float")],
    }  # fmt: skip
    assert next(s.line for s in read_signatures(SOURCE) if s.name == "plain") == 6
