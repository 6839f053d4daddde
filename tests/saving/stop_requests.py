"""Requests that a training stops."""

import json

from smdebug.saving.place.attempt import StartedAttempt
from smdebug.saving.requests.control import STOP_KEY

ATTEMPT = StartedAttempt("run-1", 1)


def ask(storage, **request):
    storage.write(STOP_KEY, json.dumps(request).encode())
