"""The user of a kubeconfig: its credentials and its impersonation."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from virt_steward.kube.credentials import (
    Credentials,
    CredentialSource,
    Headers,
    UserCredentials,
    certificate,
    content_of,
    no_certificate,
    no_token,
    password,
    token,
    token_file,
)
from virt_steward.kube.errors import unusable
from virt_steward.kube.kubeconfig_file import data_or_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from virt_steward.kube.exec_plugin import ExecCredentials
    from virt_steward.kube.kubeconfig_file import ClusterSpec, Entry, ExecSpec, UserSpec
    from virt_steward.kube.tls import KeyPair

SUPPORTED_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXTENSION = "client.authentication.k8s.io/exec"
"""The extension of a cluster with the configuration for exec plugins."""
HEADER_NAME = string.ascii_letters + string.digits + "!#$&'*+-.^_`|~"


def credentials_of(
    user: Entry[UserSpec], cluster: Entry[ClusterSpec], *, env: Mapping[str, str], now: Callable[[], datetime]
) -> Credentials:
    spec = user.spec
    if spec.auth_provider:
        raise unusable(user.where, "auth-provider is not supported (kubectl has removed it): use an exec plugin")
    if spec.exec:
        if spec.token or spec.token_file or spec.username or spec.client_certificate or spec.client_certificate_data:
            raise unusable(user.where, "has an exec plugin and other credentials: keep one of them")
        return _plugin(user, spec.exec, cluster, env, now)
    return UserCredentials(_headers(user), _certificate(user), now)


def impersonation_of(user: Entry[UserSpec]) -> Headers:
    spec = user.spec
    headers = [
        *([("Impersonate-User", spec.as_user)] if spec.as_user else []),
        *([("Impersonate-Uid", spec.as_uid)] if spec.as_uid else []),
        *(("Impersonate-Group", group) for group in spec.as_groups or ()),
        *(
            (f"Impersonate-Extra-{quote(key, safe=HEADER_NAME)}", value)
            for key, values in (spec.as_user_extra or {}).items()
            for value in values or ()
        ),
    ]
    if headers and not spec.as_user:
        raise unusable(user.where, "impersonates a uid, groups or extras without a user: add `as`")
    if not all(value.isprintable() for _, value in headers):
        raise unusable(user.where, "impersonates a name with characters that are not allowed in a header: correct it")
    return tuple(headers)


def _headers(user: Entry[UserSpec]) -> CredentialSource[Headers]:
    spec = user.spec
    if spec.username and (spec.token or spec.token_file):
        raise unusable(user.where, "has a username and a token: keep one of them")
    if spec.token_file:  # wins over a token, as in kubectl
        return token_file(user.path(spec.token_file), user.where)
    if spec.token:
        return token(spec.token, user.where)
    if spec.username:
        return password(spec.username, spec.password or "", user.where)
    return no_token(user.where)


def _certificate(user: Entry[UserSpec]) -> CredentialSource[KeyPair | None]:
    spec = user.spec
    chain = data_or_file(user, "client-certificate", spec.client_certificate_data, spec.client_certificate)
    key = data_or_file(user, "client-key", spec.client_key_data, spec.client_key)
    if chain is None and key is None:
        return no_certificate()
    if chain is None or key is None:
        raise unusable(user.where, "has a client certificate without its key, or a key alone: add the other")
    return certificate(chain, key, user.where)


def _plugin(
    user: Entry[UserSpec],
    spec: ExecSpec,
    cluster: Entry[ClusterSpec],
    env: Mapping[str, str],
    now: Callable[[], datetime],
) -> ExecCredentials:
    from virt_steward.kube.exec_plugin import ExecCredentials, Plugin  # noqa: PLC0415 - pods have none

    if not spec.command:
        raise unusable(user.where, "the exec plugin has no command: add one")
    if spec.api_version not in SUPPORTED_VERSIONS:
        raise unusable(user.where, f"the exec plugin must use {' or '.join(SUPPORTED_VERSIONS)}: update the plugin")
    if spec.interactive_mode == "Always":
        raise unusable(user.where, "the exec plugin needs a terminal (interactiveMode: Always): use one that does not")
    if spec.interactive_mode not in {None, "", "Never", "IfAvailable"}:
        raise unusable(user.where, "the exec plugin's interactiveMode must be Never, IfAvailable or Always: correct it")
    plugin = Plugin(
        owner=user.where,
        command=str(user.path(spec.command)) if "/" in spec.command else spec.command,
        args=tuple(spec.args or ()),
        environment={
            **env,
            **{variable.name: variable.value or "" for variable in spec.env or ()},
            "KUBERNETES_EXEC_INFO": _exec_info(spec, cluster),
        },
        api_version=spec.api_version,
        hint=spec.install_hint or "install it, or correct the command of this user",
    )
    return ExecCredentials(plugin, now)


def _exec_info(spec: ExecSpec, cluster: Entry[ClusterSpec]) -> str:
    known = {"cluster": _cluster_info(cluster)} if spec.provide_cluster_info else {}
    request = {"apiVersion": spec.api_version, "kind": "ExecCredential", "spec": {"interactive": False, **known}}
    try:
        return msgspec.json.encode(request).decode()
    except (TypeError, ValueError, RecursionError):
        raise unusable(cluster.where, f"extension {EXTENSION} is not valid JSON: correct it") from None


def _cluster_info(cluster: Entry[ClusterSpec]) -> dict[str, object]:
    spec = cluster.spec
    authority = data_or_file(
        cluster, "certificate-authority", spec.certificate_authority_data, spec.certificate_authority
    )
    info = {
        "server": spec.server,
        "tls-server-name": spec.tls_server_name,
        "insecure-skip-tls-verify": spec.insecure_skip_tls_verify,
        "certificate-authority-data": content_of(authority, cluster.where) if authority else None,  # base64 by msgspec
        "proxy-url": spec.proxy_url,
        "config": next((each.extension for each in spec.extensions or () if each.name == EXTENSION), None),
    }
    return {key: value for key, value in info.items() if value}
