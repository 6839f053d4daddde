"""For code written against smdebug: tensors live in `smdebug.trials.tensor`."""

from smdebug.trials.older import ModeSteps, Step
from smdebug.trials.progress import StepState
from smdebug.trials.tensor import Tensor
