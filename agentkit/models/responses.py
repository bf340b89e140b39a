"""``openai-responses:MODEL``: OpenAI's Responses API, without an SDK.

Where it differs from chat completions: a conversation is a list of items, among them reasoning,
which goes back with the next request; results of tools can hold images; and the search for tools is
a part of the protocol. Our retriever answers that search: a request carries the namespaces' names
alone, and what was found stands in the result of the search, behind everything that the prompt
cache holds.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set as AbstractSet
from typing import Any

from agentkit.errors import ModelResponseError
from agentkit.media import Media, pieces
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    ProviderItem,
    ToolCall,
    ToolMessage,
    Usage,
    clean,
)
from agentkit.models.base import (
    SEARCH_TOOL,
    Delta,
    FinishReason,
    ModelRequest,
    ModelResponse,
    ReasoningDelta,
    TextDelta,
    described_tool,
)
from agentkit.models.http_model import Exchange, HttpModel
from agentkit.models.openai_compatible import (
    OPENAI_URL,
    account_headers,
    api_endpoint,
    api_headers,
    endpoint_url,
    media_by_name,
    name_and_url,
)
from agentkit.models.prices import Prices
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.transport import open_transport
from agentkit.models.wire import (
    MAX_CALLS_READ,
    CallDecoder,
    WireNames,
    checked_extra,
    described_output,
    encode_arguments,
    encode_body,
    follows_protocol,
    not_json,
    object_of,
    sent_arguments,
    text_of,
    with_distinct_ids,
)
from agentkit.tools.definition import ToolDefinition

PROTOCOL = "openai-responses"
"""Marks the provider items that are this protocol's."""

LARGEST_NAMESPACE = 9
"""Most functions in one namespace: OpenAI asks for fewer than ten."""

