"""What cannot be measured."""

from haiku.rag.errors import HaikuRagError


class EvalError(HaikuRagError, ValueError):
    """A dataset or a run that cannot be read, a filter that leaves nothing to ask, runs that have nothing in common."""
