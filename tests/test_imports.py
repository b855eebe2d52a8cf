"""What the packages import, and where."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ("aflite", "builders", "evaluation", "probesieve", "unqover_data")
MODULES = sorted(path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py"))
POSIX = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}


def at_start(node: ast.AST) -> Iterator[str]:
    """Names of the modules that are imported when a module is, which is outside its functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield child.module or ""
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from at_start(child)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_no_module_needs_what_windows_lacks_to_start(path: Path) -> None:
    assert not POSIX & set(at_start(ast.parse(path.read_text(encoding="utf-8"))))
