"""Opening Redis stores, as the README shows it."""

from __future__ import annotations

import ipaddress
import re
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st
from redis import Redis
from support.local_server import ServerError, free_port
from support.redis_server import RedisServer, delete_library

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError, UsageError
from agentkit.library import EpisodeFilter, LibraryChange
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.store import Retention
from agentkit_redis import parse_address
from agentkit_redis.address import _OPTIONS
from agentkit_redis.connection import RedisConnection
from agentkit_redis.reading import FORMAT, Keys

WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1)


def test_everything_can_be_said():
    """User, password, host, port, database and each option are read."""
    address = parse_address(
        "rediss://ada:p%40ss@[::1]:6390/3?prefix=team-a:&require=always&replicas=2&timeout=1.5"
        "&ssl_ca_certs=/etc/ca.pem&ssl_check_hostname=false"
    )
    assert (address.user, address.password, address.host) == ("ada", "p@ss", "::1")
    assert (address.port, address.database, address.prefix) == (6390, 3, "team-a")
    assert (address.require, address.replicas, address.timeout_seconds) == ("always", 2, 1.5)
    assert address.uses_tls
    assert address.tls == {"ssl_ca_certs": "/etc/ca.pem", "ssl_check_hostname": "false"}
    assert str(address) == "rediss://ada:***@[::1]:6390/3?prefix=team-a"


@pytest.mark.parametrize(
    "code", ["LOADING", "NOREPLICAS", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "ASK"]
)
def test_what_passes_by_itself_is_no_refusal(server_url, code):
    """An agent may go on without the store, or try again."""
    said = f"return redis.error_reply('{code} 7000 127.0.0.1:1')"
    with (
        closing(RedisConnection(parse_address(server_url))) as connection,
        pytest.raises(StoreUnavailableError, match=f"It says: {code}"),
    ):
        connection.ask("EVAL", said, 0)


@given(password=WORDS, user=WORDS)
def test_any_password_is_read_and_none_is_shown(password, user):
    """A password of any characters comes through, and no text of an address holds it."""
    address = parse_address(f"redis://{quote(user, safe='')}:{quote(password, safe='')}@host")
    assert (address.user, address.password) == (user, password)
    assert f":{quote(password, safe='')}@" not in str(address).replace(":***@", "")
    assert str(address).startswith(f"redis://{user}:***@host")
    assert "password" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "redis:secret",
        "redis://:sec/ret@host",
        "redis://:sec#ret@host",
        "redis://host:secret",
        "redis://host:99999999/secret",
        "redis://host/secret",
        "redis://host/0?password=secret",
        "redis://host/0?secret=1",
        "redis://host/0?prefix={secret}",
        "redis://host/0?prefix=",
        "redis://host/0?require=secret",
        "redis://host/0?replicas=-1",
        "redis://host/0?timeout=0",
        "redis://host/0?timeout=inf",
        "redis://host/0?ssl_ca_certs=x",
        "http://secret@host",
        "redis://[::1",
    ],
)
def test_what_means_nothing_is_refused(url):
    """A URL that cannot be meant is refused with the way to write it."""
    with pytest.raises(UsageError, match=r"rediss?://|prefix|require|timeout|option"):
        parse_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:hush/hush@host",
        "redis://:hush#@host",
        "redis://:hush?@host",
        "redis://a:hush:hush@[host",
        "redis://host?password=hush",
        "redis://:hush@host:port",
        "redis://:hush@host/x",
    ],
)
def test_a_broken_url_does_not_give_the_password_away(url):
    """Neither the message nor what is behind it holds any part of the password."""
    with pytest.raises(UsageError) as caught:
        parse_address(url)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


PING = LibraryChange(proposal_id="first", upserts=(ToolDefinition(name="ping"),))


def test_two_prefixes_are_two_libraries(library_url, open_redis):
    """What is committed under one prefix is not seen under another, longer one."""
    one, two = open_redis(library_url), open_redis(f"{library_url}x")
    one.commit(PING, expected_version=0)
    assert (one.load().version, two.load().version) == (1, 0)
    delete_library(f"{library_url}x")
    assert one.load().version == 1


@pytest.mark.parametrize("place", range(12))
def test_keys_of_another_program_are_refused_and_left_alone(library_url, raw, place):
    """A key of ours that somebody else made is never written over."""
    client, keys = raw(library_url)
    client.set(keys.all[place], "mine")
    with pytest.raises(StoreFormatError, match="prefix="):
        open_store(library_url)
    assert client.get(keys.all[place]) == b"mine"
    assert client.exists(*keys.all) == 1


