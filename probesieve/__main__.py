"""``python -m probesieve``."""

from probesieve.cli import main

main()
