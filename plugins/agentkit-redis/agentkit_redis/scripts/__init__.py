"""The Lua scripts that write: each runs as one step, while nobody else is served."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files


@dataclass(frozen=True, kw_only=True)
class Script:
    """A Lua script of this package.

    Attributes:
        name: Of its file, without the ending.
    """

    name: str

    @cached_property
    def source(self) -> str:
        """Its text, behind what all scripts share."""
        return _text("rights") + _text(self.name)

    @cached_property
    def sha(self) -> str:
        """The name under which a server knows it once it has seen it."""
        return hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()


def _text(name: str) -> str:
    return files(__package__).joinpath(f"{name}.lua").read_text(encoding="utf-8")


BEGIN = Script(name="begin")
REHEARSE = Script(name="rehearse")
COMMIT = Script(name="commit")
KEEP_EPISODES = Script(name="keep_episodes")
DROP_EPISODES = Script(name="drop_episodes")