def test_a_newer_format_is_refused_by_stores_that_are_open(library_url, open_redis, raw):
    """A library that a newer program took over is neither read nor written by an older one."""
    store = open_redis(library_url)
    client, keys = raw(library_url)
    client.hset(keys.head, "format", "agentkit-redis 7")
    for work in (
        store.load,
        store.versions,
        store.events,
        store.select,
        store.volume,
        lambda: store.history("ping"),
        lambda: store.get("e"),
        lambda: store.commit(PING, expected_version=0),
    ):
        with pytest.raises(StoreFormatError, match="format is 7"):
            work()
    assert client.exists(*keys.all) == 2


def test_a_library_that_is_gone_is_not_taken_for_an_empty_one(library_url, open_redis):
    """Once its keys were deleted, a store that is open says so and begins nothing anew."""
    store = open_redis(library_url)
    store.commit(PING, expected_version=0)
    delete_library(library_url)
    for work in (store.load, lambda: store.commit(PING, expected_version=0)):
        with pytest.raises(StoreError, match="no longer holds the library"):
            work()
    assert open_redis(library_url).load().version == 0


def test_a_refused_connection_says_what_to_do():
    """Where nobody listens the address is shown, and that the server is to be started."""
    with pytest.raises(StoreUnavailableError, match=r"redis://127\.0\.0\.1:\d+.*Start the server"):
        open_store(f"redis://127.0.0.1:{free_port()}/0")


@pytest.mark.parametrize("login", ["", ":wrong-word@", "nobody:wrong-word@"])
def test_a_wrong_password_is_told_and_not_shown(start_server, login):
    """A server that wants a password is told apart, and nothing of ours shows the given one."""
    server = start_server(requirepass="right-word")
    url = server.url.replace("://", f"://{login}")
    with pytest.raises(StoreError, match="user or the password") as caught:
        open_store(url)
    assert not isinstance(caught.value, StoreUnavailableError)
    assert "wrong-word" not in str(caught.value)
    with closing(open_store(server.url.replace("://", "://:right-word@"))) as store:
        assert store.load().version == 0
        assert "right-word" not in repr(store) + repr(store.address) + repr(vars(store))


def test_a_server_without_tls_is_told_apart(start_server):
    """``rediss://`` at a server that does not encrypt names the other scheme."""
    server = start_server()
    with pytest.raises(
        StoreUnavailableError, match=r"redis:// for one|redis:// for a server without"
    ):
        open_store(f"rediss://127.0.0.1:{server.port}/0?timeout=0.5")


def test_a_closed_store_refuses_everything(library_url):
    """After ``close`` every method says that the store is closed."""
    store = open_store(library_url)
    store.close()
    for work in (
        store.load,
        store.versions,
        store.events,
        store.select,
        store.volume,
        store.changes,
        lambda: list(store.check()),
        lambda: store.append_many([]),
        lambda: store.commit(PING, expected_version=0),
    ):
        with pytest.raises(StoreError, match="closed"):
            work()


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


@pytest.mark.parametrize("options", ["", "?ssl_ca_certs=/no/such/file"])
def test_an_unknown_certificate_is_refused(tls_url, options):
    """A server that nobody vouches for is not talked to, and the option to set is named."""
    with pytest.raises(StoreUnavailableError, match=r"ssl_ca_certs=FILE|No such file"):
        open_store(f"{tls_url}{options}")


def test_a_plain_connection_to_an_encrypting_server_is_told_apart(tls_url):
    """``redis://`` at a server that encrypts names the other scheme."""
    with pytest.raises(StoreError, match="rediss://"):
        open_store(f"{tls_url.replace('rediss', 'redis')}?timeout=1")


def _settings():
    """Of a node; the port on which nodes talk is usually the other one and 10,000."""
    return {
        "cluster-enabled": "yes",
        "cluster-require-full-coverage": "no",
        "cluster-port": str(free_port()),
    }


@pytest.fixture(scope="module")
def node():
    """A node of a cluster that serves the first half of the slots."""
    try:
        server = RedisServer(_settings())
    except ServerError as error:
        pytest.skip(str(error))
    with server, closing(Redis(port=server.port)) as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        _wait_until(client, "cluster_state:ok")  # it takes two seconds to believe it
        yield server


def node_ports(server):
    """The port of a node, and that on which nodes talk."""
    return server.port, server.settings["cluster-port"]


def _wait_until(client, told):
    """Wait until a node says so of its cluster."""
    while told not in _text(client.execute_command("CLUSTER", "INFO")):
        time.sleep(0.01)


def _text(answer):
    """What a cluster says, which some versions of redis-py take apart."""
    if isinstance(answer, dict):
        return " ".join(f"{name}:{value}" for name, value in answer.items())
    return answer.decode() if isinstance(answer, bytes) else answer


