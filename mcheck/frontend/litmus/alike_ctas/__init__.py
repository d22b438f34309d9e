"""The CTAs of a sketch that are alike: what they may do so that pairs of them stand for any number."""
