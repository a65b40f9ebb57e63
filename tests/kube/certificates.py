"""Throw-away certificates."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

YEAR = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: x509.Certificate
    private: ec.EllipticCurvePrivateKey

    @property
    def chain(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key(self) -> bytes:
        return self.key_locked_with(serialization.NoEncryption())

    def key_locked_with(self, lock: serialization.KeySerializationEncryption) -> bytes:
        return self.private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)


@cache
def an_authority(name: str = "authority") -> Pair:
    return _signed(name, None, None, x509.BasicConstraints(ca=True, path_length=None))


def a_pair(
    name: str = "localhost", *, signed_by: Pair | None = None, expires: datetime | None = None, authority: bool = False
) -> Pair:
    constraints = x509.BasicConstraints(ca=authority, path_length=None)
    return _signed(name, signed_by or an_authority(), expires, constraints)


def _signed(name: str, signer: Pair | None, expires: datetime | None, constraints: x509.BasicConstraints) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    until = expires or datetime.now(UTC) + YEAR
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer.certificate.subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - 2 * YEAR)
        .not_valid_after(until)
        .add_extension(constraints, critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(signer.private if signer else key, hashes.SHA256())
    )
    return Pair(certificate, key)
