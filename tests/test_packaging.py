"""What a release holds: the sdist builds by itself, and a wheel has stubs and no C."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist, and the wheel that was built from it, without a network."""
    target = tmp_path_factory.mktemp("dist")
    environment = dict(os.environ)
    if os.name == "posix":
        environment["CFLAGS"] = "-Werror"
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(ROOT)]
    built = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert built.returncode == 0, built.stdout
    return target


def kinds(names: list[str]) -> set[str]:
    return {Path(name).suffix for name in names}


@pytest.mark.slow
def test_an_sdist_holds_the_sources_and_nothing_generated_or_compiled(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    inside = {name.partition("/")[2] for name in names}
    assert {
        "LICENSE",
        "README.md",
        "hadano/py.typed",
        "hadano/_native/fold.pyx",
        "hadano/_native/unicode_tables.h",
        "hadano/data/embedding.bin",
        "LICENSES/Apache-2.0.txt",
        "NOTICE",
        "tests/oracle/folding.py",
        "tools/unicode_tables.py",
    } <= inside
    assert kinds(names).isdisjoint({".c", ".so", ".pyd", ".pyc"})


@pytest.mark.slow
def test_a_wheel_compiles_without_a_warning_and_holds_stubs_but_no_c(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {
        "hadano/server.py",
        "hadano/py.typed",
        "hadano/_native/__init__.pyi",
        "hadano/_native/fold.pyi",
        "hadano/_native/vectors.pyi",
        "hadano/data/embedding.bin",
    } <= set(names)
    inside = {name.partition(".dist-info/licenses/")[2] for name in names}
    assert {"LICENSE", "NOTICE", "LICENSES/Apache-2.0.txt"} <= inside
    assert wheel.stat().st_size < 30_000_000
    compiled = {
        Path(name).name.partition(".")[0] for name in names if name.endswith((".so", ".pyd"))
    }
    assert compiled == {source.stem for source in (ROOT / "hadano" / "_native").glob("*.pyx")}
    assert kinds(names).isdisjoint({".c", ".h", ".pyx"})
    assert not any(name.startswith(("tests/", "tools/")) for name in names)
