"""The fusion strategies that core ships; each is a plugin like any other."""

from haiku.rag.fusion.cosine import CosineFusion
from haiku.rag.fusion.rrf import ReciprocalRankFusion

__all__ = ["CosineFusion", "ReciprocalRankFusion"]
