"""The clusters of a grid, which share global memory.

One cluster is executed. The values of its registers are accompanied by their affine forms in the coordinates of the
cluster; what it accesses is so known for all clusters of its class, and of any two whether they conflict
(``footprints``). ``launches`` compares those of launches that overlap. Where clusters conflict, and synchronise,
pairs of them may stand for the grid (``pairs``): if they count themselves (``counters``), wait for each other's signals
(``signals``), look at each other's words (``looks``) or take locks (``locks``).
"""
