"""``torch.distributed.pipelining``: a model cut into stages that ranks run on microbatches in turn.

A *stage* (stage.py) has a module and sends to its neighbours; a *schedule* (schedules.py) runs the rank's stages in an order of _orders.py on what
microbatch.py cuts a batch into. ``pipeline`` (pipe.py) makes the stages of a module by tracing it. See docs/design/distributed.md.
"""

from .pipe import Pipe, SplitPoint, pipe_split, pipeline
from .schedules import (
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    _ScheduleForwardOnly,  # noqa: F401
)
from .stage import PipelineStage, build_stage

__all__ = [
    "Pipe",
    "PipelineStage",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "SplitPoint",
    "build_stage",
    "pipe_split",
    "pipeline",
]
