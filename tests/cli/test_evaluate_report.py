"""Evaluation reports on a terminal."""

from dataclasses import replace

import pytest

from agentkit.cli.evaluate_report import print_comparison, print_evaluation
from agentkit.episodes import Diagnosis, Episode, TurnDiagnosis, Verdict
from agentkit.evaluation.results import compare, summarise


def episodes(run, passed):
    """One episode for each task of a run; ``passed`` by task."""
    for task, one in passed.items():
        label = "pass" if one else "argument_mismatch"
        turn = TurnDiagnosis(
            turn=0, label=label, tool="" if one else "lamp", parameter="" if one else "room"
        )
        yield Episode(
            episode_id=f"{run}-{task}",
            request="Switch the lamp off.",
            model="small",
            verdict=Verdict(passed=one, score=float(one)),
            diagnosis=Diagnosis(label=label, turns=(turn,)),
            metadata={
                "run": run,
                "benchmark": "lamps",
                "task": task,
                "category": "a category with a rather long name" if task < "m" else "short",
                "attempt": "0",
                "user_turn": "0",
                "user_turns": "1",
                "ends": "true",
                "settings": f'{{"refine":"{run}"}}',
            },
        )


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")


def test_a_report_fits_the_terminal(capsys):
    """Numbers, categories, labels and the worst tools stand on lines of 80 columns."""
    report = summarise(episodes("none", {"a": True, "b": False, "z": True}), planned=4)
    print_evaluation(report)
    printed = capsys.readouterr()
    assert max(map(len, printed.out.splitlines())) <= 80
    assert "66.7%" in printed.out
    assert "argument mismatch" in printed.out
    assert "lamp" in printed.out
    assert "3 of 4 planned attempts" in printed.err


def test_tools_seen_once_are_not_listed_as_worst(capsys):
    """With one episode each no tool is worse than another, and that is all that is said."""
    told = [
        replace(
            one,
            diagnosis=Diagnosis(
                label="argument_mismatch",
                turns=(TurnDiagnosis(turn=0, label="argument_mismatch", tool=one.episode_id),),
            ),
        )
        for one in episodes("r", {"a": False, "b": False})
    ]
    print_evaluation(summarise(told))
    printed = " ".join(capsys.readouterr().out.split())
    assert "Worst tools" in printed


def test_a_comparison_fits_the_terminal(capsys):
    """Both runs, their difference and what they differ in."""
    a = summarise(episodes("none", {"a": True, "b": False, "z": True}))
    b = summarise(episodes("adaptive", {"a": True, "b": True, "y": False}))
    print_comparison(compare(a, b))
    printed = capsys.readouterr()
    assert max(map(len, printed.out.splitlines())) <= 80
    assert "+50.0" in printed.out
    assert '"adaptive"' in printed.out
    assert "finished it: 2 tasks" in printed.err


def test_an_empty_report_is_short(capsys):
    """Nothing was run: no table, no exception."""
    print_evaluation(summarise([]))
    assert "no attempt counts" in capsys.readouterr().out
