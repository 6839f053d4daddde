"""One module for each tool that takes records."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from smdebug.sinks.sink import RunSink, SinkChoice

_CLASSES = {
    "jsonl": "json_lines:LineSink",
    "prometheus": "prometheus:PrometheusSink",
    "cloudwatch": "cloudwatch:CloudWatchSink",
    "otlp": "otlp:OtlpSink",
    "mlflow": "mlflow:MlflowSink",
    "wandb": "wandb:WandbSink",
    "trackio": "trackio:TrackioSink",
}


def sink_for(choice: SinkChoice, **options: Any) -> RunSink:
    """Return the sink of that name; its library is imported when it begins."""
    module, _, name = _CLASSES[choice.name].partition(":")
    sink: RunSink = getattr(import_module(f"smdebug.sinks.targets.{module}"), name)(choice.target, **options)
    return sink
