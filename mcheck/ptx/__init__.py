"""PTX modules as compilers emit them, with the launch of one kernel: reading, following one cluster, answering."""
