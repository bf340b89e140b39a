"""A first look at many texts at once: which of them surely hold nothing that a check objects to.

Most texts of most definitions hold nothing, and many stand in several. So texts are laid together
and read as one, in a fraction of the time that they take one by one, and no text twice. What this
look passes every check passes. What it does not pass is no finding yet: it is read text by text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from agentkit.evolution.validation.lexical.characters import hidden_at, no_invisible_characters
from agentkit.evolution.validation.lexical.directives import may_direct, no_directives
from agentkit.evolution.validation.lexical.encodings import holds_encoded_text, no_encoded_text
from agentkit.evolution.validation.lexical.markup import holds_chat_marker, no_chat_markers
from agentkit.evolution.validation.lexical.scripts import no_confusables, no_mixed_scripts
from agentkit.evolution.validation.lexical.secrets import (
    asks_for_secret,
    holds_secret,
    no_secret_requests,
    no_secrets,
)
from agentkit.evolution.validation.lexical.tool_names import spoken
from agentkit.evolution.validation.report import Check
from agentkit.evolution.validation.texts import LONGEST_SCANNED

_TOGETHER = 2_000
"""Characters that are read as one. More saves little, and one suspect makes all be read again."""

_APART = " \n;\n"
"""Stands between two texts: to a pattern no other than their ends, also where texts are folded and
it becomes `` ; ``. So no word of a neighbour excuses a text, as *only* does behind and *if* before
some phrases, and neither a line end nor a word spelled out letter by letter goes on across it."""

_SILENT = re.compile(r"[\w .,;!?'()+*-]{0,11}", re.ASCII)
"""A short name or value such as "kelvin" is no sentence. Marks of conversations, paths, addresses
and escapes hold other signs."""


def ways_to_say(text: str) -> Iterator[str]:
    """What of a text is read: the text, a name also as words, of a short word nothing.

    Example:
        >>> list(ways_to_say("sendItToEveryone")), list(ways_to_say("kelvin"))
        (['sendItToEveryone', 'send it to everyone'], [])
    """
    if _SILENT.fullmatch(text) and not asks_for_secret(text):
        return
    yield text
    if " " not in text and text.isascii():
        yield spoken(text)


def _never(_text: str) -> bool:
    return False


_LOOKS: Mapping[Check, Callable[[str], object]] = {
    no_invisible_characters: hidden_at,
    no_mixed_scripts: _never,  # there is one script in ASCII
    no_confusables: _never,
    no_secrets: holds_secret,
    no_secret_requests: asks_for_secret,
    no_chat_markers: holds_chat_marker,
    no_encoded_text: holds_encoded_text,
    no_directives: may_direct,
}
"""How a check looks at ASCII texts that are read as one: never narrower than text by text."""


class FirstLook:
    """Tells which texts are clean, and knows them again.

    Args:
        checks: What texts are asked.
        read: Whether a text alone passes them; for those beyond ASCII, where what stands in a text
            excuses other parts of it.
    """

    def __init__(self, checks: Iterable[Check], read: Callable[[str], bool]) -> None:
        asked = tuple(checks)
        self._looks = [_LOOKS[check] for check in asked if check in _LOOKS]
        self._can_look = len(self._looks) == len(asked)
        self._read = read
        self._clean: set[str] = set()

    def passes(self, groups: Sequence[Iterable[str]]) -> list[bool]:
        """For each group of texts, whether all of it is clean.

        Nothing passes where a check is asked that has no such look.
        """
        if not self._can_look:
            return [False] * len(groups)
        passed = [True] * len(groups)
        for portion in self._portions(groups):
            if not self._are_clean(list(dict.fromkeys(text for _, new in portion for text in new))):
                for at, new in portion:
                    passed[at] = passed[at] and self._are_clean(new)
        return passed

    def _portions(self, groups: Sequence[Iterable[str]]) -> Iterator[list[tuple[int, list[str]]]]:
        """Texts that were not read yet, by group, in portions that are read as one."""
        portion: list[tuple[int, list[str]]] = []
        size = 0
        for at, group in enumerate(groups):
            new = [text for text in group if text not in self._clean]
            if new:
                portion.append((at, new))
                size += sum(map(len, new))
            if size >= _TOGETHER:
                yield portion
                portion, size = [], 0
        yield portion

    def _are_clean(self, texts: Sequence[str]) -> bool:
        said = [way for text in texts for way in ways_to_say(text)]
        plain = [text for text in said if text.isascii()]
        clean = self._are_clean_together(plain) and all(
            self._read(text) for text in said if not text.isascii()
        )
        if clean:
            self._clean.update(texts)
        return clean

    def _are_clean_together(self, plain: Sequence[str]) -> bool:
        whole, middle = _APART.join(plain), len(plain) // 2
        if len(whole) > LONGEST_SCANNED:
            halves = (plain[:middle], plain[middle:])
            return middle > 0 and all(map(self._are_clean_together, halves))
        return not any(look(whole) for look in self._looks)
