"""The exceptions of the library, by what the caller can do about them.

    SMDebugError
    ├── SMDebugCustomerError                    change your own code or setup
    │   ├── FrameworkMissing       (Import)     install the extra that the message names
    │   └── LegacyKeras            (Import)     train with Keras 3
    ├── SMDebug{Type,Runtime,NotImplemented,Value}Error   correct the call (also the built-in of that name)
    │   ├── DamagedFile            (Runtime)    restore the file, or skip that step
    │   ├── RunEnded               (Runtime)    choose another folder: this one holds a finished run
    │   ├── RulesFileError         (Value)      correct the entry of rules.json that the message names
    │   ├── StackUnknown           (Value)      correct the name of the stack, its account or its region
    │   ├── RunUnknown             (Value)      correct the run's name: the message suggests the nearest
    │   ├── RuleUnknown            (Value)      correct the rule's name: the message lists the run's rules
    │   ├── NewerRecord            (Runtime)    upgrade: a newer release has written it
    │   ├── UnreadableMessage      (Runtime)    upgrade: a message of a queue has another form
    │   ├── WaitedTooLong          (Runtime)    wait longer, or check why nothing happens
    │   ├── StorageError           (Runtime)    a place could not be read or written
    │   │   ├── ObjectMissing                   the key does not exist
    │   │   ├── AccessDenied                    the credentials do not allow it
    │   │   ├── UnfitFile                       replace the pipe, device or link by the file
    │   │   └── StorageUnavailable              retry later: full, unreachable or throttled
    │   └── SinkError              (Runtime)    another tool did not take what a run has found
    │       ├── AlreadySent                     do nothing: the tool has the whole run
    │       ├── SinkRefused                     correct the credentials, the name or the version
    │       └── SinkUnavailable                 retry later: down, unreachable or too slow
    ├── StepNotYetAvailable                     wait
    ├── StepUnavailable, TensorUnavailable,
    │   TensorUnavailableForStep,
    │   ShapeUnavailableForStep, NoMoreData     continue without it: it will never arrive
    ├── InvalidWorker, InvalidCollectionConfiguration,
    │   InsufficientInformationForRuleInvocation,
    │   IndexReaderException                    correct the call, or restore the file
    ├── MissingCollectionFiles                  check the hook: the run ended without saving anything
    ├── TrainingStopped                         not an error: a stop of the training was requested
    └── RuleEvaluationConditionMet              not an error: the rule detected its problem

When an exception is unpickled it is created again from `args`, so `args` holds its attributes, and the
message is composed from them.

It is long because users find all exceptions in one module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smdebug.extras import install_command

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
            f"{self.framework} is not installed, and its hook needs it: {install_command(self.extra)}. "
            "smdebug.Hook saves from any training loop without it."
        )


class LegacyKeras(SMDebugCustomerError, ImportError):
    """The training uses Keras 2 (`tf_keras`), which no hook supports: use Keras 3 or `smdebug.Hook`."""

    def __str__(self) -> str:
        return (
            "KerasHook supports Keras 3, and this training uses Keras 2 (tf_keras): unset "
            "TF_USE_LEGACY_KERAS, or record in a loop of your own with smdebug.Hook"
        )


class SMDebugTypeError(SMDebugError, TypeError):
    """A value of another type was expected."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """The operation is not possible in the current state."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """This is not supported; the message names what is."""


class SMDebugValueError(SMDebugError, ValueError):
    """The value is outside what is allowed; the message names both."""


class DamagedFile(SMDebugRuntimeError):
    """The file does not hold what was written: restore it, or skip this step."""

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
    """The place holds a finished run: save to another place. Uncaught, it ends a script with its message."""

    def __init__(self, path: str, free_place: str | None = None):
        super().__init__(path, free_place)
        self.path = path
        self.free_place = free_place or f"{path.rstrip('/')}-2"

    def __str__(self) -> str:
        return (
            f"{self.path} holds a finished run, which is never overwritten. "
            f"Save to another place, for example {self.free_place}, or remove the finished run first."
        )


class RulesFileError(SMDebugValueError):
    """The configuration of a run's rules is invalid: correct the entry that the message names."""

    def __init__(self, file: str, entry: str, problem: str):
        super().__init__(file, entry, problem)
        self.file = file
        self.entry = entry  # "" for the file as a whole
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.file}: {self.entry}: {self.problem}" if self.entry else f"{self.file}: {self.problem}"


class StackUnknown(SMDebugValueError):
    """No deployed debugger was found; the message says where it was expected."""

    def __init__(self, stack: str, problem: str):
        super().__init__(stack, problem)
        self.stack = stack
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.stack}: {self.problem}"


class RunUnknown(SMDebugValueError):
    """No file of this run has arrived: compare its name with the suggestion, or wait for its first step."""

    def __init__(self, run: str, nearest: str | None = None):
        super().__init__(run, nearest)
        self.run = run
        self.nearest = nearest

    def __str__(self) -> str:
        hint = f" Did you mean {self.nearest}?" if self.nearest else ""
        return (
            f"Run {self.run} is unknown: it is not in a watched bucket, or has not saved anything yet.{hint}"
        )


class RuleUnknown(SMDebugValueError):
    """No rule of that name watches the run: choose one of those that the message lists."""

    def __init__(self, rule: str, run: str, known: tuple[str, ...] = (), nearest: str | None = None):
        super().__init__(rule, run, known, nearest)
        self.rule = rule
        self.run = run
        self.known = known
        self.nearest = nearest

    def __str__(self) -> str:
        if self.nearest:
            hint = f"Did you mean {self.nearest}?"
        else:
            hint = f"Its rules: {', '.join(self.known)}." if self.known else "It has no rules."
        return f"No rule {self.rule} watches {self.run}. {hint}"


