"""Files with a constant that is ``any``, and loops of many iterations: instances, and how they repeat."""
