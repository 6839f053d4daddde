"""moto's HTTP server, with an application in front of it."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

from local_aws.errors import PortClosed, PortTaken
from local_aws.gate import Application

HOST = "127.0.0.1"


@contextlib.contextmanager
def moto_server(port: int, around: Callable[[Application], Application]) -> Iterator[str]:
    """Serve an empty moto behind what `around` returns; give the endpoint."""
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
    from moto.core.config import default_user_config
    from moto.moto_api._internal.models import moto_api_backend
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    moto_api_backend.reset()
    default_user_config["stepfunctions"]["execute_state_machine"] = True
    server = _bound(port, around(DomainDispatcherApplication(create_backend_app)))
    server.daemon_threads = True
    os.environ["MOTO_PORT"] = str(server.server_address[1])  # workflows call this port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _bound(port: int, application: Application) -> Any:
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):  # type: ignore[misc] # moto is untyped for mypy
        protocol_version = "HTTP/1.1"  # keeps connections open

        def log(self, *_: Any) -> None:
            pass

    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return make_server(HOST, port, cast(Any, application), threaded=True, request_handler=Quiet)
    except (OSError, SystemExit) as error:
        if isinstance(error, OSError) and error.errno == errno.EACCES:
            raise PortClosed(
                f"Port {port} is reserved by the system: choose one above 1023, or none for a free one"
            ) from error
        if isinstance(error, OSError) and error.errno != errno.EADDRINUSE:
            raise
        raise PortTaken(f"Port {port} is taken: choose another one, or none for a free one") from error
