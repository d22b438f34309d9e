"""A session: PyTorch and Triton as on a machine with one GPU of a target, while launches are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Self

from mcheck.integrations.recording.autotuning import Choice, choosing
from mcheck.integrations.recording.backward import walked
from mcheck.integrations.recording.cuda_interface import presented
from mcheck.integrations.recording.device_tensors import DeviceTensors
from mcheck.integrations.recording.launches import Recording
from mcheck.integrations.recording.profiling import unprofiled
from mcheck.integrations.recording.targets import DEVICES
from mcheck.integrations.recording.triton_driver import driving


class Session:
    """What is recorded for a target."""

    def __init__(self, target: int, autotune: Choice) -> None:
        self._device = DEVICES[target]
        self._autotune = autotune
        self.tensors = DeviceTensors()
        self.recording = Recording()

    @contextmanager
    def active(self) -> Iterator[Self]:
        """While it is active, kernels are compiled and recorded, and no tensor has memory."""
        with ExitStack() as stack:
            stack.enter_context(presented(self._device))
            stack.enter_context(walked())
            stack.enter_context(unprofiled())
            stack.enter_context(self.tensors.active())
            stack.enter_context(driving(self._device, self.tensors, self.recording))
            stack.enter_context(choosing(self._autotune, self.tensors))
            yield self
