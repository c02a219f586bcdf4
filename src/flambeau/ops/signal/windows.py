"""Window functions of the root namespace, and the short-time Fourier transform."""

from __future__ import annotations

import math

from ...base import dtypes
from ...core.declare import composite
from ...core.device_memory import elements
from ...core.operator import namespace
from ...core.promotion import _scalar_name
from ..creation.factories import OPTIONS

aten = namespace("aten")


def _window(name, more, formula, overloads):
    """``formula(n, steps, *parameters)``: the window of n points at ``steps``, 0 to n - 1. Periodic: one point more, without the last."""

    def make(window_length, periodic, parameters, dtype, device):
        kind = dtype or dtypes.get_default_dtype()
        if not kind.is_floating_point:
            raise RuntimeError(
                f"{name} expects floating point dtypes, got: TensorOptions(dtype={_scalar_name(kind).lower()})"
            )
        if window_length < 0:
            raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
        if window_length < 2:
            return aten.ones.default([window_length], dtype=kind, device=device)
        n = window_length + 1 if periodic else window_length
        wide = dtypes.float32 if kind.itemsize == 2 else kind
        steps = aten.arange.default(n, dtype=wide, device=device)
        out = formula(n, steps, *parameters)
        out = aten.slice.Tensor(out, 0, 0, window_length) if periodic else out
        return out if out.dtype is kind else aten._to_copy.default(out, dtype=kind)

    for overload, arguments, defaults in overloads:
        given = [a.split()[-1] for a in arguments.split(", ") if a]

        def fn(window_length, *args, given=given, defaults=defaults):
            *values, dtype, _, device, _ = args
            named = {**defaults, **dict(zip(given, values))}
            periodic = named.pop("periodic")
            return make(window_length, periodic, [named[p] for p in more], dtype, device)

        text = f"{name}{'.' + overload if overload else ''}(int window_length, {arguments + ', ' if arguments else ''}{OPTIONS}) -> Tensor"
        composite(text, variants="function", has_out=False)(fn)


def _cosine(n, steps, amounts):
    """The sum of amounts[k] cos(2 pi k i / (n - 1))."""
    turn = aten.mul.Tensor(steps, 2 * math.pi / (n - 1))
    out = None
    for k, a in enumerate(amounts):
        term = aten.mul.Tensor(aten.cos.default(aten.mul.Tensor(turn, k)), a)
        out = term if out is None else aten.add.Tensor(out, term)
    return out


def _bartlett(n, steps):
    rising = aten.mul.Tensor(steps, 2.0 / (n - 1))
    return aten.minimum.default(rising, aten.rsub.Scalar(rising, 2.0))


def _kaiser(n, steps, beta):
    x = aten.sub.Tensor(aten.mul.Tensor(steps, 2.0 / (n - 1)), 1.0)
    root = aten.sqrt.default(aten.clamp_min.default(aten.rsub.Scalar(aten.mul.Tensor(x, x), 1.0), 0))
    top = aten.special_i0.default(aten.mul.Tensor(root, beta))
    return aten.div.Tensor(top, aten.special_i0.default(aten.full_like.default(top, beta)))


_PLAIN = [("", "", {"periodic": True}), ("periodic", "bool periodic", {})]
_window("hann_window", (), lambda n, i: _cosine(n, i, (0.5, -0.5)), _PLAIN)
_window("blackman_window", (), lambda n, i: _cosine(n, i, (0.42, -0.5, 0.08)), _PLAIN)
_window("bartlett_window", (), _bartlett, _PLAIN)
_window(
    "hamming_window",
    ("alpha", "beta"),
    lambda n, i, alpha, beta: _cosine(n, i, (alpha, -beta)),
    [
        ("", "", {"periodic": True, "alpha": 0.54, "beta": 0.46}),
        ("periodic", "bool periodic", {"alpha": 0.54, "beta": 0.46}),
        ("periodic_alpha", "bool periodic, float alpha", {"beta": 0.46}),
        ("periodic_alpha_beta", "bool periodic, float alpha, float beta", {}),
    ],
)
_window(
    "kaiser_window",
    ("beta",),
    _kaiser,
    [
        ("", "", {"periodic": True, "beta": 12.0}),
        ("periodic", "bool periodic", {"beta": 12.0}),
        ("beta", "bool periodic, float beta", {}),
    ],
)

# ---- short-time Fourier transform --------------------------------------------------------------------------------------------


def _padded_window(window, win_length, n_fft, dtype, device):
    if window is None:
        window = aten.ones.default([win_length], dtype=dtype, device=device)
    if win_length < n_fft:
        left = (n_fft - win_length) // 2
        window = aten.constant_pad_nd.default(window, [left, n_fft - win_length - left], 0)
    return window


