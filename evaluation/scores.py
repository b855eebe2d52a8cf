"""The eight scores of a probe row, in the one order that scorers, stores and metrics share."""

SCORE_COLUMNS = (
    *("s1_12", "s2_12", "s1_21", "s2_21"),
    *("s1_12_negated", "s2_12_negated", "s1_21_negated", "s2_21_negated"),
)
"""S of subject1 and subject2 in the order 12, then 21, for the attribute; then the same for its negation."""
