"""Everything that can go wrong, and what to do about it.

    SMDebugError
    ├── SMDebugCustomerError                    the user's own setup is at fault
    │   └── FrameworkMissing       (Import)     install the extra that the message names
    ├── SMDebug{Type,Runtime,NotImplemented,Value}Error   you asked wrongly (also the built-in of that name)
    │   ├── DamagedFile            (Runtime)    the file is damaged: restore it or leave that step out
    │   ├── RunEnded               (Runtime)    the folder holds a finished run: choose another
    │   ├── RulesFileError         (Value)      put right the entry of rules.json that it names
    │   ├── StackUnknown           (Value)      name the stack, its account or its region rightly
    │   ├── RunUnknown             (Value)      no such run was seen: the text names the nearest
    │   ├── RuleUnknown            (Value)      no such rule watches the run: the text names those that do
    │   ├── WaitedTooLong          (Runtime)    it has not happened yet: wait longer, or look why
    │   └── StorageError           (Runtime)    a place could not be read or written
    │       ├── ObjectMissing                   there is nothing under that key
    │       ├── AccessDenied                    the credentials do not allow it
    │       └── StorageUnavailable              it may work later: full, unreachable, throttled
    ├── StepNotYetAvailable                     wait
    ├── StepUnavailable, TensorUnavailable,
    │   TensorUnavailableForStep,
    │   ShapeUnavailableForStep, NoMoreData     never: go on without
    ├── InvalidWorker, InvalidCollectionConfiguration,
    │   InsufficientInformationForRuleInvocation,
    │   IndexReaderException                    you asked wrongly, or the file is damaged
    ├── MissingCollectionFiles                  the run ended without saving anything
    ├── TrainingStopped                         not an error: somebody asked the training to end
    └── RuleEvaluationConditionMet              not an error: the rule found what it looks for

Every exception is rebuilt from `args` when pickled, so the arguments are the attributes, and the text
is made from them. The module is long so that all exceptions are in one place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdebug.mode_keys import ModeKeys


class SMDebugError(Exception):
    """The root of every exception that this library raises on purpose."""


class SMDebugCustomerError(SMDebugError):
    """Something in the user's own code or setup has to change."""


class FrameworkMissing(SMDebugCustomerError, ImportError):
    """The training framework is not installed here: install the extra that the message names."""

    def __init__(self, framework: str, extra: str):
        super().__init__(framework, extra)
        self.framework = framework
        self.extra = extra

    def __str__(self) -> str:
        return (
            f"{self.framework} is not installed, and its hook needs it: "
            f'pip install "smdebug-serverless[{self.extra}]". '
            "smdebug.Hook saves from any training loop without it."
        )


