"""Fixtures of the plugin: commands in an empty folder, files of tasks, public corpora."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings
from support.judging import call, episode, row, tools, write  # noqa: F401 - fixtures

from agentkit.cli.main import main
from agentkit_bench import gsm8k_benchmark, load_bfcl, nestful_benchmark

settings.register_profile(
    "agentkit",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("AGENTKIT_EXAMPLES", "25")),
)
settings.load_profile("agentkit")

SAMPLE = Path(__file__).parent / "sample_bfcl"
LOADED = {"bfcl_agreement", "bfcl_answers", "bfcl_eval", "filelock", "harness"}


@pytest.fixture(scope="session")
def project_root():
    """The folder of the checkout."""
    return Path(__file__).resolve().parents[3]


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Runs ``agentkit ...``, where the plugin is found by its entry point."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.fixture
def sample_folder():
    """The folder with the sample's files."""
    return SAMPLE


@pytest.fixture
def sample():
    """The sample, loaded."""
    return load_bfcl(SAMPLE)


@pytest.fixture(scope="session")
def every():
    """Every nth of many, for the sake of time; all of them where AGENTKIT_WHOLE_CORPORA is set."""

    def of(step, items):
        return items if os.environ.get("AGENTKIT_WHOLE_CORPORA") else items[::step]

    return of


@pytest.fixture(scope="session")
def corpus(project_root):
    """The folder of one public corpus; skips where it is not beside the checkout."""

    def folder(name):
        root = Path(os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data"))
        if not (root / name).is_dir():
            pytest.skip(f"no corpus {name!r} in {root}; name the folder in AGENTKIT_CORPORA")
        return root / name

    return folder


@pytest.fixture(scope="session")
def word_problems(corpus):
    """The whole of GSM8K."""
    return gsm8k_benchmark(corpus("gsm8k"))


@pytest.fixture(scope="session")
def planned(corpus):
    """The whole of NESTFUL as plans."""
    return nestful_benchmark(corpus("nestful"))


@pytest.fixture(scope="session")
def executed(corpus):
    """The whole of NESTFUL on recorded responses."""
    return nestful_benchmark(corpus("nestful"), asking="executed")


@pytest.fixture(scope="module")
def agreement(project_root):
    """The script that compares both checkers, as a module; what it loads is unloaded after it."""
    folder = str(project_root / "tests" / "benchmarks")
    before = set(sys.modules)
    sys.path.insert(0, folder)
    yield importlib.import_module("bfcl_agreement")
    sys.path.remove(folder)
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in LOADED:
            del sys.modules[name]
