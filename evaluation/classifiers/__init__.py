"""Scores of classifiers: on filtered sets, out of distribution, beside humans and other models."""
