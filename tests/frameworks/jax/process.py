"""One of two processes that compute together: `python -m tests.frameworks.jax.process RANK PORT RUN`."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import smdebug.jax as smd


def main(rank: int, port: str, run: str) -> None:
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=rank)
    mesh = Mesh(np.array(jax.devices()), ("all",))
    parts, whole = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("all",), ()))
    spread = jax.make_array_from_process_local_data(parts, np.full((2, 3), float(rank + 1)))
    total = jax.jit(jnp.sum, out_shardings=whole)
    with smd.Hook(run, include_workers="all", save_all=True) as hook:
        for step in range(2):
            with hook.step():
                hook.record("total", total(spread))
                hook.record("loss", jnp.float32(10 * rank + step))
                hook.record_weights({"a": spread, "b": spread * 2})


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
