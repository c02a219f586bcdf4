"""ATen's operators that flambeau has as functions or methods and not as operators of its own, by their schemas, and older ones."""

from __future__ import annotations

from collections.abc import Callable

from ...base.dtypes import promote_types
from ...core import schema as language
from ...core.operator import namespace
from ...core.schema import Schema
from ...nn import functional
from ...nn.utils import rnn
from ..older_functions import norm_except_dim
from ..queries import result_type
from ..root import public
from ..utils import _flatten_dense_tensors
from . import values

__all__ = ["TABLE"]

aten = namespace("aten")
_einsum, _zeros = public("einsum"), public("zeros")
TABLE: dict[str, list[tuple[Callable, Schema]]] = {}


def declare(fn: Callable, *texts: str) -> None:
    for text in texts:
        schema = language.parse(text, "aten")
        TABLE.setdefault(schema.name, []).append((fn, schema))


def method(*texts: str) -> None:
    """``self.name(...)`` by the schema's name."""
    for text in texts:
        name = text.split("(")[0].split(".")[0]
        declare(lambda x, *args, _name=name, **kwargs: getattr(x, _name)(*args, **kwargs), text)


def function(*texts: str) -> None:
    """``torch.name(...)`` by the schema's name."""
    for text in texts:
        declare(public(text.split("(")[0].split(".")[0]), text)


def _to(x, to=None, dtype=None, non_blocking=False, copy=False, memory_format=None):
    how = {} if memory_format is None else {"memory_format": memory_format}
    return x.to(device=to, dtype=dtype, non_blocking=bool(non_blocking), copy=bool(copy), **how)


def _to_layout(
    x, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, copy=False, memory_format=None
):
    return _to(x, device, dtype, non_blocking, copy, memory_format)


_HOW = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_LATER = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None"
declare(_to, f"to.device(Tensor(a) self, Device device, ScalarType dtype, {_LATER}) -> Tensor(a)")
declare(
    lambda x, dtype, *later: _to(x, None, dtype, *later),
    f"to.dtype(Tensor(a) self, ScalarType dtype, {_LATER}) -> Tensor(a)",
)
declare(
    lambda x, other, *later: _to(x, other.device, other.dtype, *later),
    f"to.other(Tensor(a) self, Tensor other, {_LATER}) -> Tensor(a)",
)
declare(_to_layout, f"to.dtype_layout(Tensor(a) self, *, {_HOW}, {_LATER}) -> Tensor(a)")  # fmt: skip
declare(
    _to,
    "to.prim_Device(Tensor(a) self, Device? device, ScalarType? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(a)",
)
declare(lambda x, dtype=None, *later: _to(x, None, dtype, *later), "to.prim_dtype(Tensor(a) self, ScalarType? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(a)")  # fmt: skip
declare(
    lambda x, *later: _to(x, None, None, *later),
    "to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(a)",
)

declare(lambda x: list(x.size()), "size(Tensor self) -> int[]")
declare(lambda x, dim: x.size(dim), "size.int(Tensor self, int dim) -> int")
declare(lambda x: list(x.stride()), "stride(Tensor self) -> int[]")
declare(lambda x, dim: x.stride(dim), "stride.int(Tensor self, int dim) -> int")
method(
    "item(Tensor self) -> Scalar",
    "is_complex(Tensor self) -> bool",
    "is_floating_point(Tensor self) -> bool",
    "is_signed(Tensor self) -> bool",
    "is_conj(Tensor self) -> bool",
    "is_neg(Tensor self) -> bool",
    "is_nonzero(Tensor self) -> bool",
    "is_inference(Tensor self) -> bool",
    "is_pinned(Tensor self, Device? device=None) -> bool",
    "is_same_size(Tensor self, Tensor other) -> bool",
    "element_size(Tensor self) -> int",
    "storage_offset(Tensor self) -> int",
    "get_device(Tensor self) -> int",
    "cpu(Tensor self) -> Tensor",
    "cuda(Tensor self) -> Tensor",
    "pin_memory(Tensor self, Device? device=None) -> Tensor",
    "detach_(Tensor(a!) self) -> Tensor(a!)",
    "requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)",
    "retain_grad(Tensor(a!) self) -> ()",
    "backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False) -> ()",
    "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)",
    "arctan2(Tensor self, Tensor other) -> Tensor",
    "arctan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "clip_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)",
    "to_padded_tensor(Tensor self, float padding, SymInt[]? output_size=None) -> Tensor",
)
for _name in "and or xor lshift rshift iand ior ixor ilshift irshift".split():
    method(
        f"__{_name}__.Tensor(Tensor self, Tensor other) -> Tensor",
        f"__{_name}__.Scalar(Tensor self, Scalar other) -> Tensor",
    )
for _name in "greater greater_equal less less_equal not_equal".split():
    method(
        f"{_name}.Tensor(Tensor self, Tensor other) -> Tensor", f"{_name}.Scalar(Tensor self, Scalar other) -> Tensor"
    )
for _name in ("data", "mT", "mH", "numpy_T", "matrix_H", "is_leaf", "output_nr", "_version", "retains_grad"):
    _gives = {"is_leaf": "bool", "retains_grad": "bool", "output_nr": "int", "_version": "int"}.get(_name, "Tensor")
    _attribute = {"numpy_T": "T", "matrix_H": "H"}.get(_name, _name)
    declare(lambda x, _a=_attribute: getattr(x, _a), f"{_name}(Tensor self) -> {_gives}")

