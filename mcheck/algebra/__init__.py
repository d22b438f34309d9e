"""Relations on events as rows of bits, and a cat model compiled to a straight-line program over them."""
