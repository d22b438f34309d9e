"""The PTX language as a table: which instructions exist, what they may say, and what they do."""

from mcheck.isa.decode import decode

__all__ = ["decode"]
