"""Score a model on probe sets: the same command as ``probesieve eval --model MODEL``."""

from probesieve.cli import evaluate, run

run(evaluate)
