"""The certificates of a sandbox: one authority, one key pair for all servers and clients on loopback, and one key for
service accounts.

They hold the rules of RFC 5280 that Python enforces from 3.13 on (`ssl.VERIFY_X509_STRICT`).
"""

import ssl
import sys
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from plimsoll.errors import PlimsollError

AUTHORITY: Final = "ca.crt"
CERTIFICATE: Final = "server.crt"
KEY: Final = "server.key"
SERVICE_ACCOUNT_KEY: Final = "service-account.key"
_VALID: Final = timedelta(days=365)
_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


def write_certificates(folder: Path) -> None:
    """Writes a new authority and the certificate that it signs into `folder`, and a key for service accounts if there
    is none. The authority's private key is not stored."""
    folder.mkdir(parents=True, exist_ok=True)
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "plimsoll-sandbox")])
    authority = (
        _builder(authority_name, authority_name, key=authority_key, signer=authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    # The pair is for servers and clients: etcd requires client certificates.
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    names = x509.SubjectAlternativeName([*map(x509.DNSName, _NAMES), x509.IPAddress(ip_address("127.0.0.1"))])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    certificate = (
        _builder(subject, authority_name, key=key, signer=authority_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(usages, critical=False)
        .add_extension(names, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    (folder / AUTHORITY).write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    (folder / CERTIFICATE).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_key(folder / KEY, key)
    # Tokens that it has signed are in etcd.
    if not (folder / SERVICE_ACCOUNT_KEY).exists():
        _write_key(folder / SERVICE_ACCOUNT_KEY, ec.generate_private_key(ec.SECP256R1()))


def trusting(folder: Path) -> ssl.SSLContext:
    """The settings of a client that trusts the authority in `folder`, and has its pair."""
    context = ssl.create_default_context(cafile=str(folder / AUTHORITY))
    context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    return context


def refusal(error: ssl.SSLError, server: str) -> PlimsollError:
    """The error for a `server` whose certificate, or way to speak TLS, this Python does not accept."""
    python = f"Python {sys.version.partition(' ')[0]} ({ssl.OPENSSL_VERSION})"
    if isinstance(error, ssl.SSLCertVerificationError):
        return PlimsollError(
            f"{python} refuses the certificate of {server}: {error.verify_message}.",
            "Check the clock of this machine, and the OpenSSL configuration that this Python uses (OPENSSL_CONF).",
        )
    return PlimsollError(
        f"{python} cannot speak TLS with {server}: {error}.",
        "Check the OpenSSL configuration that this Python uses (OPENSSL_CONF).",
    )


def link_certificates(certificates: Path, into: Path) -> None:
    """Links the key pair into a folder, with the file names of controller-runtime."""
    into.mkdir(parents=True, exist_ok=True)
    for name, source in (("tls.crt", CERTIFICATE), ("tls.key", KEY)):
        (into / name).unlink(missing_ok=True)
        (into / name).symlink_to(certificates / source)


def _builder(
    subject: x509.Name, issuer: x509.Name, *, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Valid from one minute ago, because the clocks of processes may differ slightly.
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """Of an authority, which signs certificates and lists of revoked ones, or of a pair, which signs handshakes."""
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
