"""What the builders raise when an input, not the code, is at fault; the command line prints it as one line."""

from unqover_data.errors import OneLine


class BuildError(OneLine, ValueError):
    """A spec, an option or a folder that cannot be used; the message names it and says what to do."""


class HubError(OneLine, RuntimeError):
    """The Hub, or the way to it, said no; the message says what and what to do."""
