"""Jobs of a namespace in Kubernetes: they are suspended, which ends their pods and keeps the job."""

from __future__ import annotations

import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from smdebug.exceptions import AccessDenied, SMDebugCustomerError, StorageUnavailable
from smdebug.service.stopping.stop_requests import named_in

ANNOTATION = "smdebug/run"
WHY = "smdebug/stopped-because"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECONDS = 30
_PAGE = 200


class KubernetesJobs:
    """The jobs of one namespace, by the API of the cluster. In a pod, its service account is used."""

    def __init__(self, namespace: str, *, api: str = "", account: Path = ACCOUNT):
        host, port = (
            os.environ.get("KUBERNETES_SERVICE_HOST"),
            os.environ.get("KUBERNETES_SERVICE_PORT", "443"),
        )
        if not api and not host:
            raise SMDebugCustomerError(
                "This is no pod of a cluster: name its API, such as --api http://127.0.0.1:8001 "
                "of `kubectl proxy`"
            )
        self._jobs = (
            f"{api.rstrip('/') or _address(str(host), port)}/apis/batch/v1/namespaces/{quote(namespace)}/jobs"
        )
        self._place = f"The Kubernetes namespace {namespace}"
        self._account = None if api else account

    def jobs_of(self, run: str) -> list[str]:
        return [
            str(job["metadata"]["name"]) for job in self._all() if _is_running(job) and run in _runs_of(job)
        ]

    def stop(self, job: str, reason: str) -> None:
        change = {"metadata": {"annotations": {WHY: reason}}, "spec": {"suspend": True}}
        self._ask("patch", f"/{quote(job)}", change)

    def _all(self) -> Iterator[Mapping[str, Any]]:
        after = ""
        while True:
            page = self._ask(
                "list", "?" + urlencode({"limit": _PAGE, **({"continue": after} if after else {})})
            )
            yield from page.get("items") or ()
            after = (page.get("metadata") or {}).get("continue") or ""
            if not after:
                return

    def _ask(self, verb: str, path: str, change: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the address of a cluster's API
            self._jobs + path,
            method="GET" if change is None else "PATCH",
            data=None if change is None else json.dumps(change).encode(),
            headers={"Content-Type": "application/merge-patch+json", **self._token()},
        )
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS, context=self._trusted()) as answer:  # noqa: S310
                content: Mapping[str, Any] = json.loads(answer.read())
                return content
        except urllib.error.HTTPError as error:
            if error.code == 404 and verb == "patch":
                return {}  # the job is gone
            if error.code in (401, 403):
                problem = f"the service account may not {verb} jobs of batch/v1: bind a role that allows it"
                raise AccessDenied(self._place, problem) from error
            raise StorageUnavailable(self._place, f"the API answers {error.code} to {verb}") from error
        except (OSError, ValueError) as error:
            raise StorageUnavailable(self._place, f"the API cannot be reached: {error}") from error

    def _token(self) -> dict[str, str]:
        """The token of the account, read each time: Kubernetes replaces it every hour."""
        if self._account is None:
            return {}
        return {"Authorization": f"Bearer {(self._account / 'token').read_text(encoding='utf-8').strip()}"}

    def _trusted(self) -> ssl.SSLContext | None:
        if self._account is None:
            return None
        return ssl.create_default_context(cafile=str(self._account / "ca.crt"))


def _address(host: str, port: str) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _is_running(job: Mapping[str, Any]) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    ended = any(it["type"] in ("Complete", "Failed") and it["status"] == "True" for it in conditions)
    return not ended and not (job.get("spec") or {}).get("suspend")


def _runs_of(job: Mapping[str, Any]) -> set[str]:
    """The run of the annotation, or else those that variables and commands of the containers name."""
    template = (job.get("spec") or {}).get("template") or {}
    for about in (job.get("metadata") or {}, template.get("metadata") or {}):
        if tagged := (about.get("annotations") or {}).get(ANNOTATION):
            return set(named_in([tagged]))
    words: list[Any] = []
    for container in (template.get("spec") or {}).get("containers") or ():
        words += [variable.get("value") for variable in container.get("env") or ()]
        words += [*(container.get("command") or ()), *(container.get("args") or ())]
    return set(named_in(words))
