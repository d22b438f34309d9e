"""Tests on other machines: batches through a scheduler of Dask, programs and models by content."""
