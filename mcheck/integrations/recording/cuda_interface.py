"""``torch.cuda`` as programs see it that only compile: one device of a target, on which everything has finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch

from mcheck.base.records import dataclass
from mcheck.integrations.recording.targets import Device


@dataclass(frozen=True, slots=True)
class _Properties:
    """What ``get_device_properties`` returns."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    total_memory: int
    shared_memory_per_block_optin: int
    warp_size: int = 32
    max_threads_per_multi_processor: int = 2048
    regs_per_multiprocessor: int = 65536
    L2_cache_size: int = 50 << 20


class _DeviceScope:
    """``torch.cuda.device``: a class, since PyTorch asks what is an instance of it."""

    idx = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> None:
        """The device is the only one."""

    def __exit__(self, *_: object) -> None:
        """The device is the only one."""


class _Stream:
    """A stream: whatever was put into it has finished."""

    cuda_stream = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = None

    def synchronize(self) -> None:
        """Nothing is pending."""

    def wait_stream(self, other: Any) -> None:
        """Nothing is pending."""

    def wait_event(self, event: Any) -> None:
        """Nothing is pending."""

    def record_event(self, event: Any = None) -> Any:
        """An event of the stream."""
        return event or _Event()


class _Event:
    """An event: it has happened."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        """The event has happened."""

    def synchronize(self) -> None:
        """The event has happened."""

    def wait(self, stream: Any = None) -> None:
        """The event has happened."""

    def query(self) -> bool:
        """The event has happened."""
        return True

    def elapsed_time(self, end: Any) -> float:  # noqa: ARG002 - nothing is measured
        """A millisecond, so that rates can be computed."""
        return 1.0


@contextmanager
def presented(device: Device) -> Iterator[None]:
    """Inside, ``torch.cuda`` has one device, and touches none."""
    major, minor = device.capability
    properties = _Properties(
        device.name, major, minor, device.multi_processor_count, device.total_memory, device.shared_memory
    )

    def always(value: Any) -> Callable[..., Any]:
        return lambda *_, **__: value

    stream = _Stream()
    functions: dict[str, Any] = {
        "is_available": always(True),
        "is_initialized": always(True),
        "init": always(None),
        "_lazy_init": always(None),
        "device_count": always(1),
        "current_device": always(0),
        "set_device": always(None),
        "device": _DeviceScope,
        "get_device_capability": always((major, minor)),
        "get_device_properties": always(properties),
        "get_device_name": always(device.name),
        "synchronize": always(None),
        "current_stream": always(stream),
        "default_stream": always(stream),
        "set_stream": always(None),
        "stream": always(nullcontext()),
        "Stream": _Stream,
        "ExternalStream": _Stream,
        "Event": _Event,
        "empty_cache": always(None),
        "ipc_collect": always(None),
        "manual_seed": always(None),
        "manual_seed_all": always(None),
        "mem_get_info": always((device.total_memory, device.total_memory)),
        "memory_allocated": always(0),
        "max_memory_allocated": always(0),
        "reset_peak_memory_stats": always(None),
    }
    with (
        mock.patch.multiple(torch.cuda, **functions),
        mock.patch.object(torch.cuda, "_get_device_properties", always(properties), create=True),
        mock.patch.object(torch._C, "_cuda_getCurrentRawStream", always(0), create=True),
        mock.patch("torch._subclasses.fake_tensor.init_gpu_context", always(None)),
    ):
        yield
