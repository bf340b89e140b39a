"""What the tools of OpenAI and Anthropic have in common: a name, a text and a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agentkit.interop.export.renderers.rendering import (
    Loss,
    Rendering,
    definitions_of,
    lost_parts,
    renamed,
)
from agentkit.interop.export.renderers.saying import Notes
from agentkit.interop.export.renderers.strict import (
    ANTHROPIC,
    OPENAI,
    StrictMode,
    StrictRequest,
    strict_schema,
)
from agentkit.library.library import Library
from agentkit.models.chat_completions import encode_tool
from agentkit.models.wire import WireNames
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.mcp_record import tool_record
from agentkit.tools.tool import Tool


def render_anthropic(
    tools: Library | Iterable[Tool | ToolDefinition], *, strict: bool = False
) -> Rendering:
    """The field ``tools`` of a message.

    Args:
        tools: What to render.
        strict: Ask for ``strict`` where a tool's schema can be said in it. Optional parameters may
            stay optional; bounds of numbers and lengths are told in words. Of one request 20 tools
            are strict at most, the first.

    Example:
        >>> from agentkit.testing import sample_library
        >>> rendering = render_anthropic([sample_library()["bill_split"]])
        >>> list(rendering.value[0])
        ['name', 'description', 'input_schema']
    """
    return render_provider(tools, _as_anthropic, mode=ANTHROPIC if strict else None)


def _as_anthropic(function: dict[str, Any], is_strict: bool) -> dict[str, Any]:  # noqa: FBT001 - a form
    record = {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }
    return record | ({"strict": True} if is_strict else {})


def render_openai_responses(
    tools: Library | Iterable[Tool | ToolDefinition], *, strict: bool = False
) -> Rendering:
    """The field ``tools`` of a response: flat, and each says whether it is strict.

    Responses are strict unless told otherwise, so that ``strict`` is always written.

    Args:
        tools: What to render.
        strict: As for ``render_openai_chat``.
    """
    return render_provider(tools, _as_response_tool, mode=OPENAI if strict else None)


def _as_response_tool(function: dict[str, Any], is_strict: bool) -> dict[str, Any]:  # noqa: FBT001 - a form
    return {"type": "function", **function, "strict": is_strict}


def render_openai_chat(
    tools: Library | Iterable[Tool | ToolDefinition], *, strict: bool = False
) -> Rendering:
    """The field ``tools`` of a chat completion.

    Args:
        tools: What to render.
        strict: Ask for ``strict`` where a tool's schema can be said in it. Answers then always fit
            the schema; give them to ``Rendering.call``, which takes the nulls out.

    Example:
        >>> from agentkit.testing import sample_library
        >>> rendering = render_openai_chat([sample_library()["bill_split"]], strict=True)
        >>> function = rendering.value[0]["function"]
        >>> function["strict"], function["parameters"]["required"]
        (True, ['amount', 'people', 'tip_percent'])
        >>> rendering.call("bill_split", {"amount": 9, "people": 3, "tip_percent": None})
        ('bill_split', {'amount': 9, 'people': 3})
    """
    return render_provider(tools, _as_function, mode=OPENAI if strict else None)


def _as_function(function: dict[str, Any], is_strict: bool) -> dict[str, Any]:  # noqa: FBT001 - a form
    return {"type": "function", "function": {**function, **({"strict": True} if is_strict else {})}}


Wrap = Callable[[dict[str, Any], bool], dict[str, Any]]
"""Puts ``{name, description, parameters}`` into a provider's form; with whether it is strict."""


def render_provider(
    tools: Library | Iterable[Tool | ToolDefinition],
    wrap: Wrap,
    *,
    mode: StrictMode | None,
) -> Rendering:
    """Tools as a list in a provider's form.

    The words and the schema are those that our own adapters send (``encode_tool``).

    Args:
        tools: What to render.
        wrap: The provider's form.
        mode: Its strict mode; None to send schemas as they are. Where it bounds what one request
            holds, the first tools are strict, as many as there is place for.
    """
    definitions = definitions_of(tools)
    names = WireNames(definition.name for definition in definitions)
    value: list[dict[str, Any]] = []
    losses: list[Loss] = []
    request = None if mode is None else StrictRequest(mode=mode)
    for definition in definitions:
        name = names.encode(definition.name)
        function: dict[str, Any] = encode_tool(definition, name)["function"]
        losses += [*renamed(definition, name), *lost_parts(definition)]
        schema = None
        if request is not None:
            notes = Notes(tool=definition.name)
            schema = _strict(definition, request, notes)
            losses += notes.losses
        if schema is not None:
            function["parameters"] = schema
        value.append(wrap(function, schema is not None))
    return Rendering(
        value=value,
        losses=tuple(losses),
        names={names.encode(one.name): one.name for one in definitions},
        schemas={names.encode(one.name): one.signature.parameters for one in definitions},
    )


def _strict(
    definition: ToolDefinition, request: StrictRequest, notes: Notes
) -> dict[str, Any] | None:
    """The strict schema of a tool; None where it has none, or the request has no place for it."""
    told = Notes(tool=definition.name)
    schema = strict_schema(definition, request.mode, told)
    full = "" if schema is None else request.takes(schema)
    if full:
        notes.note("strict", "", "dropped", f"sent without strict: {full}")
        return None
    notes.losses += told.losses
    return schema


def render_mcp(tools: Library | Iterable[Tool | ToolDefinition]) -> Rendering:
    """The result of ``tools/list``, in the very form in which ``agentkit serve --mcp`` sends it.

    Names stay as they are: the protocol recommends letters, digits, ``_``, ``-`` and ``.``, and
    demands nothing. Effects become hints, and stand exactly under ``_meta``.

    Args:
        tools: What to render.

    Example:
        >>> from agentkit.testing import sample_library
        >>> rendering = render_mcp([sample_library()["bill_split"]])
        >>> rendering.value["tools"][0]["annotations"]["readOnlyHint"]
        True
    """
    definitions = definitions_of(tools)
    return Rendering(
        value={"tools": [tool_record(definition) for definition in definitions]},
        losses=tuple(
            loss
            for definition in definitions
            for loss in lost_parts(definition, kept=("result", "effects"))
        ),
        names={definition.name: definition.name for definition in definitions},
        schemas={one.name: one.signature.parameters for one in definitions},
    )


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def render_json_schema(tools: Library | Iterable[Tool | ToolDefinition]) -> Rendering:
    """The schema of the arguments of each tool, by its name: whole documents, words included.

    Args:
        tools: What to render.

    Example:
        >>> from agentkit.testing import sample_library
        >>> schema = render_json_schema([sample_library()["bill_split"]]).value["bill_split"]
        >>> schema["title"], schema["type"]
        ('bill_split', 'object')
    """
    definitions = definitions_of(tools)
    value = {
        definition.name: {
            "$schema": DIALECT,
            "title": definition.name,
            "description": definition.text,
            **definition.parameters_schema,
        }
        for definition in definitions
    }
    return Rendering(
        value=value,
        losses=tuple(loss for definition in definitions for loss in lost_parts(definition)),
        names={definition.name: definition.name for definition in definitions},
        schemas={one.name: one.signature.parameters for one in definitions},
    )
