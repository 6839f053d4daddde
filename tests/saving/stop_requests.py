"""Requests that a training stops."""

import json

from smdebug.saving.place.attempt import Attempt
from smdebug.saving.requests.control import STOP_KEY

ATTEMPT = Attempt("run-1", 1)


def ask(storage, **request):
    storage.write(STOP_KEY, json.dumps(request).encode())
