"""The devices that a test-suite may be compiled for."""

from __future__ import annotations

from typing import Final

from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Device:
    """A device by its compute capability, with the sizes of NVIDIA's largest product of it."""

    arch: int
    name: str
    multi_processor_count: int
    shared_memory: int
    total_memory: int = 80 << 30

    @property
    def capability(self) -> tuple[int, int]:
        """Major and minor number."""
        return divmod(self.arch, 10)


# CUDA programming guide, technical specifications per compute capability: shared memory of a block, after opting in.
_DEVICES: Final = (
    Device(75, "T4", 40, 64 << 10),
    Device(80, "A100", 108, 163 << 10),
    Device(86, "A10", 72, 99 << 10),
    Device(89, "L40", 142, 99 << 10),
    Device(90, "H100", 132, 227 << 10),
    Device(100, "B200", 148, 227 << 10),
    Device(103, "B300", 148, 227 << 10),
    Device(120, "RTX PRO 6000", 188, 99 << 10),
)
DEVICES: Final = {device.arch: device for device in _DEVICES}
