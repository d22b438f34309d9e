"""Autotuning without measurements: the first configuration that can be launched, or every one, each launched once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal
from unittest import mock

from triton.runtime.autotuner import Autotuner

from mcheck.integrations.recording.device_tensors import DeviceTensors

Choice = Literal["first", "all"]
_UNUSED = float("inf")


@contextmanager
def choosing(choice: Choice, tensors: DeviceTensors) -> Iterator[None]:
    """Inside, kernels that are autotuned use the first configuration that fits; with ``all``, the others are launched
    too.
    """
    run = Autotuner.run

    def chosen(tuner: Any, *arguments: Any, **named: Any) -> Any:
        launched = False

        def measure(call: Any, quantiles: Any = None, **_: Any) -> list[float]:
            nonlocal launched
            number = len(quantiles or (0,))
            if launched and choice == "first":
                return [_UNUSED] * number
            with tensors.restored():  # each configuration finds what the host wrote
                call()  # raises where it does not fit; the tuner takes that as infinite time
            found = [_UNUSED if launched else 0.0] * number
            launched = True
            return found

        tuner.__dict__["do_bench"] = measure
        tuner.cache_results = False  # nothing was measured
        return run(tuner, *arguments, **named)

    with mock.patch.object(Autotuner, "run", chosen):
        yield
