"""Every form that NVIDIA's ``cuda::ptx`` headers have, and the assembler takes, is an instruction of a module."""

from __future__ import annotations

import pytest

from tests.assembler import Assembler
from tests.isa.agreement import ptxas
from tests.isa.agreement.ptxas import rejected
from tests.isa.cuda_ptx import find_headers, forms
from tests.simt.test_simt_legal_forms import mistakes

TARGETS = ("sm_90a", "sm_100a", "sm_107a")


@pytest.mark.skipif(find_headers() is None, reason="nvidia-cuda-cccl is not installed")
def test_the_headers_have_forms_of_each_asynchronous_instruction() -> None:
    names = {form.split()[0].partition(".")[0] for form in forms()}
    assert len(forms()) > 2000
    assert names >= {"cp", "mbarrier", "tcgen05", "fence", "fabric", "multimem", "st", "red", "tensormap"}


@pytest.mark.daily(least=0)
@pytest.mark.skipif(find_headers() is None, reason="nvidia-cuda-cccl is not installed")
@pytest.mark.parametrize("target", TARGETS)
def test_what_the_assembler_takes_of_them_is_an_instruction(
    target: str, assembler: Assembler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptxas, "run", lambda _, text, options: assembler.assemble(text, *options)[1])
    wrong = rejected(assembler.path, forms(), target)
    legal = [form for at, form in enumerate(forms()) if at not in wrong]
    assert len(legal) > 900
    assert mistakes(legal, target) == []
