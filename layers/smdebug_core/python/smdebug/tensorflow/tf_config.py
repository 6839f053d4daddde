"""`TF_CONFIG`, which describes how a training is distributed."""

from __future__ import annotations

import json
from typing import Any

from smdebug.exceptions import SMDebugValueError

Cluster = dict[str, Any]


def load_tf_config_json(tf_config: str) -> Cluster | None:
    """Return the cluster that `TF_CONFIG` describes, or None."""
    try:
        config = json.loads(tf_config)
    except (ValueError, TypeError):
        return None
    return config if isinstance(config, dict) else None


def is_parameter_server_strategy(tf_config: Cluster) -> bool:
    cluster = tf_config.get("cluster")
    return isinstance(cluster, dict) and "ps" in cluster


def get_worker_id_from_tf_config(tf_config: Cluster) -> str:
    """Return this task, as `<type>_<index>`."""
    try:
        task = tf_config["task"]
        return f"{task['type']}_{int(task['index'])}"
    except (KeyError, TypeError, ValueError) as error:
        raise SMDebugValueError(f"TF_CONFIG names no task: {tf_config}") from error


def get_num_workers_from_tf_config(tf_config: Cluster) -> int:
    """Return how many tasks train: the workers, and the chief or master."""
    cluster = tf_config.get("cluster") or {}
    return sum(len(cluster.get(kind, [])) for kind in ("worker", "chief", "master"))


def get_chief_worker_from_tf_config(tf_config: Cluster) -> str:
    """Return the leading task: the chief or master, else the first worker."""
    cluster = tf_config.get("cluster") or {}
    for kind in ("chief", "master", "worker"):
        if cluster.get(kind):
            return f"{kind}_0"
    raise SMDebugValueError(f"TF_CONFIG names no chief and no worker: {tf_config}")
