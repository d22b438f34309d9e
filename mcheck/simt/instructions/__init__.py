"""The effect of each group of instructions on the lanes; ``dispatch`` chooses the step maker."""
