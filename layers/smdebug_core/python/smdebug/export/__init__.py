"""A run's tensors in other formats: TensorBoard, safetensors, npz, parquet.

export_npz("./my-run", "weights.npz", collection="weights")
"""

from smdebug.export.arrays import export_npz, export_safetensors
from smdebug.export.parquet import export_parquet
from smdebug.export.selection import Selection
from smdebug.export.tensorboard import export_tensorboard

__all__ = [
    "Selection",
    "export_npz",
    "export_parquet",
    "export_safetensors",
    "export_tensorboard",
]
