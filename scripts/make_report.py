"""Write the report on results and datasets: the same command as ``probesieve report``."""

from probesieve.cli import run
from probesieve.report_commands import report

run(report)
