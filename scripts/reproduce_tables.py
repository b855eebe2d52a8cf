"""Lay out the tables of the AFLite paper: the same command as ``probesieve tables``."""

from probesieve.cli import run
from probesieve.train_commands import tables

run(tables)
