def windows(text: str, size: int, stride: int) -> list[str]:
    """The overlapping windows of a text, in order: `size` codepoints each, one every `stride`.

    A text of up to `size` codepoints is its own only window (the same object). A longer one has
    1 + ceil((n - size) / stride) windows: window i starts at codepoint stride * i and the last
    ends with the text, so that none lies wholly inside another.

    Raises ValueError unless 0 < stride <= size.
    """
