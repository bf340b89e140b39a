"""``Sorting``: which definitions of an artifact come in, which wait, and which are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from agentkit.evolution.lifecycle.ancestors import Tried
from agentkit.evolution.lifecycle.arriving import (
    broken_calls,
    moved_pins,
    needs_person,
    place_faults,
    settled,
    text_faults_of_all,
)
from agentkit.evolution.lifecycle.drafts import told
from agentkit.evolution.lifecycle.ledger import Ledger
from agentkit.evolution.validation.report import FailedCheck
from agentkit.export.requests import ImportedTool, ImportReport, ImportRequest, Outcome
from agentkit.library.conflicts import ImportPlan, plan_import
from agentkit.library.graph import in_order
from agentkit.library.library import Library
from agentkit.library.store import LibraryChange
from agentkit.tools.definition import ToolDefinition

_TAKEN = "the library has another definition of that name"


@dataclass(kw_only=True)
class _Sorted:
    """What is to be done with each definition, on one library."""

    outcomes: dict[str, ImportedTool] = field(default_factory=dict)
    accepted: dict[str, ToolDefinition] = field(default_factory=dict)
    proposing: dict[str, ToolDefinition] = field(default_factory=dict)
    overruled: list[str] = field(default_factory=list)


class Sorting:
    """Sorts the definitions of an artifact; anew when another writer was faster.

    Args:
        library: The definitions.
        request: Who imports them, and how.
        tried: By name of a composite: what its worked calls showed.
    """

    def __init__(
        self, library: Library, request: ImportRequest, tried: Mapping[str, Tried]
    ) -> None:
        self._library = library
        self._request = request
        self._tried = tried
        self._failed: dict[str, tuple[FailedCheck, ...]] = {}  # they do not depend on the library
        self._now = _Sorted()

    @property
    def accepted(self) -> Mapping[str, ToolDefinition]:
        """What comes in at once, by the name that it gets; children before parents."""
        return self._now.accepted

    @property
    def proposing(self) -> Mapping[str, ToolDefinition]:
        """What becomes a proposal, by its name in the artifact; children before parents."""
        return self._now.proposing

    def report(self, version: int) -> ImportReport:
        """What came of each definition, in the order of the artifact."""
        tools = (self._with_trial(self._now.outcomes[name]) for name in self._library.tools)
        return ImportReport(version=version, tools=tuple(tools))

    def change(self, held: Library, ledger: Ledger, identity: str) -> LibraryChange | None:
        """What is to be written on the newest library; None for nothing."""
        self.sort(held, ledger)
        if not self.accepted:
            return None
        return LibraryChange(
            proposal_id=identity,
            upserts=tuple(self.accepted.values()),
            author=self._request.person.name,
            reason="; ".join((self._request.reason, *self._now.overruled)),
        )

    def sort(self, held: Library, ledger: Ledger) -> None:
        """Sort the definitions on a library."""
        self._now = _Sorted()
        self._known = {**self._library.tools, **held.tools}
        plan = plan_import(self._coming(held), held, on_conflict=self._request.on_conflict)
        self._note_conflicts(plan)
        waiting = {
            record.candidate.digest
            for record in ledger.proposals.values()
            if record.is_open and record.is_arrival and record.candidate is not None
        }
        old_name = {new: old for old, new in plan.renamed}
        self._look_through(
            {
                old_name.get(new, new): definition
                for new, definition in plan.upserts.items()
                if new not in plan.replaced and definition.digest not in waiting
            }
        )
        for new, definition in plan.upserts.items():
            name = old_name.get(new, new)
            if new in plan.replaced:
                came = self._library[name].definition
                self._let_propose(name, came, "replaced", "it would become a proposal")
            elif definition.digest in waiting:
                agrees = self._request.agrees_to(name)
                why = "" if agrees else "the proposal to add it is not decided"
                self._let_propose(name, definition, "added" if agrees else "held", why)
            else:
                self._take(name, definition, held)

    def note(self, came: ImportedTool) -> None:
        """Note what came of a definition."""
        self._now.outcomes[came.name] = came

    def _coming(self, held: Library) -> Iterator[ToolDefinition]:
        """The definitions, children first; what came earlier and was pinned anew is known again."""
        library = self._library
        names = list(in_order(list(library.tools), library.dag.children))
        rest = [name for name in library.tools if name not in set(names)]
        for name in (*names, *rest):
            definition = library[name].definition
            yield settled(definition, held) if name in held else definition

    def _note_conflicts(self, plan: ImportPlan) -> None:
        for name in self._library.tools:
            self.note(ImportedTool(name=name, outcome="unchanged"))
        for name in plan.skipped:
            self.note(ImportedTool(name=name, outcome="skipped", why=_TAKEN))
        for name in plan.refused:
            self.note(ImportedTool(name=name, outcome="refused", why=_TAKEN))

    def _look_through(self, new: Mapping[str, ToolDefinition]) -> None:
        """Read the texts of new tools, by their names in the artifact; those of a tool once."""
        unread = {name: one for name, one in new.items() if name not in self._failed}
        self._failed.update(zip(unread, text_faults_of_all(tuple(unread.values())), strict=True))

    def _take(self, name: str, definition: ToolDefinition, held: Library) -> None:
        """A new tool: in, or held with the reason."""
        failed = self._failed[name]
        if failed and name not in self._request.overruled:
            self._let_propose(name, definition, "held", failed=failed)
            return
        if needs_person(definition, self._known) and not self._request.agrees_to(name):
            why = "a person must agree to it: it may do harm, or reach outside"
            self._let_propose(name, definition, "held", why)
            return
        if definition.is_composite and not self._fits(name, definition, held):
            return
        self._now.accepted[definition.name] = definition
        if failed:
            codes = ", ".join(dict.fromkeys(check.code for check in failed))
            self._now.overruled.append(f"overruled of {name!r}: {codes}")
        if definition.name == name:
            self.note(ImportedTool(name=name, outcome="added"))
        else:
            self.note(ImportedTool(name=name, outcome="renamed", why=definition.name))

    def _fits(self, name: str, definition: ToolDefinition, held: Library) -> bool:
        """Whether a composite is made of what is here, and does what it says; else it waits."""
        here = held.with_tools(self._now.accepted.values())
        moved = moved_pins(definition, settled(definition, here))
        if moved:
            agrees = self._request.agrees_to(name)
            self._let_propose(name, definition, "added" if agrees else "held", moved)
            return False
        unfit = place_faults(definition, here) or broken_calls(name, self._tried[name])
        if unfit:
            self._let_propose(name, definition, "held", failed=unfit)
        return not unfit

    def _let_propose(
        self,
        name: str,
        definition: ToolDefinition,
        outcome: Outcome,
        why: str = "",
        *,
        failed: Iterable[FailedCheck] = (),
    ) -> None:
        """Let a definition become a proposal."""
        checks = tuple(failed)
        self._now.proposing[name] = definition
        self.note(ImportedTool(name=name, outcome=outcome, why=why or told(checks), failed=checks))

    def _with_trial(self, came: ImportedTool) -> ImportedTool:
        tried = self._tried.get(came.name)
        is_in = came.outcome in {"added", "renamed", "replaced", "held"}
        return replace(came, untried=tried.unknown) if tried is not None and is_in else came
