"""Compile hadano._native; everything else about the package is in pyproject.toml.

The generated C goes under build/, so neither the source tree nor a wheel ever holds any.
"""

from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# A warning from Cython names a real doubt (an untyped or unused name): it stops the build.
Options.warning_errors = True

# No -march: a built wheel must run on every machine of its platform.
# No fused multiply-add, which arm64 compilers would make: scores have to be FTS5's to the last bit
# (MSVC contracts nothing under /fp:precise since Visual Studio 2022).
COMPILE_FLAGS = {
    "msvc": ["/O2", "/W3", "/fp:precise"],
    "unix": ["-O3", "-Wall", "-Wextra", "-ffp-contract=off"],
}


class BuildExtension(build_ext):
    """Adds the flags of the compiler in use, known only once the build has begun."""

    def build_extensions(self) -> None:
        flags = COMPILE_FLAGS.get(self.compiler.compiler_type, [])
        for extension in self.extensions:
            extension.extra_compile_args = flags
        super().build_extensions()


def kernels() -> list[Extension]:
    """One extension module for every .pyx file of hadano/_native."""
    return [
        Extension(
            f"hadano._native.{source.stem}",
            [source.as_posix()],
            include_dirs=[source.parent.as_posix()],
            depends=[
                part.as_posix() for part in source.parent.iterdir() if part.suffix in (".h", ".pxi")
            ],
        )
        for source in sorted(Path("hadano/_native").glob("*.pyx"))
    ]


setup(
    ext_modules=cythonize(kernels(), build_dir="build/cython"),
    cmdclass={"build_ext": BuildExtension},
)
