"""The HTTP door: who gets in, what is refused, and the same answers as on standard output."""
