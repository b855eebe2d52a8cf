"""``probesieve``, and ``python -m probesieve``."""

from builders.stopping import be_over, told_when_stopped


def main() -> None:
    """Run ``probesieve``; Ctrl-C is heeded before the rest is imported, which takes a while."""
    try:
        with told_when_stopped():
            from probesieve.cli import main as run

            run()
    finally:
        be_over()


if __name__ == "__main__":
    main()
