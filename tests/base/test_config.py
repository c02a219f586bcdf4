import pytest

from flambeau.base import logs
from flambeau.base.config import Config, Knob


def make(**env):
    return Config(
        "torch.x.config",
        {
            "limit": Knob(8, "a limit", ("X_LIMIT",), type=int),
            "fast": Knob(False, "speed", in_key=True),
            "trace.enabled": Knob(False, "traces"),
        },
        {"old_limit": "limit"},
    )


def test_defaults_aliases_and_unknown_names():
    c = make()
    assert (c.limit, c.old_limit, c.trace.enabled) == (8, 8, False)
    c.old_limit = 3
    assert c.limit == 3
    with pytest.raises(AttributeError, match="torch.x.config.limt does not exist"):
        c.limt = 1
    with pytest.raises(TypeError, match="must be int"):
        c.limit = "three"


def test_patch_restores_also_after_an_error():
    c = make()
    with pytest.raises(KeyError), c.patch({"trace.enabled": True}, limit=1):
        assert c.trace.enabled and c.limit == 1
        raise KeyError
    assert not c.trace.enabled and c.limit == 8

    @c.patch("limit", 2)
    def inside():
        return c.limit

    assert inside() == 2 and c.limit == 8


def test_environment_and_key(monkeypatch):
    monkeypatch.setenv("X_LIMIT", "5")
    c = make()
    assert c.limit == 5 and c.help("trace.enabled") == "traces"
    before = c.key()
    c.limit = 6
    assert c.key() == before
    c.fast = True
    assert c.key() != before
    monkeypatch.setenv("X_LIMIT", "many")
    with pytest.raises(ValueError, match="X_LIMIT"):
        make()


def test_unknown_log_artifact_lists_the_known_ones():
    with pytest.raises(ValueError, match="graph_breaks"):
        logs.set_logs(grahp_breaks=True)
