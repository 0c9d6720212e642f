"""Writing a graph in the format of ONNX, which is protobuf messages: what a small encoder needs of it, and no more.

The numbers of the fields are those of `onnx.proto3`. A field is its number and wire type, then a number (type 0), bytes
with their length (type 2) or four bytes (type 5).
"""

from collections.abc import Sequence
from struct import pack

import numpy as np
from numpy.typing import NDArray

FLOAT, UINT8, INT32 = 1, 2, 6
ELEMENT = {"float32": FLOAT, "uint8": UINT8, "int32": INT32}
VERSION = 9
OPERATORS = {"": 20, "com.microsoft": 1}

Attribute = int | float


class Graph:
    """A graph that grows operator by operator. Values are known by their names."""

    def __init__(self) -> None:
        self._parts: list[bytes] = [_bytes(2, b"encoder")]

    def operator(
        self, name: str, inputs: Sequence[str], output: str, *, domain: str = "", **attributes: Attribute
    ) -> str:
        """Add an operator; returns the name of its output."""
        parts = [_bytes(1, value.encode()) for value in inputs]
        parts += [_bytes(2, output.encode()), _bytes(4, name.encode()), _bytes(7, domain.encode())]
        parts += [_bytes(5, _attribute(key, value)) for key, value in attributes.items()]
        self._parts.append(_bytes(1, b"".join(parts)))
        return output

    def constant(self, name: str, values: NDArray[np.float32] | NDArray[np.uint8]) -> str:
        """Add numbers; returns their name."""
        shape = b"".join(_number(1, size) for size in values.shape)
        kind = _number(2, ELEMENT[values.dtype.name])
        self._parts.append(_bytes(5, shape + kind + _bytes(8, name.encode()) + _bytes(9, values.tobytes())))
        return name

    def input(self, name: str, kind: int, shape: Sequence[str | int]) -> str:
        """Add a value that is given; returns its name. A dimension is a size, or a name where it varies."""
        self._parts.append(_bytes(11, _value(name, kind, shape)))
        return name

    def output(self, name: str, kind: int, shape: Sequence[str | int]) -> None:
        """Say which value is the result."""
        self._parts.append(_bytes(12, _value(name, kind, shape)))

    def model(self) -> bytes:
        """The whole as a model's file."""
        operators = (
            _bytes(8, _bytes(1, domain.encode()) + _number(2, version)) for domain, version in OPERATORS.items()
        )
        return _number(1, VERSION) + _bytes(7, b"".join(self._parts)) + b"".join(operators)


def _attribute(name: str, value: Attribute) -> bytes:
    head = _bytes(1, name.encode())
    if isinstance(value, float):
        return head + _key(2, 5) + pack("<f", value) + _number(20, 1)
    return head + _number(3, value) + _number(20, 2)


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    sizes = (_bytes(2, size.encode()) if isinstance(size, str) else _number(1, size) for size in shape)
    dimensions = b"".join(_bytes(1, size) for size in sizes)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, dimensions)))


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _key(field, 0) + _varint(value)


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the top bit says that more follow."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
