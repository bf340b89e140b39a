"""``agentkit check``: faults of composites, as a table, as JSON, and mended pins."""

import json
from dataclasses import replace

import pytest

from agentkit import Library, open_store
from agentkit.composites.source import compose
from agentkit.library import LibraryChange
from agentkit.library.pins import pin_faults
from agentkit.testing import primitive_library
from agentkit.tools.definition import Description, Effects

TEXTS = (
    """@composite(examples=[{"arguments": {"net": 100, "rate": 0.5}, "result": 150}])
def gross_total(net: float, rate: float) -> float:
    "A net amount with tax."
    return add(net, mul(net, rate))
""",
    """@composite(examples=[{"arguments": {"net": 100, "rate": 0.5, "rebate": 10}, "result": 140}])
def bill(net: float, rate: float, rebate: float) -> float:
    "What a customer pays."
    return sub(gross_total(net, rate), rebate)
""",
)
CODE = "agentkit.testing.primitives:PRIMITIVES"


@pytest.fixture
def keep(store_url):
    """Puts definitions into the store in one version; ``removals`` take tools out."""

    def put(*definitions, removals=()):
        store = open_store(store_url)
        version = len(store.versions())
        change = LibraryChange(
            proposal_id=f"p{version}", upserts=tuple(definitions), removals=tuple(removals)
        )
        store.commit(change, expected_version=version)
        store.close()

    return put


@pytest.fixture
def shop(keep):
    """The tool bill over gross_total over three primitives, in the store and in memory."""
    library = Library(primitive_library()[name] for name in ("add", "mul", "sub"))
    for text in TEXTS:
        library = library.with_tools([compose(text, library.tools)])
    keep(*library.definitions)
    return library


def reworded(definition):
    """The same tool with other words, so with another digest."""
    return replace(definition, description=Description(summary="Other words."))


def faults(invoke, *arguments):
    """The codes that the command finds, as (tool, code)."""
    result = invoke("check", *arguments, "--json")
    found = json.loads(result.stdout)["faults"]
    assert result.exit_code == (1 if found else 0)
    return [(fault["place"], fault["code"]) for fault in found]


def test_a_sound_library_ends_with_zero(invoke, shop):
    """The verdict and what was read stand on stdout; the untold version is a note."""
    result = invoke("check")
    assert (result.exit_code, result.stderr) == (0, "")
    read, *_, verdict = result.stdout.splitlines()
    assert read == "read  1 version (5 tools in the newest), 0 events, 0 episodes, 2 composites"
    assert verdict == "nothing is wrong"


def test_changed_and_missing_children_are_found(invoke, shop, keep):
    """A line a fault with code and advice; status 1."""
    keep(reworded(shop["mul"].definition), removals=["sub"])
    assert faults(invoke) == [("gross_total", "changed_child"), ("bill", "missing_child")]
    result = invoke("check")
    assert result.exit_code == 1
    assert "'gross_total' was made for 'mul'" in result.stdout
    assert "agentkit log --tool mul" in " ".join(result.stdout.split())
    assert result.stdout.endswith("\n2 faults\n")
    assert faults(invoke, "bill") == [("bill", "missing_child")]


def test_repin_moves_pins_up_to_the_top(invoke, shop, keep, store_url):
    """Composites above are pinned to the new digests in one version; then all is sound."""
    keep(reworded(shop["mul"].definition))
    result = invoke("check", "--repin")
    assert result.exit_code == 0
    assert "pinned anew: gross_total, bill; library version 3" in result.stderr
    store = open_store(store_url)
    assert pin_faults(store.load()) == ()
    assert store.load().version == 3
    store.close()
    again = invoke("check", "--repin")
    assert "pinned anew" not in again.stderr
    assert again.stdout.endswith("nothing is wrong\n")
    assert "pin gross_total, bill to" in invoke("log", "--tool", "bill").stdout


def test_repin_joins_effects_anew(invoke, shop, keep, store_url):
    """A child that turned destructive makes what is above it destructive."""
    mul = shop["mul"].definition
    keep(replace(mul, signature=replace(mul.signature, effects=Effects.of(["destructive"]))))
    assert invoke("check", "--repin").exit_code == 0
    store = open_store(store_url)
    assert store.load()["bill"].definition.signature.effects.destructive is True
    store.close()


def test_an_unknown_name_is_answered_with_the_nearest(invoke, shop):
    """As every command does."""
    result = invoke("check", "bil")
    assert result.exit_code == 2
    assert "Did you mean 'bill'?" in result.stderr


def test_json_has_all_that_was_looked_at(invoke, as_json, shop):
    """For programs: what was read and pinned anew, faults, and notes."""
    found = as_json("check")
    assert len(found.pop("notes")) == 1  # no event tells of the version
    assert found == {
        "is_sound": True,
        "library_version": 1,
        "faults": [],
        "store": {"versions": 1, "tools": 5, "events": 0, "episodes": 0},
        "composites": 2,
        "repinned": [],
    }
