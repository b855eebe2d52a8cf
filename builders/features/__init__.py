"""Encoders: the warm-up training on a sample, and the features of all other rows."""
