"""The check that a webhook's function can read its secret, and finds an endpoint in it.

Nothing of the secret's content is in a result or an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from smdebug.exceptions import AccessDenied, StackUnknown
from smdebug.service.webhook_secrets import IN_SSM, BadSecret, endpoint_in

Call = Callable[..., Mapping[str, Any]]  # a service, an operation, and its arguments
Found = tuple[Literal["well", "absent", "wrong"], str, str]

VARIABLE = "SMDEBUG_WEBHOOK_SECRET"
_HOW = "docs/deploy.md, Alerts, shows how to create it."
_AWS_KEYS = ("alias/aws/secretsmanager", "alias/aws/ssm")


class _Secret(NamedTuple):
    arn: str
    action: str  # that reads it
    key: str  # of KMS, if it is one of your own


def check_webhook(call: Call, function: str) -> Iterator[Found]:
    """Yield what is wrong with the secret of a webhook's function, or that it is valid."""
    configured = call("lambda", "get_function_configuration", FunctionName=function)
    name = configured.get("Environment", {}).get("Variables", {}).get(VARIABLE, "")
    if not name:
        yield "wrong", f"{function} has no variable {VARIABLE}", "Deploy again."
        return
    try:
        secret = _described(call, name)
    except StackUnknown:
        yield "wrong", f"the secret {name} does not exist in this account and region", _HOW
        return
    except BadSecret as problem:
        yield "wrong", str(problem), _HOW
        return
    problems = [*_refused(call, str(configured["Role"]), name, secret), *_content(call, name)]
    yield from problems or [("well", f"the secret {name} has an endpoint", "")]


def _described(call: Call, name: str) -> _Secret:
    if name.startswith(IN_SSM):
        place = name.removeprefix(IN_SSM)
        wanted = [{"Key": "Name", "Option": "Equals", "Values": [place]}]
        found = call("ssm", "describe_parameters", ParameterFilters=wanted)["Parameters"]
        if not found:
            raise StackUnknown(name, "it does not exist")
        (parameter,) = found
        if parameter["Type"] != "SecureString":
            raise BadSecret(f"the parameter {place} is not encrypted: create it as a SecureString")
        # Without decryption AWS returns the encrypted value, which is not examined.
        answer = call("ssm", "get_parameter", Name=place)["Parameter"]
        return _Secret(str(answer["ARN"]), "ssm:GetParameter", _own_key(parameter.get("KeyId")))
    described = call("secretsmanager", "describe_secret", SecretId=name)
    if "DeletedDate" in described:
        raise BadSecret(f"the secret {name} is being deleted: restore it, or create another")
    key = _own_key(described.get("KmsKeyId"))
    return _Secret(str(described["ARN"]), "secretsmanager:GetSecretValue", key)


def _own_key(key: Any) -> str:
    return "" if not key or str(key).endswith(_AWS_KEYS) else str(key)


def _refused(call: Call, role: str, name: str, secret: _Secret) -> Iterator[Found]:
    """Yield why the function's role may not read the secret."""
    role = role.rpartition("/")[2]
    try:
        policies = call("iam", "list_role_policies", RoleName=role)["PolicyNames"]
        documents = [
            call("iam", "get_role_policy", RoleName=role, PolicyName=policy)["PolicyDocument"]
            for policy in policies
        ]
    except AccessDenied as denied:
        yield "absent", f"whether the function may read {name} is not known: {denied}", ""
        return
    if not any(_allows(document, secret.action, secret.arn) for document in documents):
        hint = "Deploy again with the name of the secret, not its ARN: the name decides the permission."
        yield "wrong", f"the role {role} may not read {secret.arn}", hint
    if secret.key and not any(_allows(document, "kms:Decrypt", secret.key) for document in documents):
        found = f"{name} is encrypted with your own key {secret.key}"
        yield "absent", found, f"The key's policy has to let the role {role} decrypt."


def _allows(document: Mapping[str, Any], action: str, arn: str) -> bool:
    return any(
        statement["Effect"] == "Allow"
        and action in _listed(statement["Action"])
        and any(fnmatchcase(arn, pattern) for pattern in _listed(statement["Resource"]))
        for statement in _listed(document["Statement"])
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _content(call: Call, name: str) -> Iterator[Found]:
    """Yield what is wrong with the content, which is read with the caller's own permissions."""
    try:
        if name.startswith(IN_SSM):
            place = name.removeprefix(IN_SSM)
            parameter = call("ssm", "get_parameter", Name=place, WithDecryption=True)
            text = parameter["Parameter"]["Value"]
        else:
            text = call("secretsmanager", "get_secret_value", SecretId=name).get("SecretString")
    except AccessDenied as denied:
        yield "absent", f"the content of {name} was not checked: {denied}", ""
        return
    if text is None:
        yield "wrong", f"the secret {name} is binary", "Store it as text."
        return
    try:
        endpoint_in(text, name)
    except BadSecret as problem:
        yield "wrong", str(problem), _HOW
