"""A small CloudFormation: creates the resources of a template in the order of their references, or raises.

moto has one too, but it silently leaves out bucket notifications, layers and policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from local_aws.deployment.assembly import Assembly
from local_aws.deployment.deployed import Deployed
from local_aws.errors import LocalStackError, Unsupported
from local_aws.limits import Limits
from local_aws.limits.templates import refusals
from local_aws.resources import access, compute, eventing, stores
from local_aws.resources.deployment import Created, Deployment, Kinds
from local_aws.resources.neighbours import create_neighbours
from local_aws.template import Resolver, known_only

KINDS: Kinds = {**access.KINDS, **stores.KINDS, **compute.KINDS, **eventing.KINDS}


def deploy(
    assembly: Assembly,
    client: Callable[[str], object],
    *,
    into: Deployed,
    environment: Mapping[str, str] | None = None,
    limits: Limits | None = None,
) -> None:
    """Create everything in the template. `environment` overrides variables of the functions."""
    _Deployer(assembly, client, into, environment or {}, limits or Limits()).run()


class _Deployer:
    """Creates each resource after the resources that it refers to."""

    def __init__(
        self,
        assembly: Assembly,
        client: Callable[[str], object],
        into: Deployed,
        environment: Mapping[str, str],
        limits: Limits,
    ):
        self._stack = assembly.stack
        self._template = assembly.template
        self._deployed = into
        self._deployment = Deployment(assembly, client, into, environment, limits)
        self._resolve = Resolver(self._template, assembly.stack, created=self._created_from)
        self._created: dict[str, Created] = {}
        self._in_progress: set[str] = set()

    def run(self) -> None:
        known_only(
            "template",
            self._stack,
            self._template,
            ("Description", "Resources", "Outputs", "Parameters", "Mappings", "Rules", "Metadata"),
        )
        create_neighbours(self._template)
        for name in self._template["Resources"]:
            self._created_from(name)
        if refused := refusals(self._resolved()):
            raise LocalStackError("AWS would refuse this stack. " + ". ".join(refused))
        for check in self._deployment.final_checks:
            check()
        self._deployed.physical = {name: created[0] for name, created in self._created.items()}
        self._deployed.outputs = {
            name: str(self._resolve(output["Value"]))
            for name, output in self._template.get("Outputs", {}).items()
        }

    def _resolved(self) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """The kind and properties of each resource, with the names that queues and functions have got."""
        found: dict[str, tuple[str, Mapping[str, Any]]] = {}
        for name, resource in self._template["Resources"].items():
            properties = self._resolve(resource.get("Properties", {}))
            physical = str(self._created[name][0])
            names = {
                "AWS::SQS::Queue": {"QueueName": physical.rpartition("/")[2]},
                "AWS::Lambda::Function": {"FunctionName": physical},
            }
            found[name] = (resource["Type"], {**properties, **names.get(resource["Type"], {})})
        return found

    def _created_from(self, name: str) -> Created:
        if name not in self._created:
            if name in self._in_progress:
                raise Unsupported(f"{name} refers to itself, directly or through other resources")
            self._in_progress.add(name)
            self._created[name] = self._create(name)
        return self._created[name]

    def _create(self, name: str) -> Created:
        if name not in self._template["Resources"]:
            raise Unsupported(f"The template refers to {name}, which it does not define")
        resource = self._template["Resources"][name]
        if "Condition" in resource:
            raise Unsupported(f"{name} has a condition, which the local stack does not support")
        required = resource.get("DependsOn", [])
        for other in [required] if isinstance(required, str) else required:
            self._created_from(other)
        kind = resource["Type"]
        if kind not in KINDS:
            raise Unsupported(
                f"{name} has the type {kind}, which the local stack does not support; "
                "local_aws/resources has those that it does"
            )
        create, known = KINDS[kind]
        properties = self._resolve(resource.get("Properties", {}))
        known_only(kind, name, properties, known)
        return create(self._deployment, name, properties)
