"""Which lines inside the loops of the compiled core call Python, by what Cython makes of them.

    python tools/loops.py                  every such line, file by file
    python tools/loops.py --html FOLDER    Cython's annotated pages as well, to be read in a browser

Where nothing is listed a loop runs in C alone. What is listed is a loop over terms, statements or
documents, whose steps are few; a loop over postings, codepoints or numbers has no place there. The
parts of rank.pyx are put in their places first: Cython annotates no file that is included.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

NATIVE = Path(__file__).resolve().parents[1] / "hadano" / "_native"
INCLUDED = re.compile(r'include "(.+)"\n')
#: One line of Cython's page; the score is how much of Python's C API it calls.
ANNOTATED = re.compile(r'<pre class="cython line score-(\d+)"[^>]*>[^<]*<span[^>]*>0*(\d+)</span>')


class Line(NamedTuple):
    file: str
    number: int
    text: str

    @property
    def depth(self) -> int:
        return len(self.text) - len(self.text.lstrip())


def lines_of(source: Path) -> Iterator[Line]:
    """The lines of a module, its parts in their places."""
    for number, text in enumerate(source.read_text("utf-8").splitlines(keepends=True), 1):
        part = INCLUDED.fullmatch(text)
        if part:
            yield from lines_of(source.with_name(part[1]))
        else:
            yield Line(source.name, number, text)


def annotated(source: Path, lines: list[Line], folder: Path) -> list[int]:
    """The score of each line."""
    whole = folder / source.name
    whole.write_text("".join(line.text for line in lines), "utf-8")
    subprocess.run([sys.executable, "-m", "cython", "-3", "-a", whole], check=True)
    scores = [0] * len(lines)
    for score, number in ANNOTATED.findall(whole.with_suffix(".html").read_text("utf-8")):
        scores[int(number) - 1] = int(score)
    return scores


def in_loops(lines: list[Line]) -> list[bool]:
    """Of each line, whether it is run again and again: of a loop's head, only what `while` asks."""
    inside = []
    heads: list[int] = []
    for line in lines:
        if line.text.strip():
            while heads and line.depth <= heads[-1]:
                heads.pop()
        word = line.text.split(maxsplit=1)[:1]
        inside.append(bool(heads) or word == ["while"])
        if word in (["for"], ["while"]):
            heads.append(line.depth)
    return inside


def main() -> None:
    parser = argparse.ArgumentParser(description="List lines in compiled loops that call Python.")
    parser.add_argument("--html", type=Path, metavar="FOLDER", help="keep Cython's pages there")
    kept = parser.parse_args().html
    for source in sorted(NATIVE.glob("*.pyx")):
        lines = list(lines_of(source))
        with tempfile.TemporaryDirectory() as folder:
            scores = annotated(source, lines, Path(folder))
            if kept is not None:
                kept.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(folder, source.name).with_suffix(".html"), kept)
        looped = list(zip(lines, scores, in_loops(lines), strict=True))
        calling = [line for line, score, again in looped if again and score]
        print(f"{source.name}: {sum(again for _, _, again in looped)} lines in loops")
        for line in calling:
            print(f"  {line.file}:{line.number}: {line.text.strip()}")


if __name__ == "__main__":
    main()
