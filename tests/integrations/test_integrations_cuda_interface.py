"""``torch.cuda`` as it is presented without a GPU: its classes stay classes, its properties are found by every way."""

from __future__ import annotations

import pytest


def test_what_pytorch_asks_of_its_classes_and_of_the_properties_is_answered() -> None:
    """Its own functions, which others have imported before, ask ``isinstance`` and look behind the public names."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from mcheck.integrations.recording.cuda_interface import presented
    from mcheck.integrations.recording.targets import DEVICES

    properties = torch.cuda.get_device_properties
    with presented(DEVICES[90]):
        for kind in (torch.cuda.device, torch.cuda.Stream, torch.cuda.Event):
            assert isinstance(kind(0), kind)
        with torch.cuda.device(0):
            assert properties(torch.device("cuda", 0)).major == 9
