"""What the evaluation raises when an input, not the code, is at fault; the command line prints it as one line."""


class EvaluationError(ValueError):
    """A model, an option or a probe set that cannot be used; the message names it and says what to do."""
