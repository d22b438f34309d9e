"""Concrete execution of a PTX module, warp by warp, to the program that one cluster executes (``trace_extraction``)."""
