"""The encoder as a graph: a BERT encoder whose weights stay in four bits while it runs."""

import numpy as np

from haiku.rag.embedders.multilingual.onnx_format import FLOAT, INT32, Graph
from haiku.rag.embedders.multilingual.packed import BLOCK, PackedModel, scales, stored_weights

EMBEDDINGS, MASK, HIDDEN = "embeddings", "mask", "hidden"
RUNTIME = "com.microsoft"
FLOATS = 1
"""ONNX Runtime's level for products that are computed in float32. Whole numbers are no faster here, and less exact."""


def encoder_graph(packed: PackedModel) -> bytes:
    """The graph as an ONNX file: from token embeddings and a mask to the hidden states of the last layer."""
    builder = _Builder(packed)
    builder.graph.input(EMBEDDINGS, FLOAT, ("texts", "tokens", packed.dimension))
    builder.graph.input(MASK, INT32, ("texts", "tokens"))
    states = builder.normalised(EMBEDDINGS, "emb.ln")
    for number in range(packed.layers):
        states = builder.layer(states, f"l{number}")
    builder.graph.operator("Identity", [states], HIDDEN)
    builder.graph.output(HIDDEN, FLOAT, ("texts", "tokens", packed.dimension))
    return builder.graph.model()


class _Builder:
    """Adds the parts of the encoder, each called after its weights."""

    def __init__(self, packed: PackedModel) -> None:
        self._packed = packed
        self.graph = Graph()

    def layer(self, states: str, name: str) -> str:
        """One layer: attention, then two linear maps, each added to what came in."""
        size, inner = self._packed.dimension, self._packed.inner
        attended = self._biased(self._linear(self._attention(states, name), f"{name}.ao.w", size), f"{name}.ao.b")
        middle = self.normalised(self._sum(states, attended), f"{name}.aln")
        widened = self._biased(self._linear(middle, f"{name}.fi.w", size), f"{name}.fi.b")
        active = self.graph.operator("Gelu", [widened], f"{name}.active")
        narrowed = self._biased(self._linear(active, f"{name}.fo.w", inner), f"{name}.fo.b")
        return self.normalised(self._sum(middle, narrowed), f"{name}.oln")

    def normalised(self, states: str, name: str) -> str:
        """Each token's state with mean 0 and variance 1, then scaled and shifted."""
        weights = [self._floats(f"{name}.w"), self._floats(f"{name}.b")]
        return self.graph.operator(
            "LayerNormalization", [states, *weights], f"{name}.out", epsilon=float(self._packed.epsilon)
        )

    def _attention(self, states: str, name: str) -> str:
        parts = [self._linear(states, f"{name}.{part}.w", self._packed.dimension) for part in "qkv"]
        biases = np.concatenate([self._packed.floats(f"{name}.{part}.b") for part in "qkv"])
        given = [*parts, self.graph.constant(f"{name}.qkv.b", biases), MASK]
        return self.graph.operator(
            "MultiHeadAttention", given, f"{name}.attention", domain=RUNTIME, num_heads=self._packed.heads
        )

    def _linear(self, states: str, name: str, columns: int) -> str:
        blocks = self._packed.blocks(name, columns)
        weights = stored_weights(blocks)
        packed = self.graph.constant(name, np.bitwise_or(weights[..., 0::2], weights[..., 1::2] << 4, dtype=np.uint8))
        scaling = self.graph.constant(f"{name}.scales", scales(blocks).reshape(-1))
        size = {"K": columns, "N": len(blocks), "bits": 4, "block_size": BLOCK, "accuracy_level": FLOATS}
        return self.graph.operator("MatMulNBits", [states, packed, scaling], f"{name}.out", domain=RUNTIME, **size)

    def _biased(self, states: str, name: str) -> str:
        return self.graph.operator("Add", [states, self._floats(name)], f"{name}.out")

    def _sum(self, left: str, right: str) -> str:
        return self.graph.operator("Add", [left, right], f"{right}.sum")

    def _floats(self, name: str) -> str:
        return self.graph.constant(name, self._packed.floats(name))
