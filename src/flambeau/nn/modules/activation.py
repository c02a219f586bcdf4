"""Activation layers, and attention of several heads."""

from __future__ import annotations

from flambeau.base.device import Device
from flambeau.base.dtypes import DType
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.modules.parameter import Parameter
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules._made import layer
from flambeau.nn.modules.linear import NonDynamicallyQuantizableLinear

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _InPlace(Module):
    """What activations with an ``inplace`` option share."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """max(0, x). Any shape, floating dtypes; ``inplace`` writes the input.

    >>> torch.nn.ReLU()(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class ReLU6(_InPlace):
    """min(max(0, x), 6). Any shape, floating dtypes; ``inplace`` writes the input.

    >>> torch.nn.ReLU6()(torch.tensor([-1., 2., 9.]))
    tensor([0., 2., 6.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, inplace=self.inplace)


class SiLU(_InPlace):
    """x sigmoid(x), also called swish. Any shape, floating dtypes; ``inplace`` writes the input.

    >>> torch.nn.SiLU()(torch.tensor([-1., 0., 1.]))
    tensor([-0.2689,  0.0000,  0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class LeakyReLU(_InPlace):
    """x above 0, ``negative_slope`` (0.01) x below. Any shape, floating dtypes; ``inplace`` writes the input.

    >>> torch.nn.LeakyReLU(0.1)(torch.tensor([-1., 1.]))
    tensor([-0.1000,  1.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(_InPlace):
    """x above 0, ``alpha`` (exp(x) - 1) below. Any shape, floating dtypes; ``inplace`` writes the input.

    >>> torch.nn.ELU()(torch.tensor([-1., 1.]))
    tensor([-0.6321,  1.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """``approximate``: "none" (erf) or "tanh".

    >>> torch.nn.GELU()(torch.tensor([-1., 0., 1.]))
    tensor([-0.1587,  0.0000,  0.8413])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _MayReplace(Module):
    """An activation that may write its result into its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Hardsigmoid(_MayReplace):
    """min(max(0, x + 3), 6) / 6. Any shape, floating dtypes; ``inplace`` writes the input."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Hardswish(_MayReplace):
    """x min(max(0, x + 3), 6) / 6. Any shape, floating dtypes; ``inplace`` writes the input."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Mish(_MayReplace):
    """x tanh(softplus(x)). Any shape, floating dtypes; ``inplace`` writes the input."""

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Sigmoid(Module):
    """1 / (1 + exp(-x)). Any shape, floating dtypes.

    >>> torch.nn.Sigmoid()(torch.tensor([0.]))
    tensor([0.5000])
    """

    def __init__(self) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class LogSigmoid(Module):
    """log(sigmoid(x)), without underflow. Any shape, floating dtypes."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Tanh(Module):
    """tanh(x). Any shape, floating dtypes.

    >>> torch.nn.Tanh()(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """

    def __init__(self) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class Softplus(Module):
    """log(1 + exp(``beta`` x)) / beta; x itself where beta x is above ``threshold`` (20). Any shape, floating dtypes.

    >>> torch.nn.Softplus()(torch.tensor([0.]))
    tensor([0.6931])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(Module):
    """exp(x) divided by its sum along ``dim``. Without a dimension (deprecated) it is 0 for 0, 1 and 3 dimensions, else 1.

    >>> torch.nn.Softmax(dim=-1)(torch.tensor([0., 0.]))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """log(softmax(x)) along ``dim``, without overflow.

    >>> torch.nn.LogSoftmax(dim=-1)(torch.tensor([0., 0.]))
    tensor([-0.6931, -0.6931])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


_empty, _full = function("empty"), function("full")


CELU = layer("CELU", F.celu, "alpha=1.0, inplace=False", "max(0, x) + min(0, alpha (exp(x / alpha) - 1)).")


SELU = layer("SELU", F.selu, "inplace=False", "ELU of self-normalising networks.")


GLU = layer("GLU", lambda input, dim: F.glu(input, dim), "dim=-1", "One half of the input, gated by the other.")


Hardshrink = layer(
    "Hardshrink",
    lambda input, lambd: F.hardshrink(input, lambd),
    "lambd=0.5",
    "x, or 0 in [-lambd, lambd].",
    shown="*lambd",
)


Softshrink = layer(
    "Softshrink",
    lambda input, lambd: F.softshrink(input, lambd),
    "lambd=0.5",
    "x moved towards 0 by lambd.",
    shown="*lambd",
)


Softsign = layer("Softsign", F.softsign, "", "x / (1 + |x|).")


Tanhshrink = layer("Tanhshrink", F.tanhshrink, "", "x - tanh(x).")


Threshold = layer("Threshold", F.threshold, "threshold, value, inplace=False", "x above the threshold, else ``value``.")


Softmin = layer("Softmin", F.softmin, "dim=None", "softmax(-x) along ``dim``.")


RReLU = layer(
    "RReLU",
    F.rrelu,
    "lower=1.0 / 8, upper=1.0 / 3, inplace=False",
    "Leaky ReLU with random slopes while training.",
    passed="lower upper training inplace",
)


class Hardtanh(Module):
    """x clamped to [min_val, max_val].

    >>> torch.nn.Hardtanh()(torch.tensor([-3., 0.5, 3.]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be greater than min_val")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W)."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class PReLU(Module):
    """Leaky ReLU whose slope is learnt, one or one for each channel.

    >>> torch.nn.PReLU()(torch.tensor([-1., 1.])).detach()
    tensor([-0.2500,  1.0000])
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(_full((num_parameters,), init, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        from flambeau.nn import init

        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class MultiheadAttention(Module):
    """Attention of ``num_heads`` heads. forward(query (L, N, E), key, value (S, N, E)): output and the weights, averaged over the heads.

    >>> x = torch.ones(2, 5, 8)  # batch, length, width
    >>> output, weights = torch.nn.MultiheadAttention(8, num_heads=2, batch_first=True)(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        made = {"device": device, "dtype": dtype}
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads, self.dropout, self.batch_first = num_heads, dropout, batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(_empty((3 * embed_dim, embed_dim), **made))
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = Parameter(_empty((embed_dim, embed_dim), **made))
            self.k_proj_weight = Parameter(_empty((embed_dim, self.kdim), **made))
            self.v_proj_weight = Parameter(_empty((embed_dim, self.vdim), **made))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(_empty(3 * embed_dim, **made))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **made)
        if add_bias_kv:
            self.bias_k = Parameter(_empty((1, 1, embed_dim), **made))
            self.bias_v = Parameter(_empty((1, 1, embed_dim), **made))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        weights = (
            [self.in_proj_weight]
            if self._qkv_same_embed_dim
            else [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        )
        for weight in weights:
            init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if query.is_nested or key.is_nested or value.is_nested:
            raise AssertionError(
                "MultiheadAttention does not support NestedTensor outside of its fast path. The fast path was not hit because some "
                "Tensor argument has_torch_function. Use torch.nn.functional.scaled_dot_product_attention of nested tensors instead."
            )
        if (
            self.batch_first and query.dim() == 3
        ):  # keeping which of them are one tensor: that decides how they are projected
            same_q, same_kv = key is query, value is key
            query = query.transpose(1, 0)
            key = query if same_q else key.transpose(1, 0)
            value = key if same_kv else value.transpose(1, 0)
            swap = True
        else:
            swap = False
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(1, 0) if swap else out), weights
