"""Certificates and keys of a local control plane, created at each start. The keys of the authorities stay in memory."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

YEAR = dt.timedelta(days=365)
CLOCK_SKEW = dt.timedelta(minutes=5)
LOOPBACK = x509.SubjectAlternativeName(
    [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
    ]
)
# Strict verifiers, such as Python's since 3.13, require it of a certificate authority.
SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class Authority:
    """A certificate authority that exists as long as the process."""

    def __init__(self, name: str) -> None:
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _draft(self._name, self._key.public_key(), lifetime=YEAR)
            .issuer_name(self._name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(SIGNS_CERTIFICATES, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, name: str) -> Identity:
        """Identify a server on the loopback addresses, which may also call its peers."""
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._issue(_name(name), [usages, LOOPBACK], lifetime=YEAR)

    def client(self, user: str, groups: Sequence[str] = (), *, lifetime: dt.timedelta = YEAR) -> Identity:
        """Identify a user as API servers read it; a negative lifetime makes a certificate that has expired."""
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._issue(_name(user, groups), [usages], lifetime=lifetime)

    def _issue(
        self, subject: x509.Name, extensions: Sequence[x509.ExtensionType], *, lifetime: dt.timedelta
    ) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        draft = _draft(subject, key.public_key(), lifetime=lifetime).issuer_name(self._name)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        for extension in (issuer, *extensions):
            draft = draft.add_extension(extension, critical=False)
        certificate = draft.sign(self._key, hashes.SHA256())
        return Identity(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def signing_key() -> bytes:
    """Make a key that signs tokens of service accounts."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _draft(subject: x509.Name, key: ec.EllipticCurvePublicKey, *, lifetime: dt.timedelta) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + lifetime) - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