class SMDebugTypeError(SMDebugError, TypeError):
    """A value of another type was expected."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """The operation cannot be done in the present state."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """This is not offered, and the message says what is."""


class SMDebugValueError(SMDebugError, ValueError):
    """The value is outside what is allowed; the message names both."""


class DamagedFile(SMDebugRuntimeError):
    """The bytes are not what was written: restore the file, or leave this step out."""

    def __init__(self, file: str, problem: str, tensor: str | None = None, step: int | None = None):
        super().__init__(file, problem, tensor, step)
        self.file = file
        self.problem = problem
        self.tensor = tensor
        self.step = step

    def __str__(self) -> str:
        what = f"Tensor {self.tensor} in {self.file}" if self.tensor is not None else self.file
        when = f" (step {self.step})" if self.step is not None else ""
        return f"{what}{when} is damaged: {self.problem}"


class RunEnded(SMDebugRuntimeError):
    """The place holds the end marker of a finished run: save to another one."""

    def __init__(self, path: str):
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"{self.path} holds a run that has ended (training_job_end.ts). "
            "Choose another out_dir, or remove the old run first."
        )


class RulesFileError(SMDebugValueError):
    """What is said about the rules of a run makes no sense: put right the entry that is named."""

    def __init__(self, file: str, entry: str, problem: str):
        super().__init__(file, entry, problem)
        self.file = file
        self.entry = entry  # "" if it is the file as a whole
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"{self.file}: {self.entry}: {self.problem}"
            if self.entry
            else f"{self.file}: {self.problem}"
        )


class StackUnknown(SMDebugValueError):
    """There is no deployed debugger where one was looked for: the text says where that was."""

    def __init__(self, stack: str, problem: str):
        super().__init__(stack, problem)
        self.stack = stack
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.stack}: {self.problem}"


class RunUnknown(SMDebugValueError):
    """Nothing of such a run has arrived: compare its name with the nearest, or wait for its first step."""

    def __init__(self, run: str, nearest: str | None = None):
        super().__init__(run, nearest)
        self.run = run
        self.nearest = nearest

    def __str__(self) -> str:
        hint = f" Did you mean {self.nearest}?" if self.nearest else ""
        return (
            f"Nothing is known of a run {self.run}: it is not below a bucket that is watched, or has "
            f"saved nothing yet.{hint}"
        )


class RuleUnknown(SMDebugValueError):
    """No rule of that name watches the run: take one of those that the text names."""

    def __init__(
        self, rule: str, run: str, known: tuple[str, ...] = (), nearest: str | None = None
    ):
        super().__init__(rule, run, known, nearest)
        self.rule = rule
        self.run = run
        self.known = known
        self.nearest = nearest

    def __str__(self) -> str:
        if self.nearest:
            hint = f"Did you mean {self.nearest}?"
        else:
            hint = f"There are {', '.join(self.known)}." if self.known else "There is none at all."
        return f"No rule {self.rule} watches {self.run}. {hint}"


class WaitedTooLong(SMDebugRuntimeError, TimeoutError):
    """It has not happened in the time that was given: wait longer, or look why with `run.statuses()`."""

    def __init__(self, run: str, seconds: float, state: str):
        super().__init__(run, seconds, state)
        self.run = run
        self.seconds = seconds
        self.state = state

    def __str__(self) -> str:
        return f"{self.run}: waited {self.seconds:g} s, and it is still so: {self.state}"


class StorageError(SMDebugRuntimeError):
    """A place could not be read or written."""

    def __init__(self, place: str, problem: str):
        super().__init__(place, problem)
        self.place = place
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


class ObjectMissing(StorageError):
    """There is nothing under that key."""

    def __init__(self, place: str, problem: str = "there is no such file or object"):
        super().__init__(place, problem)


class AccessDenied(StorageError):
    """The credentials at hand, if any, do not allow it."""


class StorageUnavailable(StorageError):
    """It may work later: the place is full, unreachable or throttled."""


class InvalidCollectionConfiguration(SMDebugError):
    """A collection selects nothing: give it tensor names or an include_regex."""

    def __init__(self, c_name: str):
        super().__init__(c_name)
        self.c_name = c_name

    def __str__(self) -> str:
        return (
            f"Collection {self.c_name} has neither tensor_name nor include_regex configured. "
            "Give it at least one of them, so that it can match tensors."
        )


class StepNotYetAvailable(SMDebugError):
    """The step has not been seen yet: wait, it may still arrive."""

    def __init__(self, step: int, mode: ModeKeys):
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return f"Step {self.step} of mode {self.mode.name} not yet available"


class StepUnavailable(SMDebugError):
    """The step was not saved, and will never arrive."""

    def __init__(self, step: int, mode: ModeKeys):
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return f"Step {self.step} of mode {self.mode.name} is not available as it was not saved"


class TensorUnavailable(SMDebugError):
    """No step of the run has a tensor of this name."""

    def __init__(self, tname: str):
        super().__init__(tname)
        self.tname = tname

    def __str__(self) -> str:
        return f"Tensor {self.tname} was not saved."


class TensorUnavailableForStep(SMDebugError):
    """The step is there, without this tensor's value; ask for its reductions if the text says so."""

    def __init__(
        self, tname: str, step: int, mode: ModeKeys | None = None, has_reductions: bool = False
    ):
        mode = _global_unless(mode)
        super().__init__(tname, step, mode, has_reductions)
        self.tname = tname
        self.step = step
        self.mode = mode
        self.has_reductions = has_reductions

    def __str__(self) -> str:
        hint = (
            "This tensor has reductions saved for this step. "
            "You might want to query for the reductions."
        )
        return (
            f"Value for tensor {self.tname} is not available for step {self.step} "
            f"with mode {self.mode.name} as it was not saved."
            f"{hint if self.has_reductions else ''}"
        )


