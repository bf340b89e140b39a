"""``agentkit evolve``."""

from __future__ import annotations

import json
import os

import pytest

from agentkit import open_store
from agentkit.evolution import ToolManager

BANK = '''
from agentkit import ModelRetry, tool

@tool(effects=("reads",))
def loan_rate(euro: int, periods: int) -> float:
    """What a loan costs a month.

    Args:
        euro: The sum.
        periods: Term in months.
    """
    if periods not in (36, 48, 60):
        raise ModelRetry(f"periods must be one of 36, 48, 60, got {periods}")
    return round(euro / periods, 2)
'''


def task(name, euro):
    """A task whose right answer is a loan over 48 months."""
    gold = {"name": "loan_rate", "arguments": {"euro": euro, "periods": 48}}
    return json.dumps(
        {"id": name, "request": f"{euro} over 50 months?", "expects": {"calls": [gold]}}
    )


@pytest.fixture(autouse=True)
def failed(tmp_path, invoke, script):
    """A library with the bank's tool, and a run in which three customers were refused."""
    (tmp_path / "bank.py").write_text(BANK)
    seen = [task(f"seen-{at}", 1_000 + at) for at in range(3)]
    (tmp_path / "seen.jsonl").write_text("\n".join(seen) + "\n")
    assert invoke("tools", "add", "bank.py").exit_code == 0
    script(*(line for at in range(3) for line in calling(1_000 + at, (50, 40, 24)[at])))
    asked = invoke(
        *("eval", "seen.jsonl", "--environment", "bank.py", "--model", "script:a"),
        *("--concurrency", "1", "--run", "customers"),
    )
    assert asked.exit_code == 0, asked.stderr


def manager():
    """The manager of the store that the commands are given."""
    return ToolManager(open_store(os.environ["AGENTKIT_STORE"]))


def ledger():
    """What its events come to."""
    return manager().ledger


def calling(euro, periods):
    """A call, and what is said about its result."""
    return [["loan_rate", {"euro": euro, "periods": periods}], "So it is."]


def test_without_tasks_a_person_decides(invoke):
    """Where nothing can be compared, the proposal waits for an approval."""
    result = invoke("evolve", "--run", "customers")
    assert "passed the checks" in result.stdout
    [waits] = ledger().proposals.values()
    assert waits.state == "validated"
    assert f"next: agentkit review show {waits.proposal_id}" in result.stderr


def test_nothing_is_learned_from_episodes_of_others(invoke, as_json, tmp_path):
    """Imported or read from a file, they are counted and left aside, until somebody vouches for them."""
    made = ("--output", "theirs.jsonl", "--store", "sqlite:///.agentkit/evaluations.db")
    assert invoke("episodes", "export", *made).exit_code == 0
    fresh = ("--store", f"sqlite:///{tmp_path / 'fresh.db'}")
    assert invoke("tools", "add", "bank.py", *fresh).exit_code == 0
    read = ("evolve", "--episodes", "theirs.jsonl", *fresh)
    assert "skipped 3 imported episodes" in invoke(*read).stderr
    assert invoke("import", "theirs.jsonl", *fresh).exit_code == 0
    kept = ("evolve", "--answers", "sqlite:///absent.db", *fresh)
    for told in (as_json(*read), as_json(*kept)):
        assert (told["looked_at"]["episodes"], told["looked_at"]["imported"]) == (0, 3)
        assert (told["proposals"], told["learned"]["uses"]) == ([], 0)
    assert [one["state"] for one in as_json(*kept, "--own")["proposals"]] == ["validated"]


def test_tools_that_the_library_does_not_know(invoke, tmp_path):
    """They are named with the next command, exit status 1; with their code they teach at once."""
    fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
    open_store(fresh).close()
    result = invoke("evolve", "--store", fresh)
    assert result.exit_code == 1
    assert "loan_rate: 3 calls, 3 failed, and the library has no such tool" in result.stdout
    assert "agentkit evolve --tools FILE.py" in result.stderr
    taught = invoke("evolve", "--store", fresh, "--tools", "bank.py")
    assert taught.exit_code == 0, taught.stderr
    assert "registered 1 tool" in taught.stderr
    assert "passed the checks, waiting" in taught.stdout


def test_only_some_steps(invoke, as_json):
    """``--only`` leaves the other parts of a round out, and knows their names."""
    assert as_json("evolve", "--only", "mine", "--only", "learn")["proposals"] == []
    odd = invoke("evolve", "--only", "guess")
    assert odd.exit_code == 2
    assert "'guess' is not one of 'evidence'" in odd.stderr
