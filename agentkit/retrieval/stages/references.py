"""``References``: tools that give what the best tools need."""

from __future__ import annotations

from agentkit.errors import UsageError
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.index.name_words import NameWordsChannel
from agentkit.retrieval.retriever import Hit
from agentkit.retrieval.survivors import Survivors
from agentkit.tools.definition import ToolDefinition

_SHARE = 0.95
"""What a tool gets of the score of the tool that needs it: a place right behind it."""


class References:
    """Lifts tools that the best ones name as the source of a required argument, and cuts.

    In catalogues of web services the text of a parameter often says where its value comes from:
    ``hotel_id``: *can be retrieved from Search Hotels*. A request for hotel reviews then needs a
    tool that it shares no word with. From the best tools their required parameters' texts are
    read; a tool that these mention (``NameWordsChannel``) rises to right behind the one that needs
    it, and is read next. Texts without mentions change nothing.

    It can not bring back what an earlier stage dropped, so let the ranking before it keep all:
    ``Description(cut=False)``.

    Args:
        keep: How many tools go on to the next stage.
        follow: How many of the best tools are read.
        hops: How often: 2 also finds what a needed tool needs itself.
    """

    name = "references"

    def __init__(self, *, keep: int = 32, follow: int = 5, hops: int = 2) -> None:
        if keep < 1 or follow < 1 or hops < 1:
            raise UsageError(f"keep={keep}, follow={follow} and hops={hops} must be at least 1")
        self._keep = keep
        self._follow = follow
        self._hops = hops
        self._names = NameWordsChannel()
        self.channels = (self._names,)

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Keep the ``keep`` best after lifting what they need."""
        read: dict[str, list[str]] = {}
        for _ in range(self._hops):
            needed = self._needed(survivors, read)
            if not needed:
                break
            survivors = survivors.add(
                {name: gain for name, (gain, _) in needed.items()},
                reason={name: f"gives what {user} needs" for name, (_, user) in needed.items()},
                field=self.name,
            )
        return survivors.best(self._keep)

    def _needed(
        self, survivors: Survivors, read: dict[str, list[str]]
    ) -> dict[str, tuple[float, str]]:
        """By name of a tool that is to rise: by how much, and who needs it.

        Args:
            survivors: The ranking so far.
            read: What tools mention, by name; those that are read now are added.
        """
        scores = {hit.definition.name: hit.score for hit in survivors.hits}
        needed: dict[str, tuple[float, str]] = {}
        for hit in survivors.hits[: self._follow]:
            user = hit.definition.name
            if user not in read:
                read[user] = self._sources(survivors, hit.definition)
            for name in read[user]:
                gain = _SHARE * _fit(hit) - scores.get(name, 0.0)
                if name != user and gain > max(needed.get(name, (0.0, ""))[0], 1e-6):
                    needed[name] = (gain, user)
        return needed

    def _sources(self, survivors: Survivors, definition: ToolDefinition) -> list[str]:
        required = definition.signature.required
        texts = definition.description.parameters
        return [
            name
            for parameter, text in texts.items()
            if parameter.split(".", maxsplit=1)[0] in required
            for name in self._names.mentioned(survivors.index, text)
            if survivors.has(name)
        ]


def _fit(hit: Hit) -> float:
    """The score of a tool without what it has for being called by name, which is no one else's."""
    return hit.score - hit.fields.get("name", 0.0)
