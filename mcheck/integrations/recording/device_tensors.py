"""Tensors of a GPU that is not there: shapes, strides and addresses, and the contents of small ones.

``FakeTensorMode`` of PyTorch gives every tensor its shape, type and device, and no memory. ``DeviceTensors`` adds what
launches need of them: an address for each storage, and the bytes of small tensors as long as only the host wrote them.
A number that would have to come out of a kernel, or of a large tensor, is not there. What asks for one gets
``NumbersNotComputed``, except for truth values and comparisons, which assertions are made of: these are assumed to
hold and counted.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain
from typing import Any, Final, Self

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map

from mcheck.integrations.recording.outcome import NumbersNotComputed

MAX_CONTENTS: Final = 64 << 10
"""The bytes of the largest tensor whose contents are kept."""
_ALIGNMENT: Final = 512
"""That of an allocation of PyTorch on a GPU; kernels are specialised for what divides their addresses."""
_FIRST_ADDRESS: Final = 0x7F00_0000_0000
_UNWRITTEN: Final = (
    torch.ops.aten.empty, torch.ops.aten.empty_strided, torch.ops.aten.empty_like,
    torch.ops.aten.new_empty, torch.ops.aten.new_empty_strided,
)  # fmt: skip
"""What allocates memory and leaves it as it is."""
_CONVERSIONS: Final = ("item", "tolist", "numpy", "__array__", "__int__", "__float__", "__index__", "__complex__")


class DeviceTensors:
    """The tensors of a process: their addresses, the contents that are known, and how many assertions were assumed."""

    def __init__(self) -> None:
        self.fake = _Shapes(allow_fallback_kernels=False, allow_non_fake_inputs=True)
        self.assumed = 0
        self._addresses: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._contents: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._next = _FIRST_ADDRESS

    @contextmanager
    def active(self) -> Iterator[Self]:
        """While it is active, tensors that are made have no memory."""
        with ExitStack() as modes:
            layers: list[AbstractContextManager[Any]] = [self.fake, _Contents(self), _Questions(self)]
            for layer in layers:
                modes.enter_context(layer)
            yield self

    # --- addresses ------------------------------------------------------------------------------------------------

    def address(self, tensor: Any) -> int:
        """The address of the first element of a tensor."""
        storage = tensor.untyped_storage()
        start = self._addresses.get(storage)
        if start is None:
            start = self._addresses[storage] = self._next
            self._next += (max(storage.nbytes(), 1) + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        return int(start + tensor.storage_offset() * tensor.element_size())

    def memory_at(self, address: int) -> tuple[Any, int] | None:
        """The storage that an address is in, and the address behind its end."""
        for storage, start in self._addresses.items():
            if start <= address < start + storage.nbytes():
                return storage, start + storage.nbytes()
        return None

    def holds_addresses(self, numbers: Any) -> bool:
        """Whether some number of an array of 64 bits is an address that a tensor may have."""
        return bool(((numbers >= _FIRST_ADDRESS) & (numbers < self._next)).any())

    # --- contents -------------------------------------------------------------------------------------------------

    def contents(self, tensor: Any) -> Any:
        """A tensor with memory and the same elements; None if they are not known."""
        if not isinstance(tensor, FakeTensor):
            return tensor
        if tensor.is_sparse or tensor.layout is not torch.strided:
            return None
        memory = self._contents.get(tensor.untyped_storage())
        if memory is None:
            return None
        with _disable_current_modes():
            view = torch.empty(0, dtype=tensor.dtype)
            return view.set_(memory, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))

    def memory(self, tensor: Any) -> bytes | None:
        """The bytes from the address of a tensor to the end of its memory; None if they are not known."""
        real = self.contents(tensor)
        if real is None:
            return None
        with _disable_current_modes():
            whole = torch.empty(0, dtype=torch.uint8).set_(real.untyped_storage())
            return bytes(whole.numpy()[tensor.storage_offset() * tensor.element_size() :])

    def keep(self, tensor: Any, real: Any) -> None:
        """Take the contents of ``real`` for a tensor just made."""
        storage = tensor.untyped_storage()
        memory = real.untyped_storage()
        if storage.nbytes() <= MAX_CONTENTS and storage.nbytes() == memory.nbytes():
            self._contents[storage] = memory

    def forget(self, tensor: Any) -> None:
        """The tensor was written by what is not executed: nothing that shares its memory is known any more."""
        if isinstance(tensor, FakeTensor) and tensor.layout is torch.strided:
            self._contents.pop(tensor.untyped_storage(), None)

    def forget_all(self) -> None:
        """Anything may have been written."""
        self._contents.clear()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """What happens inside is an alternative: contents are afterwards what they were."""
        with _disable_current_modes():
            before = [(storage, memory.clone()) for storage, memory in self._contents.items()]
        yield
        self._contents.clear()
        self._contents.update(before)


class _Shapes(FakeTensorMode):
    """Tensors without memory. Data is laid out on the CPU first, as where PyTorch finds no GPU."""

    @property
    def avoid_device_init(self) -> bool:
        """Whether no GPU is to be touched."""
        return True


class _Contents(TorchDispatchMode):
    """Executes operations of which all inputs are known, besides their execution without memory."""

    def __init__(self, tensors: DeviceTensors) -> None:
        super().__init__()
        self._tensors = tensors

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        inputs = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
        known = [self._tensors.contents(tensor) for tensor in inputs]
        small = all(real is not None and real.untyped_storage().nbytes() <= MAX_CONTENTS for real in known)
        if func is torch.ops.aten._local_scalar_dense.default:
            if not small:
                raise NumbersNotComputed("the value")
            with _disable_current_modes():
                return known[0].item()
        out = self._shapes(func, args, kwargs, small)
        made = [leaf for leaf in tree_flatten(out)[0] if isinstance(leaf, FakeTensor)]
        written = [self._argument(func, args, kwargs, i) for i, a in enumerate(func._schema.arguments) if _writes(a)]
        if not small or any(tensor.untyped_storage().nbytes() > MAX_CONTENTS for tensor in made):
            for tensor in chain(*(part if isinstance(part, list | tuple) else [part] for part in written)):
                self._tensors.forget(tensor)
        elif made and func.overloadpacket not in _UNWRITTEN:
            self._execute(func, args, kwargs, made)
        return out

    def _shapes(self, func: Any, args: Any, kwargs: Any, known: bool) -> Any:
        """The result without memory. Where its shape depends on numbers, it is that of the ``known`` result."""
        try:
            return func(*args, **kwargs)
        except DynamicOutputShapeException:
            if not known:
                raise NumbersNotComputed(f"'{func}'") from None
        except DataDependentOutputException:
            raise NumbersNotComputed(f"'{func}'") from None
        device = next(leaf.device for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor))
        with _disable_current_modes():
            real = func(*tree_map(self._real, args), **tree_map(self._real, kwargs))

        def without_memory(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            made = torch.empty_strided(tuple(leaf.shape), leaf.stride(), dtype=leaf.dtype, device=device)
            self._tensors.keep(made, leaf)
            return made

        return tree_map(without_memory, real)

    def _real(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return self._tensors.contents(leaf)
        return torch.device("cpu") if isinstance(leaf, torch.device) else leaf

    def _argument(self, func: Any, args: Any, kwargs: Any, index: int) -> Any:
        return args[index] if index < len(args) else kwargs.get(func._schema.arguments[index].name)

    def _execute(self, func: Any, args: Any, kwargs: Any, made: list[Any]) -> None:
        real_args, real_kwargs = tree_map(self._real, (args, kwargs))
        try:
            with _disable_current_modes():
                out = func(*real_args, **real_kwargs)
        except (RuntimeError, NotImplementedError):  # an operation that only a GPU has
            return
        results = [leaf for leaf in tree_flatten(out)[0] if isinstance(leaf, torch.Tensor)]
        for tensor, result in zip(made, results, strict=True):
            if self._tensors.contents(tensor) is None and tensor.stride() == result.stride():
                self._tensors.keep(tensor, result)


def _writes(argument: Any) -> bool:
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


class _Questions(TorchFunctionMode):
    """Answers what a program asks about a tensor: its address, its numbers, whether an assertion about them holds."""

    def __init__(self, tensors: DeviceTensors) -> None:
        super().__init__()
        self._tensors = tensors

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "data_ptr" and isinstance(args[0], FakeTensor):
            return self._tensors.address(args[0])
        if name in _CONVERSIONS and isinstance(args[0], FakeTensor):
            real = self._tensors.contents(args[0])
            if real is None:
                raise NumbersNotComputed(f"'{name}'")
            with _disable_current_modes():
                return func(real, *args[1:], **kwargs)
        if func is torch.tensor and not isinstance(args[0], torch.Tensor):  # numbers among which are tensors of one
            args = (tree_map(lambda leaf: leaf.item() if isinstance(leaf, FakeTensor) else leaf, args[0]), *args[1:])
        if name == "__bool__" and self._unknown(args):
            self._tensors.assumed += 1
            return bool(getattr(args[0], "_mcheck_assumed", True))
        if name in ("allclose", "equal", "is_nonzero") and self._unknown(args):
            self._tensors.assumed += 1
            return True
        out = func(*args, **kwargs)
        if name in ("all", "any") and isinstance(out, FakeTensor) and out.numel() == 1:
            out._mcheck_assumed = name == "all"  # `not x.any()` and `x.all()` are what assertions say
        return out

    def _unknown(self, values: Any) -> bool:
        tensors = [value for value in values if isinstance(value, FakeTensor)]
        return any(self._tensors.contents(tensor) is None for tensor in tensors)
