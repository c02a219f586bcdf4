"""Records of TensorBoard's page that compares runs by their hyperparameters."""

from __future__ import annotations

from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams.api_pb2 import DataType, Experiment, HParamInfo, MetricInfo, MetricName, Status
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

from ... import _C

__all__ = ["hparams"]


def _record(tag: str, **content) -> Summary:
    data = HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content).SerializeToString()
    plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME, content=data)
    return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))])


def _value(name: str, value) -> tuple[str, str, object]:
    """(type, field, what is written) of one hyperparameter. A bool is a number, as in PyTorch's records."""
    if isinstance(value, int | float):
        return "DATA_TYPE_FLOAT64", "number_value", value
    if isinstance(value, str):
        return "DATA_TYPE_STRING", "string_value", value
    if isinstance(value, _C.TensorBase):
        return "DATA_TYPE_FLOAT64", "number_value", value.item()
    raise ValueError(
        f"value should be one of int, float, str, bool, or torch.Tensor, but {name!r} is a {type(value).__name__}"
    )


def _mapping(name: str, value) -> dict:
    if not isinstance(value, dict):
        raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    return value


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None) -> tuple[Summary, Summary, Summary]:
    """The records (experiment, start of a session, end of a session) of hyperparameters and the names of metrics.

    ``hparam_dict``: {name: number, text or one-element tensor; None is left out}. ``hparam_domain_discrete``: {name: all values that it can have}.
    TypeError for what is no dictionary and for domains of another type, ValueError for a hyperparameter that is none of these.
    """
    given, metrics = _mapping("hparam_dict", hparam_dict), _mapping("metric_dict", metric_dict)
    domains = _mapping("hparam_domain_discrete", hparam_domain_discrete or {})
    for name, values in domains.items():
        kind = type(given.get(name))
        if name not in given or not isinstance(values, list) or not all(isinstance(v, kind) for v in values):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]."
            )
    session, infos = SessionStartInfo(), []
    for name, value in given.items():
        if value is None:
            continue
        kind, field, written = _value(name, value)
        setattr(session.hparams[name], field, written)
        domain = None
        if name in domains:
            domain = struct_pb2.ListValue(values=[struct_pb2.Value(**{field: v}) for v in domains[name]])
        infos.append(HParamInfo(name=name, type=DataType.Value(kind), domain_discrete=domain))
    experiment = Experiment(
        hparam_infos=infos, metric_infos=[MetricInfo(name=MetricName(tag=name)) for name in metrics]
    )
    end = SessionEndInfo(status=Status.Value("STATUS_SUCCESS"))
    return (
        _record(metadata.EXPERIMENT_TAG, experiment=experiment),
        _record(metadata.SESSION_START_INFO_TAG, session_start_info=session),
        _record(metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )
