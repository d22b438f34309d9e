"""mcheck: what NVIDIA's asynchronous copies allow, checked against formal memory models."""

__version__ = "0.2.0"
