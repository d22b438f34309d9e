"""The clusters of a grid: what they touch of the memory that all of them share, and which of them can meet there.

One cluster is executed. Beside the values of its registers stand their affine forms in the coordinates of the cluster
(``forms``, ``watch``); what depends on the coordinates in another way leaves a condition on them, and the clusters for
which all conditions hold are the class of the one that was executed (``space``). What the class touches is a sum of
strided ranges whose beginnings move with the coordinates (``regions``); whether two clusters touch one byte is decided
by intervals, by divisors, and by Z3 where they do not tell (``overlap``). ``coverage`` says what that means for the
answer about the launch.
"""
