"""Large tensors are copied by PyTorch, into memory that is reused, and stay equal to the bit."""

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from smdebug.pytorch.tensors.arrays import as_array, copy_values
from smdebug.saving.arrays.copies import SLAB, WORTH_LENDING

MANY = WORTH_LENDING
KINDS = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.complex64,
]


def bits(dtype):
    """Every pattern of bits may come: NaNs of any kind, numbers too small to be normal."""
    torch.manual_seed(1)
    if dtype is torch.bool:
        return torch.randint(0, 2, (4, MANY // 4, 2)).bool()
    random = torch.randint(0, 256, (4, MANY // 4, 2 * dtype.itemsize), dtype=torch.uint8)
    return random.view(dtype)


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_large_tensors_of_every_kind_come_back_to_the_bit(tmp_path, dtype):
    given = bits(dtype)
    layouts = {
        "plain": given,
        "transposed": given.transpose(0, 2),
        "apart": given[:, ::2],
        "channels_last": given[None, :, :, :].to(memory_format=torch.channels_last),
    }
    with smd.Hook(tmp_path / "run", save_all=True, save_config=smd.SaveConfig(save_interval=1)) as hook:
        for _ in range(2):
            with hook.step():
                for name, tensor in layouts.items():
                    changed = tensor.clone()  # of the same layout
                    hook.record(name, changed)
                    changed.zero_()
            hook.flush()
        assert hook.recorder.run.writer.copies.size <= 2 * SLAB
    trial = smd.create_trial(str(tmp_path / "run"))
    for name, tensor in layouts.items():
        for step in (0, 1):
            value = trial.tensor(name).value(step)
            assert value.shape == tuple(tensor.shape)
            assert value.tobytes() == np.ascontiguousarray(as_array(tensor)).tobytes()


@pytest.mark.parametrize("look", [lambda a: a, lambda a: a[::-1], lambda a: a[:, 1:2], lambda a: a.T])
@pytest.mark.parametrize("dtype", ["f4", "u2", "i8", "?", "c8", "U3", ">f4"])
def test_arrays_are_copied_as_numpy_copies_them(look, dtype):
    values = look(np.arange(60).reshape(20, 3).astype(dtype))
    to = np.zeros(values.shape, dtype)
    copy_values(to, values)
    np.testing.assert_array_equal(to, values)