class ShapeUnavailableForStep(SMDebugError):
    """The step is there, without this tensor's shape."""

    def __init__(self, tname: str, step: int, mode: ModeKeys | None = None):
        mode = _global_unless(mode)
        super().__init__(tname, step, mode)
        self.tname = tname
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return (
            f"Shape for tensor {self.tname} is not available for step {self.step} "
            f"with mode {self.mode.name} as it was not saved."
        )


class InvalidWorker(SMDebugError):
    """No such worker wrote this: `trial.workers()` and `tensor.workers(step)` list those that did."""

    def __init__(self, worker: str):
        super().__init__(worker)
        self.worker = worker

    def __str__(self) -> str:
        return f"Invalid Worker: {self.worker}"


class NoMoreData(SMDebugError):
    """The training has ended before this step: there is nothing left to wait for."""

    def __init__(
        self,
        step: int | None = None,
        mode: ModeKeys | None = None,
        last_step: int | None = None,
    ):
        mode = _global_unless(mode)
        super().__init__(step, mode, last_step)
        self.step = step
        self.mode = mode
        self.last_step = last_step

    def __str__(self) -> str:
        return (
            f"Looking for step {self.step} of mode {self.mode.name} and reached end of training. "
            f"Max step available is {self.last_step}"
        )


class NoMoreProfilerData(SMDebugError):
    """The profiler's data ends before this time."""

    def __init__(self, timestamp: object = None):
        super().__init__(timestamp)
        self.timestamp = timestamp

    def __str__(self) -> str:
        return f"Looking for timestamp {self.timestamp} and reached the end of the profiler's data."


class TrainingStopped(SMDebugError):
    """Somebody, or a rule, asked the training to end here: let it end, everything saved is written."""

    def __init__(self, reason: str, step: int, finding_id: str | None = None):
        super().__init__(reason, step, finding_id)
        self.reason = reason
        self.step = step
        self.finding_id = finding_id

    def __str__(self) -> str:
        return f"The training was asked to stop, and did after step {self.step}: {self.reason}"


class RuleEvaluationConditionMet(SMDebugError):
    """The rule has found at this step what it looks for; its `findings` say where."""

    findings: tuple[Any, ...] = ()

    def __init__(self, rule_name: str, step: int, end_of_rule: bool = False):
        super().__init__(rule_name, step, end_of_rule)
        self.rule_name = rule_name
        self.step = step
        self.end_of_rule = end_of_rule

    def __str__(self) -> str:
        return (
            f"Evaluation of the rule {self.rule_name} at step {self.step} "
            "resulted in the condition being met"
        )


class InsufficientInformationForRuleInvocation(SMDebugError):
    """The rule cannot be evaluated with the parameters it was given."""

    def __init__(self, rule_name: str, message: str):
        super().__init__(rule_name, message)
        self.rule_name = rule_name
        self.message = message

    def __str__(self) -> str:
        return f"Insufficient information to invoke rule {self.rule_name}: {self.message}"


class MissingCollectionFiles(SMDebugError):
    """The run ended without all of its collections files: check how the hook was configured."""

    def __init__(self, message: str = ""):
        super().__init__(*([message] if message else []))
        self.message = message

    def __str__(self) -> str:
        return self.message or (
            "Training job has ended. All the collection files could not be loaded. "
            "Check that the hook was configured correctly."
        )


class IndexReaderException(SMDebugError):
    """An index file, or its name, is not what an index file should be."""

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


def _global_unless(mode: ModeKeys | None) -> ModeKeys:
    if mode is not None:
        return mode
    from smdebug.mode_keys import ModeKeys

    return ModeKeys.GLOBAL
