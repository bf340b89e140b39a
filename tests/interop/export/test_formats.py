"""Tools in the formats of providers, and what these cannot say."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import DefinitionError, UsageError
from agentkit.interop.export import render
from agentkit.testing import sample_library
from agentkit.tools.definition import Signature
from agentkit.tools.sources.json_records import definitions_from_json

SEVERAL = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def one(parameters: dict[str, Any], name: str = "f") -> ToolDefinition:
    """A tool of these parameters."""
    return ToolDefinition.from_schema(name, "Do it.", parameters)


def test_openai_takes_its_tools() -> None:
    """The types of the official SDK accept both forms of every sample tool."""
    openai_types = pytest.importorskip("openai.types")
    from openai.types.responses import FunctionTool

    for entry in render(sample_library(), "openai").value:
        openai_types.FunctionDefinition.model_validate(entry["function"], strict=True)
    for entry in render(sample_library(), "openai-responses").value:
        assert FunctionTool.model_validate(entry, strict=True).strict is False


def test_anthropic_takes_its_tools() -> None:
    """The types of the official SDK accept every sample tool."""
    types = pytest.importorskip("anthropic.types")
    from pydantic import TypeAdapter

    adapter = TypeAdapter(types.ToolParam)
    for entry in render(sample_library(), "anthropic").value:
        adapter.validate_python(entry)
        assert entry.keys() <= types.ToolParam.__annotations__.keys()


def test_mcp_takes_its_listing() -> None:
    """The official types read the listing, and give it back unchanged."""
    types = pytest.importorskip("mcp.types")
    value = render(sample_library(), "mcp").value
    listed = types.ListToolsResult.model_validate(value)

    dumped = listed.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert dumped["tools"] == value["tools"]


@SEVERAL
@given(data=st.data())
def test_any_tool_comes_back_from_mcp(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """MCP keeps the signature of any definition, its effects included."""
    before = data.draw(definitions)
    batch = definitions_from_json(json.dumps(render([before], "mcp").value))

    assert batch.rejected == ()
    (after,) = batch.definitions
    assert after.name == before.name
    assert after.signature.effects == before.signature.effects


def test_names_are_mapped_both_ways() -> None:
    """Names that a provider refuses get others, all different, with the way back."""
    names = ("a.b", "a_b", "7up", "Überweisung")
    library = Library([one({"type": "object"}, name) for name in names])
    for format_name in ("openai", "anthropic", "gemini"):
        rendering = render(library, format_name)
        assert sorted(rendering.names.values()) == sorted(names)
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in rendering.names)
        assert [loss.tool for loss in rendering.losses if loss.part == "name"]


def test_names_that_take_every_shift_of_another_do_not_hold_up_an_export() -> None:
    """Gemini's names begin with a letter or `_`: one that does not gets a free one soon."""
    odd = "1" + "a" * 63
    taken = [("_" * number + odd)[:64] for number in range(1, 65)]
    rendering = render(Library([one({"type": "object"}, name) for name in (odd, *taken)]), "gemini")
    assert sorted(rendering.names.values()) == sorted((odd, *taken))


def test_what_has_no_place_is_told() -> None:
    """Each part that a format drops is a loss of that tool; MCP keeps effects and results."""
    split = sample_library()["bill_split"]
    lost = render([split], "openai").counts()
    assert lost.items() >= {"result": 1, "effects": 1, "examples": 1}.items()
    assert lost.keys() - render([split], "mcp").counts().keys() == {"result", "effects"}
    with pytest.raises(UsageError, match="there is no format 'yaml'"):
        render([split], "yaml")


def test_a_broken_schema_is_named_with_its_tool() -> None:
    """A definition that a renderer cannot read ends the export with an error that names it."""
    bad = Signature(parameters=[1])  # type: ignore[arg-type] # that is the point
    tools = [one({}, "calm"), ToolDefinition(name="odd", signature=bad)]
    with pytest.raises(DefinitionError, match=r"rendered as .* `signature\.parameters`") as refused:
        render(tools, "gemini")
    assert refused.value.tool_name == "odd"
