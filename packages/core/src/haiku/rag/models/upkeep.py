"""What upkeep did."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel


class UpkeepStep(BaseModel):
    """One step's outcome.

    `detail` says what was done, was to be done, or went wrong, and never where; `seconds` is what it took.
    """

    name: str
    status: Literal["done", "nothing to do", "failed", "planned"]
    detail: str = ""
    seconds: float = 0.0


class UpkeepReport(BaseModel):
    """The outcomes of one run, in the order of the steps."""

    finished_at: datetime
    dry_run: bool = False
    steps: list[UpkeepStep] = []

    @property
    def failed(self) -> list[UpkeepStep]:
        """The steps that failed."""
        return [step for step in self.steps if step.status == "failed"]
