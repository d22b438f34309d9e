"""Backward passes without the engine of PyTorch give the gradients that the engine gives."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from unittest import mock

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")


def gradients(run: Callable[[Any, Any], list[Any]], *, walked: bool) -> list[Any]:
    import torch

    from mcheck.integrations.recording import backward

    torch.manual_seed(0)
    x, w = (torch.randn(3, 3).requires_grad_() for _ in range(2))
    engine = backward._run_backward if walked else torch.autograd._engine_run_backward
    with mock.patch.object(torch.autograd, "_engine_run_backward", engine):
        return run(x, w)


def of_leaves(x: Any, w: Any) -> list[Any]:
    y = (product(x, w) * x).sum() + (x.exp() @ w.t()).sum()
    y.backward(retain_graph=True)
    y.backward()
    return [x.grad, w.grad]


def of_inputs(x: Any, w: Any) -> list[Any]:
    import torch

    between = x.exp()
    y = (between * w + product(x, w)).sum()
    found = [*torch.autograd.grad(y, [x, between], retain_graph=True), *torch.autograd.grad(y, [w])]
    assert x.grad is None
    return found


def of_gradients(x: Any, w: Any) -> list[Any]:
    import torch

    (first,) = torch.autograd.grad((product(x, w) * x).sum(), [x], create_graph=True)
    return list(torch.autograd.grad(first.sum(), [w, x]))


def of_some_leaves(x: Any, w: Any) -> list[Any]:
    product(x, w).sum().backward(inputs=[w])
    assert x.grad is None
    return [w.grad]


def product(x: Any, w: Any) -> Any:
    """A function of Python with an argument that is no tensor, one that needs no gradient, and an unused output."""
    import torch

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, scale: int, fixed: Any, w: Any) -> Any:
            ctx.save_for_backward(x, fixed, w)
            ctx.scale = scale
            return x * w * scale + fixed, x + w

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            x, _, w = ctx.saved_tensors
            return first * w * ctx.scale + second, None, None, first * x * ctx.scale + second

    return Product.apply(x, 3, torch.ones(3), w)[0]


@pytest.mark.parametrize("run", [of_leaves, of_inputs, of_gradients, of_some_leaves])
def test_gradients_are_those_of_the_engine(run: Callable[[Any, Any], list[Any]]) -> None:
    import torch

    for mine, theirs in zip(gradients(run, walked=True), gradients(run, walked=False), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_tensor_that_the_result_does_not_depend_on() -> None:
    import torch

    def run(x: Any, w: Any) -> list[Any]:
        with pytest.raises(RuntimeError, match="not have been used"):
            torch.autograd.grad(x.sum(), [w])
        return list(torch.autograd.grad(x.sum(), [x, w], allow_unused=True))

    assert [gradient is None for gradient in gradients(run, walked=True)] == [False, True]
