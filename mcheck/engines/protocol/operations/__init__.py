"""What each kind of operation does in an execution, and the scheduler that runs them."""
