"""The hook of a process: what `get_hook()` of a framework's package finds, and makes."""

import json

import pytest

import smdebug
from smdebug.exceptions import FrameworkMissing, SMDebugTypeError
from smdebug.saving.hooks import framework, singleton


class OtherHook(smdebug.Hook):
    """A hook of another framework."""


@pytest.fixture(autouse=True)
def no_hook(monkeypatch):
    monkeypatch.setattr(singleton, "_hook", None)


@pytest.fixture
def configuration(tmp_path):
    path = tmp_path / "hook.json"
    path.write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    return str(path)


def hook_of(hook_class=smdebug.Hook, path=None, *, create=True):
    return singleton.get_hook(json_config_path=path, hook_class=hook_class, create_if_not_exists=create)


def test_a_hook_is_made_of_the_configuration_once(configuration):
    hook = hook_of(path=configuration)
    assert type(hook) is smdebug.Hook
    assert hook_of(path=configuration) is hook_of(path=None) is hook
    assert singleton.current_hook() is hook


def test_without_a_configuration_or_if_none_shall_be_made_there_is_none(configuration, tmp_path):
    assert hook_of(path=configuration, create=False) is None
    assert hook_of(path=str(tmp_path / "nothing.json")) is None


def test_a_hook_of_another_framework_is_replaced(configuration):
    first = hook_of(path=configuration)
    second = hook_of(OtherHook, configuration)
    assert type(second) is OtherHook
    assert first is not second
    assert hook_of(smdebug.Hook, configuration) is second, "one of a subclass is one"
    assert hook_of(None) is second, "without a class, whichever there is"


def test_a_hook_can_be_set_and_forgotten(tmp_path):
    hook = smdebug.Hook(tmp_path / "run")
    smdebug.Hook(tmp_path / "newer")
    singleton.set_hook(hook)
    assert hook_of() is hook
    singleton.del_hook()
    assert singleton.current_hook() is None
    with pytest.raises(SMDebugTypeError, match="takes a hook"):
        singleton.set_hook("hook")


def find(name, *, create=True, path=None):
    return framework.get_hook("smdebug", name, path, create)


def test_a_package_finds_its_hook_unless_the_library_is_switched_off(configuration, monkeypatch):
    hook = find("Hook", path=configuration)
    assert type(hook) is smdebug.Hook
    assert find("Hook", create=False) is find(None) is hook
    monkeypatch.setenv("USE_SMDEBUG", "false")
    assert find("Hook") is None


def test_a_hook_whose_framework_is_missing_is_an_error_only_where_one_shall_be_made(monkeypatch):
    def missing(name):
        raise FrameworkMissing("PyTorch", "pytorch")

    monkeypatch.setattr(framework, "import_module", missing)
    assert find("Hook", create=False) is None
    with pytest.raises(FrameworkMissing, match="PyTorch"):
        find("Hook")


@pytest.mark.parametrize("module", ["no_such_framework", "no_such_framework.inner", ""])
def test_a_framework_that_is_not_installed_is_named_with_what_to_install(module):
    framework.require("JSON", "json", "json")
    with pytest.raises(FrameworkMissing, match="Frame"):
        framework.require("Frame", module, "frame")


def test_names_of_a_package_are_imported_on_first_use():
    homes = {"Collected": "smdebug.config.collection", "Collection": "smdebug.config.collection"}
    find_name = framework.lazily("tests.saving.hooks", homes)
    import tests.saving.hooks as package

    found = find_name("Collection")
    assert found.__module__ == "smdebug.config.collection"
    assert package.Collection is found, "the second time it is there"
    del package.Collection
    with pytest.raises(AttributeError, match="no attribute 'Other'"):
        find_name("Other")
