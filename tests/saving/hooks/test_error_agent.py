"""Errors in a hook that was added automatically, and in one that was configured."""

import pytest

import smdebug
from smdebug.saving.hooks.error_agent import BASE_ERROR_MESSAGE, ErrorHandlingAgent


@pytest.fixture
def agent(monkeypatch):
    monkeypatch.setattr(ErrorHandlingAgent, "_agent", None)
    return ErrorHandlingAgent.get_error_handling_agent()


def test_there_is_one_agent(agent):
    assert ErrorHandlingAgent.get_error_handling_agent() is agent


def test_before_any_hook_an_error_switches_the_library_off(agent, capsys):
    calls = []

    @agent.catch_smdebug_errors(default_return_val="default")
    def callback(number):
        calls.append(number)
        raise ValueError("broken")

    assert callback(1) == callback(2) == "default"
    assert calls == [1]
    assert agent.disable_smdebug
    assert capsys.readouterr().out.count(BASE_ERROR_MESSAGE) == 1


def test_a_default_hook_is_switched_off_too(agent, tmp_path):
    smdebug.Hook(tmp_path)

    @agent.catch_smdebug_errors()
    def callback():
        raise ValueError("broken")

    assert callback() is None
    assert agent.disable_smdebug


def test_errors_of_a_configured_hook_are_raised(agent, tmp_path):
    smdebug.Hook(tmp_path, include_collections=["weights"])

    @agent.catch_smdebug_errors()
    def callback():
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        callback()
    assert not agent.disable_smdebug


def test_a_default_may_be_computed_from_the_arguments(agent):
    @agent.catch_smdebug_errors(default_return_val=lambda value: value + 1)
    def callback(value):
        raise ValueError("broken")

    assert callback(3) == callback(3) == 4