function(
    "is_grad_enabled() -> bool",
    "is_autocast_enabled() -> bool",
    "set_grad_enabled(bool val) -> ()",
    "manual_seed(int seed) -> ()",
    "cartesian_prod(Tensor[] tensors) -> Tensor",
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
    "concat(Tensor[] tensors, int dim=0) -> Tensor",
    "concatenate(Tensor[] tensors, int dim=0) -> Tensor",
    "row_stack(Tensor[] tensors) -> Tensor",
    "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
    "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
    f"range(Scalar start, Scalar end, *, {_HOW}) -> Tensor",
    f"range.step(Scalar start, Scalar end, Scalar step=1, *, {_HOW}) -> Tensor",
    "_assert_async(Tensor self) -> ()",
    "dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
    "alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
    "feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
    "feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
    "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
    "_shape_as_tensor(Tensor self) -> Tensor",
    f"sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, {_HOW}, bool? is_coalesced=None) -> Tensor",  # fmt: skip
)
declare(functional.pad, 'pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor')
function("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor")
declare(
    lambda a, b: values.code_of(promote_types(a, b)),
    "promote_types(ScalarType type1, ScalarType type2) -> ScalarType",
)
for _left in ("Tensor tensor", "Scalar scalar"):
    for _right in ("Tensor other", "Scalar other"):
        declare(lambda a, b: values.code_of(result_type(a, b)), f"result_type({_left}, {_right}) -> ScalarType")
declare(lambda equation, tensors, path=None: _einsum(equation, tensors), "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor")  # fmt: skip
declare(
    lambda x, dtype=None: x, "_autocast_to_full_precision(Tensor self, bool cuda_enabled, bool cpu_enabled) -> Tensor"
)


def _convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *_):
    return aten.convolution.default(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


_CONVOLUTION = (
    "Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, "
    "bool benchmark, bool deterministic, bool cudnn_enabled"
)
declare(
    _convolution,
    f"_convolution({_CONVOLUTION}, bool allow_tf32) -> Tensor",
    f"_convolution.deprecated({_CONVOLUTION}) -> Tensor",
)
_SAME = "Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, SymInt groups"


def _convolution_mode(x, weight, bias, stride, padding, dilation, groups):
    fn = getattr(functional, f"conv{weight.dim() - 2}d")
    return fn(x, weight, bias, stride, padding, dilation, groups)


declare(_convolution_mode, f"_convolution_mode({_SAME}) -> Tensor")
declare(lambda x, weight, bias=None: functional.linear(x, weight, bias), "mkldnn_linear(Tensor self, Tensor weight, Tensor? bias=None) -> Tensor")  # fmt: skip
declare(
    lambda v, g, dim=0: v * (g / norm_except_dim(v, 2, dim)),
    "_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
)
for _name, _dtype in {
    "Byte": 0,
    "Char": 1,
    "Double": 7,
    "Float": 6,
    "Int": 3,
    "Long": 4,
    "Short": 2,
    "Half": 5,
}.items():
    declare(
        lambda x, non_blocking=False, _d=_dtype: x.to(values.dtype_of(_d)),
        f"_cast_{_name}(Tensor self, bool non_blocking=False) -> Tensor",
    )


# -- what PyTorch has as one kernel ------------------------------------------------------------------------------------
def _masked(mask, kind):
    """A mask of the fused kernels, True where nothing is attended to, as one that is added: 0 is (L, L), 1 is (B, L), 2 is (B, heads, L, L)."""
    mask = mask[:, None, None, :] if kind == 1 else mask[None, None] if kind == 0 else mask
    if mask.is_floating_point():
        return mask
    zeros = _zeros(mask.shape, device=mask.device)
    return zeros.masked_fill(mask, float("-inf"))


def _attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None, need_weights=True, average_attn_weights=True, mask_type=None):  # fmt: skip
    linear = functional.linear
    parts = [
        linear(x, w, b).unflatten(-1, (num_head, -1)).transpose(1, 2)
        for x, w, b in zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3))
    ]
    scores = parts[0] @ parts[1].transpose(-2, -1) / (embed_dim // num_head) ** 0.5
    if mask is not None:
        scores = scores + _masked(mask, mask_type).to(scores.dtype)
    weights = scores.softmax(-1)
    out = linear((weights @ parts[2]).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, weights.mean(1) if average_attn_weights else weights


_WEIGHTS = "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias"
declare(
    _attention,
    f"_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, {_WEIGHTS}, Tensor? mask=None, bool need_weights=True, "
    "bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
)


def _encoder_layer(x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask=None, mask_type=None):  # fmt: skip
    act = functional.gelu if use_gelu else functional.relu

    def attended(x):
        weights = qkv_weight, qkv_bias, proj_weight, proj_bias
        return _attention(x, x, x, embed_dim, num_heads, *weights, mask, False, True, mask_type)[0]

    def fed(x):
        return functional.linear(act(functional.linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    def first(x):
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x):
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = x + attended(first(x))
        return x + fed(second(x))
    x = first(x + attended(x))
    return second(x + fed(x))


declare(
    _encoder_layer,
    f"_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, {_WEIGHTS}, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, "
    "Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, "
    "Tensor? mask=None, int? mask_type=None) -> Tensor",
)


def _packed(x, lengths, batch_first):
    made = rnn.pack_padded_sequence(x, lengths, batch_first)
    return made.data, made.batch_sizes


def _padded(data, batch_sizes, batch_first, padding_value, total_length):
    total = total_length if total_length > 0 else None
    return rnn.pad_packed_sequence(rnn.PackedSequence(data, batch_sizes), batch_first, padding_value, total)


declare(_packed, "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)")
declare(
    _padded,
    "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) -> (Tensor, Tensor)",
)
declare(
    lambda sequences, batch_first=False, padding_value=0.0, padding_side="right": rnn.pad_sequence(
        sequences, batch_first, padding_value, padding_side
    ),
    'pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str padding_side="right") -> Tensor',
)
declare(_flatten_dense_tensors, "flatten_dense_tensors(Tensor[] tensors) -> Tensor")
