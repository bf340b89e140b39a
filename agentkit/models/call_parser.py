"""Find the tool calls in a model's text, however it wrote them.

Understood are ToolACE-R's ``[f(a=1), g(b="x")]`` and JSON (``{"calls": [...]}``, a list, one
object, OpenAI's ``tool_calls``), in prose, code fences or ``<tool_call>`` tags. Small models are
sloppy, so much is tolerated: missing or surplus closing brackets, trailing commas, either spelling
of true and null, a ``functions.`` prefix, positional arguments, arguments inside a string.

Calls are data: nothing is evaluated, and text of any kind is read in bounded time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.messages import ToolCall
from agentkit.models.literals import LiteralReader, UnreadableError
from agentkit.tools.definition import ToolDefinition

MAX_TEXT = 100_000
"""Longest text in which calls are looked for, in characters."""

_MAX_ATTEMPTS = 100
_MAX_MALFORMED = 20_000  # characters of a call that cannot be read
_MAX_SEARCHED = 100_000  # characters in which the ends of all such calls are looked for
_NAME = r"[^\W\d]\w*+(?:[.\-]\w++)*+"
_START = re.compile(rf"[\[{{]|(?<![\w.\-])({_NAME})\(")
_CALL = re.compile(rf"\s*({_NAME}) ?\(")
_KEYWORD = re.compile(r"\s*([^\W\d][\w.\-]*+)\s*[=:](?!=)")
_JSON_NAME = re.compile(r"[\"'](?:name|function|tool|tool_name)[\"']\s*:\s*[\"']([^\"']{1,200})")
_BRACKETS = re.compile(
    r"\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|[()\[\]{}]", re.DOTALL
)
_WRAPPING = re.compile(
    r"(?<!`)``(?!`)|```[\w\-]*\s*```|</?(?:tool_calls?|function_calls?)>|<\|[a-z_]+\|>|```[\w\-]*\s*\Z"
)
_REMAINS = re.compile(r'(?:[\s\[\](){}`,:;.*\-]|"(?:tool_|function_)?calls")*+')
_WRAPPED_LINE = re.compile(r"(?:\s|[-*>,;]|\d+\.|```[\w\-]*+|</?tool_calls?>)*+")
_PREFIXES = ("functions.", "function.", "tools.", "default_api.")
_LISTS = ("calls", "tool_calls", "function_calls")
_NAMES = ("name", "function", "tool", "tool_name", "function_name")
_ARGUMENTS = ("arguments", "parameters", "args", "kwargs", "input")


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedCalls:
    """The content of a parsed text.

    Attributes:
        calls: The calls, in the order of the text. One that cannot be read has its text in
            ``malformed``.
        text: What is left when the calls and their wrapping are taken out.
    """

    calls: tuple[ToolCall, ...] = ()
    text: str = ""


def parse_calls(
    text: str, tools: Sequence[ToolDefinition] = (), *, first_id: int = 1
) -> ParsedCalls:
    r"""Find the calls in ``text``. Never raises, whatever the text.

    Args:
        text: What the model wrote.
        tools: What it was offered. They decide whether a call in the middle of prose is meant,
            give positional arguments their names, and repair names (``functions.f``, ``math_add``
            for ``math.add``). Without them only calls that stand apart from prose count.
        first_id: Number in the ``call_id`` of the first call; the others count on.

    Example:
        >>> parsed = parse_calls('Sure: [get_weather(city="Oslo", days=2)]')
        >>> parsed.calls[0].name, dict(parsed.calls[0].arguments), parsed.text
        ('get_weather', {'city': 'Oslo', 'days': 2}, 'Sure:')
        >>> fenced = parse_calls('```json\n{"name": "f", "arguments": {"a": null}}\n```')
        >>> fenced.calls[0].arguments
        {'a': None}
    """
    if len(text) > MAX_TEXT:
        return ParsedCalls(text=text)
    scan = _Scan(text, tools)
    scan.run()
    calls = tuple(
        replace(call, call_id=f"call_{first_id + index}") for index, call in enumerate(scan.calls)
    )
    return ParsedCalls(calls=calls, text=scan.rest())


class _Scan:
    """One pass over one text."""

    def __init__(self, text: str, tools: Sequence[ToolDefinition]) -> None:
        self.text = text
        self.tools = {tool.name: tool for tool in tools}
        self.reader = LiteralReader(text)
        self.calls: list[ToolCall] = []
        self._spans: list[tuple[int, int]] = []
        self._resume = 0  # where to look on when there is no call here
        self._unsearched = _MAX_SEARCHED
        self._plain_names = _plain_names(self.tools)

    def run(self) -> None:
        position = 0
        for _ in range(_MAX_ATTEMPTS):
            match = _START.search(self.text, position)
            if match is None:
                return
            self._resume = match.end()
            end = self._call_at(match) if match[1] else self._brackets_at(match.start())
            if end is not None:
                self._spans.append((match.start(), end))
            position = self._resume if end is None else end

    def rest(self) -> str:
        """The text without the calls."""
        if not self._spans:
            return self.text
        parts, position = [], 0
        for start, end in self._spans:
            parts.append(self.text[position:start])
            position = end
        rest = _WRAPPING.sub("", "".join([*parts, self.text[position:]])).strip()
        return "" if _REMAINS.fullmatch(rest) else rest

    # Python's form

    def _call_at(self, match: re.Match[str]) -> int | None:
        """A call outside brackets; None when it is prose."""
        found, end = self._read_call(match[1], match.start(1), match.end())
        alone = self._is_standalone(match.start(), end)
        is_known = not self.tools or found.name in self.tools
        if found.malformed is not None:
            is_meant = is_known and alone
        elif self.tools and is_known:
            is_meant = True
        else:
            is_meant = alone if not self.tools else self._is_everything(match.start(), end)
        return self._keep([found], end) if is_meant else None

    def _brackets_at(self, start: int) -> int | None:
        """A list of calls, or JSON that describes calls; None when it is something else."""
        if self.text[start] == "[" and _CALL.match(self.text, start + 1):
            return self._list_at(start)
        self.reader.seek(start)
        try:
            value = self.reader.value()
        except UnreadableError:
            return self._unreadable_json(start)
        self._resume = self.reader.position  # data: its strings are not searched for calls
        found = self._calls_in(value)
        return (
            self._keep(found, self._resume) if found or self._is_empty_list(value, start) else None
        )

    def _list_at(self, start: int) -> int | None:
        """``[f(a=1), g(b=2)]``."""
        found, position = [], start + 1
        while match := _CALL.match(self.text, position):
            call, end = self._read_call(match[1], match.start(1), match.end())
            if call.malformed is not None and self.tools and call.name not in self.tools:
                return None
            found.append(call)
            self.reader.position = end
            if not self.reader.take(","):
                break
            position = self.reader.position
        self.reader.close("]")
        return self._keep(found, self.reader.position)

    def _read_call(self, name: str, start: int, position: int) -> tuple[ToolCall, int]:
        """The call named ``name`` whose arguments start at ``position``, and where it ends."""
        name = self._resolved(name)
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        reader = self.reader
        reader.seek(position)
        try:
            while not reader.close(")"):
                if match := _KEYWORD.match(self.text, reader.position):
                    reader.position = match.end()
                    keywords[match[1]] = reader.value()
                elif reader.take("**"):
                    entries = reader.value()
                    if not isinstance(entries, dict):
                        reader.fail("expected an object after **")
                    keywords |= entries
                else:
                    positional.append(reader.value())
                reader.separate(")")
            return _call(name, self._named(name, positional, keywords) | keywords), reader.position
        except UnreadableError:
            end = self._balanced_end(position - 1)
            return _call(name, malformed=self.text[start:end]), end

    def _named(self, name: str, values: list[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Positional arguments by name: they take the free parameters in order."""
        tool = self.tools.get(name)
        parameters = list(tool.known_signature.properties) if tool else []
        if len(values) == 1 and isinstance(values[0], dict) and values[0].keys() <= set(parameters):
            return values[0]
        free = [parameter for parameter in parameters if parameter not in keywords]
        if len(values) > len(free):
            self.reader.fail(f"{len(values)} positional arguments for {len(free)} parameters")
        return dict(zip(free, values, strict=False))

    # JSON

    def _calls_in(self, value: Any) -> list[ToolCall]:
        """Calls that decoded JSON describes, as a whole or below one of its keys."""
        found = list(self._described(value))
        calls = [call for call in found if call is not None]
        if len(calls) == len(found):
            return calls
        parts = value.values() if isinstance(value, Mapping) else ()
        below = [
            call
            for part in parts
            if isinstance(part, dict | list)
            for call in self._described(part)
        ]
        return [call for call in below if call is not None and call.name in self.tools]

    def _is_empty_list(self, value: Any, start: int) -> bool:
        """Whether JSON says outright that nothing is called: ``{"calls": []}``, or just ``[]``."""
        if isinstance(value, Mapping):
            return any(value.get(key) == [] for key in _LISTS)
        return value == [] and self._is_everything(start, self.reader.position)

    def _described(self, value: Any) -> Iterator[ToolCall | None]:
        """Calls that decoded JSON describes; None for each part that describes none."""
        if isinstance(value, Mapping):
            value = _inner(value)
        if isinstance(value, list):
            for item in value:
                yield from self._described(item) if isinstance(item, Mapping) else [None]
        elif isinstance(value, Mapping):
            name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
            if name is not None:
                yield self._one_described(self._resolved(name), value)
            elif value and all(self._resolved(key) in self.tools for key in value):
                yield from (_with_arguments(self._resolved(key), value[key]) for key in value)
            else:
                yield None
        else:
            yield None

    def _one_described(self, name: str, value: Mapping[str, Any]) -> ToolCall | None:
        key = next((key for key in _ARGUMENTS if key in value), None)
        if key is None:
            if name not in self.tools:
                return None  # an object that happens to have a name
            outside = {*_NAMES, "type", "id", "call_id"}
            return _call(name, {k: v for k, v in value.items() if k not in outside})
        arguments = value[key]
        if key == "parameters" and isinstance(arguments, Mapping) and "properties" in arguments:
            return None  # a definition, repeated by the model
        return _with_arguments(name, arguments)

    def _unreadable_json(self, start: int) -> int | None:
        """Keep the text of a broken object that names an offered tool."""
        match = _JSON_NAME.search(self.text, start, start + 300)
        if match is None or self._resolved(match[1]) not in self.tools:
            return None
        if "{" in self.text[start + 1 : match.start()]:
            return None  # a list of calls: its items are looked at one by one
        end = self._balanced_end(start)
        return self._keep([_call(self._resolved(match[1]), malformed=self.text[start:end])], end)

    # Both

    def _keep(self, found: list[ToolCall], end: int) -> int:
        self.calls += found
        return end

    def _resolved(self, name: str) -> str:
        """The offered tool that ``name`` stands for, else the name without its prefix."""
        if name in self.tools:
            return name
        bare = next((name[len(p) :] for p in _PREFIXES if name.startswith(p)), name)
        return bare if bare in self.tools else self._plain_names.get(_plain(bare), bare or name)

    def _balanced_end(self, start: int) -> int:
        """The place where the bracket at ``start`` closes, else the end of its line."""
        most = max(1, min(_MAX_MALFORMED, self._unsearched))
        depth, last = 0, min(len(self.text), start + most)
        for match in _BRACKETS.finditer(self.text, start, last):
            if match[0] in "([{":
                depth += 1
            elif match[0] in ")]}":
                depth -= 1
                if depth <= 0:
                    self._unsearched -= match.end() - start
                    return match.end()
        self._unsearched -= last - start
        newline = self.text.find("\n", start, last)
        return last if newline < 0 else newline

    def _is_standalone(self, start: int, end: int) -> bool:
        """Whether nothing but wrapping shares the lines of this span."""
        before = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        newline = self.text.find("\n", end)
        after = self.text[end : len(self.text) if newline < 0 else newline]
        return bool(_WRAPPED_LINE.fullmatch(before)) and bool(_WRAPPED_LINE.fullmatch(after))

    def _is_everything(self, start: int, end: int) -> bool:
        """Whether nothing but wrapping lies outside this span."""
        outside = self.text[:start], self.text[end:]
        return all(_WRAPPED_LINE.fullmatch(part) for part in outside)


