"""``EvaluationLabels``: what the metadata of an episode says about its evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.episodes import Episode

_MOST_DIGITS = 18
"""More than any attempt has, and few enough for Python to read at all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationLabels:
    """Where an episode stands in the run of a benchmark.

    Episodes hold it as metadata, which is foreign text once it comes from a store or a file. So it
    is read leniently: only ``task`` has to be there, and what is no number stands for the first.

    Attributes:
        run: Name of the run.
        benchmark: Name and release of the questions.
        settings: How they were asked, as the text of ``settings_text``.
        task: Id of the task.
        category: Category of the task.
        attempt: Which try at the task it is of, from 0.
        user_turn: Which of the things the user says it answers, from 0.
        user_turns: How many the user says in the whole attempt.
        ends: Whether the attempt ends with it; one that a model error cut short never does.

    Example:
        >>> labels = EvaluationLabels(run="r", benchmark="b", task="t", ends=True)
        >>> labels.to_metadata()["ends"]
        'true'
    """

    run: str = ""
    benchmark: str = ""
    settings: str = ""
    task: str = ""
    category: str = ""
    attempt: int = 0
    user_turn: int = 0
    user_turns: int = 1
    ends: bool = False

    @classmethod
    def of(cls, episode: Episode) -> EvaluationLabels | None:
        """The labels of an episode; None when it has no label ``task``, so is of no evaluation."""
        found = episode.metadata
        if "task" not in found:
            return None
        return cls(
            run=str(found.get("run", "")),
            benchmark=str(found.get("benchmark", "")),
            settings=str(found.get("settings", "")),
            task=str(found["task"]),
            category=str(found.get("category", "")),
            attempt=_whole(found.get("attempt", "")),
            user_turn=_whole(found.get("user_turn", "")),
            user_turns=max(1, _whole(found.get("user_turns", ""))),
            ends=found.get("ends") == "true",
        )

    def to_metadata(self) -> dict[str, str]:
        """The labels as an episode holds them."""
        ending = {"ends": "true"} if self.ends else {}
        return {
            "run": self.run,
            "benchmark": self.benchmark,
            "settings": self.settings,
            "task": self.task,
            "category": self.category,
            "attempt": str(self.attempt),
            "user_turn": str(self.user_turn),
            "user_turns": str(self.user_turns),
            **ending,
        }


def _whole(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else 0
