"""Push a folder to the Hub: the same command as ``probesieve push FOLDER ORG/NAME``."""

from probesieve.cli import push, run

run(push)
