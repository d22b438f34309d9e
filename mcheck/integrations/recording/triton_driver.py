"""A driver of Triton that compiles and records: kernels are compiled for a target, launches are noted, nothing runs."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
import triton
from triton._C.libtriton import nvidia
from triton.backends.compiler import GPUTarget
from triton.backends.driver import GPUDriver
from triton.compiler.compiler import CompiledKernel

from mcheck.frontend.cuda.compiled import rename_parameters
from mcheck.integrations.recording.device_tensors import DeviceTensors
from mcheck.integrations.recording.launches import KernelLaunch, Pointer, Pointers, Recording
from mcheck.integrations.recording.targets import Device
from mcheck.integrations.triton import launch as launch_of
from mcheck.integrations.triton import parameter_names

_INDEX_TYPES = (torch.int32, torch.int64, torch.uint32, torch.uint64)
"""The types of which contents are kept: sizes, indices, flags. Numbers of other types are data."""
_REGISTERS = 64
"""The registers of a thread, as the driver tells them once a kernel is loaded: grids are made from what fits."""
_KERNELS = 256
"""So many kernels are kept with their parameters named."""


class _Utilities:
    """The part of a driver that asks the device."""

    def __init__(self, device: Device) -> None:
        self._properties = {
            "max_shared_mem": device.shared_memory,
            "max_num_regs": 65536,
            "multiprocessor_count": device.multi_processor_count,
            "warpSize": 32,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 4096,
        }

    def get_device_properties(self, _: int) -> dict[str, int]:
        """The limits that Triton asks for."""
        return self._properties

    def load_binary(self, name: str, *_: Any) -> tuple[str, str, int, int, int]:
        """A module, a function, its registers and spills, and the largest number of threads of a block."""
        return name, name, _REGISTERS, 0, 1024

    def unload_module(self, *_: Any) -> None:
        """Nothing was loaded."""

    def set_printf_fifo_size(self, *_: Any) -> None:
        """Nothing is printed."""

    def cuOccupancyMaxActiveClusters(self, *_: Any) -> int:  # noqa: N802 - the name of the driver's function
        """Some."""
        return 1


@lru_cache(maxsize=_KERNELS)
def _with_names(ptx: str, names: tuple[str, ...]) -> str:
    """A module with these names of its parameters: kernels are launched many times."""
    return rename_parameters(ptx, lambda _: names)


class RecordingDriver(GPUDriver):
    """A driver whose launches are added to a recording."""

    def __init__(self, device: Device, tensors: DeviceTensors, recording: Recording) -> None:
        super().__init__()
        self.utils = _Utilities(device)
        self._device = device
        self._tensors = tensors
        self._recording = recording
        self.kernels: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        """The compiled kernels by the hash in their metadata: a launcher gets no more of a kernel than that."""

    def launcher_cls(self, _: Any, metadata: Any) -> Any:
        """The function that launches a kernel."""

        def run(x: int, y: int, z: int, *rest: Any) -> None:
            self._launch(self.kernels[metadata.hash], (int(x), int(y), int(z)), rest[6:])

        return run

    def _launch(self, compiled: Any, grid: tuple[int, int, int], values: Sequence[Any]) -> None:
        if 0 in grid:
            return
        pointers = Pointers()
        arguments = [self._argument(value, pointers) for value in values]
        described = launch_of(compiled, grid, arguments)
        names = parameter_names(compiled, arguments)
        ptx = _with_names(compiled.asm["ptx"], tuple(names))
        launch, lacks = pointers.finish(described)
        self._recording.add(KernelLaunch(compiled.metadata.name, ptx, launch, lacks))
        for value in values:
            self._written(value)

    def _argument(self, value: Any, pointers: Pointers) -> Any:
        """An argument for ``launch``: a tensor is a buffer, with its contents if these are known."""
        value = _unwrapped(value)
        if isinstance(value, torch.Tensor):
            return pointers.add(self._pointer(value))
        if isinstance(value, tuple):
            return tuple(self._argument(part, pointers) for part in value)
        if _is_descriptor(value):
            return SimpleNamespace(**{**vars(value), "base": self._argument(value.base, pointers)})
        if _is_number(value) and (found := self._tensors.memory_at(value)):
            storage, end = found
            return pointers.add(Pointer(value, end, storage, end))
        return value

    def _pointer(self, tensor: Any) -> Pointer:
        address = self._tensors.address(tensor)
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        last = sum((size - 1) * step for size, step in steps) if tensor.numel() else -1
        storage = tensor.untyped_storage()
        after = storage.nbytes() - tensor.storage_offset() * tensor.element_size()
        end = address + (last + 1) * tensor.element_size()
        return Pointer(address, end, storage, address + after, self._contents(tensor))

    def _contents(self, tensor: Any) -> str | None:
        """The bytes of an integer tensor from its address to the end of its memory, as digits."""
        data = self._tensors.memory(tensor) if tensor.dtype in _INDEX_TYPES else None
        if data is None or self._is_table(tensor, data):  # a launch file has no pointers in buffers
            return None
        return data.hex()

    def _is_table(self, tensor: Any, data: bytes) -> bool:
        """Whether addresses are among the numbers of a tensor."""
        words = np.frombuffer(data[: len(data) // 8 * 8], dtype=np.int64)
        return tensor.element_size() == words.itemsize and self._tensors.holds_addresses(words)

    def _written(self, value: Any) -> None:
        """The kernel may have written to an argument."""
        value = _unwrapped(value)
        if isinstance(value, torch.Tensor):
            data = self._tensors.memory(value)
            if data is not None and self._is_table(value, data):
                self._tensors.forget_all()
            self._tensors.forget(value)
        elif _is_number(value) and self._tensors.memory_at(value):
            self._tensors.forget_all()
        elif isinstance(value, tuple):
            for part in value:
                self._written(part)
        elif _is_descriptor(value):
            self._written(value.base)

    # --- what Triton asks of a driver -----------------------------------------------------------------------------

    def get_current_target(self) -> Any:
        """The target to compile for."""
        return GPUTarget("cuda", self._device.arch, 32)

    def get_active_torch_device(self) -> Any:
        """PyTorch's name of the device."""
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """PyTorch's module for the device."""
        return torch.cuda

    @staticmethod
    def is_active() -> bool:
        """It is."""
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The type as it is: no launcher is compiled."""
        return ty

    def get_benchmarker(self) -> Any:
        """What measures a kernel: launches it once."""
        return measured_once

    def get_empty_cache_for_benchmark(self) -> Any:
        """There is no cache."""
        return torch.empty(1, dtype=torch.int32, device="cuda")

    def clear_cache(self, cache: Any) -> None:
        """There is no cache."""


class _Library:
    """A library of kernels that nobody compiled here (cuBLAS): its calls compute nothing."""

    def __init__(self, tensors: DeviceTensors) -> None:
        self._tensors = tensors

    def __getattr__(self, name: str) -> Any:
        def call(*values: Any, **named: Any) -> None:
            for value in (*values, *named.values()):
                self._tensors.forget(value)

        return call


def _unwrapped(value: Any) -> Any:
    """The tensor in Triton's wrapper, which gives it another type of elements."""
    return value.base if isinstance(value, triton.runtime.jit.TensorWrapper) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_descriptor(value: Any) -> bool:
    return hasattr(value, "base") and hasattr(value, "block_shape")


def measured_once(call: Any, *_: Any, quantiles: Any = None, **__: Any) -> Any:
    """Calls it once; a millisecond."""
    call()
    return 1.0 if quantiles is None else [1.0] * len(quantiles)


@contextmanager
def driving(device: Device, tensors: DeviceTensors, recording: Recording) -> Iterator[None]:
    """Inside, Triton compiles for ``device`` and its launches are recorded."""
    driver = RecordingDriver(device, tensors, recording)
    made = CompiledKernel.__init__

    def remember(kernel: Any, *arguments: Any, **named: Any) -> None:
        made(kernel, *arguments, **named)
        driver.kernels[kernel.metadata.hash] = kernel

    before = triton.runtime.driver._active
    with ExitStack() as patches:
        for target, name, value in (
            (CompiledKernel, "__init__", remember),
            (triton.testing, "do_bench", measured_once),
            (triton.testing, "do_bench_cudagraph", measured_once),
            (triton.testing.Mark, "run", lambda *_, **__: None),
            (nvidia.cublas, "CublasLt", lambda *_: _Library(tensors)),
        ):
            patches.enter_context(mock.patch.object(target, name, value))
        triton.runtime.driver.set_active(driver)
        try:
            yield
        finally:
            triton.runtime.driver._active = before
