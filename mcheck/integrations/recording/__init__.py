"""Kernels recorded without a GPU: what a test-suite compiles and launches is checked once and summed up.

``launches`` has what is recorded, ``answers`` the answer about each distinct launch, ``tally`` the summary. The other
modules need PyTorch or Triton: ``device_tensors`` and ``cuda_interface`` stand for a GPU in PyTorch, ``triton_driver``
and ``autotuning`` for one in Triton. Nothing here runs a kernel.
"""
