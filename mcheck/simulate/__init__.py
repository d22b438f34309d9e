"""One fair execution of a program with real data: threads in some order, asynchronous copies at some later point."""
