"""Values of programs as NumPy arrays, and images as TensorBoard shows them."""

from __future__ import annotations

import math

import numpy as np

from ... import _C
from ...base import dtypes

__all__ = ["convert_to_HWC", "figure_to_image", "make_grid", "make_np", "video_frames"]


def make_np(x) -> np.ndarray:
    """The array of a tensor, an array or a number. NotImplementedError for anything else, ValueError for a tensor without values."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if not isinstance(x, _C.TensorBase):
        raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")
    x = x.detach()
    if x.device.type == "meta":
        raise ValueError("a tensor on the device 'meta' has no values that could be logged")
    # NumPy has no bfloat16; float32 holds each of its values.
    return (x.float() if x.dtype is dtypes.bfloat16 else x.cpu()).numpy()


def make_grid(images: np.ndarray, ncols: int = 8) -> np.ndarray:
    """One image (3, height, width) of the images (N, 1 or 3, height, width), row by row; what is left over is black."""
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        raise AssertionError(f"expected images of the shape (N, 1 or 3, H, W), got {images.shape}")
    n, _, height, width = images.shape
    columns = min(n, ncols)
    rows = math.ceil(n / columns)
    cells = np.zeros((rows * columns, 3, height, width), images.dtype)
    cells[:n] = images
    cells = cells.reshape(rows, columns, 3, height, width)
    return cells.transpose(2, 0, 3, 1, 4).reshape(3, rows * height, columns * width)


def convert_to_HWC(array: np.ndarray, layout: str) -> np.ndarray:  # noqa: N802
    """An image (height, width, channels) from one in ``layout``: letters of N, C, H and W. Several images become a grid, one channel three."""
    layout = layout.upper()
    if len(set(layout)) != len(layout):
        raise AssertionError(f"dataformats={layout!r} names a dimension twice")
    if array.ndim != len(layout):
        raise AssertionError(f"dataformats={layout!r} doesn't fit an image of the shape {array.shape}")
    wanted = {4: "NCHW", 3: "HWC", 2: "HW"}.get(len(layout))
    if wanted is None or set(layout) != set(wanted):
        raise AssertionError(f"dataformats={layout!r} is no order of NCHW, HWC or HW")
    array = array.transpose([layout.index(letter) for letter in wanted])
    if wanted == "NCHW":
        return make_grid(array).transpose(1, 2, 0)
    if wanted == "HW":
        array = array[:, :, None]
    return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array


def video_frames(video: np.ndarray) -> np.ndarray:
    """Frames (time, height, width, channels) of videos (N, time, channels, height, width), which are shown side by side."""
    if video.ndim != 5:
        raise AssertionError(f"expected videos of the shape (N, T, C, H, W), got {video.shape}")
    n, time, channels, height, width = video.shape
    cells = 1 << (n - 1).bit_length()
    rows = 1 << (n.bit_length() - 1) // 2
    video = np.concatenate([video, np.zeros((cells - n, *video.shape[1:]), video.dtype)])
    video = video.reshape(rows, cells // rows, time, channels, height, width)
    return video.transpose(2, 0, 4, 1, 5, 3).reshape(time, rows * height, cells // rows * width, channels)


def figure_to_image(figures, close: bool = True) -> np.ndarray:
    """Pixels (3, height, width), bytes, of a matplotlib figure; (N, 3, height, width) of a list of them. They are closed unless told otherwise."""
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if isinstance(figures, list):
        return np.stack([figure_to_image(figure, close) for figure in figures])
    canvas = FigureCanvasAgg(figures)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1).copy()
    if close:
        pyplot.close(figures)
    return pixels
