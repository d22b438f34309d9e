"""The exceptions of mcheck, under the name by which scripts import them; ``mcheck.base.errors`` defines them."""

from mcheck.base.errors import Exceeded, InputError, InternalError, McheckError, Span, Unsupported

__all__ = ["Exceeded", "InputError", "InternalError", "McheckError", "Span", "Unsupported"]
