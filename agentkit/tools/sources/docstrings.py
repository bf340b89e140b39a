"""Docstrings (Google, NumPy, reST) as the words of a tool.

Parsing is left to ``docstring_parser``; a docstring without any section does not need it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docstring_parser import Docstring

_SECTION = re.compile(r"^[^\S\n]*(?::\w+|[A-Z][A-Za-z ]+:[^\S\n]*$|-{3,}[^\S\n]*$)", re.MULTILINE)
_SPACES = re.compile(r"[^\S\n]+")
_MAX_SPACES = 500
_GOOGLE_PARAMETER = "documented parameter"


@dataclass(frozen=True, kw_only=True, slots=True)
class DocstringText:
    """A parsed docstring, section by section.

    Attributes:
        summary: Summary and long description; examples follow them.
        parameters: Text per parameter, on one line each.
        returns: Text on the returned value.
        raises: One sentence per documented exception.
    """

    summary: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    returns: str = ""
    raises: tuple[str, ...] = ()


def read_docstring(text: str | None) -> DocstringText:
    r"""Take a docstring apart.

    Args:
        text: The docstring, indented as in the source.

    Example:
        >>> found = read_docstring("Add.\n\nArgs:\n    a: First.\n\nReturns:\n    The sum.\n")
        >>> found.summary, found.parameters, found.returns
        ('Add.', {'a': 'First.'}, 'The sum.')
    """
    clean = inspect.cleandoc(text or "")
    if not _SECTION.search(clean):
        return DocstringText(summary=clean)
    parsed = _parsed_docstring(clean)
    if parsed is None:
        return DocstringText(summary=clean)
    blocks = ["\n".join(filter(None, (e.snippet, e.description))) for e in parsed.examples]
    examples = "\n\n".join(blocks)
    parts = [parsed.short_description, parsed.long_description]
    parts.append(f"Examples:\n{examples}" if examples else "")
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
