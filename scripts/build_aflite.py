"""Build a filtered set: the same command as ``probesieve build aflite SET``."""

from probesieve.cli import build_aflite, run

run(build_aflite)