def _call(
    name: str, arguments: dict[str, Any] | None = None, *, malformed: str | None = None
) -> ToolCall:
    return ToolCall(call_id="", name=name, arguments=arguments or {}, malformed=malformed)


def _inner(value: Mapping[str, Any]) -> Any:
    """The part of an object that lists or describes calls."""
    for key in _LISTS:
        if isinstance(value.get(key), list):
            return value[key]
    for key in ("function_call", "tool_call", "function"):
        if isinstance(value.get(key), Mapping):
            return value[key]
    return value


def _with_arguments(name: str, arguments: Any) -> ToolCall:
    if arguments is None:
        return _call(name, {})
    if isinstance(arguments, str):
        return _from_text(name, arguments)
    if isinstance(arguments, dict):
        return _call(name, arguments)
    return _call(name, malformed=json.dumps(arguments, ensure_ascii=False))


def _from_text(name: str, text: str) -> ToolCall:
    """Arguments that came as a string, as OpenAI writes them."""
    if not text.strip():
        return _call(name, {})
    reader = LiteralReader(text)
    try:
        value = reader.value()
    except UnreadableError:
        return _call(name, malformed=text)
    is_all = reader.peek() == ""
    return _call(name, value) if isinstance(value, dict) and is_all else _call(name, malformed=text)


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _plain_names(names: Mapping[str, ToolDefinition]) -> dict[str, str]:
    """Offered names by the spelling that identifiers allow, where that is unambiguous."""
    plain: dict[str, str] = {}
    for name in names:
        plain[_plain(name)] = "" if _plain(name) in plain else name
    return {spelling: name for spelling, name in plain.items() if name}
