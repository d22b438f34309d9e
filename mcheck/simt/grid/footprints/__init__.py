"""The clusters of a grid one by one: what each class of them accesses in global memory, and whether two can conflict.

One cluster is executed. The values of its registers are accompanied by their affine forms in the coordinates of the
cluster (``affine_forms``, ``watched_execution``); a dependence on the coordinates that is not affine becomes a
condition on them, and the clusters that satisfy all conditions are the class of the executed one (``space``). The
footprint of the class is a sum of strided ranges whose beginnings move with the coordinates (``regions``); whether two
clusters touch one byte is decided by intervals, by divisors, and by Z3 where those are inconclusive (``overlap``).
"""
