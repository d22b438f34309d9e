"""CUDA C++: its compiler, the PTX that it makes of a source, and the launches that a program makes, recorded without a
GPU.
"""
