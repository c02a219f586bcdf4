"""Records of TensorBoard (``Summary``) made of numbers, tensors, texts and settings; ``pictures.py`` has those for eyes and ears."""

from __future__ import annotations

import struct

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from ...base import dtypes
from .arrays import make_np
from .hyperparameters import hparams
from .pictures import audio, draw_boxes, image, image_boxes, make_image, make_video, mesh, video

__all__ = [
    "audio",
    "compute_curve",
    "custom_scalars",
    "draw_boxes",
    "half_to_int",
    "histogram",
    "histogram_raw",
    "hparams",
    "image",
]
__all__ += [
    "image_boxes",
    "int_to_half",
    "make_histogram",
    "make_image",
    "make_video",
    "mesh",
    "pr_curve",
    "pr_curve_raw",
    "scalar",
]
__all__ += ["tensor_proto", "text", "video"]

# What the page of precision-recall curves takes at most.
_MOST_THRESHOLDS = 127


def half_to_int(f: float) -> int:
    """The bits of ``f`` as a float32, as ``half_val`` of a tensor's record holds the numbers of float16 and bfloat16."""
    return struct.unpack("i", struct.pack("f", f))[0]


def int_to_half(i: int) -> float:
    """The number whose bits :func:`half_to_int` gave."""
    return struct.unpack("f", struct.pack("i", i))[0]


# dtype -> its name in TensorFlow's protocol, the field for its numbers.
_FIELDS = {
    dtypes.float16: ("DT_HALF", "half_val"),
    dtypes.bfloat16: ("DT_BFLOAT16", "half_val"),
    dtypes.float32: ("DT_FLOAT", "float_val"),
    dtypes.float64: ("DT_DOUBLE", "double_val"),
    dtypes.int8: ("DT_INT8", "int_val"),
    dtypes.uint8: ("DT_UINT8", "uint32_val"),
    dtypes.int16: ("DT_INT16", "int_val"),
    dtypes.int32: ("DT_INT32", "int_val"),
    dtypes.int64: ("DT_INT64", "int64_val"),
    dtypes.bool_: ("DT_BOOL", "bool_val"),
    dtypes.complex64: ("DT_COMPLEX64", "scomplex_val"),
    dtypes.complex128: ("DT_COMPLEX128", "dcomplex_val"),
}


def _shape(shape) -> TensorShapeProto:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in shape])


def _of_plugin(tag: str, tensor: TensorProto, plugin: str, content: bytes = b"") -> Summary:
    """A record that one of TensorBoard's pages reads."""
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))
    return Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=metadata)])


def scalar(name: str, tensor, collections=None, new_style: bool = False, double_precision: bool = False) -> Summary:
    """One number. ``new_style`` writes it as a tensor, float64 with ``double_precision``. AssertionError for more than one element."""
    array = make_np(tensor).squeeze()
    if array.ndim != 0:
        raise AssertionError(f"a scalar has one element, but {name!r} has the shape {array.shape}")
    number = float(array)
    if not new_style:
        return Summary(value=[Summary.Value(tag=name, simple_value=number)])
    if double_precision:
        return _of_plugin(name, TensorProto(dtype="DT_DOUBLE", double_val=[number]), "scalars")
    return _of_plugin(name, TensorProto(dtype="DT_FLOAT", float_val=[number]), "scalars")


def tensor_proto(tag: str, tensor) -> Summary:
    """All elements of a tensor. ValueError for 2 GiB and more, and for a dtype that the protocol doesn't have."""
    if tensor.numel() * tensor.itemsize >= 1 << 31:
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    if tensor.dtype not in _FIELDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    dtype, field = _FIELDS[tensor.dtype]
    numbers = make_np(tensor).reshape(-1)
    if field == "half_val":
        values = numbers.astype(np.float32).view(np.int32).tolist()
    elif np.iscomplexobj(numbers):
        values = np.stack([numbers.real, numbers.imag], -1).reshape(-1).tolist()
    else:
        values = numbers.tolist()
    return _of_plugin(tag, TensorProto(dtype=dtype, tensor_shape=_shape(tensor.shape), **{field: values}), "tensor")


def histogram_raw(name, min, max, num, sum, sum_squares, bucket_limits, bucket_counts) -> Summary:
    """A histogram of given figures: the upper limit of each bucket and the number of values in it."""
    made = HistogramProto(
        min=min,
        max=max,
        num=num,
        sum=sum,
        sum_squares=sum_squares,
        bucket_limit=bucket_limits,
        bucket=bucket_counts,
    )
    return Summary(value=[Summary.Value(tag=name, histo=made)])


