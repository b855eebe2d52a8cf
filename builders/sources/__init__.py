"""Readers of what is filtered: any source becomes memory-mapped rows with a label and the place they had."""
