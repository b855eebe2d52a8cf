"""Build UnQover probe sets: ``python scripts/build_unqover.py religion`` is ``probesieve build unqover religion``."""

from probesieve.cli import build_unqover, run

run(build_unqover)