@composite(
    "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    'str pad_mode="reflect", bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor',
    variants="",
    has_out=False,
)
def stft_center(
    self, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window
):
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    if return_complex is None:
        if not self.dtype.is_complex and (window is None or not window.dtype.is_complex):
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if not (self.dtype.is_floating_point or self.dtype.is_complex):
        raise RuntimeError(
            f"stft(torch.{_scalar_name(self.dtype)}Tensor{list(self.shape)}, ...): expected a tensor of floating point or complex values"
        )
    if not 1 <= self.ndim <= 2:
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, got {self.ndim}D")
    x = aten.unsqueeze.default(self, 0) if self.ndim == 1 else self
    if center:
        pad = n_fft // 2
        x = aten.squeeze.dim(_pad_ends(aten.unsqueeze.default(x, 1), pad, pad_mode), 1)
    length = x.shape[1]
    if n_fft <= 0 or n_fft > length:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got hop_length={hop}")
    if win <= 0 or win > n_fft:
        raise RuntimeError(f"stft: expected 0 < win_length <= n_fft, but got win_length={win}")
    if window is not None and (window.ndim != 1 or window.shape[0] != win):
        raise RuntimeError(
            f"stft: expected a 1D window tensor of size equal to win_length={win}, but got window with size {list(window.shape)}"
        )
    frames = aten.unfold.default(x, 1, n_fft, hop)
    weights = _padded_window(window, win, n_fft, self.dtype, self.device)
    if window is not None or win != n_fft:
        frames = aten.mul.Tensor(frames, weights)
    is_complex = frames.dtype.is_complex
    one = not is_complex if onesided is None else onesided
    norm = 1 if normalized else 0
    if is_complex:
        if one:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        out = aten._fft_c2c.default(frames, [2], norm, True)
    else:
        out = aten._fft_r2c.default(frames, [2], norm, one)
    out = aten.transpose.int(out, 1, 2)
    out = aten.squeeze.dim(out, 0) if self.ndim == 1 else out
    return out if return_complex else aten.view_as_real.default(out)


def _pad_ends(x, pad, mode):
    if mode == "constant":
        return aten.constant_pad_nd.default(x, [pad, pad], 0)
    names = {"reflect": "reflection_pad1d", "replicate": "replication_pad1d"}
    if mode in names:
        if x.dtype.is_complex:
            parts = [
                getattr(aten, names[mode]).default(p, [pad, pad]) for p in (aten.real.default(x), aten.imag.default(x))
            ]
            return aten.complex.default(*parts)
        return getattr(aten, names[mode]).default(x, [pad, pad])
    if mode == "circular":
        n = x.shape[-1]
        return aten.cat.default([aten.slice.Tensor(x, -1, n - pad, n), x, aten.slice.Tensor(x, -1, 0, pad)], -1)
    raise RuntimeError(f"stft: unknown pad_mode {mode!r}")


@composite(
    "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, bool? onesided=None, "
    "bool? return_complex=None, bool? align_to_window=None) -> Tensor",
    variants="",
    has_out=False,
)
def stft(self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window):
    return aten.stft.center(
        self,
        n_fft,
        hop_length,
        win_length,
        window,
        False,
        "constant",
        normalized,
        onesided,
        return_complex,
        align_to_window,
    )


@composite(
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False, "
    "bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
    has_out=False,
)
def istft(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex):
    """Frames transformed back, windowed, added where they overlap, divided by the sum of the squared windows (D. Griffin, J. Lim, 1984)."""
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    if not self.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if self.numel() == 0:
        raise RuntimeError("istft(...): input tensor cannot be empty.")
    x = aten.unsqueeze.default(self, 0) if self.ndim == 2 else self
    if x.ndim != 3:
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions, got {self.ndim}")
    count = x.shape[2]
    one = (n_fft // 2 + 1 == x.shape[1] and x.shape[1] != n_fft) if onesided is None else onesided
    if one and x.shape[1] != n_fft // 2 + 1:
        raise RuntimeError(
            "istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when onesided=True, but got "
            + str(x.shape[1])
        )
    if not one and x.shape[1] != n_fft:
        raise RuntimeError(
            "istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when onesided=False, but got "
            + str(x.shape[1])
        )
    if not 0 < hop <= win:
        raise RuntimeError("istft: expected 0 < hop_length <= win_length")
    if not 0 < win <= n_fft:
        raise RuntimeError("istft: expected 0 < win_length <= n_fft")
    if window is not None and (window.ndim != 1 or window.shape[0] != win):
        raise RuntimeError("istft: Invalid window shape. window has to be 1D and length of `win_length`")
    real = self.dtype.to_real()
    weights = _padded_window(window, win, n_fft, real, self.device)
    spectrum = aten.transpose.int(x, 1, 2)
    norm = 1 if normalized else 2
    if return_complex:
        if one:
            raise RuntimeError("cannot have onesided output if window or input is complex")
        frames = aten._fft_c2c.default(spectrum, [2], norm, False)
    else:
        if window is not None and window.dtype.is_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        spectrum = spectrum if one else aten.slice.Tensor(spectrum, -1, 0, n_fft // 2 + 1)
        frames = aten._fft_c2r.default(spectrum, [2], norm, n_fft)
    frames = aten.mul.Tensor(frames, aten.reshape.default(weights, [1, 1, n_fft]))
    total = n_fft + hop * (count - 1)
    y = aten.unfold_backward.default(frames, [frames.shape[0], total], 1, n_fft, hop)
    squares = aten.expand.default(
        aten.reshape.default(aten.mul.Tensor(weights, weights), [1, 1, n_fft]), [1, count, n_fft]
    )
    envelope = aten.unfold_backward.default(squares, [1, total], 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    y = aten.slice.Tensor(y, 1, start, min(end, total))
    envelope = aten.slice.Tensor(envelope, 1, start, min(end, total))
    known = elements(envelope)
    if known is not None and known.size and abs(known).min() < 1e-11:
        raise RuntimeError(
            f"istft({list(self.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={win}): window overlap add min: the sum of the squared windows "
            "is 0 at some places, which nothing can be divided by"
        )
    y = aten.div.Tensor(y, envelope)
    if end > total:
        y = aten.constant_pad_nd.default(y, [0, end - total], 0)
    return aten.squeeze.dim(y, 0) if self.ndim == 2 else y
