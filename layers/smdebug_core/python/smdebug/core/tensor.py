"""For code that imports tensors and step states from where the old library kept them."""

from smdebug.trials.older import ModeSteps, Step
from smdebug.trials.progress import StepState
from smdebug.trials.tensor import Tensor
