"""Stories of commands, one line each: what a person types, the exit status, and what is printed."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import closing

import pytest
from support.histories import HistoryStep, all_told, write_history

from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange

TOOLS = '''
from agentkit import tool
from agentkit.tools.definition import Effects

PURE = Effects(reads=False, writes=False)

@tool(effects=PURE, examples=[{"arguments": {"a": 1, "b": 2}, "result": 3}])
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b

@tool(effects=PURE, examples=[{"arguments": {"a": 2, "b": 3}, "result": 6}])
def mul(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b
'''
TOTAL = '''\
@composite(examples=[{"arguments": {"price": 4, "count": 3, "fee": 2}, "result": 14}])
def order_total(price: float, count: int, fee: float) -> float:
    """What an order costs with its fee."""
    return add(mul(price, count), fee)
'''
SICK = {
    "name": "find_city",
    "description": "<p>Find a <b>city</b> by its name.</p>",
    "inputSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "The name."}},
        "oneOf": [{"required": ["name"]}],
    },
}
HEALTHY = {
    "name": "send_mail",
    "description": "Send a mail to a person, with a subject.",
    "inputSchema": {
        "type": "object",
        "properties": {"to": {"type": "string", "description": "Address of the reader."}},
    },
    "outputSchema": {"type": "string"},
}
HARBOUR = [
    {"name": "tide_table", "description": "High and low water at a harbour."},
    {"name": "ferry_times", "description": "Departures of the ferry between harbours."},
    {"name": "postage", "description": "Price of a stamp."},
]


@pytest.fixture
def play(invoke):
    """Types lines one after the other; each says its exit status, and words that it prints."""

    def run(*lines):
        for line, status, *words in lines:
            result = invoke(*shlex.split(line))
            assert result.exit_code == status, f"{line}: {result.output}"
            told = " ".join(result.output.split())
            assert [one for one in words if one not in told] == [], f"{line}: {result.output}"

    return run


def test_tools_are_found(play, as_json, tmp_path):
    """Search ranks and marks what is offered, and says why."""
    (tmp_path / "tools.json").write_text(json.dumps(HARBOUR))
    play(
        ("search ferry", 2, "there is no store"),
        ("tools import tools.json", 0, "3 added; library version 1"),
        ("search 'When does the ferry leave?'", 0, "1 * ferry_times", "library version 1"),
        ("search ferry --explain", 0, "stage tools left tokens CPU ms", "offer, as schemas"),
        ("search ferry --explain", 0, "of which", "shares ferry"),
    )
    found = as_json("search", "low water at the harbour", "--limit", "1")
    assert [hit["name"] for hit in found["hits"]] == ["tide_table"]
    assert "tide_table" in found["offered"]


def test_a_catalogue_is_examined(play, tmp_path):
    """The doctor needs no library, shows one check in full, and fails on errors alone."""
    for name, tool in (("sick", SICK), ("healthy", HEALTHY)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"tools": [tool]}))
    play(
        ("tools doctor sick.json", 0, "1 tool, ", "errors refused_root", "warnings"),
        ("tools doctor sick.json --check refused_root", 0, "why: ", "do: ", "find_city"),
        ("tools doctor sick.json --exit-code", 1),
        ("tools doctor healthy.json --exit-code", 0),
    )
    assert not list(tmp_path.glob("*.db"))


def test_a_composite_is_added_merged_or_rejected(play, invoke, as_json, tmp_path):
    """Its text says what happens; a dry run writes nothing; problems come with a caret."""
    (tmp_path / "calculator.py").write_text(TOOLS)
    twin = TOTAL.replace("order_total", "bill").replace("price", "each")
    texts = {
        "order": TOTAL,
        "wrong": TOTAL.replace("14", "15"),
        "twin": twin.replace('4, "count', '5, "count').replace("14", "17"),
        "odd": TOTAL.replace("mul(", "multiply("),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    typed = "tools add --tools calculator.py --composite"
    play(
        ("tools add calculator.py", 0, "2 added; library version 1"),
        (f"{typed} wrong.py --dry-run", 1, "rejected"),
        (f"{typed} order.py --dry-run", 0, "dry run: order_total added"),
        ("tools show order_total", 2, "order_total"),
        (f"{typed} order.py", 0, "order_total added: library version 2, depth 1, saves 1 call"),
        ("log --tool order_total", 0, "compose order.py"),
        (f"{typed} twin.py", 0, "merged into order_total, it is the same program: 1 worked call"),
    )
    lines = invoke(*shlex.split(f"{typed} odd.py")).stderr.splitlines()
    assert lines[0].startswith("rejected [unknown_tool]: ")
    assert lines[1].startswith("odd.py:4:16: ")
    assert lines[3] == " " * 19 + "^"
    play(
        ("tools show order_total", 0, "depth 1", "saves 1 call", "calls add", "def order_total("),
        ("tools show add", 0, "used by order_total"),
        ("tools graph", 0, "flowchart TD", 'n0["order_total"]', "n0 --> n1"),
        ("tools graph add", 0, 'n0(["add"])'),
    )
    drawn = as_json("tools", "graph", "order_total")
    assert drawn["edges"][0] == {"parent": "order_total", "child": "add"}


def test_names_can_not_break_out_of_a_label(invoke, store_url):
    """Quotes, brackets, backslashes and markup in a name are text in Mermaid."""
    name = 'a"]; b --> c <img src=x> \\" \\N &amp; `#`'
    with closing(open_store(store_url)) as store:
        change = LibraryChange(proposal_id="p", upserts=(ToolDefinition(name=name),))
        store.commit(change, expected_version=0)
    label = re.search(r'n0\(\["(.*)"\]\)', invoke("tools", "graph", name).stdout)[1]
    plain = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), label)
    assert plain.replace(" ", "") == name.replace(" ", "")
    assert not set('"<>`') & set(label)


def test_a_store_is_copied_compared_and_checked(play, invoke, store_url, tmp_path):
    """A copy is the same, the first differences are named, and damage is told with its place."""
    steps = [
        HistoryStep(wishes={"a": ("one", ""), "b": ("two", "")}, events=2, episodes=3),
        HistoryStep(wishes={"a": ("three", "")}, events=1),
    ]
    target = f"sqlite:///{tmp_path / 'target.db'}"
    with closing(open_store(store_url)) as store:
        write_history(store, steps)
        before = all_told(store)
    told = "2 versions, 3 events, 3 episodes"
    play((f"store copy {store_url} {target}", 0, f"copied {told}", f"the same {told}"))
    with closing(open_store(target)) as copied:
        assert all_told(copied) == before
        write_history(copied, [HistoryStep(wishes={"c": ("", "")})], name="theirs")
    with closing(open_store(store_url)) as store:
        write_history(store, [HistoryStep(wishes={"c": ("", "")})], name="ours")
    other = "versions version 3: proposal"
    play((f"store copy --dry-run {store_url} {target}", 1, other))
    with closing(sqlite3.connect(tmp_path / "library.db")) as raw, raw:
        raw.execute("UPDATE definitions SET body = replace(body, 'two', 'evil')")
        raw.execute("UPDATE episodes SET body = '{' WHERE sequence = 2")
    play(("check", 1, "changed where it lies", "episodes: reading ends here", "BACKUP NEW"))
    found = json.loads(invoke("check", "--json").stdout)["faults"]
    assert {one["code"] for one in found} == {"damage"}


def test_a_change_is_taken_back(play, as_json, store_url, tmp_path):
    """What 'tools add' wrote goes as one change; an older one waits for the later one."""
    (tmp_path / "shop.py").write_text(TOOLS)
    play(("tools add shop.py", 0))
    (tmp_path / "shop.py").write_text(TOOLS.replace("Add two", "Sum two"))
    with closing(open_store(store_url)) as store:
        first = store.events()[0].facts["change"]
    play(
        ("tools add shop.py --on-conflict replace", 0, "1 replaced"),
        (f"rollback {first}", 2, "changed again by library version 2"),
        ("rollback", 0, "taken back: library version 2 (add)"),
        ("rollback --yes", 0, "taken back: library version 1 (add, mul)"),
        ("rollback", 2, "nothing is left to take back"),
        ("log --verify", 0, "4 events: the log is intact"),
    )
    assert as_json("tools", "list") == []


WEIGHTS = """
from pathlib import Path
from types import SimpleNamespace
import os

TINY = SimpleNamespace(name="tiny", summary="Small.", size_bytes=2_000_000, licence="MIT")

def available():
    return [TINY]

def installed():
    return [TINY] if path("tiny").exists() else []

def path(name):
    return Path(os.environ["AGENTKIT_CACHE"]) / f"{name}.gguf"

def install(name, progress):
    path(name).parent.mkdir(parents=True, exist_ok=True)
    path(name).write_text("weights")
    progress(1, 1)
"""


def test_weights_are_installed_and_listed(play, as_json, tmp_path, monkeypatch):
    """Install prints the path, and the list says what is there."""
    info = tmp_path / "site" / "tiny_weights-1.0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "tiny_weights.py").write_text(WEIGHTS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agentkit.weights]\na-tiny = tiny_weights\n")
    monkeypatch.syspath_prepend(str(info.parent))
    path = str(tmp_path / "cache" / "tiny.gguf")
    assert {row["name"]: row["path"] for row in as_json("models")}["tiny"] is None
    play(
        ("models install tiny", 0, "100%", path),
        ("models install tny", 2, "no weights are named 'tny'", "Did you mean 'tiny'?"),
        ("models", 0, "tiny 2 MIT Small."),
    )
    assert as_json("models")[0]["path"] == path
