"""Train a classifier on a subset of a filtered set: the same command as ``probesieve train``."""

from probesieve.cli import run
from probesieve.train_commands import train

run(train)
