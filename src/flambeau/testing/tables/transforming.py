"""Samples: Fourier transforms."""

import numpy as np

from ..samples import T, c, call, f, gaps, row

_NORMS = (None, "ortho", "forward")
_one = [call(c(4)), call(c(2, 3), None, 0), call(c(2, 3), 4), call(c(2, 4), 3), call(T(c(3, 2))), call(gaps(c(2, 3)))]
_one += [call(c(3), None, -1, n) for n in _NORMS[1:]]
_real = [call(f(4)), call(f(2, 3), None, 0), call(f(2, 3), 4), call(f(2, 4), 3), call(T(f(3, 2)))] + [call(f(3), None, -1, n) for n in _NORMS[1:]]
row("fft_fft fft_ifft", [*_one, call(f(3))], [np.fft.fft, np.fft.ifft])
row("fft_rfft fft_ihfft", _real, [np.fft.rfft, np.fft.ihfft])
_half = [call(c(3)), call(c(3), 4), call(c(3), 5), call(c(2, 3), 3, 0), call(T(c(3, 2)), 3), call(c(3), 4, -1, "ortho"), call(c(3), 4, -1, "forward")]
row("fft_irfft fft_hfft", _half, [np.fft.irfft, np.fft.hfft])
_two = [call(c(2, 3)), call(c(2, 2, 3), [3, 2]), call(c(2, 3, 2), None, [0, 2], "ortho")]


def _nd(fn, last=2):
    """PyTorch's arguments (s, dim, norm), handed to NumPy's function of any number of dimensions."""

    def run(x, s=None, dim=None, norm=None):
        axes = dim if dim is not None else list(range(-(len(s) if s is not None else last or x.ndim), 0))
        return fn(x, s, axes, norm)

    return run


row("fft_fft2 fft_ifft2", _two, [_nd(np.fft.fftn), _nd(np.fft.ifftn)])
row("fft_fftn fft_ifftn", [*_two, call(f(2, 3))], [_nd(np.fft.fftn, 0), _nd(np.fft.ifftn, 0)])
_real_two = [call(f(2, 3)), call(f(2, 2, 3), [3, 2]), call(f(2, 3, 2), None, [0, 2], "ortho")]
row("fft_rfft2 fft_rfftn", _real_two, [_nd(np.fft.rfftn), _nd(np.fft.rfftn, 0)])
row("fft_irfft2 fft_irfftn", [call(c(2, 3)), call(c(2, 3), [2, 3]), call(c(2, 3, 2), None, [0, 2], "ortho")], [_nd(np.fft.irfftn), _nd(np.fft.irfftn, 0)])
row("fft_hfft2 fft_hfftn", [call(c(2, 3)), call(c(2, 3), [2, 3]), call(c(2, 2), None, [0, 1], "ortho")])
row("fft_ihfft2 fft_ihfftn", [call(f(2, 3)), call(f(2, 3), [2, 2]), call(f(2, 2), None, [0, 1], "ortho")])
row("fft_fftshift fft_ifftshift", [call(f(5)), call(f(2, 3), [1])], [lambda x, d=None: np.fft.fftshift(x, d), lambda x, d=None: np.fft.ifftshift(x, d)])
row("_fft_c2c", [call(c(3), [0], 0, True), call(c(2, 3), [0, 1], 1, False)], torch="")
row("_fft_r2c", [call(f(4), [0], 0, True), call(f(4), [0], 0, False)])
row("_fft_c2r", [call(c(3), [0], 0, 4), call(c(3), [0], 2, 5)])
_window = np.hanning(6)[1:5].copy()
row("stft", [call(f(10), 4, 2, 4, _window, return_complex=True), call(f(2, 9), 4, 3, return_complex=True, onesided=True)], grad=(0,))
row("stft.center", [call(f(10), 4, 2, window=_window, center=True, pad_mode="reflect", return_complex=True)], grad=(0,))
row("istft", [call(c(3, 5), 4, 2, 4, _window + 0.2)], grad=(0,))
