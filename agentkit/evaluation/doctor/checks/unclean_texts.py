"""Texts with things in them that are not words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.finding import Finding, Kind
from agentkit.evaluation.doctor.listing import listed, quoted
from agentkit.evaluation.doctor.mends import propose
from agentkit.evaluation.doctor.text_mends import markup, repeats, with_folded_blanks
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.invisible import invisible

_BLOB = re.compile(
    r"data:[\w.+-]+/[\w.+-]+;base64,[A-Za-z0-9+/=]{16,}|(?<![\w/+])[A-Za-z0-9+/_-]{80,}={0,2}"
)
_FEWEST_BLANKS = 12

INVISIBLE = Kind(
    code="invisible",
    severity="error",
    title="invisible characters",
    why="A person who reviews the text does not see what the model reads; instructions are hidden "
    "this way.",
    advice="Take them out, and ask the server's owner how they came there.",
)
MARKUP = Kind(
    code="markup",
    severity="warning",
    title="HTML in texts",
    why="Tags cost tokens, and become search words.",
    advice="Keep the words.",
)
BLOB = Kind(
    code="blob",
    severity="warning",
    title="encoded data in texts",
    why="A model can not read it; it costs a token for every two or three characters.",
    advice="Name the format in place of showing it.",
)
BLANKS = Kind(
    code="blanks",
    severity="note",
    title="indentation and runs of blanks",
    why="White space of source code is sent with every request.",
    advice="Fold it.",
)
REPEATS = Kind(
    code="repeated_sentence",
    severity="warning",
    title="sentences that stand in a text twice",
    why="The second costs the same as the first, and says nothing.",
    advice="Keep the first.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Search:
    """What to look for in a text, and what mends it."""

    kind: Kind
    look: Callable[[str], Sequence[str]]
    mends: tuple[str, ...] = ()


def unclean_texts(catalogue: Catalogue) -> Iterator[Finding]:
    """Invisible characters, markup, encoded data, blanks, repeated sentences."""
    for definition in catalogue.definitions:
        texts = tuple(_texts(definition))
        for search in _SEARCHES:
            yield from _found(catalogue, definition, texts, search)


def _texts(definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    """Every text with its place."""
    description = definition.description
    yield "summary", description.summary
    for at, rule in enumerate(description.usage_rules):
        yield f"usage_rules[{at}]", rule
    for path, text in description.parameters.items():
        yield f"parameters.{path}", text


def _found(
    catalogue: Catalogue,
    definition: ToolDefinition,
    texts: Sequence[tuple[str, str]],
    search: _Search,
) -> Iterator[Finding]:
    hits = [(place, found) for place, text in texts if (found := search.look(text))]
    if not hits:
        return
    pieces = list(dict.fromkeys(chain.from_iterable(found for _, found in hits)))
    proposal = propose(catalogue, definition, search.mends)
    yield Finding(
        kind=search.kind,
        tools=(definition.name,),
        what=f"{listed(pieces, shown=3)} in {listed([place for place, _ in hits], shown=2)}",
        where=tuple(place for place, _ in hits),
        tokens=catalogue.count(pieces) if proposal is None else max(proposal.saved, 0),
        proposal=proposal,
    )


def _hidden(text: str) -> Sequence[str]:
    return [f"U+{ord(char):04X}" for char in invisible(text)]


def _blobs(text: str) -> Sequence[str]:
    return [quoted(match[0], longest=30) for match in _BLOB.finditer(text) if _is_data(match[0])]


def _is_data(run: str) -> bool:
    """Whether a long run of characters is encoded data, rather than an address or a long name."""
    if run.startswith("data:"):
        return True
    digits = sum(char.isdigit() for char in run)
    cases = any(char.islower() for char in run) and any(char.isupper() for char in run)
    return cases and digits >= len(run) / 20 and run.count("_") + run.count("-") <= len(run) / 20


def _repeated(text: str) -> Sequence[str]:
    return [quoted(sentence) for sentence in repeats(text)]


def _blanks(text: str) -> Sequence[str]:
    folded = len(text) - len(with_folded_blanks(text))
    return [f"{folded:,} characters of white space"] if folded >= _FEWEST_BLANKS else []


_SEARCHES = (
    _Search(kind=INVISIBLE, look=_hidden, mends=("drop_invisible",)),
    _Search(kind=MARKUP, look=markup, mends=("drop_markup",)),
    _Search(kind=BLOB, look=_blobs),
    _Search(kind=REPEATS, look=_repeated, mends=("drop_repeats",)),
    _Search(kind=BLANKS, look=_blanks, mends=("fold_blanks",)),
)
