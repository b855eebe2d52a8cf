"""Nothing that is imported at start is missing on Windows."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("aflite", "builders", "evaluation", "probesieve", "unqover_data")
POSIX = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}  # the docs of Python name them


def test_no_module_imports_at_its_top_what_windows_lacks() -> None:
    found = set()
    for path in (file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {(path.name, name) for name in names if name.partition(".")[0] in POSIX}
    assert not found
