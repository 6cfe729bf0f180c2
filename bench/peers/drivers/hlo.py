"""HLO in canonical form as functions of PyTorch's tensors: the operations that fusions of
models have. An operation that is not here is an exception that names it.
"""

import re

import torch

TYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
    "pred": torch.bool, "s8": torch.int8, "s32": torch.int32, "s64": torch.int64, "u8": torch.uint8,
}
LINE = re.compile(r"\s*(ROOT )?%(\w+) = (\([^=]*\)|\S+) ([\w-]+)\((.*?)\)(?:, (.*))?$")
ELEMENTWISE = {
    "add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": torch.div,
    "maximum": torch.maximum, "minimum": torch.minimum, "negate": torch.neg, "abs": torch.abs,
    "exponential": torch.exp, "log": torch.log, "tanh": torch.tanh, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
    "logistic": torch.sigmoid, "erf": torch.erf, "power": torch.pow, "and": torch.logical_and, "or": torch.logical_or,
    "not": torch.logical_not, "cosine": torch.cos, "sine": torch.sin, "select": torch.where, "floor": torch.floor,
}
COMPARISONS = {"EQ": torch.eq, "NE": torch.ne, "LT": torch.lt, "LE": torch.le, "GT": torch.gt, "GE": torch.ge}
REDUCTIONS = {"add": torch.sum, "maximum": torch.amax, "minimum": torch.amin}


def shape(text):
    """The type and the extents of "f32[2,3]{1,0}"."""
    kind, extents = re.match(r"(\w+)\[([\d,]*)\]", text).groups()
    return TYPES[kind], [int(e) for e in extents.split(",") if e]


def numbers(text):
    return [int(n) for n in re.findall(r"\d+", text or "")]


def attribute(text, name):
    found = re.search(r"(?:^|, )" + name + r"=(\{[^}]*\}|[^,]+)", text or "")
    return found and found.group(1)


def broadcast(x, dtype, extents, dims):
    view = [1] * len(extents)
    for k, d in enumerate(dims):
        view[d] = x.shape[k]
    return x.reshape(view).expand(extents)


def dot(x, y, attrs):
    batch = [numbers(attribute(attrs, s + "_batch_dims")) for s in ("lhs", "rhs")]
    terms = [numbers(attribute(attrs, s + "_contracting_dims")) for s in ("lhs", "rhs")]
    free = [[d for d in range(a.dim()) if d not in b + t] for a, b, t in zip((x, y), batch, terms)]
    if not batch[0]:
        return torch.tensordot(x, y, dims=(terms[0], terms[1]))
    extents = [x.shape[d] for d in batch[0] + free[0]] + [y.shape[d] for d in free[1]]
    size = lambda a, dims: [a.shape[d] for d in dims]
    product = lambda all: int(torch.Size(all).numel())
    b = product(size(x, batch[0]))
    left = x.permute(batch[0] + free[0] + terms[0]).reshape(b, product(size(x, free[0])), -1)
    right = y.permute(batch[1] + terms[1] + free[1]).reshape(b, -1, product(size(y, free[1])))
    return torch.bmm(left, right).reshape(extents)


def convolution(x, w, attrs):
    labels = re.match(r"(\w+)_(\w+)->(\w+)", attribute(attrs, "dim_labels")).groups()
    window = attribute(attrs, "window")[1:-1]
    part = lambda name: (re.search(name + r"=(\S+)", window) or [None, None])[1]
    if re.search(r"lhs_dilate|reversal|feature_group_count|batch_group_count", attrs):
        raise NotImplementedError("a convolution with " + attrs)
    pads = [numbers(p) for p in (part("pad") or "0_0x0_0").split("x")]
    if any(lo != hi for lo, hi in pads):
        x = torch.nn.functional.pad(x.permute([labels[0].index(c) for c in "bf01"]), [p for lo, hi in reversed(pads) for p in (lo, hi)])
        pads = [[0, 0], [0, 0]]
    else:
        x = x.permute([labels[0].index(c) for c in "bf01"])
    w = w.permute([labels[1].index(c) for c in "oi01"])
    y = torch.nn.functional.conv2d(
        x, w, None, numbers(part("stride") or "1x1"), [p[0] for p in pads], numbers(part("rhs_dilate") or "1x1"))
    return y.permute(["bf01".index(c) for c in labels[2]])


