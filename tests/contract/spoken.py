"""Everything that an error says, wherever somebody may look."""

import traceback
from uuid import uuid4

MARKER = f"marker{uuid4().hex[:12]}"
"""What stands in locations, and must stand nowhere else."""


def all_that_is_said(error: BaseException | None) -> str:
    """The text, repr, arguments, attributes and printed traceback of an error and of all that is chained to it."""
    if error is None:
        return ""
    parts = [str(error), repr(error), repr(error.args), repr(vars(error)), getattr(error, "__notes__", "")]
    parts += traceback.format_exception(error)
    chained = all_that_is_said(error.__cause__) + all_that_is_said(error.__context__)
    return " ".join(map(str, parts)) + chained
