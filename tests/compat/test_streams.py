"""``torch.Stream`` and ``torch.Event`` where the process has no device: work of the CPU is done when a call returns (tests/cuda: with one)."""

import pytest

import flambeau as torch


def test_streams_of_the_cpu():
    stream, event = torch.Stream(), torch.Event()
    assert repr(stream) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0"
    assert repr(event) == "torch.Event device_type=cpu, device_index=-1, event_flag=0, event_id=0"
    with stream:
        x = torch.ones(3) + 1
        event.record()
    stream.wait_event(event)
    stream.wait_stream(torch.Stream("cpu"))
    assert stream.query() and event.query() and x.sum() == 6 and isinstance(stream.record_event(), torch.Event)
    for own in (stream, event):
        own.synchronize()


def test_a_device_that_is_not_there():
    for kind in (torch.Stream, torch.Event):
        with pytest.raises(RuntimeError, match="PyTorch is not linked with support for cuda devices"):
            kind("cuda")
