"""A stand-in for PyTorch, so that TileLang can be imported without it: its compiler names torch and never runs it.

``install()`` puts modules into ``sys.modules`` whose attributes are empty classes and values; it does nothing where
torch is installed.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "half", "float", "double", "int",
    "long", "short", "float16", "bfloat16", "float32", "float64", "complex64", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2",
)  # fmt: skip


class _Anything:
    """Answers every attribute, call and index with another of its kind, and is false."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *_: Any, **__: Any) -> _Anything:
        return _Anything()

    def __getattr__(self, name: str) -> _Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __getitem__(self, _: Any) -> _Anything:
        return _Anything()

    def __bool__(self) -> bool:
        return False

    def __or__(self, _: Any) -> _Anything:
        return self

    __ror__ = __or__


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if f"torch.{name}" in sys.modules or name in ("cuda", "version", "utils", "nn", "distributed", "backends"):
            return importlib.import_module(f"{self.__name__}.{name}")
        return type(name, (_Anything,), {}) if name[0].isupper() else _Anything()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, _: Any, __: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != "torch":
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = _Module(spec.name)
        if spec.name == "torch":
            vars(module).update(
                {name: type("dtype", (), {"__repr__": lambda _, n=name: f"torch.{n}"})() for name in DTYPES}
            )
            vars(module).update(__version__="2.9.0", dtype=type(vars(module)["float"]))
            vars(module).update({name: type(name, (), {}) for name in ("Tensor", "Size", "Generator", "device")})
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


def install() -> None:
    """From now on ``import torch`` gives the stand-in."""
    if importlib.util.find_spec("torch") is None:
        sys.meta_path.append(_Finder())
