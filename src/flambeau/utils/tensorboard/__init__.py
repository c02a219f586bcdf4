"""``torch.utils.tensorboard``: logs for TensorBoard, written with the package ``tensorboard`` (extra ``tensorboard``)."""

from ...base.optional import optional

optional("tensorboard", "tensorboard", "torch.utils.tensorboard")

from tensorboard.summary.writer.record_writer import RecordWriter  # noqa: E402

from .writer import FileWriter, SummaryWriter  # noqa: E402

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
