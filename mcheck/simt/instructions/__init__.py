"""What each group of instructions does to the lanes; ``dispatch`` chooses."""
