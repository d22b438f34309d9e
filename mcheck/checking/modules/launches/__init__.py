"""Several launches of a file: what is ordered, and the answer about all of them."""
