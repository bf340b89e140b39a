"""Rows of a file that are no tasks are told: in the log of a run, and by a dry run."""

from __future__ import annotations

import json

import pytest

from agentkit_training.cli.show import show_dry_run
from agentkit_training.config.jobs import SftConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.jobs.sft import sft_job

CONFIG = """\
policy: {{weights: tiny, precision: fp32, answer_tokens: 8}}
tasks: {{source: {source}, environment: {tools}, shares: {{train: 1, validation: 0, test: 0}}}}
asking: {{max_steps: 2}}
"""
SFT = "sft: {batch_size: 4}\n"
TOOLS = '''\
from agentkit import tool


@tool
def double(number: int) -> int:
    """Twice a number.

    Args:
        number: Any.
    """
    return 2 * number
'''


def row(at, **changes):
    calls = [{"name": "double", "arguments": {"number": at}}]
    return {"id": f"{at}", "request": f"Twice {at}?", "tools": ["double"]} | {
        "expects": {"calls": calls},
        **changes,
    }


@pytest.fixture
def config(tmp_path):
    """A configuration over ten rows, four of which are no tasks, for two reasons."""
    unknown = {"tools": ["triple"]}
    rows = [row(at) for at in range(6)]
    rows += [row(6, **unknown), row(7, **unknown), row(8, **unknown), row(9, expects={"is": 1})]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    (tmp_path / "tools.py").write_text(TOOLS)
    return CONFIG.format(source=tmp_path / "rows.jsonl", tools=tmp_path / "tools.py")


def told(run):
    """The notes of the log about rows."""
    return [note for one in run.records() for note in one.notes if "left out" in note]


def check(notes):
    (note,) = notes
    assert note.startswith("4 of 10 rows are left out: ")
    assert "rows.jsonl, line 7" in note
    assert "rows.jsonl, line 10" in note
    assert note.endswith("; and 2 more")


def test_fine_tuning_notes_the_rows_once(config, tmp_path):
    """One note has the count, a row for each reason, and how many more; resuming adds none."""
    wanted = parse_config(config + SFT, SftConfig)
    run = sft_job(wanted, tmp_path / "run")
    check(told(run))
    assert next(run.records()).phase == "tasks"
    check(told(sft_job(wanted, tmp_path / "run", resumes=True)))


def test_a_dry_run_tells_how_many_rows_there_are_beside_those_named(config, capsys):
    """The same words as in the log."""
    wanted = parse_config(config + SFT, SftConfig)
    show_dry_run(wanted, processes=1)
    words = " ".join(capsys.readouterr().out.split())  # lines are broken where the terminal ends
    _, count, after = words.partition("4 of 10")
    check([f"{count}{after.partition('more.')[0]}more"])
