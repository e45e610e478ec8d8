"""One command tells the truth: format, lint, types, stubs and layers are tests like any other.

None of it needs a network. Each tool reads its own settings from pyproject.toml.
"""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import hadano

ROOT = Path(__file__).parent.parent
NATIVE = ROOT / "hadano" / "_native"

TOOLS = {
    "lint": ["-m", "ruff", "check", "."],
    "format": ["-m", "ruff", "format", "--check", "."],
    "Cython lint": [
        "-c",
        "from cython_lint.cython_lint import main; raise SystemExit(main(['hadano/_native']))",
    ],
    "types": ["-m", "mypy", "--strict"],
    "stubs": ["-m", "mypy.stubtest", "hadano._native"],
    "layers": [
        "-c",
        "from importlinter.cli import lint_imports_command as run; run()",
        "--no-cache",
    ],
}

# What a kernel may import: Python's and C's own, never ours (the errors aside), never a library.
KERNEL_IMPORTS = re.compile(r": ((cpython|libc)(\.\w+)* cimport|hadano\.errors import|cython$)")


@pytest.mark.parametrize("tool", TOOLS)
def test_the_house_is_in_order(tool: str) -> None:
    ran = subprocess.run(
        [sys.executable, *TOOLS[tool]],
        cwd=ROOT,
        # cython-lint looks for pycodestyle on the path, and nobody need activate a venv.
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


TOP_LEVEL = set(
    ".ci .gitignore CHANGELOG.md LICENSE LICENSES MANIFEST.in NOTICE README.md asv.conf.json"
    " benchmarks docs hadano pyproject.toml setup.py tests tools".split()
)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout")
def test_nothing_got_into_the_house_by_accident() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert {path.partition("/")[0] for path in listed.stdout.splitlines()} == TOP_LEVEL


def test_kernels_import_nothing_but_python_and_c() -> None:
    imports = [
        f"{source.name}: {line}"
        for source in [*NATIVE.glob("*.pyx"), *NATIVE.glob("*.pxi")]
        for line in re.findall(
            r"^\s*(?:from|import|cimport)\s+(\w.*)$", source.read_text("utf-8"), re.MULTILINE
        )
    ]
    assert imports
    assert [line for line in imports if not KERNEL_IMPORTS.search(line)] == []


def test_what_tests_share_is_in_no_test() -> None:
    """Whoever imports a test runs it, or lets it change for reasons of its own."""
    sources = [
        path for part in ("tests", "tools", "benchmarks") for path in ROOT.glob(f"{part}/**/*.py")
    ]
    assert len(sources) > 100
    importing = re.compile(r"^\s*(?:from|import) (?:tests[\w.]*)?\.?test_\w+", re.MULTILINE)
    assert [path.name for path in sources if importing.search(path.read_text("utf-8"))] == []


def test_the_installed_version_is_the_one_in_the_source() -> None:
    assert metadata.version("hadano") == hadano.__version__


def test_the_newest_change_is_of_this_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[?(\d+\.\d+\.\d+)", changes, re.MULTILINE)
    assert newest is not None
    assert newest[1] == hadano.__version__


def test_every_test_that_the_page_on_reliability_names_is_there() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    tests = {
        path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/test_*.py")
    }
    named = re.findall(r"`(?:[\w/]+/)?(test_\w+\.py)`(?:: ((?:`test_\w+`(?:, )?)+))?", page)
    assert len(named) > 30
    for file, names in named:
        assert file in tests
        for name in re.findall(r"test_\w+", names):
            assert f"def {name}(" in tests[file]
