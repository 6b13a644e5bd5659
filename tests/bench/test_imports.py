from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "paramixer"


def test_the_package_imports_nothing_that_stands_beside_it():
    """Benchmarks and experiments are not in the wheel; they import the package, never the reverse."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & {"benchmarks", "experiments", "tests"}, path
