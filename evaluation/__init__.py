"""Scoring of models on the probe sets and filtered sets that ``builders`` wrote to disk.

Scorers give S values per row, metrics turn stored rows into the papers' aggregates; no metric needs a model.
"""
