"""The profiler's configuration is data."""

import json

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler import profiler_config_parser
from smdebug.profiler.profiler_config_parser import (
    MetricsCategory,
    ProfilerConfigParser,
    get_profiler_config_parser,
    parse_profiler_json,
    reset_profiler_config_parser,
)


@pytest.fixture
def parser_of(tmp_path, monkeypatch):
    path = tmp_path / "profilerconfig.json"
    monkeypatch.setenv("SMPROFILER_CONFIG_PATH", str(path))

    def parse(content):
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return ProfilerConfigParser()

    return parse


def test_without_a_file_nothing_is_profiled(monkeypatch, tmp_path):
    monkeypatch.setenv("SMPROFILER_CONFIG_PATH", str(tmp_path / "none"))
    parser = ProfilerConfigParser()
    assert (parser.profiling_enabled, parser.config) == (False, None)
    assert not parser.should_save_metrics(MetricsCategory.PYTHON_PROFILING, 3)


@pytest.mark.parametrize("written", ['{"StartStep": 5, "NumSteps": "2"}', "{'StartStep': 5, 'NumSteps': 2}"])
def test_a_configuration_in_a_string_is_parsed(parser_of, written):
    parser = parser_of(
        {
            "ProfilingParameters": {
                "LocalPath": "/profiles",
                "RotateMaxFileSizeInBytes": "100",
                "DetailedProfilingConfig": written,
            }
        }
    )
    assert parser.profiling_enabled
    assert parser.config.local_path == "/profiles"
    assert parser.config.trace_file.file_max_size == 100
    assert parser.config.trace_file.file_close_interval == 60
    detailed = parser.config.detailed_profiling_config
    assert (detailed.is_enabled, detailed.start_step, detailed.num_steps) == (True, 5, 2)
    assert (detailed.start_time_in_sec, detailed.duration_in_sec) == (None, None)
    assert not parser.config.python_profiling_config.is_enabled


def test_a_disabled_profiler_is_disabled(parser_of):
    described = {"ProfilingParameters": {"LocalPath": "x"}, "DisableProfiler": "true"}
    assert not parser_of(described).profiling_enabled
    assert not parser_of({"other": 1}).profiling_enabled


@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('os').system('true')",
        '{"ProfilingParameters": {"DetailedProfilingConfig": "__import__(\'os\').getpid()"}}',
        '{"ProfilingParameters": {"DetailedProfilingConfig": "[1]"}}',
        '{"ProfilingParameters": {"DetailedProfilingConfig": "{\\"StartStep\\": \\"x\\"}"}}',
        "[" * 9_000,
        "{" + " " * 20_000 + "}",
        "",
    ],
)
def test_text_that_is_not_a_configuration_is_reported_and_not_run(parser_of, hostile, capsys):
    parser = parser_of(hostile)
    assert (parser.profiling_enabled, parser.config) == (False, None)
    assert "is not used" in capsys.readouterr().out


def test_the_error_names_the_text():
    with pytest.raises(SMDebugValueError, match="not a JSON object"):
        parse_profiler_json("open('x')")


def test_a_changed_file_is_read_again(parser_of):
    parser = parser_of({"ProfilingParameters": {"LocalPath": "a"}})
    parser.load_config()
    parser_of({"ProfilingParameters": {"LocalPath": "b"}})
    parser.load_config()
    assert parser.config.local_path == "b"


def test_one_parser_per_process(monkeypatch):
    monkeypatch.setattr(profiler_config_parser, "_parser", None)
    assert get_profiler_config_parser("torch") is get_profiler_config_parser()
    reset_profiler_config_parser()
    assert get_profiler_config_parser().framework is None
