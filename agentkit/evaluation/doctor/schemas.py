"""Schemas part by part, and texts sentence by sentence, as the doctor looks at them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentkit.messages import JsonObject
from agentkit.retrieval.words import terms
from agentkit.tools.schema import SCHEMA_KEYWORDS, SCHEMA_LIST_KEYWORDS, SCHEMA_MAP_KEYWORDS

Role: TypeAlias = Literal["root", "property", "pattern", "items", "branch", "definition"]

_ROLES: Mapping[str, Role] = {
    "properties": "property",
    "patternProperties": "pattern",
    "$defs": "definition",
    "definitions": "definition",
    "items": "items",
    "prefixItems": "items",
    "additionalProperties": "items",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One sub-schema.

    Attributes:
        path: Dotted path as in ``Description.parameters``: ``address.city``, ``items[].sku``; a
            branch of a union has the path of the union.
        role: Its role in the schema above it.
        schema: The sub-schema.
        name: The property's own name; empty for other roles.
    """

    path: str
    role: Role
    schema: JsonObject
    name: str = ""


def parts(schema: JsonObject) -> Iterator[Part]:
    """Every sub-schema of ``schema``, itself first, in document order.

    References are not followed, so a recursive schema ends as well.

    Example:
        >>> schema = {"properties": {"tags": {"type": "array", "items": {"type": "string"}}}}
        >>> [(part.path, part.role) for part in parts(schema)]
        [('', 'root'), ('tags', 'property'), ('tags[]', 'items')]
    """
    waiting = [Part(path="", role="root", schema=schema)]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(list(_below(part))))


def _below(part: Part) -> Iterator[Part]:
    for key, value in part.schema.items():
        role = _ROLES.get(key, "branch")
        for name, schema in _sub_schemas(key, value):
            yield Part(path=_path(part.path, key, name), role=role, schema=schema, name=name)


def _sub_schemas(key: str, value: Any) -> Iterator[tuple[str, JsonObject]]:
    """The schemas that a keyword holds, with their names where it has names."""
    if key in SCHEMA_MAP_KEYWORDS and isinstance(value, Mapping):
        yield from ((name, part) for name, part in value.items() if isinstance(part, Mapping))
    elif key in SCHEMA_LIST_KEYWORDS and isinstance(value, list):
        yield from (("", part) for part in value if isinstance(part, Mapping))
    elif key in SCHEMA_KEYWORDS and isinstance(value, Mapping):
        yield "", value


def _path(path: str, key: str, name: str) -> str:
    if key in {"$defs", "definitions"}:
        return f"{key}.{name}"
    if name:
        return f"{path}.{name}" if path else name
    if key in {"items", "prefixItems"}:
        return f"{path}[]"
    return f"{path}.*" if key == "additionalProperties" else path


def type_names(schema: JsonObject) -> frozenset[str]:
    """The types that a schema declares by ``type``; empty when it declares none."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return frozenset((declared,))
    if isinstance(declared, list):
        return frozenset(name for name in declared if isinstance(name, str))
    return frozenset()


def ghosts(schema: JsonObject) -> tuple[str, ...]:
    """Required names that are not properties of an object which lists its properties."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return ()
    if schema.keys() & {"patternProperties", "allOf", "anyOf", "oneOf", "$ref"}:
        return ()  # the name may be described there
    return tuple(name for name in required if name not in properties)


def is_empty_title(schema: JsonObject, name: str) -> bool:
    """Whether the title of a property says no more than its name, as pydantic writes it."""
    title = schema.get("title")
    return isinstance(title, str) and set(terms(title)) <= set(terms(name))


# --- texts ----------------------------------------------------------------------------------------

_LONE_TAGS = "br|hr|img|p|li|td|tr|th|dd|dt"
_PAIRED_TAGS = (
    "a|abbr|b|big|blockquote|caption|center|cite|code|del|div|dl|em|font|h[1-6]|i|ins|kbd|mark|ol|pre"
    "|samp|small|span|strike|strong|sub|sup|table|tbody|thead|tt|u|ul"
)
_LONE_TAG = re.compile(rf"</?(?:{_LONE_TAGS})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_PAIRED_TAG = re.compile(rf"</?({_PAIRED_TAGS})(?:\s[^<>]*)?>", re.IGNORECASE)
_CLOSING_TAG = re.compile(rf"</({_PAIRED_TAGS})\s*>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|ndash|mdash|hellip|#\d{2,5}|#x[0-9a-f]{2,5});")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\d\"'(\[<*`])|\n+")
_FEWEST_WORDS = 4


def markup(text: str) -> tuple[str, ...]:
    """The HTML tags, comments and entities of ``text``; names in angle brackets are not HTML.

    Example:
        >>> markup("<p>The <b>city</b> &amp; <country></p>")
        ('<b>', '</b>', '<p>', '</p>', '&amp;')
    """
    if "<" not in text and "&" not in text:
        return ()
    closed = _closed(text)
    paired = [tag[0] for tag in _PAIRED_TAG.finditer(text) if tag[1].lower() in closed]
    lone = [found[0] for rule in (_LONE_TAG, _ENTITY) for found in rule.finditer(text)]
    return (*paired, *lone, *(text[start:end] for start, end in _comments(text)))


def _comments(text: str) -> Iterator[tuple[int, int]]:
    """The places of HTML comments; unclosed ones do not count."""
    end = 0
    while (start := text.find("<!--", end)) >= 0:
        close = text.find("-->", start)
        if close < 0:
            return
        end = close + len("-->")
        yield start, end


def _closed(text: str) -> frozenset[str]:
    """Tags that are closed somewhere; ``<code>`` and the like are placeholders unless they are."""
    return frozenset(name.lower() for name in _CLOSING_TAG.findall(text))


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, and its lines, without blanks around them.

    Example:
        >>> sentences("Get a user. Use 3.5 as version, e.g. for tests.")
        ('Get a user.', 'Use 3.5 as version, e.g. for tests.')
    """
    return tuple(filter(None, (piece.strip() for piece in _SENTENCE.split(text))))


def sentence_key(sentence: str) -> str:
    """A key that equal sentences share; empty for short ones."""
    words = sentence.casefold().strip(" .!?").split()
    return " ".join(words) if len(words) >= _FEWEST_WORDS else ""