def histogram(name: str, values, bins, max_bins: int | None = None) -> Summary:
    """The histogram of all elements of ``values``; see :func:`make_histogram`."""
    return Summary(value=[Summary.Value(tag=name, histo=make_histogram(make_np(values).astype(float), bins, max_bins))])


def make_histogram(values: np.ndarray, bins, max_bins: int | None = None) -> HistogramProto:
    """How many values are in each of ``bins`` (edges, or what ``numpy.histogram`` takes), from the first bin with any to the last. Neighbours
    are joined where there are more than ``max_bins``. ValueError without values, or when none is in a bin."""
    values = values.reshape(-1)
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        starts = np.arange(0, len(counts), step)
        counts, limits = np.add.reduceat(counts, starts), np.append(limits[starts], limits[-1])
    filled = np.flatnonzero(counts)
    if filled.size == 0:
        raise ValueError("none of the values is in a bin of the histogram")
    first, last = filled[0], filled[-1] + 1
    return HistogramProto(
        min=values.min(),
        max=values.max(),
        num=len(values),
        sum=values.sum(),
        sum_squares=values.dot(values),
        # A limit is a bucket's upper one: an empty bucket in front tells where the first one starts.
        bucket_limit=limits[first : last + 1].tolist(),
        bucket=[0, *counts[first:last].tolist()],
    )


def text(tag: str, text: str) -> Summary:
    """A text, shown as Markdown."""
    tensor = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=_shape([1]))
    return _of_plugin(f"{tag}/text_summary", tensor, "text", TextPluginData(version=0).SerializeToString())


def custom_scalars(layout: dict) -> Summary:
    """The page of charts that a program lays out: {category: {title: [kind, tags]}}. A chart of the kind "Margin" has three tags: value, lower
    and upper one; any other shows all its tags as lines."""
    categories = []
    for category, charts in layout.items():
        made = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(f"a margin chart has 3 tags (value, lower, upper), {title!r} has {len(tags)}")
                series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series])))
            else:
                made.append(layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags)))
        categories.append(layout_pb2.Category(title=category, chart=made))
    content = layout_pb2.Layout(category=categories).SerializeToString()
    tensor = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=TensorShapeProto())
    return _of_plugin("custom_scalars__config__", tensor, "custom_scalars")


def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds=_MOST_THRESHOLDS, weights=None) -> Summary:
    """A precision-recall curve of given counts, one for each threshold (at most 127)."""
    rows = np.stack([make_np(np.asarray(r) if isinstance(r, list) else r) for r in (tp, fp, tn, fn, precision, recall)])
    content = PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, _MOST_THRESHOLDS)).SerializeToString()
    tensor = TensorProto(dtype="DT_FLOAT", float_val=rows.reshape(-1).tolist(), tensor_shape=_shape(rows.shape))
    return _of_plugin(tag, tensor, "pr_curves", content)


def pr_curve(tag, labels, predictions, num_thresholds=_MOST_THRESHOLDS, weights=None) -> Summary:
    """The precision-recall curve of ``predictions`` (probabilities) for ``labels`` (0 or 1), at thresholds from 0 to 1 (at most 127)."""
    n = min(num_thresholds, _MOST_THRESHOLDS)
    return pr_curve_raw(tag, *compute_curve(make_np(labels), make_np(predictions), n, weights), num_thresholds=n)


def compute_curve(labels: np.ndarray, predictions: np.ndarray, num_thresholds: int = _MOST_THRESHOLDS, weights=None):
    """(6, thresholds): true and false positives, true and false negatives, precision, recall. A prediction counts as positive at each threshold
    k / (thresholds - 1) that it reaches."""
    reached = np.floor(predictions.reshape(-1) * (num_thresholds - 1)).astype(np.int64)
    labels = labels.reshape(-1).astype(np.float64)
    weight = np.ones_like(labels) if weights is None else np.broadcast_to(make_np(weights).reshape(-1), labels.shape)
    inside = (reached >= 0) & (reached < num_thresholds)

    def positives(mass):
        """The weight of what reaches each threshold."""
        return np.bincount(reached[inside], mass[inside], num_thresholds)[::-1].cumsum()[::-1]

    tp, fp = positives(labels * weight), positives((1 - labels) * weight)
    tn, fn = fp[0] - fp, tp[0] - tp
    return np.stack([tp, fp, tn, fn, tp / np.maximum(1e-7, tp + fp), tp / np.maximum(1e-7, tp + fn)])
