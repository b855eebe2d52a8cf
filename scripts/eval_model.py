"""Score a model on probe sets or filtered sets: the same command as ``probesieve eval --model MODEL``."""

from probesieve.cli import run
from probesieve.eval_commands import evaluate

run(evaluate)
