# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Networks as ONNX files, written by hand: what a test needs of the format, without its libraries."""
import struct


def _varint(number):
    data = bytearray()
    while True:
        data.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(data)


def field(number, value):
    """A field of a message: of a number a varint, of a float 32 bits, of anything else its bytes."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value & (2**64 - 1))
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def tensor(name, shape, values):
    return (b"".join(field(1, extent) for extent in shape) + field(2, 1) + field(8, name)
            + field(9, struct.pack(f"<{len(values)}f", *values)))


def node(kind, inputs, output, **attributes):
    data = b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, output) + field(4, kind)
    for name, value in attributes.items():
        text = field(1, name)
        if isinstance(value, (list, tuple)):
            text += b"".join(field(8, number) for number in value) + field(20, 7)
        elif isinstance(value, int):
            text += field(3, value) + field(20, 2)
        else:
            text += field(2, value) + field(20, 1)
        data += field(5, text)
    return data


def _image(name, channels):
    extents = [field(1, 1), field(1, channels)] + [field(2, axis) for axis in "zyx"]
    shape = b"".join(field(1, extent) for extent in extents)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def model(nodes, tensors, channels_in=1, channels_out=1, opset=13):
    """An image "in" becomes an image "out"."""
    graph = (b"".join(field(1, one) for one in nodes) + field(2, "test") + b"".join(field(5, one) for one in tensors)
             + field(11, _image("in", channels_in)) + field(12, _image("out", channels_out)))
    return field(1, 8) + field(7, graph) + field(8, field(2, opset))


def weights(count, seed=0):
    return [((i * 7 + seed * 3) % 11 - 4.5) * 0.04 for i in range(count)]


def small_model(nodes_after=()):
    """Three channels from a grid of half the resolution and a shortcut around it."""
    first, last = weights(2 * 27, 1), weights(3 * 4 * 27, 2)
    nodes = [
        node("Conv", ["in", "w1"], "a", kernel_shape=[3, 3, 3], pads=[1] * 6),
        node("Relu", ["a"], "b"),
        node("MaxPool", ["b"], "c", kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
        node("ConvTranspose", ["c", "w2"], "d", kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
        node("Concat", ["b", "d"], "e", axis=1),
        node("Conv", ["e", "w3", "b3"], "out" if not nodes_after else "f", kernel_shape=[3, 3, 3], pads=[1] * 6),
        *nodes_after,
    ]
    tensors = [
        tensor("w1", (2, 1, 3, 3, 3), first),
        tensor("w2", (2, 2, 2, 2, 2), weights(32, 3)),
        tensor("w3", (3, 4, 3, 3, 3), last),
        tensor("b3", (3,), [0.1, -0.2, 0.3]),
    ]
    return model(nodes, tensors, channels_out=3)