def _prefix(client, *, is_here):
    """A prefix whose slot is served by this node, or not."""
    names = (f"library-{number}" for number in range(100))
    for name in names:
        slot = client.execute_command("CLUSTER", "KEYSLOT", Keys.under(name).head)
        if (slot <= 8191) == is_here:
            return name
    raise AssertionError("there is no such name")


def test_all_keys_lie_in_one_slot(node, open_redis, raw):
    """Commits, episodes and everything else work on the node that has the slot."""
    client, _ = raw(node.url)
    prefix = _prefix(client, is_here=True)
    store = open_redis(f"{node.url}?prefix={prefix}")
    assert store.commit(PING, expected_version=0) == 1
    store.append(Episode(episode_id="e", request="?"))
    assert store.load().version == 1
    assert [one.episode_id for one in store.select()] == ["e"]
    assert store.prune(Retention(max_count=0)).count == 1
    assert list(store.check()) == []
    slots = {client.execute_command("CLUSTER", "KEYSLOT", key) for key in Keys.under(prefix).all}
    assert len(slots) == 1


def test_a_node_without_the_slot_says_so(node, raw):
    """A library whose slot nobody serves, or another node, is refused with the reason."""
    client, _ = raw(node.url)
    prefix = _prefix(client, is_here=False)
    with pytest.raises(StoreUnavailableError, match="cluster that is down"):
        open_store(f"{node.url}?prefix={prefix}")


def test_the_node_that_has_the_library_is_named(node, start_server, raw):
    """Where another node serves the slot, the answer with its address is shown."""
    other = start_server(**_settings())
    client, _ = raw(node.url)
    second, _ = raw(other.url)
    second.execute_command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
    second.execute_command("CLUSTER", "MEET", "127.0.0.1", *node_ports(node))
    _wait_until(client, "cluster_slots_assigned:16384")
    prefix = _prefix(client, is_here=False)
    with pytest.raises(StoreError, match=f"one node of a cluster.*{other.port}"):
        open_store(f"{node.url}?prefix={prefix}")


README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_its_code_runs(start_server, capsys):
    """The block prints what it shows, on a server of the settings that tests have."""
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    server = start_server()
    names: dict[str, object] = {}
    exec(block.replace("localhost:6379", f"127.0.0.1:{server.port}"), names)
    names["store"].close()
    expected = re.findall(r"^#> (.*)$", block, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == expected


def test_its_rights_are_enough_and_hold(start_server, raw, caplog):
    """A user with that line does everything, of its own prefix alone."""
    (line,) = re.findall(r"^ACL SETUSER .*$", README, re.MULTILINE)
    server = start_server()
    client, _ = raw(server.url)
    client.execute_command(*line.replace(">PASSWORD", ">word").split())
    url = server.url.replace("://", "://agentkit:word@")
    draft = EventDraft(kind="written", author=Author(kind="program", name="t"))
    change = LibraryChange(
        proposal_id="first",
        upserts=(ToolDefinition(name="ping"),),
        events=chained(None, [draft], at="2026-11-21T10:00:00+00:00"),
    )
    with closing(open_store(url)) as store:
        assert store.durability.level == "everysec"
        assert store.commit(change, expected_version=0) == 1
        assert store.commit(change, expected_version=0) == 1
        gone = LibraryChange(proposal_id="gone", removals=("ping",))
        assert store.commit(gone, expected_version=1) == 2
        assert (len(store.load(1)), len(store.load()), len(store.history("ping"))) == (1, 0, 2)
        assert (len(store.events()), len(list(store.changes()))) == (1, 2)
        store.append(Episode(episode_id="e", request="?", session_id="s"))
        for oldest_first in (True, False):
            found = EpisodeFilter(session_id="s", stop_reason="finished", oldest_first=oldest_first)
            assert len(list(store.select(found))) == 1
        assert len(list(store.select())) == 1
        assert store.get("e") is not None
        assert list(store.check()) == []
        assert store.prune(Retention(max_count=0)).count == 1
    with (
        closing(open_store(f"{url}?replicas=1&timeout=2")) as store,
        pytest.raises(StoreUnavailableError, match="0 of 1 replicas"),
    ):
        store.commit(change, expected_version=0)
    assert "WARNING" not in caplog.text
    assert "returns no free memory" not in caplog.text
    with pytest.raises(StoreError, match="does not let this user"):
        open_store(f"{url}?prefix=other")


def test_every_option_and_key_is_in_its_tables():
    """The tables name all options of the URL, all keys, and the format."""
    for name in (*_OPTIONS, *(key.partition(":")[2] for key in Keys.under("p").all)):
        assert f"`{name}`" in README
    assert f"`{FORMAT}`" in README
