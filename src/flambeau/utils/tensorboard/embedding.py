"""Files of TensorBoard's projector: vectors, labels and small pictures of what they stand for."""

from __future__ import annotations

import io
import math
import posixpath

import numpy as np
from google.protobuf import text_format
from tensorboard.compat import tf
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig

from .arrays import make_grid, make_np

__all__ = ["write_config", "write_embedding"]


def _write(folder: str, name: str, content: bytes) -> None:
    # TensorBoard's own file system: a folder of logs may be a bucket.
    with tf.io.gfile.GFile(posixpath.join(folder, name), "wb") as file:
        file.write(content)


def _table(metadata, header) -> bytes:
    if not header:
        lines = [str(x) for x in metadata]
    elif len(header) != len(metadata[0]):
        raise AssertionError(f"metadata_header has {len(header)} names for {len(metadata[0])} columns")
    else:
        lines = ["\t".join(map(str, row)) for row in [header, *metadata]]
    return ("\n".join(lines) + "\n").encode()


def _sprite(pictures: np.ndarray) -> bytes:
    """One square picture of all of them, as the projector wants it."""
    from PIL import Image

    grid = make_grid(pictures, math.ceil(len(pictures) ** 0.5)).transpose(1, 2, 0)
    square = np.zeros((grid.shape[1], grid.shape[1], 3))
    square[: grid.shape[0]] = grid
    out = io.BytesIO()
    Image.fromarray(np.uint8((square * 255).clip(0, 255))).save(out, "PNG")
    return out.getvalue()


def write_embedding(logs: str, subfolder: str, mat, metadata, pictures, header, step: int, tag: str) -> EmbeddingInfo:
    """Write one embedding into ``logs/subfolder``; its entry in the projector's list. AssertionError when the parts don't fit together,
    NotADirectoryError when a file has the folder's name."""
    mat = make_np(mat)
    if mat.ndim != 2:
        raise AssertionError(f"mat should be 2D, (points, features), but has the shape {mat.shape}")
    if metadata is not None and len(metadata) != len(mat):
        raise AssertionError(f"#labels should equal with #data points: {len(metadata)} for {len(mat)}")
    if pictures is not None and len(pictures) != len(mat):
        raise AssertionError(f"#images should equal with #data points: {len(pictures)} for {len(mat)}")
    folder = posixpath.join(logs, subfolder)
    if not tf.io.gfile.exists(folder):
        tf.io.gfile.makedirs(folder)
    elif tf.io.gfile.isdir(folder):
        print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
    else:
        raise NotADirectoryError(f"Path: `{folder}` exists, but is a file. Cannot proceed.")
    info = EmbeddingInfo(tensor_name=f"{tag}:{step:05}", tensor_path=f"{subfolder}/tensors.tsv")
    if metadata is not None:
        _write(folder, "metadata.tsv", _table(metadata, header))
        info.metadata_path = f"{subfolder}/metadata.tsv"
    if pictures is not None:
        pictures = make_np(pictures)
        _write(folder, "sprite.png", _sprite(pictures))
        info.sprite.image_path = f"{subfolder}/sprite.png"
        info.sprite.single_image_dim.extend([pictures.shape[3], pictures.shape[2]])
    _write(folder, "tensors.tsv", "".join("\t".join(map(str, row)) + "\n" for row in mat.tolist()).encode())
    return info


def write_config(logs: str, config: ProjectorConfig) -> None:
    """Write the projector's list of embeddings, whole: not every file system can append."""
    _write(logs, "projector_config.pbtxt", text_format.MessageToString(config).encode())
