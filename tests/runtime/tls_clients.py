"""Clients that speak one version of TLS, and certificate files as a mounted Secret has them."""

import os
import ssl
import warnings
from pathlib import Path

from tests.kube.certificates import Pair, a_pair, an_authority

TLS10, TLS11, TLS12, TLS13 = (
    ssl.TLSVersion.TLSv1,
    ssl.TLSVersion.TLSv1_1,
    ssl.TLSVersion.TLSv1_2,
    ssl.TLSVersion.TLSv1_3,
)


def a_client_context(
    version: ssl.TLSVersion | None = None, certificate: tuple[Path, Path] | None = None, ciphers: str = ""
) -> ssl.SSLContext:
    """Trusts the authority of the tests; speaks this version only."""
    context = ssl.create_default_context(cadata=an_authority().chain.decode())
    # The certificates of tests lack what newer versions of Python want by default.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if version is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = version
        if version < TLS12:
            context.set_ciphers("ALL:@SECLEVEL=0")
    if ciphers:
        context.set_ciphers(ciphers)
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def write_pair(folder: Path, pair: Pair) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "tls.crt", folder / "tls.key"
    for path, content in zip(paths, (pair.chain, pair.key), strict=True):
        path.write_bytes(content)
    return paths


class MountedSecret:
    """A folder in which the files are links, replaced at once as the kubelet does it."""

    def __init__(self, folder: Path, pair: Pair | None = None) -> None:
        self.folder = folder
        self._version = 0
        self.swap(pair or a_pair())

    def swap(self, pair: Pair) -> None:
        self.swap_content(pair.chain, pair.key)

    def swap_content(self, chain: bytes, key: bytes) -> None:
        self._version += 1
        data = self.folder / f"..{self._version}"
        data.mkdir(parents=True)
        (data / "tls.crt").write_bytes(chain)
        (data / "tls.key").write_bytes(key)
        link = self.folder / "..data_tmp"
        link.symlink_to(data.name)
        link.rename(self.folder / "..data")
        for name in ("tls.crt", "tls.key"):
            if not os.path.lexists(self.folder / name):
                (self.folder / name).symlink_to(Path("..data") / name)
