"""Reading runs: `create_trial(path)` opens one."""

from smdebug.trials.local_trial import LocalTrial
from smdebug.trials.progress import StepState
from smdebug.trials.refreshing import no_refresh, refresh
from smdebug.trials.s3_trial import S3Trial
from smdebug.trials.trial import Trial
from smdebug.trials.utils import create_trial

__all__ = ["LocalTrial", "S3Trial", "StepState", "Trial", "create_trial", "no_refresh", "refresh"]
