"""What the evaluation raises when an input, not the code, is at fault; the command line prints it as one line."""

from unqover_data.errors import OneLine


class EvaluationError(OneLine, ValueError):
    """A model, an option or a probe set that cannot be used; the message names it and says what to do."""
