"""``agentkit serve --definitions`` as a user starts it, and reading from it with other commands."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agentkit import open_store
from agentkit.cli.main import main
from agentkit.library import LibraryChange
from agentkit.testing import sample_library

KEY = "sk-0123456789abcdef"
MAIN = "from agentkit.cli.main import main; main()"


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path / "caches"))
    monkeypatch.setenv("AGENTKIT_STORE", f"sqlite:///{tmp_path / 'library.db'}")
    monkeypatch.delenv("AGENTKIT_LIBRARY_KEY", raising=False)


@pytest.fixture
def library(tmp_path: Path) -> None:
    """A library in the file that the commands use."""
    store = open_store(tmp_path / "library.db")
    change = LibraryChange(proposal_id="1", upserts=sample_library().definitions)
    store.commit(change, expected_version=0)
    store.close()


@pytest.fixture
def invoke() -> Callable[..., Result]:
    """Runs a command in this process, as far as it comes."""
    return lambda *arguments: CliRunner().invoke(main, arguments, catch_exceptions=False)


@asynccontextmanager
async def _started(*options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str, str]]:
    """``agentkit serve --definitions`` as a process, what it said first, and its URL."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MAIN, "serve", "--definitions", "--port", "0", *options),
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        greeting = (await process.stderr.readuntil(b"Ctrl-C")).decode()
        yield process, greeting, re.search(r"at (http://\S+)/library/v1", greeting)[1]
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "there are no keys"),
        (["--yes", "--max-steps", "3"], "so leave"),
        (["--openapi", "api.json"], "so leave --openapi out"),
        (["--name", "x"], "--definitions serves the library without an agent, so leave --name out"),
        (["--allow-origin", "https://a.example"], "so leave --allow-origin out"),
        (["--mcp", "http"], "two servers"),
        (["--keys-from", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE is not set"),
    ],
)
def test_misuse_is_refused(
    library: None, invoke: Callable[..., Result], options: list[str], message: str
) -> None:
    """Exit status 2, one line that says what to do, and nothing listens."""
    result = invoke("serve", "--definitions", *options)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


async def test_other_programs_read_it(library: None, invoke: Callable[..., Result]) -> None:
    """Its URL is a store for every command that reads; SIGTERM ends it in good order."""
    async with _started() as (process, greeting, url):
        listed = await asyncio.to_thread(invoke, "tools", "list", "--store", url, "--json")
        process.send_signal(signal.SIGTERM)
        _, rest = await process.communicate()
    assert "Library version 1" in greeting
    assert '"weather_now"' in listed.stdout
    assert (process.returncode, b"Stopped." in rest) == (0, True)
    away = await asyncio.to_thread(invoke, "tools", "list", "--store", url, "--json")
    assert away.stdout == listed.stdout  # what is known goes on to be there


async def test_a_key_is_needed_where_there_are_keys(
    library: None, invoke: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says which variable the key goes into."""
    (tmp_path / "keys").write_text(f"edge={KEY}\n")
    async with _started("--keys-from", str(tmp_path / "keys"), "--log") as (process, greeting, url):
        refused = await asyncio.to_thread(invoke, "tools", "list", "--store", url)
        monkeypatch.setenv("AGENTKIT_LIBRARY_KEY", KEY)
        allowed = await asyncio.to_thread(invoke, "tools", "list", "--store", url)
        process.terminate()
        _, log = await process.communicate()
    assert refused.exit_code == 1
    assert "AGENTKIT_LIBRARY_KEY" in refused.stderr
    assert allowed.exit_code == 0
    assert "Keys: edge" in greeting
    assert b"GET /library/v1/head 200" in log
    assert b"key=edge" in log
    assert KEY.encode() not in log + greeting.encode()
