"""The path below which a hub serves a notebook."""

import json

import pytest

from smdebug.ui.web.inline import hub_prefix


def test_a_hub_names_its_prefix():
    assert hub_prefix({"JUPYTERHUB_SERVICE_PREFIX": "/user/a/"}) == "/user/a/"
    assert hub_prefix({"JUPYTERHUB_SERVICE_PREFIX": "/user/a/", "JPY_PARENT_PID": "7"}) == "/user/a/"
    assert hub_prefix({}) == ""
    assert hub_prefix({"JPY_PARENT_PID": "no number"}) == ""


@pytest.mark.parametrize(
    ("content", "prefix"),
    [
        (json.dumps({"base_url": "/jupyter/default"}), "/jupyter/default"),
        (json.dumps({"base_url": "/"}), ""),
        (json.dumps({"base_url": None}), ""),
        (json.dumps({}), ""),
        (json.dumps([]), ""),
        ("{", ""),
    ],
)
@pytest.mark.parametrize("folder", ["JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "HOME"])
def test_a_server_with_a_base_address_names_it_in_its_file(content, prefix, folder, tmp_path, monkeypatch):
    below = {"JUPYTER_RUNTIME_DIR": "", "JUPYTER_DATA_DIR": "runtime", "HOME": ".local/share/jupyter/runtime"}
    place = tmp_path / below[folder]
    place.mkdir(parents=True, exist_ok=True)
    (place / "jpserver-42.json").write_text(content)
    monkeypatch.setenv("HOME", str(tmp_path if folder == "HOME" else tmp_path / "none"))
    environ = {"JPY_PARENT_PID": "42", **({} if folder == "HOME" else {folder: str(tmp_path)})}
    assert hub_prefix(environ) == prefix
    assert hub_prefix({**environ, "JPY_PARENT_PID": "43"}) == ""


def test_the_environment_of_the_process_is_asked_by_default(monkeypatch):
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/b/")
    assert hub_prefix() == "/user/b/"
