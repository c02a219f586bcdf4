"""Writers of TensorBoard's event files."""

from __future__ import annotations

import datetime
import functools
import os
import socket
import time

from tensorboard.compat.proto.event_pb2 import Event, SessionLog, TaggedRunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from . import summary
from .arrays import figure_to_image
from .embedding import write_config, write_embedding
from .graph import graph

__all__ = ["FileWriter", "SummaryWriter"]


@functools.cache
def _default_bins() -> list[float]:
    """TensorFlow's edges: each a tenth above the one before, from 1e-12 to 1e20, on both sides of 0."""
    edges, v = [], 1e-12
    while v < 1e20:
        edges.append(v)
        v *= 1.1
    return [*(-e for e in reversed(edges)), 0, *edges]


class FileWriter:
    """Writes events to one file in ``log_dir``, from a thread of its own.

    ``max_queue``: events that wait at most before a call waits for the disk. ``flush_secs``: seconds after which what waits is written.
    ``filename_suffix`` ends the file's name.
    """

    def __init__(self, log_dir, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""):
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder of the file."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Event, step=None, walltime: float | None = None) -> None:
        """Write an event; ``walltime`` is now unless given."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary, global_step=None, walltime: float | None = None) -> None:
        """Write a ``Summary``."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile, walltime: float | None = None) -> None:
        """Write a graph and the record of a run of it."""
        made, run = graph_profile
        self.add_onnx_graph(made, walltime)
        self.add_event(
            Event(tagged_run_metadata=TaggedRunMetadata(tag="step1", run_metadata=run.SerializeToString())),
            None,
            walltime,
        )

    def add_onnx_graph(self, graph: GraphDef, walltime: float | None = None) -> None:
        """Write a graph alone."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Wait until everything is on disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Go on, after ``close()``, in a new file of the same folder."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writes what a program logs into event files in ``log_dir``, for ``tensorboard --logdir``.

    ``log_dir`` is ``runs/DATE_HOST`` with ``comment`` unless given. ``purge_step``: what an earlier run logged at this step and later is hidden.
    ``max_queue``, ``flush_secs`` and ``filename_suffix`` as for :class:`FileWriter`. Every method takes tensors, arrays or numbers;
    ``global_step`` and ``walltime`` (seconds since 1970, now unless given) place what is logged.

    >>> with SummaryWriter("logs") as writer:  # doctest: +SKIP
    ...     writer.add_scalar("loss", 0.5, global_step=1)
    """

    def __init__(
        self,
        log_dir=None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ):
        if not log_dir:
            started = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{started}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self.default_bins = _default_bins()
        self._projector = ProjectorConfig()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """The writer of ``log_dir``; a new one after ``close()``."""
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                start = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=self.purge_step, session_log=start))
                self.purge_step = None
        return self.file_writer

    def _open(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _add(self, made, global_step=None, walltime=None) -> None:
        self._get_file_writer().add_summary(made, global_step, walltime)

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def add_hparams(
        self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None
    ) -> None:
        """Log hyperparameters {name: number, text, one-element tensor or None} and the metrics {name: number} that a run with them reached,
        in a folder ``run_name`` (the time unless given) of its own. ``hparam_domain_discrete``: {name: all values it can have}.
        TypeError unless the first two are dictionaries."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        records = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        with SummaryWriter(os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))) as own:
            for record in records:
                own._add(record, global_step)
            for name, value in metric_dict.items():
                own.add_scalar(name, value, global_step)

    def add_scalar(
        self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False
    ) -> None:
        """Log a number. ``new_style`` writes it as a tensor, with ``double_precision`` of float64."""
        made = summary.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._add(made, global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None) -> None:
        """Log several numbers {tag: number} that are shown in one chart; each has a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        writers = self.all_writers
        assert writers is not None
        for tag, value in tag_scalar_dict.items():
            name = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if name not in writers:
                writers[name] = self._open(name)
            writers[name].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None) -> None:
        """Log all elements of a tensor. ValueError from 2 GiB on."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None) -> None:
        """Log how values are distributed. ``bins``: edges, or what ``numpy.histogram`` takes; "tensorflow" has finer ones near 0."""
        edges = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summary.histogram(tag, values, edges, max_bins=max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None
    ) -> None:
        """Log a histogram of given figures. ValueError unless there are as many counts as limits."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        made = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(made, global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW") -> None:
        """Log an image: bytes, or numbers from 0 to 1. ``dataformats`` names its dimensions: "CHW", "HWC" or "HW"."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW") -> None:
        """Log images of one size as a grid."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag,
        img_tensor,
        box_tensor,
        global_step=None,
        walltime=None,
        rescale=1,
        dataformats="CHW",
        labels=None,
    ) -> None:
        """Log an image with boxes (N, 4): left, top, right, bottom in pixels; ``labels``: a text, or one for each box."""
        if labels is not None:
            labels = [labels] if isinstance(labels, str) else labels
            if len(labels) != len(box_tensor):
                labels = None
        made = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(made, global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None) -> None:
        """Log a figure of matplotlib's, or a list of them; they are closed unless told otherwise."""
        pixels = figure_to_image(figure, close)
        self._add(summary.image(tag, pixels, dataformats="NCHW" if pixels.ndim == 4 else "CHW"), global_step, walltime)

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None) -> None:
        """Log videos (N, time, channels, height, width), side by side in one animation."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None) -> None:
        """Log sound of one channel, numbers from -1 to 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate=sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None) -> None:
        """Log a text, shown as Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_onnx_graph(self, prototxt) -> None:
        """NotImplementedError: files of ONNX are not read here."""
        raise NotImplementedError(
            "add_onnx_graph: flambeau reads no ONNX; add_graph(model, inputs) logs a model's graph"
        )

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True) -> None:
        """Log the graph of a model: its ATen operators when it runs once, in eval mode, on ``input_to_model`` (a tensor or a tuple)."""
        self._get_file_writer().add_graph(graph(model, input_to_model, verbose, use_strict_trace))

    def add_embedding(
        self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None
    ) -> None:
        """Log vectors (N, features) for the projector, with labels (N texts; N rows under ``metadata_header``) and pictures (N, channels, height,
        width) of what they stand for."""
        step = 0 if global_step is None else global_step
        folder = f"{step:05}/{tag.replace('%', '%25').replace('/', '%2f').replace(chr(92), '%5c')}"
        logs = self._get_file_writer().get_logdir()
        info = write_embedding(logs, folder, mat, metadata, label_img, metadata_header, step, tag)
        self._projector.embeddings.append(info)
        write_config(logs, self._projector)

    def add_pr_curve(
        self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None
    ) -> None:
        """Log the precision-recall curve of ``predictions`` (probabilities) for ``labels`` (0 or 1)."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag,
        true_positive_counts,
        false_positive_counts,
        true_negative_counts,
        false_negative_counts,
        precision,
        recall,
        global_step=None,
        num_thresholds=127,
        weights=None,
        walltime=None,
    ) -> None:
        """Log a precision-recall curve of given counts, one for each threshold."""
        rows = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        made = summary.pr_curve_raw(tag, *rows, precision, recall, num_thresholds, weights)
        self._add(made, global_step, walltime)

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled") -> None:
        """Show the numbers of several tags in one chart."""
        self._add(summary.custom_scalars({category: {title: ["Multiline", tags]}}))

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled") -> None:
        """Show a number between two others: three tags, of value, lower and upper one."""
        self._add(summary.custom_scalars({category: {title: ["Margin", tags]}}))

    def add_custom_scalars(self, layout) -> None:
        """Lay charts out: {category: {title: ["Multiline" or "Margin", tags]}}. Once in the life of a writer."""
        self._add(summary.custom_scalars(layout))

    def add_mesh(
        self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None
    ) -> None:
        """Log points (N, points, 3), their colours and the triangles (N, triangles, 3) between them."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def flush(self) -> None:
        """Wait until everything is on disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write the waiting events and close the files. Later events go into new files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc) -> None:
        self.close()
