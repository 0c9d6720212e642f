"""What core asks of every fusion strategy, asked of this one."""

import pytest
from acme_fusion.fusion import SumFusion

from haiku.rag.testing import FusionContract


class TestSumFusion(FusionContract):
    @pytest.fixture
    def fusion(self) -> SumFusion:
        return SumFusion()