def ranges(text):
    return [slice(*(int(n) for n in r.split(":"))) for r in re.findall(r"\[([\d:]+)\]", text)]


def dynamic_slice(x, starts, extents):
    for d, (start, n) in enumerate(zip(starts, extents)):
        if n < x.shape[d]:  # elsewhere the start is moved to 0
            x = x.index_select(d, start.clamp(0, x.shape[d] - n) + torch.arange(n))
    return x


def constant(text, dtype, extents):
    value = {"true": 1.0, "false": 0.0}.get(text)
    if value is None:
        value = float(text)
    return torch.full(extents, value, dtype=dtype)


class Program:
    """A function of the parameters of the entry."""

    def __init__(self, text):
        self.regions, self.lines, self.inputs = {}, [], {}
        for part in re.split(r"\n(?=ENTRY|%c\d+)", "\n" + text):
            head, *lines = part.strip().split("\n")
            parsed = [LINE.match(line) for line in lines]
            if head.startswith("ENTRY"):
                self.lines = [m.groups() for m in parsed if m]
            elif head.startswith("%"):
                ops = [m.group(4) for m in parsed if m and m.group(4) != "parameter"]
                self.regions[head.split()[0][1:]] = ops[0] if len(ops) == 1 else "several"
        for _, _, of, op, rest, _ in self.lines:
            if op == "parameter":
                self.inputs[int(rest)] = shape(of)

    def types(self):
        return [(*extents, dtype) for _, (dtype, extents) in sorted(self.inputs.items())]

    def __call__(self, *given):
        values = {}
        for root, name, of, op, rest, attrs in self.lines:
            if op == "tuple":
                return tuple(values[n] for n in re.findall(r"%(\w+)", rest))
            values[name] = self.value(shape(of), op, rest, attrs, values, given)
            if root:
                return values[name]

    def value(self, of, op, rest, attrs, values, given):
        dtype, extents = of
        if op == "parameter":
            return given[int(rest)]
        if op == "constant":
            return constant(rest, dtype, extents)
        if op == "iota":
            d = int(attribute(attrs, "iota_dimension"))
            return broadcast(torch.arange(extents[d], dtype=dtype), dtype, extents, [d])
        x = [values[n] for n in re.findall(r"%(\w+)", rest)]
        if op in ELEMENTWISE:
            return ELEMENTWISE[op](*x)
        if op == "compare":
            return COMPARISONS[attribute(attrs, "direction")](*x)
        if op == "broadcast":
            return broadcast(x[0], dtype, extents, numbers(attribute(attrs, "dimensions")))
        if op == "reduce":
            region = self.regions[attribute(attrs, "to_apply")[1:]]
            return REDUCTIONS[region](x[0], dim=numbers(attribute(attrs, "dimensions")))  # from the neutral element
        if op in ("reshape", "bitcast"):
            return x[0].reshape(extents)
        if op == "transpose":
            return x[0].permute(numbers(attribute(attrs, "dimensions")))
        if op == "convert":
            return x[0].to(dtype)
        if op == "clamp":
            return torch.minimum(torch.maximum(x[1], x[0]), x[2])
        if op == "slice":
            return x[0][tuple(ranges(attribute_of_slice(attrs)))]
        if op == "dynamic-slice":
            return dynamic_slice(x[0], x[1:], extents)
        if op == "concatenate":
            return torch.cat(x, numbers(attribute(attrs, "dimensions"))[0])
        if op == "reverse":
            return torch.flip(x[0], numbers(attribute(attrs, "dimensions")))
        if op == "dot":
            return dot(*x, attrs).to(dtype)
        if op == "convolution":
            return convolution(*x, attrs)
        raise NotImplementedError(f"{op} is not written for PyTorch")


def attribute_of_slice(attrs):
    return re.search(r"slice=\{(.*?)\}", attrs).group(1)
