"""Build UnQover probe sets: the same command as ``probesieve build unqover CLASS``."""

from probesieve.cli import build_unqover, run

run(build_unqover)
