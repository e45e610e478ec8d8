"""What `python -m hadano.bench` is made of: texts to measure with, the measuring, the page."""
