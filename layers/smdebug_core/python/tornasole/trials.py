"""For code written against tornasole: trials live in `smdebug.trials`."""

from smdebug.trials import LocalTrial, S3Trial, Trial, create_trial

__all__ = ["LocalTrial", "S3Trial", "Trial", "create_trial"]
