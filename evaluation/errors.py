"""What evaluation raises when an input, not the code, is at fault; the command line prints it as one line."""


class EvaluationError(ValueError):
    """A model, a dataset, a predictions file or an option that cannot be used; the message says what to do."""
