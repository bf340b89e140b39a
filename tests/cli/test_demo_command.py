"""``agentkit demo``: the whole loop with a double that reads the schema."""

import shutil
import sys
from pathlib import Path

import pytest

from agentkit.cli.demo.tools import TOOLS
from agentkit_bench.bfcl import RELEASE, bfcl_files

SAMPLE = Path(__file__).parents[2] / "plugins/agentkit-bench/tests/sample_bfcl"
READER = '''
import re
from agentkit.messages import ToolCall
from agentkit.testing import FunctionModel

SPOKEN = {
    "three years": (3, 36), "four years": (4, 48), "five years": (5, 60),
    "small": ("small", "small-36"), "medium": ("medium", "medium-40"), "large": ("large", "large-44"),
    "first": ("first", "1st"), "second": ("second", "2nd"), "third": ("third", "3rd"),
    "fourth": ("fourth", "4th"), "red": ("red", "red-1"), "green": ("green", "green-2"),
    "blue": ("blue", "blue-3"), "yellow": ("yellow", "yellow-4"),
    **{f"{n} percent": (float(n), n / 100) for n in (10, 15, 20, 25, 30, 40)},
}

def answer(request):
    """What the question says, in the words of the schema where that has any."""
    text = request.messages[-1].text
    properties = request.tools[0].parameters_schema["properties"]
    plain, hidden = properties
    number = re.search(r"\\d{2,}(?! percent)\\b", text)[0]
    said, learned = next(both for words, both in SPOKEN.items() if words in text)
    has_learned = {"enum", "maximum"} & properties[hidden].keys()
    arguments = {plain: int(number), hidden: learned if has_learned else said}
    return [ToolCall(call_id="1", name=request.tools[0].name, arguments=arguments)]

def open_reader(name):
    return FunctionModel(answer, name="reader")
'''


@pytest.fixture(autouse=True)
def reader(invoke, tmp_path, monkeypatch):
    """The double as a plugin, and a small catalogue in the cache as if it had been fetched."""
    catalogue = shutil.copytree(SAMPLE, tmp_path / "cache" / f"bfcl-{RELEASE}")
    for name in bfcl_files():
        (catalogue / name).touch()
    info = tmp_path / "plugins" / "agentkit_reader-1.0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "agentkit_reader.py").write_text(READER)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agentkit-reader\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[agentkit.models]\nreader = agentkit_reader:open_reader\n"
    )
    monkeypatch.syspath_prepend(str(info.parent))
    yield
    sys.modules.pop("agentkit_reader", None)


def test_the_demo_shows_the_whole_loop(invoke):
    """Refusals, promotions, a diff, the gain, the export, the rollback, a table and what is next."""
    result = invoke("demo", "--model", "reader:a")
    assert result.exit_code == 0, result.stderr
    steps = [
        "13 tools in one library",
        "1. loan_rate",
        "periods must be one of 36, 48, 60, got",
        "0 of 30 right",
        "promoted  order_shirts",
        "+ enum: [36, 48, 60]",
        "30 of 30 right",
        "agentkit export --format openai",
        "agentkit rollback",
        "3 of 3 answers are the old ones again",
        "95 % interval",
        "agentkit init",
        "agentkit eval",
        "agentkit evolve",
    ]
    places = [result.stdout.find(step) for step in steps]
    assert -1 not in places, steps[places.index(-1)]
    assert places == sorted(places)


def test_json_is_the_whole_report(as_json, tmp_path):
    """--json prints what was measured and nothing else, and the store is where it says."""
    report = as_json("demo", "--model", "reader:a", "--questions", "10", "--seed", "4")
    assert (report["before"]["right"], report["before"]["of"]) == (0, 10)
    assert (report["after"]["right"], report["after"]["of"]) == (10, 10)
    assert report["before"]["interval"]["high"] < report["after"]["interval"]["low"]
    assert report["difference"]["value"] == 1
    assert sorted(report["promoted"]) == sorted(one.name for one in TOOLS)
    assert report["after"]["library_version"] == report["library_version"]
    assert report["rolled_back"]["right"] == 0
    assert (report["seed"], report["model"]) == (4, "reader")
    assert report["seconds"] > 0
    assert report["store"] == f"sqlite:///{tmp_path / 'cache' / 'demo.db'}"


def test_a_store_in_use_is_refused(invoke, store_url, tools_file):
    """A named store must be empty, or what it learned earlier would count as gained."""
    assert invoke("tools", "add", str(tools_file)).exit_code == 0
    result = invoke("demo", "--model", "reader:a", "--store", store_url)
    assert result.exit_code == 2
    assert "begins with an empty store" in result.stderr
