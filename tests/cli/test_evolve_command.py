"""``agentkit evolve``."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from agentkit import open_store
from agentkit.evolution import ToolManager
from agentkit.library import Author, LibraryChange

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


def manager():
    """The manager of the store that the commands are given."""
    return ToolManager(open_store(os.environ["AGENTKIT_STORE"]))


def ledger():
    """What its events come to."""
    return manager().ledger


def calling(euro, periods):
    """A call, and what is said about its result."""
    return [["loan_rate", {"euro": euro, "periods": periods}], "So it is."]


@pytest.fixture
def evolve(invoke):
    """Makes a round on the held-out tasks, one at a time."""

    def run(*arguments):
        return invoke(
            *("evolve", "--run", "customers", "--tasks", "every.jsonl"),
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
    assert "in use" in result.stdout
    assert "+100.0" in result.stdout
    assert "\n  periods must be one of 36, 48, 60." in result.stdout
    assert "1 proposal, 1 promoted, library version 2" in result.stderr
    assert "next: agentkit review show evidence-" in result.stderr
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
    assert "passed the checks" in result.stdout
    [waits] = ledger().proposals.values()
    assert waits.state == "validated"
    assert f"next: agentkit review show {waits.proposal_id}" in result.stderr


def test_a_dry_run_writes_nothing(invoke):
    """What would come of it is shown, and the library holds neither event nor proposal."""
    result = invoke("evolve", "--run", "customers", "--dry-run")
    assert "passed the checks" in result.stdout
    assert "nothing was written" in result.stderr
    assert not ledger().proposals


def test_a_second_round_brings_nothing_new(evolve, script):
    """What was promoted is not suggested again by the same episodes."""
    script(*answers(50, 48))
    evolve()
    again = json.loads(evolve("--json").stdout)
    assert [one["state"] for one in again["proposals"]] in ([], ["active"])
    assert again["before"] == again["after"]


def test_it_says_what_it_looked_at(invoke, as_json):
    """Episodes, runs, and failures by tool and label, for people and for programs."""
    result = invoke("evolve", "--dry-run")
    assert "looked at 3 episodes of the run customers: 3 judged, 3 went wrong" in result.stderr
    assert "loan_rate: 3 of 3 calls: argument mismatch 3" in result.stderr
    seen = as_json("evolve")["looked_at"]
    assert (seen["episodes"], seen["runs"]) == (3, {"customers": 3})
    assert seen["failing"][0]["labels"] == {"argument_mismatch": 3}


def test_one_refusal_is_passed_over_with_the_reason(invoke, script, as_json):
    """Too few failures bring no proposal, and the report says how many there were and are due."""
    (name, *_) = (line for line in (task("lone", 7_000),))
    Path("lone.jsonl").write_text(name + "\n")
    script(*calling(7_000, 50))
    invoke(
        *("eval", "lone.jsonl", "--environment", "bank.py", "--model", "script:a"),
        *("--run", "lone"),
    )
    found = as_json("evolve", "--run", "lone")
    [passed_over] = found["passed_over"]
    assert found["proposals"] == []
    assert (passed_over["tool"], passed_over["parameter"]) == ("loan_rate", "periods")
    assert passed_over["reason"] == "too_few"
    shown = invoke("evolve", "--run", "lone").stdout
    assert "loan_rate.periods: 1 refused call in 1 episode; 2 from 2 episodes" in shown


def test_what_was_decided_is_not_suggested_again(invoke, as_json):
    """A lesson that a person rejected is passed over, with who said what."""
    [proposal] = as_json("evolve")["proposals"]
    rejected = (proposal["proposal_id"], "--reason", "we offer 24 months")
    manager().reject(rejected[0], person=Author(kind="person", name="ada"), reason=rejected[2])
    found = as_json("evolve")
    assert found["proposals"] == []
    assert [one["reason"] for one in found["passed_over"]] == ["already_proposed"]
    assert "we offer 24 months" in found["passed_over"][0]["why"]


def test_what_was_taken_back_stays_out(evolve, invoke, script, as_json):
    """A promotion that a person took back is not made again, though the tool has changed since."""
    script(*answers(50, 48))
    assert evolve().exit_code == 0
    invoke("rollback", "loan_rate", "--yes", "--reason", "customers want 24 months")
    held = manager().library["loan_rate"].definition
    telling = replace(held.description, parameters={"euro": "The sum in euros."})
    change = LibraryChange(proposal_id="by-hand", upserts=(replace(held, description=telling),))
    manager().edit(lambda _: change)
    found = as_json("evolve")
    assert found["proposals"] == []
    assert [one["reason"] for one in found["passed_over"]] == ["already_proposed"]
    assert "customers want 24 months" in found["passed_over"][0]["why"]


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


def test_tasks_that_name_absent_tools(evolve, script, invoke, tmp_path):
    """The others decide, and each row that is left out is told; none that is left is misuse."""
    path = tmp_path / "every.jsonl"
    lines = path.read_text().splitlines()
    lines[0] = lines[0].replace("loan_rate", "loan_price")
    path.write_text("\n".join(lines))
    script(*answers(50, 48))
    told = evolve().stderr
    assert "line 1: expects: the gold call loan_price: there is no tool 'loan_price'" in told
    assert f"1 of {len(lines)} tasks left out: mend these lines, or give the code" in told
    path.write_text("\n".join(line.replace("loan_", "mail_") for line in lines[1:]))
    for command in (("evolve", "--tasks"), ("eval",)):
        none = invoke(*command, "every.jsonl", "--model", "script:a", "--tools", "bank.py")
        assert none.exit_code == 2
        assert (
            "line 1: expects: the gold call mail_rate: there is no tool 'mail_rate'" in none.stderr
        )


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_tool_renamed_in_code(evolve, invoke, script, as_json, tmp_path, decision):
    """What was learned under the old name waits for a person, and either decision is sound."""
    script(*answers(50, 48))
    evolve()
    path = tmp_path / "bank.py"
    path.write_text(path.read_text().replace("def loan_rate", "def monthly_rate"))
    asked = ("run", "hi", "--tools", "bank.py", "--model", "script:a")
    script("Hello.", "Hello.")
    told = invoke(*asked).stderr
    proposal = re.search(r"loan_rate has no code any more.*: agentkit review show (\S+)", told)[1]
    assert "36, 48 or 60" in invoke("review", "show", proposal).stdout
    done = invoke("review", decision, proposal, "--reason", "so be it")
    assert done.exit_code == 0, done.stderr
    assert "review show" not in invoke(*asked).stderr
    assert "specification" in as_json("tools", "show", "loan_rate")
    assert ("specification" in as_json("tools", "show", "monthly_rate")) == (decision == "approve")
    assert as_json("review", "list") == []
    for command in (("check",), ("log", "--verify")):
        assert invoke(*command).exit_code == 0


def test_without_a_store_nothing_is_left_behind(invoke, tmp_path, monkeypatch):
    """A round that can not begin makes no folder, and no lock in one."""
    monkeypatch.delenv("AGENTKIT_STORE")
    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path / "new")
    assert invoke("evolve").exit_code == 2
    assert not list((tmp_path / "new").iterdir())


def test_half_of_the_tasks_decides_where_all_were_asked(invoke, script, as_json):
    """The run that failed and the tasks that decide are the same file: one half teaches."""
    everything = [line for at in range(3) for line in calling(1_000 + at, 50)]
    everything += [line for at in range(HELD_OUT) for line in calling(2_000 + at, 50)]
    script(*everything)
    asked = invoke(
        *("eval", "every.jsonl", "--environment", "bank.py", "--model", "script:a"),
        *("--concurrency", "1", "--run", "all"),
    )
    assert asked.exit_code == 0, asked.stderr
    deciding = (3 + HELD_OUT) // 2
    script(*(line for term in (50, 48) for _ in range(deciding) for line in calling(1, term)))
    found = as_json(
        *("evolve", "--run", "all", "--tasks", "every.jsonl", "--environment", "bank.py"),
        *("--model", "script:a", "--concurrency", "1"),
    )
    assert found["looked_at"]["episodes"] == 3 + HELD_OUT - deciding
    assert found["proposals"][0]["held_out"]["statistics"]["tasks"] == deciding


def test_only_some_steps(invoke, as_json):
    """``--only`` leaves the other parts of a round out, and knows their names."""
    assert as_json("evolve", "--only", "mine, learn")["proposals"] == []
    odd = invoke("evolve", "--only", "guess")
    assert odd.exit_code == 2
    assert "--only has no step 'guess'; there are evidence" in odd.stderr


def test_a_judge_lets_what_waits_go_on(invoke, script, tmp_path, as_json):
    """A proposal that waited for a judge is read by the model of --judge in the next round."""
    path = tmp_path / "bank.py"
    path.write_text(path.read_text().replace('("reads",)', '("destructive",)'))
    fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
    with_code = ("evolve", "--store", fresh, "--tools", "bank.py", "--only", "evidence")
    [waits] = as_json(*with_code)["proposals"]
    assert (waits["state"], waits["why"]) == (
        "proposed",
        "waits for a judge of another model and a person to agree",
    )
    script('{"verdict": "no", "reason": "not so"}', '{"verdict": "no", "reason": "not so"}')
    [judged] = as_json(*with_code, "--judge", "script:a")["proposals"]
    assert (judged["before"], judged["proposal_id"]) == ("proposed", waits["proposal_id"])
    assert judged["why"] != waits["why"]


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
