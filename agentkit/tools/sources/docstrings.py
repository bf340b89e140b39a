"""Docstrings (Google, NumPy, reST) as the words of a tool.

Parsing is left to ``docstring_parser``; a docstring without any section does not need it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentkit.tools.canonical import is_json
from agentkit.tools.definition import Example
from agentkit.tools.schema import copied

if TYPE_CHECKING:
    from docstring_parser import Docstring

_SECTION = re.compile(r"^[^\S\n]*(?::\w+|[A-Z][A-Za-z ]+:[^\S\n]*$|-{3,}[^\S\n]*$)", re.MULTILINE)
_SPACES = re.compile(r"[^\S\n]+")
_MAX_SPACES = 500
_GOOGLE_PARAMETER = "documented parameter"
_PROMPT = re.compile(r"^\s*>>> ?")
_CONTINUED = re.compile(r"^\s*\.\.\. ?")


@dataclass(frozen=True, kw_only=True, slots=True)
class DocstringText:
    """A parsed docstring, section by section.

    Attributes:
        summary: Summary and long description; worked examples that are not calls follow them.
        parameters: Text per parameter, on one line each.
        returns: Text on the returned value.
        raises: One sentence per documented exception.
        examples: Calls of the function with literal arguments, as doctests write them.
    """

    summary: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    returns: str = ""
    raises: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()


def read_docstring(
    text: str | None, *, function_name: str = "", parameters: Sequence[str] = ()
) -> DocstringText:
    r"""Take a docstring apart.

    Args:
        text: The docstring, indented as in the source.
        function_name: Name by which its examples call the function.
        parameters: The function's parameters in order, to name positional arguments.

    Example:
        >>> found = read_docstring("Add.\n\nArgs:\n    a: First.\n\nReturns:\n    The sum.\n")
        >>> found.summary, found.parameters, found.returns
        ('Add.', {'a': 'First.'}, 'The sum.')
    """
    clean = inspect.cleandoc(text or "")
    if not _SECTION.search(clean) and ">>>" not in clean:
        return DocstringText(summary=clean)
    parsed = _parsed_docstring(clean)
    if parsed is None:
        return DocstringText(summary=clean)
    blocks = ["\n".join(filter(None, (e.snippet, e.description))) for e in parsed.examples]
    prose, inline = _split_examples(parsed.long_description or "", function_name, parameters)
    rest, sectioned = _split_examples("\n\n".join(blocks), function_name, parameters)
    parts = [parsed.short_description or "", prose, f"Examples:\n{rest}" if rest else ""]
    return DocstringText(
        summary="\n\n".join(filter(None, parts)),
        parameters=_parameters(parsed),
        returns=_one_line(parsed.returns.description) if parsed.returns else "",
        raises=tuple(
            f"Raises {one.type_name or 'an exception'}: {_one_line(one.description)}".removesuffix(
                ": "
            )
            for one in parsed.raises
        ),
        examples=(*inline, *sectioned),
    )


def _parsed_docstring(text: str) -> Docstring | None:
    """The text in the style that finds most in it; None where it is unusual, or slow to read.

    The library's expressions backtrack: in cubic time over the brackets of a Google parameter, so
    that one is read here; in quadratic time over spaces, which are bounded.
    """
    from docstring_parser import ParseError, google, numpydoc, rest

    if any(len(spaces) > _MAX_SPACES for spaces in _SPACES.findall(text)):
        return None
    sections = [
        section._replace(key=_GOOGLE_PARAMETER)
        if section.key in {"param", "attribute"}
        else section
        for section in google.DEFAULT_SECTIONS
    ]
    found: list[Docstring] = []
    for parse in (rest.parse, google.GoogleParser(sections).parse, numpydoc.parse):
        try:
            found.append(parse(text))
        except ParseError:  # it is written in another style
            continue
        except (LookupError, ValueError):  # unusual text is still text
            return None
    return max(found, key=lambda docstring: len(docstring.meta), default=None)


def _parameters(parsed: Docstring) -> dict[str, str]:
    from docstring_parser import DocstringParam

    found: dict[str, str] = {}
    for part in parsed.meta:
        if isinstance(part, DocstringParam):
            found[_bare(part.arg_name)] = _one_line(part.description)
        elif part.args[:1] == [_GOOGLE_PARAMETER]:
            found[_bare(_without_type(part.args[1]))] = _one_line(part.description)
    return found


def _without_type(head: str) -> str:
    """The name before a type in brackets: ``x`` of ``x(int, optional)``."""
    opened, closed = head.find("(", 1), head.rfind(")")
    has_type = 0 < opened < closed and head[opened + 1 : closed].strip()
    return head[:opened].rstrip() if has_type else head


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _bare(name: str) -> str:
    """The name without a type that the parser took for a part of it: ``price (float)``."""
    return name.split(" ", 1)[0].strip("*")


def _split_examples(
    text: str, function_name: str, parameters: Sequence[str]
) -> tuple[str, tuple[Example, ...]]:
    """Calls that are understood as examples, and the text that is left."""
    left: list[str] = []
    examples: list[Example] = []
    for block in _blocks(text.splitlines()):
        example = _as_example(block, function_name, parameters)
        if example is None:
            left.extend(block)
        else:
            examples.append(example)
    return "\n".join(left).strip(), tuple(examples)


def _blocks(lines: Iterable[str]) -> list[list[str]]:
    """Doctest entries (prompt, continuation, output up to a blank line) and stretches of prose."""
    blocks: list[list[str]] = [[]]
    in_entry = False
    for line in lines:
        if _PROMPT.match(line) or (in_entry and not line.strip()):
            blocks.append([])
            in_entry = _PROMPT.match(line) is not None
        blocks[-1].append(line)
    return blocks


def _as_example(block: list[str], function_name: str, parameters: Sequence[str]) -> Example | None:
    if not block or not _PROMPT.match(block[0]):
        return None
    try:
        return read_worked_call(block, function_name=function_name, parameters=parameters)
    except ValueError:
        return None


def worked_calls(text: str) -> tuple[tuple[int, list[str]], ...]:
    """The doctest entries of a text: the line on which each starts, from 0, and its lines."""
    found, line = [], 0
    for block in _blocks(text.splitlines()):
        if block and _PROMPT.match(block[0]):
            found.append((line, block))
        line += len(block)
    return tuple(found)


def read_worked_call(
    block: Sequence[str], *, function_name: str, parameters: Sequence[str]
) -> Example:
    """The example that a doctest entry shows: a call with literal arguments, and its result.

    Args:
        block: Prompt, continuation and output, line by line.
        function_name: The function that it has to call.
        parameters: The function's parameters in order, to name positional arguments.

    Raises:
        ValueError: It is something else; the message says what.
    """
    source = [_PROMPT.sub("", block[0])]
    rest = list(block[1:])
    while rest and _CONTINUED.match(rest[0]):
        source.append(_CONTINUED.sub("", rest.pop(0)))
    arguments = _literal_call("\n".join(source), function_name, parameters)
    shown = "\n".join(rest).strip()
    return Example(arguments=arguments, result=_as_json(_literal(shown)) if shown else None)


def _literal(written: str | ast.expr) -> object:
    try:
        return ast.literal_eval(written)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        text = written if isinstance(written, str) else ast.unparse(written)
        raise ValueError(f"{text[:80]!r} is not a literal") from error


def _literal_call(source: str, function_name: str, parameters: Sequence[str]) -> dict[str, Any]:
    """Arguments of a call that holds nothing but literals.

    Raises:
        ValueError: It is something else.
    """
    call = _parsed(source)
    name = call.func if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or not isinstance(name, ast.Name):
        message = f"{source[:80]!r} is not a plain call"
        raise ValueError(message)  # noqa: TRY004 - literal_eval says the same with ValueError
    if name.id != function_name:
        raise ValueError(f"it calls {name.id!r}, not {function_name!r}")
    if len(call.args) > len(parameters):
        raise ValueError(f"it gives {len(call.args)} values for {len(parameters)} parameters")
    named = dict(zip(parameters, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg not in parameters or keyword.arg in named:
            raise ValueError(f"{keyword.arg or '**'!r} does not name one more parameter")
        named[keyword.arg] = keyword.value
    return {key: _as_json(_literal(value)) for key, value in named.items()}


def _parsed(source: str) -> ast.expr:
    try:
        return ast.parse(source, mode="eval").body
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"{source[:80]!r} is not an expression") from error


def _as_json(value: object) -> Any:
    """A literal as JSON data.

    Raises:
        ValueError: It holds bytes, a set, a complex number or keys that are not strings.
    """
    data = copied(value)
    if not is_json(data):
        if isinstance(value, float):
            raise ValueError(f"{value} is a number that JSON cannot write")
        raise ValueError(f"{type(value).__name__} is not JSON")
    return data
