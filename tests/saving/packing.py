"""A framework of NumPy arrays whose small ones are measured together, as those of PyTorch are."""

import numpy as np

import smdebug
from smdebug.saving.arrays.adapter import FrameworkAdapter
from smdebug.saving.arrays.measurer import SMALL, Measurer


class PackingMeasurer(Measurer):
    """Measures arrays of float32 together."""

    def fits(self, value):
        return isinstance(value, np.ndarray) and value.dtype == np.float32 and 1 < value.size <= SMALL

    def fit_again(self, values, shapes):
        pairs = zip(values, shapes, strict=True)
        return all(self.fits(value) and value.shape == shape for value, shape in pairs)

    def measure_again(self, value, *, digest):
        if not self.fits(value):
            return None
        copy = value.flatten()
        return self._batch.add(copy, copy if digest else None)

    def packed(self, values):
        return np.concatenate([value.reshape(-1) for value in values])

    def measure_together(self, values, *, digest, before=None):
        sizes = [value.size for value in values]
        return self._batch.add_packed(self.packed(values), sizes, digest=digest, before=before)


class PackingAdapter(FrameworkAdapter):
    """NumPy's, with that measurer."""

    def measurer(self):
        return PackingMeasurer()


class PackingHook(smdebug.Hook):
    """The hook for any loop, with that adapter."""

    adapter = PackingAdapter()
