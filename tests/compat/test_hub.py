"""torch.hub: exactly the repository that was named, from the user's folder."""

import sys

import pytest

import flambeau as torch

CONF = "dependencies = {needs}\ndef which(x=0):\n    'Says where it is.'\n    return {name!r}, x\ndef _hidden(): ...\n"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "_dir", str(tmp_path))

    def put(name, needs=()):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hubconf.py").write_text(CONF.format(name=name, needs=list(needs)))

    for name in (
        *(
            "owner_net_main",
            "owner_net2_main",
            "owner_netmaster_evil",
            "other_net_master",
            "owner_net_v1",
            "owner_net_v1.5",
        ),
        *("owner_net_release_1", "owner_a_b_main", "evil_main"),
    ):
        put(name)
    (tmp_path / "owner_empty_main").mkdir()
    return put


FOUND = {
    "owner/net": "owner_net_main",
    "owner/net:main": "owner_net_main",
    "owner/net2": "owner_net2_main",
    "other/net": "other_net_master",
    "owner/net:v1": "owner_net_v1",
    "owner/net:v1.5": "owner_net_v1.5",
    "owner/net:release/1": "owner_net_release_1",
    "owner/a_b": "owner_a_b_main",
}
ABSENT = [
    "owner/ne",
    "owner/netmaster",
    "own/net",
    "owner/net:v",
    "owner/net:v2",
    "owner/empty",
    "owner/net:evil",
    "owner/n",
    "owner/net_main_",
]
REFUSED = [
    "owner_net",
    "owner/../evil",
    "../evil",
    "a/b/c",
    "owner/..",
    "owner_a/b",
    "/etc/x",
    "owner/net:../../x y",
    "",
    "owner/",
    "/net",
    "*/net",
    "owner/*",
    "owner/[n]et",
]


@pytest.mark.parametrize("repository", FOUND)
def test_what_is_named_is_loaded(hub, repository):
    assert torch.hub.load(repository, "which", x=3) == (FOUND[repository], 3)
    assert torch.hub.list(repository) == ["which"] and torch.hub.help(repository, "which") == "Says where it is."


@pytest.mark.parametrize("repository", ABSENT)
def test_nothing_else_is(hub, repository):
    with pytest.raises(RuntimeError, match="loads repositories from local folders only"):
        torch.hub.load(repository, "which")


@pytest.mark.parametrize("repository", REFUSED)
def test_names_of_another_form_are_refused(hub, repository):
    for use in (torch.hub.list, lambda r: torch.hub.load(r, "which"), lambda r: torch.hub.help(r, "which")):
        with pytest.raises(ValueError, match="expected a repository"):
            use(repository)


def test_folders_and_errors(hub, tmp_path):
    assert torch.hub.load(str(tmp_path / "evil_main"), "which", source="local") == ("evil_main", 0)
    hub("owner_needy_main", needs=["no_such_package_here"])
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_here"):
        torch.hub.load("owner/needy", "which")
    with pytest.raises(RuntimeError, match="Cannot find callable absent"):
        torch.hub.load("owner/net", "absent")
    with pytest.raises(ValueError, match="Unknown source"):
        torch.hub.load("owner/net", "which", source="elsewhere")
    with pytest.raises(ValueError, match="model should be a string"):
        torch.hub.load("owner/net", 3)
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*nowhere/hubconf.py'"):
        torch.hub.load(str(tmp_path / "nowhere"), "which", source="local")


def test_an_entry_point_imports_from_its_repository(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "import sys\ndependencies = None\n\ndef late():\n    from hub_late_part import value\n    return value, sys.path[0], __name__\n"
    )
    (tmp_path / "hub_late_part.py").write_text("value = 7\n")
    before = list(sys.path)
    try:
        assert torch.hub.load(tmp_path, "late", source="local") == (7, str(tmp_path), "hubconf.py")
    finally:
        sys.modules.pop("hub_late_part", None)
    assert sys.path == before


def test_a_repository_that_fails_leaves_no_path(tmp_path):
    (tmp_path / "hubconf.py").write_text("def which(): raise KeyError(3)\n")
    before = list(sys.path)
    with pytest.raises(KeyError):
        torch.hub.load(str(tmp_path), "which", source="local")
    (tmp_path / "hubconf.py").write_text("import sys\nsys.path.pop(0)\ndependencies = ['no_such.part']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such.part"):
        torch.hub.load(str(tmp_path), "which", source="local")
    assert sys.path == before
