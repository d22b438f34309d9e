"""Backward passes over tensors of a GPU that is not there.

The engine of PyTorch asks the driver about the device of each gradient, also of tensors without memory, and fails where
there is none. What it does is simple: each node of the graph is called once, when the gradients of all its outputs are
there, and gradients of one tensor are added. Hooks of tensors and of nodes are not called, and
``set_materialize_grads(False)`` has no effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

Edge = tuple[Any, int]
"""A node, and which of its inputs: where the gradient of a tensor goes."""


@contextmanager
def walked() -> Iterator[None]:
    """Inside, ``backward()`` and ``torch.autograd.grad`` of tensors on a GPU call the nodes one after the other."""
    engine = torch.autograd._engine_run_backward

    def run(outputs: Sequence[Any], *arguments: Any, **named: Any) -> Any:
        on_host = all(output.device.type == "cpu" for output in outputs)
        return (engine if on_host else _run_backward)(outputs, *arguments, **named)

    with mock.patch.object(torch.autograd, "_engine_run_backward", run):
        yield


def _run_backward(
    outputs: Sequence[Any],
    gradients: Sequence[Any],
    keep_graph: bool,  # noqa: ARG001 - what is kept does no harm
    create_graph: bool,
    inputs: Sequence[Any],
    allow_unreachable: bool = False,
    accumulate_grad: bool = False,
) -> tuple[Any, ...]:
    """The gradients of ``inputs``. Without inputs, those of all leaves are added to their ``grad``."""
    wanted = [_edge(tensor) for tensor in inputs]
    found = dict[Edge, Any]()
    sums = dict[Edge, Any]()
    roots = [_edge(tensor) for tensor in outputs]
    with torch.set_grad_enabled(create_graph):
        for edge, gradient in zip(roots, gradients, strict=True):
            _add(sums, edge, gradient)
        for node in _in_order([node for node, _ in roots]):
            slots = [(node, k) for k in range(len(node._input_metadata))]
            found |= {slot: sums[slot] for slot in slots if slot in wanted and slot in sums}
            given = [sums.pop(slot, None) for slot in slots]
            is_leaf = hasattr(node, "variable")
            if all(gradient is None for gradient in given) or (is_leaf and wanted and not accumulate_grad):
                continue
            if is_leaf and wanted and (node, 0) not in wanted:
                continue
            for edge, gradient in _passed_on(node, given):
                if edge[0] is not None and gradient is not None:
                    _add(sums, edge, gradient)
    if not allow_unreachable and any(edge not in found for edge in wanted):
        raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph")
    return tuple(found.get(edge) for edge in wanted)


def _edge(tensor: Any) -> Edge:
    """Where the gradient of a tensor goes."""
    edge = torch.autograd.graph.get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def _add(sums: dict[Edge, Any], edge: Edge, gradient: Any) -> None:
    sums[edge] = sums[edge] + gradient if edge in sums else gradient


def _in_order(roots: Sequence[Any]) -> Iterator[Any]:
    """All nodes that ``roots`` lead to, each before those that it leads to."""
    nodes = dict.fromkeys(roots)
    todo, pending = list(nodes), Counter[Any]()
    while todo:
        for node, _ in todo.pop().next_functions:
            if node is not None:
                pending[node] += 1
                if node not in nodes:
                    nodes[node] = None
                    todo.append(node)
    ready = [node for node in nodes if not pending[node]]
    while ready:
        node = ready.pop()
        yield node
        for following, _ in node.next_functions:
            if following is not None:
                pending[following] -= 1
                if not pending[following]:
                    ready.append(following)


def _passed_on(node: Any, gradients: Sequence[Any]) -> Iterator[tuple[Edge, Any]]:
    """Call a node with the gradients of its outputs; yields those of its inputs, and where they go."""
    if not isinstance(node, torch.autograd.function.BackwardCFunction):
        made = node(*gradients)
        yield from zip(node.next_functions, made if isinstance(made, tuple) else (made,), strict=False)
        return
    whole = [
        torch.zeros(about.shape, dtype=about.dtype, device=about.device) if gradient is None else gradient
        for gradient, about in zip(gradients, node._input_metadata, strict=True)
    ]
    made = node.apply(*whole)
    each = made if isinstance(made, tuple | list) else (made,)
    # A function written in Python gives one for each argument, also for those that are no tensors.
    needed = [gradient for gradient, needs in zip(each, node.needs_input_grad, strict=False) if needs]
    yield from zip([edge for edge in node.next_functions if edge[0] is not None], needed, strict=True)
