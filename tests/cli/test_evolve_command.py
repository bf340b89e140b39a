"""``agentkit evolve``."""

from __future__ import annotations

import json

import pytest

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
HELD_OUT = 10


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
    every = [*seen, *(task(f"new-{at}", 2_000 + at) for at in range(HELD_OUT))]
    (tmp_path / "every.jsonl").write_text("\n".join(every) + "\n")
    assert invoke("tools", "add", "bank.py").exit_code == 0
    script(*(line for at in range(3) for line in calling(1_000 + at, 50)))
    asked = invoke(
        *("eval", "seen.jsonl", "--environment", "bank.py", "--model", "script:a"),
        *("--concurrency", "1", "--run", "customers"),
    )
    assert asked.exit_code == 0, asked.stderr


def calling(euro, periods):
    """A call, and what is said about its result."""
    return [["loan_rate", {"euro": euro, "periods": periods}], "So it is."]


@pytest.fixture
def evolve(invoke):
    """Makes a round on the held-out tasks, one at a time."""

    def run(*arguments):
        return invoke(
            *("evolve", "--run", "customers", "--tasks", "every.jsonl", "--answers", "memory:"),
            *("--environment", "bank.py", "--model", "script:a", "--concurrency", "1"),
            *arguments,
        )

    return run


def answers(control, candidate):
    """What the model does in all held-out tasks, first as it is, then with the proposal."""
    terms = (control, candidate)
    return [line for term in terms for at in range(HELD_OUT) for line in calling(2_000 + at, term)]


def test_a_gain_is_promoted(evolve, script, as_json):
    """The refused terms become a rule once held-out tasks gain by it, and the table says so."""
    script(*answers(50, 48))
    result = evolve()
    assert result.exit_code == 0, result.stderr
    assert "active" in result.stdout
    assert "+100.0" in result.stdout
    assert "1 proposal, 1 promoted, library version 2" in result.stderr
    shown = as_json("tools", "show", "loan_rate")
    assert shown["specification"]["rules"] == [
        {"kind": "one_of", "parameter": "periods", "values": [36, 48, 60]}
    ]


def test_what_was_learned_from_is_no_test(evolve, script):
    """Tasks whose episodes the proposal comes from are not asked again."""
    script(*answers(50, 48))
    found = json.loads(evolve("--json").stdout)
    assert found["proposals"][0]["held_out"]["statistics"]["tasks"] == HELD_OUT


def test_no_gain_changes_nothing(evolve, script, as_json):
    """A proposal that held-out tasks do not gain by is not promoted, with the reason."""
    script(*answers(48, 48))
    result = evolve()
    assert "active" not in result.stdout
    assert "0 promoted" in result.stderr
    assert "specification" not in as_json("tools", "show", "loan_rate")


def test_without_tasks_a_person_decides(invoke):
    """Where nothing can be compared, the proposal waits for an approval."""
    result = invoke("evolve", "--run", "customers")
    assert "validated" in result.stdout
    listed = json.loads(invoke("proposals", "list", "--json").stdout)
    assert [one["state"] for one in listed] == ["validated"]
    assert f"next: agentkit review show {listed[0]['proposal_id']}" in result.stderr


def test_a_dry_run_writes_nothing(invoke):
    """What would come of it is shown, and the library holds neither event nor proposal."""
    result = invoke("evolve", "--run", "customers", "--dry-run")
    assert "validated" in result.stdout
    assert "nothing was written" in result.stderr
    assert json.loads(invoke("proposals", "list", "--json").stdout) == []


def test_a_second_round_brings_nothing_new(evolve, script):
    """What was promoted is not suggested again by the same episodes."""
    script(*answers(50, 48))
    evolve()
    again = json.loads(evolve("--json").stdout)
    assert [one["state"] for one in again["proposals"]] in ([], ["active"])
    assert again["before"] == again["after"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--run", "nobody"), "holds no episodes of a run 'nobody'"),
        (("--run", "customers", "--tool", "lone_rate"), "has no tool 'lone_rate'"),
    ],
)
def test_what_can_not_work_is_misuse(invoke, arguments, told):
    """A run or a tool that is not there is exit status 2, with its name."""
    result = invoke("evolve", *arguments)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
