"""Late interaction: how well a passage's tokens answer each of the query's.

MaxSim is from O. Khattab and M. Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late
Interaction over BERT", SIGIR 2020: each token of the query is given its best match in the passage. There it is a sum;
here it is a mean, so that a score means the same for short queries and for long ones.

The mean alone loses the sense of the whole, which the vectors of the two texts have, and the words as they are written,
which a fusion may have compared. The score is therefore a mixture of the three; the shares are round numbers near the
best of a wide plateau, measured on eight judged collections (docs/reranker-local.md).
"""

from dataclasses import dataclass

import numpy as np

from haiku.rag.contracts.embedder import Vectors
from haiku.rag.rerankers.local.compact import CompactPassage

SHARE_OF_FUSED = 0.3
SHARE_OF_MAXSIM = 0.5
"""The latter of what the fused score leaves, the other half being that of the texts' own vectors."""
LOWEST, HIGHEST = -1.0, 1.0


@dataclass(frozen=True)
class Question:
    """A query: the vectors of the tokens that count, of shape `(n, dimension)`, and its own vector."""

    tokens: Vectors
    pooled: Vectors

    def score(self, passage: CompactPassage, fused: float | None = None) -> float:
        """The mean of the best cosines of the query's tokens, the cosine of the two texts, and the fused score, mixed.

        From -1 to 1. Where query or passage has no token there is nothing to compare, and the score is the lowest.
        """
        if not len(self.tokens) or not len(passage.codes):
            return LOWEST
        cosines = (self.tokens @ passage.codes.T.astype(np.float32)) * passage.scales
        late = float(cosines.max(axis=1).mean())
        whole = float(self.pooled @ passage.pooled.astype(np.float32))
        own = bounded(SHARE_OF_MAXSIM * late + (1 - SHARE_OF_MAXSIM) * whole)
        return own if fused is None else SHARE_OF_FUSED * bounded(fused) + (1 - SHARE_OF_FUSED) * own


def bounded(score: float) -> float:
    """The score, or the end of the scale that it is beyond."""
    return min(max(score, LOWEST), HIGHEST)
