"""The nearest vectors by plain arithmetic over all of them. Knows nothing of the kernel."""

import math


def nearest(
    vectors: dict[int, list[int]], seeds: list[list[int]], most: int
) -> list[tuple[int, float]]:
    """Best cosine similarity to any seed; best first, the smaller id first among equals."""
    seeds = [seed for seed in seeds if any(seed)]
    scores = {
        id: max(dot(vector, seed) / length(seed) for seed in seeds) / length(vector)
        for id, vector in vectors.items()
        if seeds and any(vector)
    }
    ranked = sorted(scores, key=lambda id: (-scores[id], id))
    return [(id, scores[id]) for id in ranked[:most]]


def dot(one: list[int], other: list[int]) -> int:
    return sum(a * b for a, b in zip(one, other, strict=True))


def length(vector: list[int]) -> float:
    return math.sqrt(dot(vector, vector))
