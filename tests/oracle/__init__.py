"""Slow twins of the compiled kernels: plainly right, and importing nothing that they judge."""
