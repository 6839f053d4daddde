"""The rank of this process in a training with TensorFlow or Keras."""

from __future__ import annotations

import os

from smdebug.exceptions import SMDebugValueError
from smdebug.saving.process.ranks import ALONE, by_horovod, by_torch
from smdebug.tensorflow.tf_config import (
    Cluster,
    get_worker_id_from_tf_config,
    is_parameter_server_strategy,
    load_tf_config_json,
)

_TRAINERS = ("chief", "master", "worker")  # in the order of their ranks


def rank_and_size() -> tuple[int, int]:
    """Return rank and number of processes: (0, 1) for a training of one process."""
    by_config = _by_tf_config(os.environ.get("TF_CONFIG", ""))
    return by_horovod() or by_torch() or by_config or ALONE  # Keras may run on PyTorch


def _by_tf_config(described: str) -> tuple[int, int] | None:
    """Return rank and size from `TF_CONFIG`. With parameter servers one process runs the training."""
    config = load_tf_config_json(described)
    if config is None or is_parameter_server_strategy(config):
        return None
    trainers = _trainers(config)
    try:
        task = get_worker_id_from_tf_config(config)
    except SMDebugValueError:
        return None
    return (trainers.index(task), len(trainers)) if task in trainers else None


def _trainers(config: Cluster) -> list[str]:
    cluster = config.get("cluster")
    hosts = cluster if isinstance(cluster, dict) else {}
    return [
        f"{kind}_{index}"
        for kind in _TRAINERS
        if isinstance(hosts.get(kind), list)
        for index in range(len(hosts[kind]))
    ]
