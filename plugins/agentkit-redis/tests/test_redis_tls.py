"""``rediss://`` encrypts, and trusts only whom it is told to."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.local_server import ServerError, free_port

from agentkit import ToolDefinition, open_store
from agentkit.errors import StoreError, StoreUnavailableError
from agentkit.library import LibraryChange


def _certificate(folder: Path) -> Path:
    """A certificate of this machine that vouches for itself, with its key beside it."""
    pytest.importorskip("cryptography", reason="the extra 'sign' is not installed")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([here]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    path.with_suffix(".key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


@pytest.fixture
def certificate(tmp_path):
    """The certificate of the server."""
    return _certificate(tmp_path)


@pytest.fixture
def tls_url(start_server, certificate):
    """URL of a server that encrypts."""
    port = free_port()
    try:
        start_server(
            tls_port=str(port),
            tls_cert_file=str(certificate),
            tls_key_file=str(certificate.with_suffix(".key")),
            tls_ca_cert_file=str(certificate),
            tls_auth_clients="no",
        )
    except ServerError as error:
        pytest.skip(f"this redis-server knows no TLS: {error}")
    return f"rediss://127.0.0.1:{port}/0"


def test_a_known_certificate_is_trusted(tls_url, certificate, open_redis):
    """With the certificate of the server everything works."""
    store = open_redis(f"{tls_url}?ssl_ca_certs={certificate}")
    change = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))
    assert store.commit(change, expected_version=0) == 1
    assert store.load().version == 1


def test_a_certificate_need_not_be_checked(tls_url, open_redis):
    """Who says so talks to anybody."""
    assert open_redis(f"{tls_url}?ssl_cert_reqs=none").load().version == 0


@pytest.mark.parametrize("options", ["", "?ssl_ca_certs=/no/such/file"])
def test_an_unknown_certificate_is_refused(tls_url, options):
    """A server that nobody vouches for is not talked to, and the option to set is named."""
    with pytest.raises(StoreUnavailableError, match=r"ssl_ca_certs=FILE|No such file"):
        open_store(f"{tls_url}{options}")


def test_a_plain_connection_to_an_encrypting_server_is_told_apart(tls_url):
    """``redis://`` at a server that encrypts names the other scheme."""
    with pytest.raises(StoreError, match="rediss://"):
        open_store(f"{tls_url.replace('rediss', 'redis')}?timeout=1")
