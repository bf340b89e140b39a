"""``agentkit serve`` as a user starts it."""

import asyncio
import os
import shutil
import sys

import httpx
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters

from agentkit.cli.main import main

KEY = "sk-0123456789abcdef"
TOOLS = '''
from agentkit import tool
from agentkit.tools.definition import Effects

@tool(effects=Effects.pure())
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Runs ``agentkit serve ...`` in this process, as far as it comes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTKIT_STORE", f"sqlite:///{tmp_path / 'library.db'}")
    monkeypatch.setenv("AGENTKIT_MODEL", "sleepy:a")

    def run(*arguments):
        return CliRunner().invoke(main, ["serve", *arguments], catch_exceptions=False)

    return run


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines and there are no keys"),
        (["--host", "::"], "can be reached from other machines and there are no keys"),
        (["--host", "shop.example"], "can be reached from other machines"),
        (["--keys-from", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE is not set"),
        (["--keys-from", "no/such/file"], "no/such/file cannot be read"),
        (["--mcp", "stdio", "--keys-from", "X"], "without keys"),
        (["--mcp", "http", "--host", "0.0.0.0"], "there are no keys"),
        (["--mcp", "stdio", "--rate", "60", "--yes"], "so leave --rate, --yes out"),
        (["--timeout", "nan"], "request_seconds is nan"),
    ],
)
def test_misuse_is_refused(invoke, plugin, monkeypatch, options, message):
    """Exit status 2, one line that says what to do, and nothing listens."""
    monkeypatch.syspath_prepend(str(plugin))
    result = invoke(*options)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_a_port_that_is_taken(invoke, plugin, monkeypatch):
    """Exit status 1, with the port and what to do."""
    import socket

    monkeypatch.syspath_prepend(str(plugin))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = invoke("--port", str(port))
    assert result.exit_code == 1
    assert f"port {port} is taken; choose another with --port" in result.stderr


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_the_extra_is_named_when_it_is_absent(invoke, plugin, monkeypatch, package):
    """The error holds the pip line."""
    monkeypatch.syspath_prepend(str(plugin))
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    result = invoke("--port", "0")
    assert result.exit_code == 1
    assert f"needs the package '{package}'" in result.stderr
    assert 'pip install "agentkit-evolve[serve]"' in result.stderr


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_the_line_to_try_works(start, tmp_path, no_tls):
    """What the server prints can be pasted into a shell, with the key in a variable."""
    keys = tmp_path / "keys"
    keys.write_text(f"shop={KEY}\n")
    async with start("--keys-from", str(keys), "--name", "sleeper") as (process, url):
        line = next(part for part in process.greeting.splitlines() if part.startswith("Try: "))
        command = line.removeprefix("Try: ").replace("Hello", "0.01")
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-c", command),
            env={"KEY": KEY, "PATH": os.environ["PATH"]},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        printed, _ = await shell.communicate()
        async with httpx.AsyncClient(verify=no_tls, base_url=url) as client:
            closed = await client.get("/v1/models")
    assert b'"content":"Done."' in printed
    assert closed.status_code == 401
    assert "Keys: shop" in process.greeting
    assert KEY not in process.greeting


async def test_the_library_is_served_over_mcp(tmp_path, plugin):
    """``--mcp stdio`` speaks to the official client, and keeps what was called."""
    shop = (
        TOOLS
        + """
from agentkit import RunContext

def deps_for(request) -> str:
    return type(request).__name__

@tool
def who(ctx: RunContext[str]) -> str:
    \"\"\"Who asks.\"\"\"
    return ctx.deps
"""
    )
    (tmp_path / "shop.py").write_text(shop)
    store = tmp_path / "library.db"
    server = StdioServerParameters(
        command=sys.executable,
        args=[
            *("-c", "from agentkit.cli.main import main; main()", "serve", "--mcp", "stdio"),
            *("--tools", str(tmp_path / "shop.py"), "--store", str(store)),
            *("--deps", f"{tmp_path / 'shop.py'}:deps_for"),
        ],
    )
    async with Client(server) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        called = await client.call_tool("add", {"a": 1, "b": 2})
        asked = await client.call_tool("who", {})
    assert listed == ["add", "who"]
    assert asked.content[0].text == "ServerRequestContext"
    assert called.content[0].text == "3"
    assert store.exists()
