"""The hash by which the store knows a content again."""


def sha256_of(text: str) -> str:
    """SHA-256 of the text's UTF-8 bytes, in lower-case hex. Half of a surrogate pair, which is in
    no stored text but may be in a refused one, counts as the three bytes that would spell it."""
    import hashlib  # It loads OpenSSL, some 3 ms, for which only a store has to wait.

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
