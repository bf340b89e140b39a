"""``agentkit bench language``."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from agentkit import ToolDefinition
from agentkit.cli.main import main
from agentkit.library import LibraryChange
from agentkit.library.opening import open_store
from agentkit.tools.definition import Description


@pytest.fixture
def store_url(tmp_path):
    """A store with one tool of two revisions."""
    url = f"sqlite:///{tmp_path / 'library.db'}"
    store = open_store(url)
    for version, text in enumerate(("List cars.", "List used cars.")):
        cars = replace(ToolDefinition(name="cars"), description=Description(summary=text))
        change = LibraryChange(proposal_id=text, upserts=(cars,))
        store.commit(change, expected_version=version)
    store.close()
    return url


def report(*arguments, columns="120"):
    """Run the command, on lines of some width."""
    return CliRunner(env={"COLUMNS": columns}).invoke(main, ["bench", "language", *arguments])


def test_numbers_go_to_stdout_and_methods_to_stderr(store_url):
    """The table names the tool; how numbers were found is said beside it."""
    done = report("--store", store_url)
    assert done.exit_code == 0, done.output
    assert "cars" in done.stdout
    assert "Size of edits by round" in done.stdout
    assert "Likeness:" in done.stderr


@pytest.mark.parametrize("columns", ["20", "40", "80", "120"])
def test_no_number_is_broken_on_a_narrow_screen(store_url, columns):
    """The row of a tool stands on one line, however narrow the screen; titles break at blanks."""
    shown = report("--store", store_url, columns=columns).stdout
    row = next(line for line in shown.splitlines() if line.startswith("cars"))
    assert row.split()[:5] == ["cars", "1", "0.33", "0.82", "2"]


def test_one_tool_is_shown_in_words(store_url):
    """With a name, the revisions and the difference in words follow."""
    done = report("--store", store_url, "--tool", "cars")
    assert "List{+ used+} cars." in done.stdout


def test_json_is_the_report(store_url):
    """One document, with the format's version."""
    record = json.loads(report("--store", store_url, "--json").stdout)
    assert record["format"] == 1
    assert record["tools"][0]["tool_name"] == "cars"


def test_pages_are_written(store_url, tmp_path):
    """HTML and Markdown, by the names of the files."""
    page, text = tmp_path / "words.html", tmp_path / "words.md"
    done = report("--store", store_url, "--report", str(page), "--report", str(text))
    assert done.exit_code == 0, done.output
    assert "<ins>" in page.read_text(encoding="utf-8")
    assert "{+ used+}" in text.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--report", "words.pdf"], 2, "neither"),
        (["--report", "no/such/folder/words.md"], 2, "no folder"),
        (["--tool", "vans"], 2, "no tool named 'vans'"),
    ],
)
def test_what_can_not_work_is_said(store_url, arguments, status, said):
    """A wrong file name is misuse, an unknown tool is a failure."""
    done = report("--store", store_url, *arguments)
    assert done.exit_code == status
    assert said in done.stderr


def test_missing_store_is_said(tmp_path):
    """Nothing is made where there is nothing to read."""
    done = report("--store", f"sqlite:///{tmp_path / 'none.db'}")
    assert done.exit_code == 2
    assert "no store" in done.stderr