class NewerRecord(SMDebugRuntimeError):
    """A newer release has written this record: upgrade. It is neither read nor changed until then."""

    def __init__(self, record: str, found: str, known: str):
        super().__init__(record, found, known)
        self.record = record
        self.found = found
        self.known = known  # of the same kind, by this release

    def __str__(self) -> str:
        return (
            f"{self.record} was written by a newer release of smdebug: it has {self.found}, and this release "
            f"knows {self.known}. Install the newer release here, or deploy it again; nothing was changed."
        )


class UnreadableMessage(SMDebugRuntimeError):
    """A message of the deployed debugger has a form that is unknown here. It stays in its queue."""

    def __init__(self, run: str, problem: str):
        super().__init__(run, problem)
        self.run = run  # "" if it names none
        self.problem = problem

    def __str__(self) -> str:
        about = f" about {self.run}" if self.run else ""
        return (
            f"A message{about} cannot be read: {self.problem}. It stays in the queue and becomes a dead "
            "letter. Install the release that is deployed here, too"
        )


class WaitedTooLong(SMDebugRuntimeError, TimeoutError):
    """It did not happen within the given time: wait longer, or check `run.statuses()` for the reason."""

    def __init__(self, run: str, seconds: float, state: str):
        super().__init__(run, seconds, state)
        self.run = run
        self.seconds = seconds
        self.state = state

    def __str__(self) -> str:
        return f"{self.run}: waited {self.seconds:g} s without success: {self.state}"


class StorageError(SMDebugRuntimeError):
    """A place could not be read or written."""

    def __init__(self, place: str, problem: str):
        super().__init__(place, problem)
        self.place = place
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


class ObjectMissing(StorageError):
    """The key does not exist."""

    def __init__(self, place: str, problem: str = "there is no such file or object"):
        super().__init__(place, problem)


class AccessDenied(StorageError):
    """The credentials, if any, do not allow it."""


class UnfitFile(StorageError):
    """A pipe, a device, or a link that leaves the run: replace it by the file, or remove it."""


class StorageUnavailable(StorageError):
    """The place is full, unreachable or throttled: retry later."""


class SinkError(SMDebugRuntimeError):
    """Another tool did not take what a run has found. The files of the run have all of it."""

    def __init__(self, place: str, problem: str):
        super().__init__(place, problem)
        self.place = place
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


class AlreadySent(SinkError):
    """The tool has the whole run from an earlier delivery of the same event: nothing is sent again."""


class SinkRefused(SinkError):
    """The tool does not accept it: correct the credentials, the name or the version that is named."""


class SinkUnavailable(SinkError):
    """The tool is down, unreachable or too slow: retry later."""


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
    """The step has not arrived yet: wait for it."""

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
        if isinstance(self.step, int) and self.step < 0:
            return (
                f"Step {self.step} of mode {self.mode.name} is not available: steps count from 0. "
                "trial.steps()[-1] is the last step that was saved"
            )
        return f"Step {self.step} of mode {self.mode.name} is not available as it was not saved"


class TensorUnavailable(SMDebugError):
    """No step of the run has a tensor of this name."""

    def __init__(self, tname: str):
        super().__init__(tname)
        self.tname = tname

    def __str__(self) -> str:
        return f"Tensor {self.tname} was not saved."


class TensorUnavailableForStep(SMDebugError):
    """The step has no value of this tensor; it may have reductions, which the message then mentions."""

    def __init__(self, tname: str, step: int, mode: ModeKeys | None = None, has_reductions: bool = False):
        mode = _global_unless(mode)
        super().__init__(tname, step, mode, has_reductions)
        self.tname = tname
        self.step = step
        self.mode = mode
        self.has_reductions = has_reductions

    def __str__(self) -> str:
        hint = "This tensor has reductions saved for this step. You might want to query for the reductions."
        return (
            f"Value for tensor {self.tname} is not available for step {self.step} "
            f"with mode {self.mode.name} as it was not saved."
            f"{hint if self.has_reductions else ''}"
        )


class ShapeUnavailableForStep(SMDebugError):
    """The step has no shape of this tensor."""

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
    """The worker did not write this: `trial.workers()` and `tensor.workers(step)` list those that did."""

    def __init__(self, worker: str):
        super().__init__(worker)
        self.worker = worker

    def __str__(self) -> str:
        return f"Invalid Worker: {self.worker}"


class NoMoreData(SMDebugError):
    """The training ended before this step: do not wait for it."""

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
    """A person or a rule requested a stop: let the training end. Everything saved is written."""

    def __init__(self, reason: str, step: int, finding_id: str | None = None):
        super().__init__(reason, step, finding_id)
        self.reason = reason
        self.step = step
        self.finding_id = finding_id

    def __str__(self) -> str:
        return f"Training stopped as requested after step {self.step}: {self.reason}"


class RuleEvaluationConditionMet(SMDebugError):
    """The rule detected its problem at this step; `findings` has the details."""

    findings: tuple[Any, ...] = ()

    def __init__(self, rule_name: str, step: int, end_of_rule: bool = False):
        super().__init__(rule_name, step, end_of_rule)
        self.rule_name = rule_name
        self.step = step
        self.end_of_rule = end_of_rule

    def __str__(self) -> str:
        return (
            f"Evaluation of the rule {self.rule_name} at step {self.step} resulted in the condition being met"
        )


class InsufficientInformationForRuleInvocation(SMDebugError):
    """The rule cannot be evaluated with these parameters."""

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
    """An index file or its name is invalid."""

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
