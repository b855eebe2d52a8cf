"""Tests of every package; run as `python -m pytest`."""
