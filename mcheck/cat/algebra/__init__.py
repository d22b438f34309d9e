"""A model compiled to a straight-line program (a tape) over relations, and relations as rows of bits."""
