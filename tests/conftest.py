"""Fixtures that every test may use, and the one place that knows when a marked test is skipped."""

from __future__ import annotations

import ast
import gc
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("agentkit.testing.conformance")  # failures show their values

# No test asserts how long something takes: a busy machine may need seconds for one example.
# AGENTKIT_EXAMPLES is how many a property is tried on; `make test-all` asks for 500.
settings.register_profile(
    "agentkit",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("AGENTKIT_EXAMPLES", "25")),
)
settings.load_profile("agentkit")

_ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = "smollm2-135m"


def pytest_configure() -> None:
    """Let Ctrl-C reach the programs that tests start, also where a shell ignores it for jobs."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector away from what collecting makes: thousands of tests that stay.

    A full round over them takes a third of a second, and some tests ask for such rounds.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs the local model where its plugin or its weights are absent."""
    if item.get_closest_marker("weights") is None:
        return
    weights = pytest.importorskip(
        "agentkit_local.weights", reason="the plugin agentkit-local is not installed"
    )
    if WEIGHTS not in {info.name for info in weights.installed()}:
        pytest.skip(f"run: agentkit models install {WEIGHTS}")


@pytest.fixture(scope="session", autouse=True)
def _one_authority(tmp_path_factory):
    """HTTP clients trust one certificate: reading all costs each 50 ms, and no test leaves home."""
    import certifi

    end = "-----END CERTIFICATE-----\n"
    first = Path(certifi.where()).read_text(encoding="utf-8").partition(end)[0] + end
    kept = tmp_path_factory.mktemp("authority") / "one.pem"
    kept.write_text(first, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(kept))
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Keys and marks lie in a cache of the tests' own; weights and data sets are the user's."""
    from agentkit.fetch import cache_directory

    folder, users = tmp_path_factory.mktemp("cache"), cache_directory()
    for path in users.iterdir() if users.is_dir() else ():
        if path.name != "index":
            (folder / path.name).symlink_to(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTKIT_CACHE", str(folder))
        yield


@pytest.fixture(scope="session")
def project_root():
    """The folder that holds pyproject.toml."""
    return _ROOT


@pytest.fixture(scope="session")
def parse_package():
    """Parses a package folder: dotted module name to syntax tree, without importing anything."""

    def parse(folder: Path, package: str) -> Mapping[str, ast.Module]:
        modules: dict[str, ast.Module] = {}
        for path in sorted(folder.rglob("*.py")):
            if path.parent.name == "sample":  # files of a project, for 'agentkit init' to copy
                continue
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            name = ".".join(parts).removesuffix(".__init__")
            text, stub = path.read_text(encoding="utf-8"), path.with_suffix(".pyi")
            if stub.exists():  # the names that a package loads on first use
                text += stub.read_text(encoding="utf-8")
            modules[name] = ast.parse(text, filename=str(path))
        return modules

    return parse


@pytest.fixture(scope="session")
def runtime_modules(parse_package):
    """Every module of the runtime by dotted name, parsed."""
    return parse_package(_ROOT / "agentkit", "agentkit")


@pytest.fixture
def plug_in(tmp_path, monkeypatch):
    """Installs a distribution of one module, for this process; gives the folder for others."""
    folder, made = tmp_path / "plugins", []
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def write(module: str, text: str, entry_points: str) -> Path:
        (folder / f"{module}.py").write_text(text)
        info = folder / f"{module}-1.0.dist-info"
        info.mkdir()
        name = module.replace("_", "-")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        made.append(module)
        return folder

    yield write
    for module in made:
        sys.modules.pop(module, None)
