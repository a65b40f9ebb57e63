"""Kubeconfig files: their format, how they are read, and how several are merged."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from virt_steward.kube.credentials import read_file
from virt_steward.kube.errors import unusable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DEEPEST = 64
MOST_VALUES = 2000
"""In a kubeconfig from a Secret: to read more would block the process for too long."""


class ClusterSpec(msgspec.Struct, rename="kebab"):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[Extension] | None = None


class Extension(msgspec.Struct):
    name: str
    extension: Any = None


class EnvVar(msgspec.Struct):
    name: str
    value: str | None = None


class ExecSpec(msgspec.Struct, rename="camel"):
    command: str | None = None
    api_version: str | None = None
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    install_hint: str | None = None
    interactive_mode: str | None = None
    provide_cluster_info: bool | None = None


class UserSpec(msgspec.Struct, rename="kebab"):
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    exec: ExecSpec | None = None
    auth_provider: Any = None
    as_user: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str] | None] | None = None


class ContextSpec(msgspec.Struct):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class NamedCluster(msgspec.Struct):
    name: str
    cluster: ClusterSpec | None = None


class NamedUser(msgspec.Struct):
    name: str
    user: UserSpec | None = None


class NamedContext(msgspec.Struct):
    name: str
    context: ContextSpec | None = None


class Document(msgspec.Struct, rename="kebab"):
    """One file. As in kubectl, null means absent everywhere, and unknown fields are ignored."""

    current_context: str | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """Where a kubeconfig comes from, and whether it may use files and commands of this machine."""

    label: str
    folder: Path = field(default_factory=Path)
    """Relative paths start here."""
    trusted: bool = True
    """False for one from a Secret, which others may have written."""


Spec = TypeVar("Spec")


@dataclass(frozen=True, slots=True)
class Entry(Generic[Spec]):
    """A cluster, user or context, and the file that it is in."""

    where: str
    origin: FileOrigin
    spec: Spec = field(repr=False)

    def path(self, name: str) -> Path:
        return self.origin.folder / name


@dataclass(frozen=True, slots=True)
class Merged:
    """Several files as one: the first file that sets a value wins."""

    label: str
    current_context: str
    clusters: dict[str, Entry[ClusterSpec]]
    users: dict[str, Entry[UserSpec]]
    contexts: dict[str, Entry[ContextSpec]]


def read(path: Path) -> tuple[FileOrigin, Document]:
    origin = FileOrigin(str(path), path.absolute().parent)
    return origin, parse(read_file(path, "kubeconfig"), origin)


def parse(text: bytes, origin: FileOrigin) -> Document:
    import yaml  # noqa: PLC0415 - a pod has no kubeconfig, and does without it

    try:
        _refuse_traps(text, origin)
        content = yaml.load(text, yaml.CSafeLoader)
        return msgspec.convert({} if content is None else content, Document)
    except msgspec.ValidationError as error:
        raise unusable(origin.label, f"is not a kubeconfig: {error}: correct or replace it") from None
    except (yaml.YAMLError, ValueError) as error:
        # Only the line of the error: the rest may quote a secret.
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark else ""
        raise unusable(origin.label, f"is not YAML{line}: correct or replace it") from None


def _refuse_traps(text: bytes, origin: FileOrigin) -> None:
    """Refuse what could crash this process: libyaml recurses in C, and a few aliases can expand to gigabytes."""
    import yaml  # noqa: PLC0415 - see above

    depth = 0
    for number, event in enumerate(yaml.parse(text, yaml.CSafeLoader)):
        if number > MOST_VALUES and not origin.trusted:
            raise unusable(origin.label, f"has more than {MOST_VALUES} values: reduce it to the cluster and its user")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise unusable(origin.label, f"is nested more than {DEEPEST} levels deep: replace it")
        if isinstance(event, yaml.AliasEvent) and not origin.trusted:
            raise unusable(
                origin.label,
                "uses YAML aliases, which are not allowed in a kubeconfig from a Secret: write the values out",
            )


def merge(files: Sequence[tuple[FileOrigin, Document]]) -> Merged:
    return Merged(
        label=", ".join(origin.label for origin, _ in files),
        current_context=next((doc.current_context for _, doc in files if doc.current_context), ""),
        clusters=_first_of_each(
            (_entry("cluster", named.name, origin, named.cluster or ClusterSpec()), named.name)
            for origin, doc in files
            for named in doc.clusters or ()
        ),
        users=_first_of_each(
            (_entry("user", named.name, origin, named.user or UserSpec()), named.name)
            for origin, doc in files
            for named in doc.users or ()
        ),
        contexts=_first_of_each(
            (_entry("context", named.name, origin, named.context or ContextSpec()), named.name)
            for origin, doc in files
            for named in doc.contexts or ()
        ),
    )


def _entry(noun: str, name: str, origin: FileOrigin, spec: Spec) -> Entry[Spec]:
    return Entry(f"{noun} {name} in {origin.label}", origin, spec)


def _first_of_each(entries: Iterable[tuple[Entry[Spec], str]]) -> dict[str, Entry[Spec]]:
    first: dict[str, Entry[Spec]] = {}
    for entry, name in entries:
        if name in first and first[name].origin == entry.origin:
            raise unusable(entry.where, "is defined twice: remove one")
        first.setdefault(name, entry)
    return first


def data_or_file(entry: Entry[Any], field: str, data: str | None, file: str | None) -> bytes | Path | None:
    """Data wins over a file, as in kubectl."""
    if not data:
        return entry.path(file) if file else None
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        raise unusable(entry.where, f"{field}-data is not base64: get a new kubeconfig") from None
