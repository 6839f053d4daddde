"""The rule of the original notebook "Writing Custom Rules", unchanged."""

from tornasole.rules import Rule


class CustomGradientRule(Rule):
    def __init__(self, base_trial, threshold=10.0):
        super().__init__(base_trial, other_trials=None)
        self.threshold = float(threshold)

    def invoke_at_step(self, step):
        for tensor in self.base_trial.tensors_in_collection("gradients"):
            abs_mean = tensor.reduction_value(step, "mean", abs=True)
            if abs_mean > self.threshold:
                return True
        return False

    def set_required_tensors(self, step):
        for tname in self.base_trial.tensors_in_collection("gradients"):
            self.req_tensors.add(tname, steps=[step])