_CAN_SEARCH = re.compile(r"\bgpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)")
_OTHERS = "other_tools"
_ACCEPTABLE = WireNames(())
_MOST_LISTED = 64
_KEPT = frozenset({"reasoning", "compaction"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_UNANSWERED = frozenset({"queued", "in_progress", "cancelled", "failed"})
_REASONING = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_INCOMPLETE: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}


def openai_responses_model(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    retry: RetryPolicy = DEFAULT_RETRY,
    timeout_seconds: float = 60.0,
    prices: Prices | None = None,
    accepts: AbstractSet[str] | Callable[[], AbstractSet[str]] | None = None,
    tool_search: bool | None = None,
) -> HttpModel:
    """A model behind the Responses API, OpenAI's or that of another server.

    ``seed`` has no counterpart. OpenAI stores no answer, unless ``ModelSettings.extra`` says
    ``{"store": True}``; reasoning goes back encrypted, as ``AssistantMessage.provider_items``.

    Args:
        model: The model's name, such as ``gpt-5.6``, or ``NAME@URL`` for a server of your own.
        base_url: What ``/responses`` is added to; None takes ``OPENAI_BASE_URL``, then OpenAI's.
        api_key: Sent as a bearer token; None takes ``OPENAI_API_KEY``.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer.
        prices: To report what an answer cost.
        accepts: What the model accepts beside text; None goes by its name at OpenAI, and takes
            text alone at a URL of your own.
        tool_search: Whether ``search_tools`` goes over the wire as the protocol's own search, and
            what it finds as namespaces in its result; None for GPT-5.4 and later at OpenAI itself.

    Raises:
        UsageError: OpenAI itself is meant and there is no key; or the URL is not one.
    """
    model, given = name_and_url(model)
    is_own_url = bool(base_url or given)
    base = base_url or given or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
    url, is_openai = endpoint_url(base, "/responses")
    endpoint = api_endpoint(model, url, api_key, is_openai=is_openai)
    can_search = is_openai and _CAN_SEARCH.search(model) is not None
    searches = can_search if tool_search is None else tool_search
    overview = _Overview()

    def begin(request: ModelRequest, stream: bool) -> Exchange:  # noqa: FBT001
        codec = ResponsesCodec(request, searches=searches, overview=overview)
        fields = codec.encode(model)
        return Exchange(
            body=encode_body({**fields, "stream": True} if stream else fields),
            decode=codec.decode,
            assembler=ResponseAssembler(),
        )

    def known_media() -> AbstractSet[str]:
        every = media_by_name(model, is_openai or not is_own_url)
        known = {one for one in every if not one.startswith("audio")}
        return known | {"file-url"} if "application/pdf" in known else known

    return HttpModel(
        model,
        provider_name="openai",
        begin=begin,
        url=url,
        endpoint=endpoint,
        headers=api_headers(endpoint.api_key, {} if is_own_url else account_headers()),
        transport=open_transport("auto", None, url=url),
        prices=prices,
        media=known_media if accepts is None else accepts,
        retry=retry,
        timeout_seconds=timeout_seconds,
    )


def namespace_of(definition: ToolDefinition) -> str:
    """The namespace of a tool: the first part of its name, or the MCP server that it is of.

    Written as providers accept names, since it is shown to models and may be foreign text.

    Example:
        >>> namespace_of(ToolDefinition(name="github.issues.create"))
        'github_issues'
        >>> namespace_of(ToolDefinition(name="files__read")), namespace_of(ToolDefinition(name="a"))
        ('files', 'other_tools')
    """
    name, origin = definition.name, definition.origin
    server, _, _ = origin.reference.partition("#") if origin.kind == "mcp" else ("", "", "")
    first, parted, _ = name.partition("__")
    found = name.rpartition(".")[0] or (parted and first) or server.removeprefix("mcp:")
    return _ACCEPTABLE.encode(found or _OTHERS)


class _Overview:
    """Names the namespaces of a catalogue; of the last one it remembers them."""

    def __init__(self) -> None:
        self._of: tuple[ToolDefinition, ...] = ()
        self._text = ""

    def __call__(self, definitions: tuple[ToolDefinition, ...]) -> str:
        if definitions is not self._of:
            names = sorted(set(map(namespace_of, definitions)) - {_OTHERS})
            listed = ", ".join(names[:_MOST_LISTED])
            more = f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
            self._text = f"\nThere are tools for: {listed}{more}." if names else ""
            self._of = definitions
        return self._text


class ResponsesCodec:
    """Translates one request, and what comes back for it.

    Args:
        request: What is asked.
        searches: Whether the tool that searches for others is the protocol's own.
        overview: Names the namespaces of the tools that can be found.

    Attributes:
        names: The tools' names on the wire.
    """

    def __init__(
        self, request: ModelRequest, *, searches: bool = True, overview: _Overview | None = None
    ) -> None:
        self._request = request
        self._overview = overview or _Overview()
        self._offered = offered = {tool.name: tool for tool in request.tools}
        self.names = WireNames(offered)
        self._searches = searches and bool(request.searchable) and SEARCH_TOOL in offered
        self._found = {
            call_id: [offered[name] for name in names if name in offered]
            for call_id, names in (request.searched if self._searches else {}).items()
        }
        self._namespaces: dict[str, str] = {}  # of the tools that were found, by their wire names
        taken: set[str] = set()
        for found in self._found.values():
            sizes: Counter[str] = Counter()
            for tool in found:
                space = self._with_room(namespace_of(tool), taken, sizes)
                self._namespaces[self.names.encode(tool.name)] = space
                sizes[space] += 1
            taken.update(sizes)  # a request may name each only once

    def encode(self, model: str) -> dict[str, Any]:
        """The fields of the request.

        Raises:
            UsageError: Something in it is not JSON data, or ``extra`` sets a field that is ours.
        """
        request, settings = self._request, self._request.settings
        extra: dict[str, Any] = {"store": False, **checked_extra(settings)}
        try:
            items = list(self._items(keeps_reasoning=bool(extra["store"])))
            if request.output_schema is not None:
                described = {"type": "json_schema", **described_output(request.output_schema)}
                extra["text"] = {**extra.get("text", {}), "format": described}
        except (TypeError, ValueError) as error:
            raise not_json(error) from error
        fields: dict[str, Any] = {
            "model": model,
            "input": items,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_output_tokens": settings.max_tokens,
        }
        if request.tools:
            tools = map(self._tool, request.tools)
            fields["tools"] = [one for one in tools if one.get("name") not in self._namespaces]
            fields["tool_choice"] = None if request.tool_choice == "auto" else request.tool_choice
        return {name: value for name, value in fields.items() if value is not None} | extra

    @follows_protocol
    def decode(self, response: JsonObject) -> ModelResponse:
        """The answer that a response object stands for.

        Raises:
            ModelResponseError: A part of it is not what the protocol says, or it holds no answer.
        """
        status = str(response.get("status"))
        if status in _UNANSWERED:
            raise ModelResponseError(
                f"the response is {status}, so it holds no answer. An answer has to come with its "
                "request: leave 'background' out of ModelSettings.extra"
            )
        texts: list[str] = []
        refusals: list[str] = []
        calls: list[ToolCall] = []
        order: list[dict[str, Any]] = []
        decode = CallDecoder(self.names)
        for item in response["output"][:MAX_CALLS_READ]:
            kind = str(item.get("type"))
            if kind == "message":
                said = _read_message(item, refusals)
                texts.append(said)
                order.append(_marker("message", phase=item.get("phase"), length=len(said)))
            elif kind == "function_call":
                name = text_of(item["name"])
                call = decode(item.get("call_id"), name, item.get("arguments"))
                calls.append(call)
                space = None if call.name in self._offered else item.get("namespace")
                order.append(_marker("call", namespace=space))
            elif kind == "tool_search_call" and item.get("execution") != "server":
                name = SEARCH_TOOL if self._searches else "tool_search"
                call_id = item.get("call_id") or item.get("id")
                calls.append(decode(call_id, name, item.get("arguments")))
                order.append(_marker("call"))
            elif kind in _KEPT:
                order.append(item)
        while order and order[-1]["type"] == "reasoning":  # is refused where it led to nothing
            order.pop()
        text, refusal = "".join(texts), clean("".join(refusals))
        is_plain = all(one.keys() <= {"type", "length"} for one in order)
        items = () if is_plain else (ProviderItem(protocol=PROTOCOL, data=one) for one in order)
        model = response.get("model")
        message = AssistantMessage(
            text=text or refusal, tool_calls=with_distinct_ids(calls), provider_items=tuple(items)
        )
        is_refused = bool(refusal) and not text
        return ModelResponse(
            message=message,
            usage=_decode_usage(response.get("usage")),
            finish_reason="content_filter" if is_refused else _finish_reason(response, calls),
            model=model if isinstance(model, str) else "",
        )

    def _items(self, *, keeps_reasoning: bool) -> Iterator[dict[str, Any]]:
        """The conversation; a search that loaded nothing says why in a message after the results.

        Its own result has no place for words.
        """
        words: list[dict[str, Any]] = []
        for message in self._request.messages:
            if words and not isinstance(message, ToolMessage):
                yield from words
                words = []
            if isinstance(message, AssistantMessage):
                yield from self._said(message, keeps_reasoning=keeps_reasoning)
            elif not isinstance(message, ToolMessage):
                said: Any = message.text
                if message.media:
                    said = _content(pieces(message.text, message.media))
                yield {"role": message.role, "content": said}
            elif self._searches and message.name == SEARCH_TOOL:
                found = self._found.get(message.call_id, [])
                yield _search_item("output", message.call_id, tools=self._loaded(found))
                if not found:
                    text = f"Result of {SEARCH_TOOL}: {message.text}"
                    words.append({"role": "user", "content": text})
            else:
                output: Any = message.text
                if message.media:
                    output = _content((message.text, *pieces("", message.media)))
                yield {"type": "function_call_output", "call_id": message.call_id, "output": output}
        yield from words

    def _said(
        self, message: AssistantMessage, *, keeps_reasoning: bool
    ) -> Iterator[dict[str, Any]]:
        """The items of an answer, in the order in which they came where that is known."""
        text, calls = message.text, iter(message.tool_calls)
        leads_on = bool(text or message.tool_calls)
        for data in _order(message):
            match data["type"]:
                case "message":
                    said, text = text[: data["length"]], text[data["length"] :]
                    phase = {"phase": data["phase"]} if "phase" in data else {}
                    if said:
                        yield {"role": "assistant", "content": said, **phase}
                case "call":
                    yield self._call(next(calls), data.get("namespace"))
                case kind:
                    is_whole = keeps_reasoning or bool(data.get("encrypted_content"))
                    if kind != "reasoning" or (leads_on and is_whole):
                        yield dict(data)

    def _call(self, call: ToolCall, namespace: str | None) -> dict[str, Any]:
        if self._searches and call.name == SEARCH_TOOL:
            return _search_item("call", call.call_id, arguments=sent_arguments(call))
        name = self.names.encode(call.name)
        if self.names.decode(name) in self._offered:  # perhaps not yet when it was called
            namespace = self._namespaces.get(name)
        return {
            "type": "function_call",
            "call_id": call.call_id,
            "name": name,
            "arguments": encode_arguments(call),
            **({"namespace": namespace} if namespace else {}),
        }

    def _tool(self, definition: ToolDefinition) -> dict[str, Any]:
        text = described_tool(definition, self._request.examples)
        parameters = definition.parameters_schema
        if self._searches and definition.name == SEARCH_TOOL:
            text += self._overview(self._request.searchable)
            return {
                "type": "tool_search",
                "execution": "client",
                "description": text,
                "parameters": parameters,
            }
        name = self.names.encode(definition.name)
        described = {"type": "function", "name": name, "description": text}
        return {**described, "parameters": parameters, "strict": False}

    def _loaded(self, tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
        """Tools that were found, in their namespaces.

        Never some beside a namespace: OpenAI fails to go on after that.
        """
        spaces: dict[str, dict[str, Any]] = {}
        for tool in tools:
            function = self._tool(tool)
            name = self._namespaces[function["name"]]
            purpose = f"Tools in the namespace {namespace_of(tool)}."
            space = {"type": "namespace", "name": name, "description": purpose}
            functions = spaces.setdefault(name, {**space, "tools": []})["tools"]
            functions.append({**function, "defer_loading": True})
        return list(spaces.values())

    def _with_room(self, namespace: str, taken: AbstractSet[str], sizes: Mapping[str, int]) -> str:
        name, number = namespace, 1
        while name in taken or sizes[name] >= LARGEST_NAMESPACE:
            number += 1
            name = f"{namespace[:56]}_{number}"
        return name


def _search_item(kind: str, call_id: str, **fields: Any) -> dict[str, Any]:
    shared = {"call_id": call_id, "execution": "client", "status": "completed"}
    return {"type": f"tool_search_{kind}", **shared, **fields}


def _marker(kind: str, **fields: object) -> dict[str, Any]:
    """Stands for text or a call, which the message holds, in the order of an answer's items."""
    return {"type": kind, **{name: value for name, value in fields.items() if value is not None}}


def _order(message: AssistantMessage) -> list[JsonObject]:
    """The items of an answer: those kept whole, and markers for its text and its calls.

    Without markers for just this text and these calls (the answer came another way, or was changed)
    the text comes after what was kept, and the calls last.
    """
    known = _KEPT | {"message", "call"}
    ours = (item.data for item in message.provider_items if item.protocol == PROTOCOL)
    order = [data for data in ours if data["type"] in known]
    length = sum(data["length"] for data in order if data["type"] == "message")
    count = sum(data["type"] == "call" for data in order)
    if length == len(message.text) and count == len(message.tool_calls):
        return order
    kept = [data for data in order if data["type"] in _KEPT]
    calls = [_marker("call")] * len(message.tool_calls)
    return [*kept, _marker("message", length=len(message.text)), *calls]


def _content(parts: Iterable[str | Media]) -> list[dict[str, Any]]:
    return [_part(part) for part in parts if part]


def _part(part: str | Media) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    if part.kind == "image":
        return {"type": "input_image", "image_url": part.data_url, "detail": "auto"}
    if part.url:
        return {"type": "input_file", "file_url": part.url}
    name = part.name or f"file.{part.media_type.rpartition('/')[2]}"
    return {"type": "input_file", "filename": name, "file_data": part.data_url}


def _read_message(item: JsonObject, refusals: list[str]) -> str:
    """The text of a message; what it declines is added to ``refusals``."""
    texts = []
    for part in item["content"]:
        kind = part.get("type")
        if kind == "output_text":
            texts.append(text_of(part["text"]))
        elif kind == "refusal":
            refusals.append(text_of(part["refusal"]))
    return clean("".join(texts))


def _finish_reason(response: JsonObject, calls: list[ToolCall]) -> FinishReason:
    if response.get("status") == "completed":
        return "tool_calls" if calls else "stop"
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return _INCOMPLETE.get(reason, "unknown") if isinstance(reason, str) else "unknown"


def _decode_usage(usage: Any) -> Usage:
    counts = object_of(usage)
    details = object_of(counts.get("input_tokens_details"))
    return Usage(
        requests=1,
        prompt_tokens=counts.get("input_tokens", 0),
        cached_tokens=details.get("cached_tokens", 0),
        completion_tokens=counts.get("output_tokens", 0),
    )


class ResponseAssembler:
    """Puts the events of a stream together into the response object that ``decode`` takes."""

    def __init__(self) -> None:
        self._items: dict[int, JsonObject] = {}
        self._response: JsonObject | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the response has come to its end."""
        return self._response is not None

    @follows_protocol
    def add(self, event: JsonObject) -> Delta | None:
        """Take one event; returns what it adds to the answer, or to the reasoning before it.

        Raises:
            ModelResponseError: The event is not what the protocol says.
        """
        kind = str(event.get("type"))
        if kind == "response.output_text.delta":
            text = clean(text_of(event["delta"]))
            return TextDelta(text=text) if text else None
        if kind in _REASONING:
            thought = clean(text_of(event["delta"]))
            return ReasoningDelta(text=thought) if thought else None
        if kind == "response.output_item.done":
            self._items[int(event.get("output_index", len(self._items)))] = {**event["item"]}
        elif kind in _ENDS:
            self._response = {**event["response"]}
        return None

    def finish(self) -> JsonObject:
        """The whole response; reasoning is complete only in the events that ended its items."""
        response = self._response or {}
        items = [self._items[index] for index in sorted(self._items)]
        return {**response, "output": items} if items else response
