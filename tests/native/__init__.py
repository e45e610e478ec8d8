"""The compiled kernels against their slow twins, on any text."""
