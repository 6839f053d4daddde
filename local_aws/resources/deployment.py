"""What creating a resource needs: clients, names, assets, and checks that run at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from local_aws.deployment.assembly import Assembly
from local_aws.deployment.deployed import Deployed
from local_aws.errors import Unsupported
from local_aws.limits import Limits
from local_aws.permissions.calls import Permission
from local_aws.permissions.policies import Caller, Policies
from local_aws.template import ACCOUNT, REGION

Properties = Mapping[str, Any]
Created = tuple[str, dict[str, str]]  # the values of Ref and of Fn::GetAtt
Create = Callable[["Deployment", str, Properties], Created]
# By type: its function, and the properties that it uses or that have no effect on this machine.
Kinds = dict[str, tuple[Create, tuple[str, ...]]]
HERE = f"{REGION}:{ACCOUNT}"


class Deployment:
    """One deployment in progress."""

    def __init__(
        self,
        assembly: Assembly,
        client: Callable[[str], Any],
        deployed: Deployed,
        environment: Mapping[str, str],
        limits: Limits,
    ):
        self._assembly = assembly
        self.client = client
        self.deployed = deployed
        self.environment = environment
        self.limits = limits
        self.layers: dict[str, Path] = {}
        self.final_checks: list[Callable[[], None]] = []  # these need every policy to exist
        self._bytes: dict[Path, int] = {}  # by folder: functions share their layers

    @property
    def policies(self) -> Policies:
        return self.deployed.policies

    def name(self, logical: str, chosen: str | None, longest: int = 64) -> str:
        """Return the chosen name, or a generated one as CloudFormation would; it is stable."""
        if chosen:
            return chosen
        digest = sha256(f"{self._assembly.stack}/{logical}".encode()).hexdigest()[:12].upper()
        return f"{self._assembly.stack}-{logical}"[: longest - 13] + f"-{digest}"

    def asset(self, code: Properties) -> Path:
        if "S3Key" not in code:
            raise Unsupported(f"Code that is not an asset: {code}")
        return self._assembly.assets[code["S3Key"]]

    def bytes_in(self, folder: Path) -> int:
        """The size of all files in an asset's folder."""
        if folder not in self._bytes:
            files = (file for file in folder.rglob("*") if file.is_file())
            self._bytes[folder] = sum(file.stat().st_size for file in files)
        return self._bytes[folder]

    def check_at_end(self, role: str, permission: Permission) -> None:
        """Require that the role has this permission once all policies exist."""
        self.final_checks.append(lambda: self.policies.check(Caller(role), permission))
