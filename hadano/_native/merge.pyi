from array import array

def fuse(
    chunks: array[int] | memoryview,
    docs: array[int] | memoryview,
    per_doc: int,
    ranks: int,
    constant: int,
    top: int,
) -> tuple[list[tuple[int, float, list[int]]], bool]: ...
