"""Runs a command of this repository on a core compiled with the sanitizers of gcc or clang.

    python tools/sanitized.py -m pytest tests/native tests/tools/test_ranking.py
    python tools/sanitized.py -m tools.fuzz --seconds 3600

A copy of the sources is compiled with AddressSanitizer and UndefinedBehaviorSanitizer in a folder
of its own, and the command run there: whatever they find ends it with a report and a status that is
not 0. Linux only. What Python itself never frees is not looked for.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLAGS = "-g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
LEFT_OUT = ("*.so", "*.pyd", "__pycache__", "node_modules", "build", ".*", "*.egg-info")
ENVIRONMENT = {
    # Python's own small allocations would hide each other's ends.
    "PYTHONMALLOC": "malloc",
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def library(name: str) -> str:
    """Where the compiler keeps a sanitizer's run-time library, which Python must load first."""
    found = subprocess.run(
        [os.environ.get("CC", "gcc"), f"-print-file-name={name}"],
        capture_output=True,
        check=True,
        text=True,
    )
    return found.stdout.strip()


def compiled(folder: Path) -> None:
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        env=os.environ | {"CFLAGS": FLAGS, "LDFLAGS": FLAGS},
        check=True,
    )


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        compiled(Path(folder))
        preloaded = f"{library('libasan.so')} {library('libubsan.so')}"
        return subprocess.run(
            [sys.executable, *sys.argv[1:]],
            cwd=folder,
            env=os.environ | ENVIRONMENT | {"LD_PRELOAD": preloaded},
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
