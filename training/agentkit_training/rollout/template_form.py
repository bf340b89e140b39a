"""Messages and tools in the form that chat templates read: OpenAI's, with arguments as objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from agentkit.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from agentkit.models.chat_completions import encode_tool
from agentkit.models.wire import MALFORMED_KEY, WireNames
from agentkit.tools.definition import ToolDefinition

TemplateData: TypeAlias = dict[str, Any]
"""A message or a tool, as Jinja walks through it key by key."""

PROBE = ToolDefinition.from_schema(
    "probe_the_template",
    "Look whether the template writes this.",
    {"type": "object", "properties": {"probed": {"type": "string"}}},
)
"""A tool that is shown to a template to see whether it has a place for tools."""

PROBED_CALL, PROBED_RESULT = "probed_call", "probed_result"

_PROBING_CALL = ToolCall(call_id="call_0001", name=PROBE.name, arguments={"probed": PROBED_CALL})

PROBING: tuple[Message, ...] = (
    UserMessage(text="Probe."),
    AssistantMessage(tool_calls=(_PROBING_CALL,)),
    ToolMessage(call_id="call_0001", name=PROBE.name, text=PROBED_RESULT),
)
"""A conversation with that tool."""


def template_tools(tools: Sequence[ToolDefinition], names: WireNames) -> list[TemplateData]:
    """Tools as the runtime sends them to servers, which give them to the template."""
    return [encode_tool(tool, names.encode(tool.name)) for tool in tools]


def template_message(message: Message, names: WireNames) -> TemplateData:
    """One message.

    Servers hand call arguments to a template as objects, and so does this; a call whose arguments
    were not JSON carries their text under ``malformed_arguments``.
    """
    spoken: TemplateData = {"role": message.role, "content": message.text}
    if isinstance(message, AssistantMessage) and message.tool_calls:
        spoken["tool_calls"] = [_call(one, names) for one in message.tool_calls]
    elif isinstance(message, ToolMessage):
        spoken |= {"name": names.encode(message.name), "tool_call_id": message.call_id}
    return spoken


def _call(call: ToolCall, names: WireNames) -> TemplateData:
    arguments = call.arguments if call.malformed is None else {MALFORMED_KEY: call.malformed}
    function = {"name": names.encode(call.name), "arguments": _plain(arguments)}
    return {"id": call.call_id, "type": "function", "function": function}


def _plain(value: Any) -> Any:
    """Lists and dicts in the place of other containers, which Jinja can not write as JSON."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
