"""Load a kubeconfig, or the service account of a pod, into a ClusterConfig: all that a connection needs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from virt_steward.kube.credentials import UserCredentials, no_certificate, read_file, token_file
from virt_steward.kube.environment_proxy import is_excepted, proxy_variable
from virt_steward.kube.errors import BadConfig, unusable
from virt_steward.kube.kubeconfig_file import (
    ClusterSpec,
    Entry,
    FileOrigin,
    Merged,
    Spec,
    data_or_file,
    merge,
    parse,
    read,
)
from virt_steward.kube.kubeconfig_user import credentials_of, impersonation_of
from virt_steward.kube.tls import Trust, check_authority

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from virt_steward.kube.credentials import Credentials, Headers

IN_CLUSTER = "in-cluster"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its service account."""

# Forbidden in a kubeconfig from a Secret: its author must not get at files, commands or proxies of this machine.
REFUSED_IN_CLUSTERS = (
    ("certificate_authority", "certificate-authority reads a local file", "use certificate-authority-data"),
    ("proxy_url", "proxy-url sends requests through another server", "remove it"),
    ("insecure_skip_tls_verify", "insecure-skip-tls-verify trusts any server", "use certificate-authority-data"),
)
REFUSED_IN_USERS = (
    ("exec", "exec runs a command here", "use a token or a client certificate"),
    ("token_file", "tokenFile reads a local file", "use token"),
    ("client_certificate", "client-certificate reads a local file", "use client-certificate-data"),
    ("client_key", "client-key reads a local file", "use client-key-data"),
)


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Everything that is needed to reach one API server."""

    server: str
    """`https://host:port[/prefix]`, without a slash at the end."""
    trust: Trust
    credentials: Credentials
    context: str
    """The name of the context, `in-cluster` in a pod."""
    namespace: str
    """The context's default namespace."""
    proxy: str | None = field(default=None, repr=False)
    """May hold a password."""
    server_name: str | None = None
    """The name that the server's certificate must carry, where it is not the host of `server`."""
    impersonate: Headers = ()
    """Impersonation headers."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def load_kubeconfig(
    path: str | None = None,
    context: str | None = None,
    *,
    env: Mapping[str, str],
    service_account: Path = SERVICE_ACCOUNT,
    now: Callable[[], datetime] = utc_now,
) -> ClusterConfig:
    """Look where kubectl looks: the path, $KUBECONFIG, the home folder; last, in a pod, its service account."""
    listed = [Path(name) for name in dict.fromkeys(env.get("KUBECONFIG", "").split(os.pathsep)) if name]
    if path:
        files = [Path(path)]
    elif listed:
        files = [file for file in listed if not _is_missing(file)]
    else:
        files = [file for file in _home_config(env) if os.access(file, os.F_OK)]
    if files:
        return _choose(merge([read(file) for file in files]), context, env=env, now=now)
    if not listed and context in {None, IN_CLUSTER} and _in_a_pod(env, service_account):
        return _in_cluster(env, service_account, now)
    places = [*map(str, listed)] or [*map(str, _home_config(env)), str(service_account)]
    raise unusable("no kubeconfig found", f"looked at {', '.join(places)}; set --kubeconfig or KUBECONFIG")


def load_from_bytes(
    text: bytes,
    *,
    source: str,
    trusted: bool,
    env: Mapping[str, str] = os.environ,
    now: Callable[[], datetime] = utc_now,
) -> ClusterConfig:
    """A kubeconfig that is not in a file; `source` names it. If not trusted, it may not use files or commands."""
    origin = FileOrigin(source, trusted=trusted)
    return _choose(merge([(origin, parse(text, origin))]), None, env=env, now=now)


def _choose(
    config: Merged, context: str | None, *, env: Mapping[str, str], now: Callable[[], datetime]
) -> ClusterConfig:
    name = context or config.current_context
    if not name:
        raise unusable(config.label, f"has no current-context{_choices('context', config.contexts)}")
    chosen = _named(name, "context", config.contexts, config.label)
    cluster = _named(chosen.spec.cluster, "cluster", config.clusters, chosen.where)
    user = _named(chosen.spec.user, "user", config.users, chosen.where)
    _refuse(cluster, REFUSED_IN_CLUSTERS)
    _refuse(user, REFUSED_IN_USERS)
    return ClusterConfig(
        server=_server(cluster),
        trust=_trust(cluster),
        credentials=credentials_of(user, cluster, env=env, now=now),
        context=name,
        namespace=chosen.spec.namespace or "default",
        proxy=_proxy(cluster, env),
        server_name=cluster.spec.tls_server_name or None,
        impersonate=impersonation_of(user),
    )


def _named(name: str | None, noun: str, entries: Mapping[str, Entry[Spec]], where: str) -> Entry[Spec]:
    if not name:
        raise unusable(where, f"has no {noun}{_choices(noun, entries)}")
    if name not in entries:
        raise unusable(where, f"{noun} {name} not found{_choices(noun, entries)}")
    return entries[name]


def _choices(noun: str, entries: Mapping[str, object]) -> str:
    return f": choose one of {', '.join(sorted(entries))}" if entries else f". The kubeconfig defines no {noun}s"


def _refuse(entry: Entry[Any], rules: tuple[tuple[str, str, str], ...]) -> None:
    if entry.origin.trusted:
        return
    for attribute, problem, remedy in rules:
        if getattr(entry.spec, attribute):
            raise _not_from_a_secret(entry, problem, remedy)


def _not_from_a_secret(entry: Entry[Any], problem: str, remedy: str) -> BadConfig:
    return unusable(entry.where, f"{problem}, which is not allowed in a kubeconfig from a Secret: {remedy}")


def _server(cluster: Entry[ClusterSpec]) -> str:
    server = cluster.spec.server or ""
    url = _url(server, "server", cluster.where)
    if url.username is not None or url.query or url.fragment:
        raise unusable(cluster.where, "server must have only a host, a port and a path: remove the rest")
    if url.scheme != "https" and not cluster.origin.trusted:
        raise _not_from_a_secret(cluster, "server is http, which sends credentials unencrypted", "use https")
    return server.rstrip("/")


def _proxy(cluster: Entry[ClusterSpec], env: Mapping[str, str]) -> str | None:
    if proxy := cluster.spec.proxy_url:
        _url(proxy, "proxy-url", cluster.where)
        return proxy
    # The proxy of the environment is for this process's own cluster, not for the clusters of Secrets.
    return _proxy_around(_server(cluster), env) if cluster.origin.trusted else None


def _proxy_around(server: str, env: Mapping[str, str]) -> str | None:
    variable = proxy_variable(urlsplit(server).scheme, env)
    if not variable or is_excepted(server, env):
        return None
    proxy = env[variable] if "://" in env[variable] else f"http://{env[variable]}"
    _url(proxy, variable, "the environment")
    return proxy


def _url(text: str, field: str, where: str) -> SplitResult:
    """Check a URL. It is never quoted in a message, since it may contain a password."""
    try:
        url = urlsplit(text)
        host, _ = url.hostname, url.port  # accessing them checks them
    except ValueError:
        host, url = None, SplitResult("", "", "", "", "")
    if url.scheme.startswith("socks"):
        raise unusable(where, f"{field}: SOCKS proxies are not supported: use an http or https proxy")
    if url.scheme not in {"http", "https"} or not host or not text.isprintable() or " " in text:
        raise unusable(where, f"{field} is not a URL such as https://host:port: correct it")
    return url


def _trust(cluster: Entry[ClusterSpec]) -> Trust:
    spec = cluster.spec
    authority = data_or_file(
        cluster, "certificate-authority", spec.certificate_authority_data, spec.certificate_authority
    )
    if spec.insecure_skip_tls_verify and authority:
        raise unusable(cluster.where, "has a certificate authority and insecure-skip-tls-verify: keep one of them")
    trust = Trust(f"certificate authority of {cluster.where}", authority, verify=not spec.insecure_skip_tls_verify)
    check_authority(trust)
    return trust


def _is_missing(file: Path) -> bool:
    """Whether the file does not exist. One that cannot be accessed exists: to skip it could choose another cluster."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def _home_config(env: Mapping[str, str]) -> list[Path]:
    return [Path(env["HOME"], ".kube", "config")] if env.get("HOME") else []


def _in_a_pod(env: Mapping[str, str], service_account: Path) -> bool:
    return bool(env.get("KUBERNETES_SERVICE_HOST")) and os.access(service_account / "token", os.F_OK)


def _in_cluster(env: Mapping[str, str], service_account: Path, now: Callable[[], datetime]) -> ClusterConfig:
    host, port = env["KUBERNETES_SERVICE_HOST"], env.get("KUBERNETES_SERVICE_PORT", "443")
    owner = "this pod's service account"
    trust = Trust(f"certificate authority of {owner}", service_account / "ca.crt")
    check_authority(trust)
    namespace = read_file(service_account / "namespace", owner).decode(errors="replace").strip()
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return ClusterConfig(
        server=server,
        trust=trust,
        credentials=UserCredentials(token_file(service_account / "token", owner), no_certificate(), now),
        context=IN_CLUSTER,
        namespace=namespace or "default",
        proxy=_proxy_around(server, env),
    )
