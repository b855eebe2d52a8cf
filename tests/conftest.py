"""Fixtures for every test."""

from tests.hub_fixtures import hub, make_folder, run_steps

__all__ = ["hub", "make_folder", "run_steps"]
