"""``agentkit tools mine``."""

import json

import pytest

from agentkit import Episode, open_store
from agentkit.episodes import Turn, Verdict
from agentkit.episodes.jsonl import write_episodes
from agentkit.library import LibraryChange
from agentkit.messages import AssistantMessage, ToolCall, ToolResult

SHOP = '''
from agentkit import tool

@tool(effects=["reads"])
def find_customer(name: str) -> dict:
    """Look a customer up by name. One result."""
    return {"id": f"K-{len(name)}", "name": name}

@tool(effects=["reads"])
def list_orders(customer_id: str, page: int = 1) -> list:
    """Orders of a customer, newest first."""
    return [{"order": f"{customer_id}/1", "page": page}]
'''
NAMES = ["Ada Lovelace", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov", "Tony Hoare"]


def episode(number, name, *, passed=None):
    """One conversation: find the customer, then the orders."""
    key = f"K-{number}00"
    calls = (
        ToolCall(call_id="a", name="find_customer", arguments={"name": name}),
        ToolCall(call_id="b", name="list_orders", arguments={"customer_id": key, "page": 1}),
    )
    values = ({"id": key, "name": name}, [{"order": f"{key}/1", "page": 1}])
    turns = tuple(
        Turn(
            message=AssistantMessage(tool_calls=(call,)),
            results=(ToolResult(call_id=call.call_id, name=call.name, status="ok", value=value),),
        )
        for call, value in zip(calls, values, strict=True)
    )
    return Episode(
        episode_id=f"e{number}",
        request=f"What did {name} order?",
        output="One order.",
        turns=turns,
        verdict=None if passed is None else Verdict(passed=passed),
    )


@pytest.fixture
def shop(tmp_path, invoke):
    """A library with the two tools, and their code."""
    path = tmp_path / "shop.py"
    path.write_text(SHOP)
    assert invoke("tools", "add", str(path)).exit_code == 0
    return path


@pytest.fixture
def remembered(shop, store_url):
    """Five episodes in the store that went well."""
    store = open_store(store_url)
    for number, name in enumerate(NAMES):
        store.append(episode(number, name))
    store.close()


def test_it_proposes_and_changes_nothing(invoke, remembered, as_json):
    """A table, the text of each composite, and a library as it was."""
    before = as_json("tools", "list")
    result = invoke("tools", "mine")
    assert result.exit_code == 0
    assert "find_customer_and_list_orders" in result.stdout
    assert 'return list_orders(customer_id=customer["id"], page=page)' in result.stdout
    assert "5 episodes: 10 calls would have been 5" in result.stderr
    assert as_json("tools", "list") == before


def test_it_inserts_on_request(invoke, remembered, as_json):
    """With --insert the proposals go through the Tool Manager, answered from records."""
    result = invoke("tools", "mine", "--insert")
    assert result.exit_code == 0, result.output
    assert "added in library version" in result.stdout
    shown = as_json("tools", "show", "find_customer_and_list_orders")
    assert [child["name"] for child in shown["signature"]["children"]] == [
        "find_customer",
        "list_orders",
    ]
    history = as_json("tools", "history", "find_customer_and_list_orders")
    assert history[0]["evidence"] == [f"e{number}" for number in range(5)]


def test_mining_again_finds_nothing_new(invoke, remembered):
    """The same proposal made twice is merged into what is there, or proposed under its counter."""
    assert invoke("tools", "mine", "--insert").exit_code == 0
    second = invoke("tools", "mine", "--insert")
    assert second.exit_code == 0
    assert "merged into find_customer_and_list_orders" in second.stdout


def test_episodes_come_from_a_file(invoke, shop, tmp_path, as_json):
    """JSON lines are read; broken ones are told and skipped; failed ones do not count."""
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [episode(n, name, passed=n != 4) for n, name in enumerate(NAMES)])
    with path.open("a", encoding="utf-8") as file:
        file.write("{broken\n")
    result = invoke("tools", "mine", "--from", str(path), "--min-support", "2", "--json")
    assert result.exit_code == 0
    assert "line 6" in result.stderr
    told = json.loads(result.stdout)
    assert (told["episodes"], told["calls"], told["calls_after"]) == (4, 8, 4)
    (route,) = told["routes"]
    assert (route["from"], route["path"], route["to"]) == ("find_customer", ["id"], "list_orders")
    assert (route["support"], route["confidence"]) == (4, 1.0)
    all_of_them = as_json("tools", "mine", "--from", str(path), "--failed-too")
    assert all_of_them["episodes"] == 5


def test_proposals_can_be_written_to_files(invoke, remembered, tmp_path):
    """Each proposal is written as text and as a definition that 'tools import' reads."""
    folder = tmp_path / "proposals"
    assert invoke("tools", "mine", "--output", str(folder)).exit_code == 0
    assert (folder / "find_customer_and_list_orders.py").read_text().startswith("def find_cus")
    record = json.loads((folder / "find_customer_and_list_orders.json").read_text())
    assert record["body"]["kind"] == "Program"


def test_nothing_found_is_no_error(invoke, shop, as_json):
    """An empty store gives an empty list."""
    assert as_json("tools", "mine")["composites"] == []
    assert invoke("tools", "mine").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [("--min-support", "1"), ("--max-calls", "1"), ("--from", "absent.jsonl")]
)
def test_misuse(invoke, shop, arguments):
    """Values that make no sense are refused with status 2."""
    assert invoke("tools", "mine", *arguments).exit_code == 2


def test_a_rejected_proposal_is_told(invoke, remembered, store_url):
    """When the Tool Manager rejects a proposal, the reason is shown and the status is 1."""
    store = open_store(store_url)
    library = store.load()
    wrong = library["list_orders"].definition.to_json()
    wrong["signature"]["parameters"]["properties"]["customer_id"] = {"type": "integer"}
    changed = type(library["list_orders"].definition).from_json(wrong)
    change = LibraryChange(proposal_id="break", upserts=(changed,))
    store.commit(change, expected_version=library.version)
    store.close()
    result = invoke("tools", "mine", "--insert")
    assert result.exit_code == 1
    assert "rejected [" in result.stdout
