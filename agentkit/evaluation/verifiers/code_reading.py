"""What code an answer holds: the ways in which models write it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

_FENCE = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_M = re.MULTILINE
_CODE_STARTS = re.compile(r"^[ \t]*(?:import|from|def|async[ \t]+def|class|@)[ \t]*\S", _M)
_FUTURE = re.compile(r"^from __future__ import [^\n]*$", _M)
_STOPS = re.compile(r"\n(?=class\b|def\b|#|if\b|print\b)")


def code_readings(answer: str, prompt: str, entry_point: str) -> tuple[str, ...]:
    r"""Programs that an answer may mean, the likeliest first; the first that is Python counts.

    Chat models write a block between fences; of several, the last that defines the function
    counts, else the last. Models that complete text go on where the prompt ends. Code that
    defines the function is put behind the prompt, whose imports and helpers it may use, and
    defines it anew; other code is the function's body. As HumanEval's authors do (Chen et al.,
    2021, section 3.1), a body is also read up to the first ``\nclass``, ``\ndef``, ``\n#``,
    ``\nif`` or ``\nprint``, but only when it is no Python as a whole.

    Args:
        answer: The final answer.
        prompt: The code that it may continue.
        entry_point: The function that it is to define.
    """
    definition = _definition(entry_point)
    blocks = [block[2] for block in _FENCE.finditer(answer)]
    code = ([block for block in blocks if definition.search(block)] or blocks or [answer])[-1]
    readings = list(_definitions(code)) if definition.search(code) else []
    readings += _bodies(code)
    return tuple(_joined(prompt, text) for text in dict.fromkeys(readings))


def _definition(name: str) -> re.Pattern[str]:
    """What code looks like that defines a name, as a function, a class or a value."""
    name = re.escape(name)
    return re.compile(
        rf"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+{name}\b|^{name}[ \t]*[:=][^=]", _M
    )


def _definitions(code: str) -> Iterator[str]:
    """Code that defines the function, as it is and without words before it."""
    yield textwrap.dedent(code)
    if start := _CODE_STARTS.search(code):
        yield textwrap.dedent(code[start.start() :])


def _bodies(code: str) -> Iterator[str]:
    """A function's body in the forms in which it may have lost its indentation."""
    for text in (code, _STOPS.split(code, maxsplit=1)[0]):
        body = text.strip("\n")
        if body[:1].isspace():
            yield text
        yield "    " + body.lstrip()
        yield textwrap.indent(textwrap.dedent(body), "    ")


def _joined(prompt: str, code: str) -> str:
    """The prompt and the code; imports from ``__future__`` have to come first."""
    return "\n".join((*_FUTURE.findall(code), prompt.rstrip(" \t"), _FUTURE.sub("", code)))
