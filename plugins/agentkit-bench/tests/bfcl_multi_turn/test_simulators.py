"""Simulators are loaded in place, and nobody else notices."""

from __future__ import annotations

import importlib
import sys
import threading

import pytest

from agentkit.errors import DatasetError, MissingExtraError
from agentkit_bench.bfcl_simulators import SimulatorModules


@pytest.fixture
def code(sample_folder):
    """The folder with the sample's simulators."""
    return sample_folder / "func_source_code"


def test_modules_find_each_other(code):
    """An import under upstream's name gives the module that lies beside; it is loaded once."""
    modules = SimulatorModules(code)
    cabinet = modules.load("cabinet")
    assert cabinet.SPARE_PAPERS is modules.load("spare_papers").SPARE_PAPERS
    assert modules.load("cabinet") is cabinet


def test_no_trace_is_left(code):
    """Neither the table of modules nor the search path changes."""
    before = dict(sys.modules), list(sys.path), list(sys.meta_path)
    SimulatorModules(code).load("cabinet")
    assert {name for name in sys.modules if "bfcl_eval" in name} == {
        name for name in before[0] if "bfcl_eval" in name
    }
    assert (list(sys.path), list(sys.meta_path)) == before[1:]
    assert not any("cabinet" in name for name in sys.modules)


def test_an_installed_package_is_not_shadowed(code, tmp_path, monkeypatch):
    """A real ``bfcl_eval`` is imported as ever, before and after."""
    package = tmp_path / "installed" / "bfcl_eval"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("MARK = 'the installed one'\n")
    monkeypatch.syspath_prepend(package.parent)
    try:
        SimulatorModules(code).load("cabinet")
        assert importlib.import_module("bfcl_eval").MARK == "the installed one"
        SimulatorModules(code).load("cabinet")
        assert importlib.import_module("bfcl_eval").MARK == "the installed one"
    finally:
        sys.modules.pop("bfcl_eval", None)


def test_two_folders_are_apart(code):
    """Each set of simulators has its own modules."""
    assert SimulatorModules(code).load("counter") is not SimulatorModules(code).load("counter")


def test_threads_share_one_module(code):
    """A module that several threads ask for at once runs once."""
    (code / "slow.py").write_text("import time\ntime.sleep(0.05)\nMARK = object()\n")
    modules, found = SimulatorModules(code), []
    threads = [
        threading.Thread(target=lambda: found.append(modules.load("slow").MARK)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


def test_a_missing_package_says_what_to_install(code, monkeypatch):
    """One simulator computes with ``mpmath``; without it the message has the pip line."""
    monkeypatch.setitem(sys.modules, "mpmath", None)
    (code / "sums.py").write_text("import mpmath\n")
    with pytest.raises(MissingExtraError, match="pip install agentkit-bench"):
        SimulatorModules(code).load("sums")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "SyntaxError"),
        ("import no_such_package_anywhere", "no_such_package_anywhere"),
        (
            "from bfcl_eval.eval_checker.multi_turn_eval.func_source_code.gone import X",
            "there is no simulator",
        ),
    ],
)
def test_a_broken_simulator_is_an_error_each_time(code, text, reason):
    """The error names the file and the cause, and half a module is not kept."""
    (code / "broken.py").write_text(text)
    modules = SimulatorModules(code)
    for _ in range(2):
        with pytest.raises(DatasetError, match=reason):
            modules.load("broken")
    (code / "broken.py").write_text("MARK = 'mended and longer than before'\n")
    assert modules.load("broken").MARK
