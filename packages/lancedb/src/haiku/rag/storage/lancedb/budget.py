"""The memory that one storage may use for what it holds of its databases."""


class MemoryBudget:
    """How many bytes the rows, vectors and texts of all databases of one storage may take together."""

    def __init__(self, limit: int) -> None:
        self._free = limit

    def exchange(self, held: int, wanted: int) -> bool:
        """Give back what is held and take what is wanted; False, with nothing held any more, where it is too much."""
        self._free += held
        if wanted > self._free:
            return False
        self._free -= wanted
        return True
