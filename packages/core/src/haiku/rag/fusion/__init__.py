"""The fusion strategies that core ships; each is a plugin like any other."""

from haiku.rag.fusion.calibrated import CalibratedFusion
from haiku.rag.fusion.cosine import CosineFusion
from haiku.rag.fusion.rrf import ReciprocalRankFusion
from haiku.rag.fusion.weighted import WeightedFusion

__all__ = ["CalibratedFusion", "CosineFusion", "ReciprocalRankFusion", "WeightedFusion"]
