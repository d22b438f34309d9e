"""Litmus tests on a chip: by the billion, under stress, beside what the model says.

``fit`` says which tests one GPU of sm_90 runs and how they lie on it where each lane is an instance, ``printer`` and
``kernel`` print them as PTX; ``streams``, ``stream_printer`` and ``whole`` do so where an instance has whole warps.
``observe`` says what is watched of tests that ask nothing, ``intended`` what they are written to do.
``plan`` bundles modules with what the runner has to know, ``run`` runs a bundle on the GPU of this machine, ``merge``
makes the file of results, ``compare`` holds it against a model.

``run`` and what it imports need Python and ``libcuda.so.1`` alone, so a bundle travels to a machine that has nothing
else.
"""
