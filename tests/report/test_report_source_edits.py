"""Fixes of compiled modules as edits of CUDA C++: words of included headers, else inline PTX."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.modules import Case, cases
from mcheck.base.source_files import SourceText
from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Options, Settings
from mcheck.frontend.ptx import launch_reader
from mcheck.report.language_words import is_declared
from mcheck.report.source_edits import find_source_edits


@cache
def inserted(label: str) -> tuple[str, ...]:
    """The text of the edits for the first finding of a kernel in the corpus with a bug."""
    case: Case = next(case for case in cases() if case.label == label)
    result = check_text(case.text(), str(case.path), launch_reader.from_object(case.launch()), Settings(), Options())
    return tuple(edit.text.strip() for edit in find_source_edits(result.findings[0], SourceText("", result.program)))


@pytest.mark.daily(least=0)
def test_a_source_without_the_header_of_a_word_gets_inline_ptx() -> None:
    (wait,) = inserted("cuda/cp_async_groups waits-one-group-less")
    assert wait == 'asm volatile("cp.async.wait_group 1;" ::: "memory");'


def test_a_source_with_the_header_gets_the_word() -> None:
    (fence,) = inserted("cuda/bulk_store no-proxy-fence")
    assert fence == "cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);"


@pytest.mark.parametrize(
    ("word", "text", "declared"),
    [
        ("__pipeline_commit()", "#include <cuda_pipeline.h>\n", True),
        ("__pipeline_commit()", "#include <cuda_runtime.h>\n", False),
        ("cuda::ptx::fence_proxy_async()", "#include <cuda/ptx>\n", True),
        ("cuda::ptx::fence_proxy_async()", "", False),
        ("__syncthreads()", "", True),
    ],
)
def test_words_of_headers_are_declared_where_these_are_included(word: str, text: str, declared: bool) -> None:
    assert is_declared(word, text) is declared
