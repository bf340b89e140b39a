"""``Signature``: does the typed goal fit what a tool takes and gives (L1)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agentkit.errors import UsageError
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.index.signatures import SignatureChannel, TypeTable
from agentkit.retrieval.survivors import Survivors
from agentkit.tools.types.fit import TypedSlot
from agentkit.tools.types.keys import UNIFIES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SURE = 0.95
"""A slot below is never a reason to drop a tool in soft mode."""

_MOST_COUNTED = 2
"""Inputs too many or too few that count; after two, the goal speaks of something else anyway."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeScoring:
    """What a goal and a signature that do not go together cost, as factors of a later score.

    Chosen on the development parts of BFCL, Seal-Tools and NESTful, with sub-goals that have all
    inputs, that lack two fifths of them, and that have 15% wrong types; ``docs/tools.md`` has
    the table. Neighbouring values give the same within half a point.

    Attributes:
        misfit: For a slot that surely does not fit; between it and 1 in proportion.
        lacking: For each required parameter beyond the inputs that the goal has, up to two.
        surplus: For each input of the goal beyond the parameters of the tool, up to two.
    """

    misfit: float = 0.6
    lacking: float = 0.9
    surplus: float = 0.7


class Signature:
    """Scores tools by how well the typed sub-goal fits their signature; drops few or none.

    The cheapest evidence comes first (CoCoDA, section 3.2). Where the paper drops each tool whose
    signature does not unify with the sub-goal (Algorithm 2, line 6), the default, ``soft``, hands
    a factor to the ranking stages: real catalogues declare little, and goals are guesses. Only
    inputs that are bound from real values (``TypedSlot.bound``, confidence .95 or more) drop
    tools, and only those tools that two of them surely do not fit. ``hard`` is the paper's line.

    A goal without types, and a tool that declares none, pass untouched: undeclared is the top of
    the lattice and changes no ranking.

    Args:
        mode: ``soft`` or ``hard``.
        scoring: The factors of ``soft``.
        back_off: When dropping leaves fewer tools than this, none is dropped and a note says so;
            32 by default, 0 (never) in mode ``hard``.
        channel: The index data to read.

    Raises:
        UsageError: The mode does not exist.
    """

    name = "signature"

    def __init__(
        self,
        *,
        mode: Literal["soft", "hard"] = "soft",
        scoring: TypeScoring | None = None,
        back_off: int | None = None,
        channel: SignatureChannel | None = None,
    ) -> None:
        if mode not in {"soft", "hard"}:
            raise UsageError(f"mode is {mode!r}; use 'soft' or 'hard'")
        self._mode = mode
        self._scoring = scoring or TypeScoring()
        self._back_off = back_off if back_off is not None else (0 if mode == "hard" else 32)
        self._types = channel or SignatureChannel()
        self.channels = (self._types,)

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Attach factors to tools, and drop those that surely do not fit."""
        inputs = [slot for slot in goal.inputs if not slot.is_untyped]
        output = None if goal.output is None or goal.output.is_untyped else goal.output
        if not inputs and output is None:
            return survivors
        fits = _Fits(_with_roles(inputs, output))
        if self._mode == "hard":
            return self._dropped(survivors, fits, range(len(fits.roles)), least=1)
        factors = self._types.by_row(
            survivors.index, lambda table: self._factors(table, fits, len(goal.inputs))
        )
        sure = [at for at, slot in enumerate(inputs) if slot.bound and slot.confidence >= _SURE]
        return self._dropped(survivors.scaled(factors), fits, sure, least=2)

    def _factors(self, table: TypeTable, fits: _Fits, named: int) -> NDArray[np.float32]:
        """float32[kinds]: the product of what each slot, and the number of inputs, cost."""
        import numpy as np

        factors = np.ones(len(table.kinds), np.float32)
        for (slot, _), fit in zip(fits.roles, fits.of(table), strict=True):
            factors *= 1 - (1 - self._scoring.misfit) * slot.confidence * (1 - fit)
        inputs = sum(not is_output for _, is_output in fits.roles)
        if inputs:
            lacking = np.clip(table.required.astype(np.int16) - named, 0, _MOST_COUNTED)
            surplus = np.clip(inputs - table.parameters.astype(np.int16), 0, _MOST_COUNTED)
            surplus[table.parameters == 0] = 0  # nothing declared
            factors *= _powers(self._scoring.lacking)[lacking]
            factors *= _powers(self._scoring.surplus)[surplus]
        return factors

    def _dropped(
        self, survivors: Survivors, fits: _Fits, places: Sequence[int], *, least: int
    ) -> Survivors:
        """The survivors without tools that at least ``least`` of some slots do not fit."""
        if len(places) < least:
            return survivors
        unfit = self._types.by_row(survivors.index, lambda table: fits.misfits(table, places))
        left = survivors.only(unfit < least)
        if len(left) >= min(self._back_off, len(survivors)):
            return left
        return survivors.note(
            f"signature: types would leave {len(left)} of {len(survivors)} tools, fewer than "
            f"{self._back_off}; none was dropped"
        )


class _Fits:
    """How well the slots of one goal fit the kinds of each table, worked out once."""

    def __init__(self, roles: Sequence[tuple[TypedSlot, bool]]) -> None:
        self.roles = roles
        self._known: dict[int, list[NDArray[np.float32]]] = {}

    def of(self, table: TypeTable) -> list[NDArray[np.float32]]:
        """float32[kinds] for each slot; the type alone counts, not how sure it is."""
        found = self._known.get(id(table))  # the index keeps its tables while this is in use
        if found is None:
            found = [table.fits(slot, is_output=is_output) for slot, is_output in self.roles]
            self._known[id(table)] = found
        return found

    def misfits(self, table: TypeTable, places: Sequence[int]) -> NDArray[np.float32]:
        """float32[kinds]: how many of the slots at these places do not unify."""
        import numpy as np

        count = np.zeros(len(table.kinds), np.float32)
        fits = self.of(table)
        for at in places:
            count += fits[at] < UNIFIES
        return count


def _powers(base: float) -> NDArray[np.float32]:
    """float32: the powers of a factor from 0 to the most that counts."""
    import numpy as np

    return np.array([base**power for power in range(_MOST_COUNTED + 1)], np.float32)


def _with_roles(
    inputs: Sequence[TypedSlot], output: TypedSlot | None
) -> list[tuple[TypedSlot, bool]]:
    """Each slot with whether it is the output."""
    return [*((slot, False) for slot in inputs), *([(output, True)] if output else [])]
