"""Records of TensorBoard for eyes and ears: images, videos, sound, meshes."""

from __future__ import annotations

import io
import json
import wave

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from .arrays import convert_to_HWC, make_np, video_frames

__all__ = ["audio", "draw_boxes", "image", "image_boxes", "make_image", "make_video", "mesh", "video"]


def _bytes(array: np.ndarray) -> np.ndarray:
    """Brightness from 0 to 255: numbers from 0 to 1 are scaled, bytes stay."""
    return array if array.dtype == np.uint8 else (array.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)


def image(tag: str, tensor, rescale: float = 1, dataformats: str = "NCHW") -> Summary:
    """An image: bytes, or numbers from 0 to 1. ``dataformats`` names its dimensions; several images become a grid."""
    pixels = _bytes(convert_to_HWC(make_np(tensor), dataformats))
    return Summary(value=[Summary.Value(tag=tag, image=make_image(pixels, rescale))])


def image_boxes(tag: str, tensor_image, tensor_boxes, rescale=1, dataformats: str = "CHW", labels=None) -> Summary:
    """An image with boxes: rows of left, top, right and bottom in pixels."""
    pixels = _bytes(convert_to_HWC(make_np(tensor_image), dataformats))
    made = make_image(pixels, rescale, make_np(tensor_boxes), labels)
    return Summary(value=[Summary.Value(tag=tag, image=made)])


def draw_boxes(disp_image, boxes, labels=None):
    """Draw boxes, and their labels, on a picture of Pillow's; that picture."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(disp_image)
    for i, box in enumerate(boxes.tolist()):
        draw.rectangle(box, outline="red", width=2)
        if labels is not None and labels[i]:
            left, _, right, bottom = draw.textbbox((box[0], box[3]), labels[i])
            # Inside of the box, at its lower edge.
            height = bottom - box[3]
            draw.rectangle((left, box[3] - height - 2, right, box[3]), fill="red")
            draw.text((box[0], box[3] - height - 2), labels[i], fill="black")
    return disp_image


def make_image(tensor: np.ndarray, rescale: float = 1, rois=None, labels=None) -> Summary.Image:
    """The record of an image (height, width, channels) of bytes, as PNG, with the boxes ``rois``."""
    from PIL import Image

    height, width, channels = tensor.shape
    picture = Image.fromarray(tensor)
    if rois is not None:
        picture = draw_boxes(picture, rois, labels)
    if rescale != 1:
        picture = picture.resize((int(width * rescale), int(height * rescale)), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    picture.save(out, format="PNG")
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=out.getvalue())


def video(tag: str, tensor, fps: float = 4) -> Summary:
    """Videos (N, time, channels, height, width) side by side, as one animation."""
    frames = _bytes(video_frames(make_np(tensor)))
    return Summary(value=[Summary.Value(tag=tag, image=make_video(frames, fps))])


def make_video(tensor: np.ndarray, fps: float) -> Summary.Image:
    """The record of frames (time, height, width, channels) of bytes, as an animated GIF."""
    from PIL import Image

    count, height, width, channels = tensor.shape
    if count == 0:
        raise ValueError("a video has at least one frame")
    frames = [Image.fromarray(frame[:, :, 0] if channels == 1 else frame) for frame in tensor]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], duration=max(round(1000 / fps), 20), loop=0)
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=out.getvalue())


def audio(tag: str, tensor, sample_rate: int = 44100) -> Summary:
    """Sound of one channel, numbers from -1 to 1 (others are clipped, with a warning on stdout), as a WAV of 16 bits."""
    samples = make_np(tensor).squeeze()
    if samples.ndim != 1:
        raise AssertionError(f"sound has one dimension (one channel), but {tag!r} has the shape {samples.shape}")
    if samples.size and np.abs(samples).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        samples = samples.clip(-1, 1)
    samples = (samples * np.iinfo(np.int16).max).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    made = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=out.getvalue(),
        content_type="audio/wav",
    )
    return Summary(value=[Summary.Value(tag=tag, audio=made)])


def mesh(tag: str, vertices, colors, faces, config_dict, display_name=None, description=None) -> Summary:
    """Points or a mesh: ``vertices`` (N, points, 3), ``colors`` (N, points, 3) and ``faces`` (N, triangles, 3) or None; ``config_dict``: settings of
    the viewer (three.js)."""
    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    settings = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    kinds = ((vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR))
    parts = [(make_np(array), kind) for array, kind in kinds if array is not None]
    present = metadata.get_components_bitmask([kind for _, kind in parts])
    made = []
    for array, kind in parts:
        if array.ndim != 3:
            raise AssertionError(
                f"parts of a mesh have three dimensions, but one of {tag!r} has the shape {array.shape}"
            )
        about = metadata.create_summary_metadata(
            tag, display_name, kind, present, array.shape, description, json_config=settings
        )
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in array.shape])
        tensor = TensorProto(dtype="DT_FLOAT", float_val=array.reshape(-1).tolist(), tensor_shape=shape)
        made.append(Summary.Value(tag=metadata.get_instance_name(tag, kind), tensor=tensor, metadata=about))
    return Summary(value=made)
