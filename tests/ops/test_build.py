"""The build of the compiled module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not all(map(shutil.which, ("cmake", "c++"))), reason="needs CMake and a C++ compiler")
def test_a_compiler_that_cannot_compile_the_kernels_is_named_with_the_reason(tmp_path):
    compiler = tmp_path / "old-c++"
    compiler.write_text('#!/bin/sh\nexec c++ -D__builtin_mul_overflow=unknown_function "$@"\n')
    compiler.chmod(0o755)
    subprocess.run(
        ["cmake", "-S", ROOT, "-B", tmp_path / "build", f"-DPython_EXECUTABLE={sys.executable}"],
        check=True,
        capture_output=True,
        env={**os.environ, "CXX": str(compiler)},
    )
    reason = (tmp_path / "build" / "engine_missing.txt").read_text()
    assert "cannot compile the kernels (error" in reason
    assert "unknown_function" in reason
    assert "install GCC 10 or later" in reason
