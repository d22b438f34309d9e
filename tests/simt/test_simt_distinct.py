"""The different values and rows of an array, beside those of NumPy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mcheck.simt.distinct import distinct, distinct_rows

SMALL = st.integers(-2, 3)


@given(st.lists(st.lists(SMALL, min_size=3, max_size=3), max_size=8))
def test_values_and_rows_are_those_of_numpy(rows: list[list[int]]) -> None:
    table = np.array(rows, np.int64).reshape(-1, 3)
    assert distinct(table).tolist() == np.unique(table).tolist()
    assert distinct_rows(table).tolist() == np.unique(table, axis=0).tolist()
    assert distinct_rows(table[:, :0]).shape == np.unique(table[:, :0], axis=0).shape


def test_unsigned_numbers_keep_their_order() -> None:
    values = np.array([2**63, 1, 2**64 - 1, 1], np.uint64)
    assert distinct(values).tolist() == [1, 2**63, 2**64 - 1]
    assert distinct(values).dtype == np.uint64
