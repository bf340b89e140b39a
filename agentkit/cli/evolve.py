"""``agentkit evolve``: let tools' definitions repair themselves from what went wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

import click

from agentkit._version import __version__
from agentkit._waiting import wait_for
from agentkit.cli.boundary import Failure
from agentkit.cli.evaluate import AskingOptions, listener, report_left_out
from agentkit.cli.loading import load_tools
from agentkit.cli.options import (
    Answers,
    AsJson,
    FromZero,
    StoreUrl,
    Targets,
    command,
    is_typed,
    option,
    typed,
)
from agentkit.cli.output import LineProgress, one_line, print_json, say
from agentkit.cli.project import current_project, own_folder
from agentkit.cli.run import ask_at_terminal, report_binding
from agentkit.cli.stores import (
    manager_of,
    opened,
    opened_if_there,
    opened_to_read,
    tool_traffic,
)
from agentkit.episodes import Episode
from agentkit.episodes.labels import as_own, is_imported
from agentkit.errors import AgentKitError, StoreError, UsageError
from agentkit.evaluation.held_out import HeldOut, deciding_tasks, is_held_out_answer
from agentkit.evaluation.results.texts import label_name, shown, visible
from agentkit.evaluation.settings import EvaluationLabels, ignore
from agentkit.evaluation.task import Benchmark
from agentkit.evaluation.task_files import is_benchmark_name, load_benchmark
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.exploration import explore
from agentkit.evolution.incremental import EpisodePlace, RoundCursor, RoundEpisodes, read_round
from agentkit.evolution.mining import MiningConfig
from agentkit.evolution.proposal import SUBJECTS, Proposer, Subject
from agentkit.evolution.proposers.composites import CompositeStream
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.optimizer import load_gepa
from agentkit.evolution.proposers.streams import EvolutionStream, FeedbackStream
from agentkit.evolution.review import STATE_WORDS
from agentkit.evolution.round import EvolutionReport, LookedAt, ProposerRun, evolve, evolving
from agentkit.evolution.worth import WorthProposer
from agentkit.library import Library, Store
from agentkit.library.code_registration import bind_code
from agentkit.library.opening import file_of
from agentkit.models.base import resolve_model
from agentkit.tools.canonical import digest
from agentkit.tools.error_messages import plural
from agentkit.tools.tool import Tool

WATCH_SECONDS = 30.0
"""Seconds between looks of ``--watch`` for new episodes."""

Step = Literal["evidence", "worth", "evolution", "feedback", "composites", "mine", "learn"]
"""What a round may do; 'feedback' and 'composites' ask the model of --feedback-model."""

_NEXT = "agentkit evolve --tools FILE.py, or agentkit tools add FILE.py first"
_LONGEST = 300
_MOST_FAILING = 5
_MOST_PASSED_OVER = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundOptions:
    """What a round looks at, and what it may do.

    Attributes:
        own: Also learn from imported episodes: your own agents made them. Episodes of strangers
            could teach anything.
        every: Read every episode. Otherwise a round reads what came since the last one, and earlier
            episodes of the tools that it bears on; with --tool always every one.
        tool (NAME): Only this tool, or these instructions
        explore (NAME): First probe this tool of --tools, which must be declared to only read, with
            values from its schema, its examples and its errors. Each probe is an episode.
        budget: Most probes of each tool of --explore.
        probe_anyway (NAME): Yes, --explore may probe this tool although it may write.
        tasks (NAME|FILE): Held-out tasks, as for 'agentkit eval'. Those that the episodes come from
            are left out; if all were asked, one half teaches and the other decides. Without tasks
            proposals wait for a person.
        feedback_model (NAME): A model that reads failures and successes and proposes changes and
            composites. Without one, only the words of tools and verifiers are used.
        judge (MODEL): A model that reads the changes that need a judge; without one they wait for a
            person.
        subjects: Propose changes only of the definitions of tools, or only of instructions. Agents
            keep instructions in the library when these have a name. [default: both]
        gepa: Also let GEPA search for better texts of the one --tool, in at most this many attempts
            at those of --tasks that do not decide. It reflects with --feedback-model, and needs the
            extra 'gepa'. 0 for none.
        only: Do only this step
    """

    own: bool = False
    every: Annotated[bool, option("--full")] = False
    tool: tuple[str, ...] = ()
    explore: tuple[str, ...] = ()
    budget: int = 30
    probe_anyway: tuple[str, ...] = ()
    tasks: str = ""
    feedback_model: str | None = None
    judge: str = ""
    subjects: tuple[Subject, ...] = ()
    gepa: FromZero = 0
    only: tuple[Step, ...] = ()
    answers: Answers
    targets: Targets

    def proposers(
        self, worth: WorthProposer, library: Library, compare: HeldOut | None
    ) -> list[Proposer]:
        """The proposers of changes."""
        found: list[tuple[str, Proposer]] = [("evidence", EvidenceProposer()), ("worth", worth)]
        if self.feedback_model is None:
            found.append(("evolution", EvolutionStream()))  # reads what models wrote unasked
        else:
            model, subjects = resolve_model(self.feedback_model), self.subjects or SUBJECTS
            is_held = model.name.startswith("local:")  # they do not keep to a form alone
            found += [
                ("feedback", FeedbackStream(model, subjects=subjects, structured=is_held)),
                ("evolution", EvolutionStream(model, structured=is_held)),
                ("composites", CompositeStream(model)),
            ]
            if self.gepa and compare is not None:
                optimizer = compare.optimizer(model, self.tool[0], library, attempts=self.gepa)
                found.append(("gepa", optimizer))
        return [proposer for step, proposer in found if self.does(step)]

    def does(self, step: str) -> bool:
        """Whether a step is asked for; only feedback and GEPA concern instructions."""
        if step == "gepa":
            return True
        is_wanted = step == "feedback" or "tools" in (self.subjects or SUBJECTS)
        return is_wanted and (not self.only or step in self.only)


@command("evolve")
def evolution_round(
    *,
    what: RoundOptions,
    how: AskingOptions,
    shadow: bool = False,
    canary: bool = False,
    watch: Annotated[float | None, option(is_flag=False, flag_value=WATCH_SECONDS)] = None,
    while_process: Annotated[int | None, option(hidden=True)] = None,
    store_url: StoreUrl,
    as_json: AsJson,
) -> None:
    """Learn from episodes: propose changes of definitions, and promote what helps.

    Every proposal is checked, then compared with the current definition on held-out tasks; only a
    gain is promoted. Without tasks it waits for you ('agentkit review'), or for the results of
    shadow and canary. Each round also advances earlier proposals. The exit status is 1 when nothing
    was learned because the library does not know the tools.

    Args:
        shadow: First try proposals beside the answers, unseen.
        canary: First let proposals serve a share of the sessions.
        watch ([SECONDS]): Keep running: make a round whenever there are new episodes, checked
            every 30 s.
        while_process: End --watch with this process.

    Examples:
      agentkit evolve
      agentkit evolve --tools my_shop.py --tasks held_out.jsonl --environment my_shop.py
      agentkit evolve --feedback-model openai:gpt-4o-mini --judge openai:gpt-4o
      agentkit evolve --tools my_shop.py --explore shipping_cost --budget 20
      agentkit evolve --watch --canary
    """
    policy = replace(current_project().policy, shadow=shadow, canary=canary)
    if is_benchmark_name(what.tasks) and not is_typed("environment"):
        how = replace(how, environment=None)  # the project's is for the project's tasks
    round_ = _Round(what=what, how=how, policy=policy, store_url=store_url, quiet=watch is not None)
    if watch is not None:
        if what.explore:
            raise UsageError("--explore probes in one round; leave --watch out")
        if as_json:
            raise UsageError("--watch writes what it does, line by line; leave --json out")
        _watch(round_, pause=watch, parent=while_process)
        return
    opening = opened if what.targets else opened_to_read
    with opening(store_url) as store, evolving(store_url):
        outcome = round_.make(store)
    print_json(outcome.to_json()) if as_json else _print_round(outcome)
    if outcome.unknown_tools and not outcome.has_learned:
        raise Failure(
            f"the library does not know {', '.join(map(repr, outcome.unknown_tools))}, so nothing "
            f"was learned; give their code: {_NEXT}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Round:
    """Makes rounds as a command line asks for them."""

    what: RoundOptions
    how: AskingOptions
    policy: LifecyclePolicy
    store_url: str
    quiet: bool

    def make(self, store: Store) -> EvolutionReport:
        """Make one round."""
        what = self.what
        if what.gepa:
            if not (what.tasks and what.feedback_model and len(what.tool) == 1):
                raise UsageError("--gepa needs --tasks, --feedback-model and one --tool")
            load_gepa()  # says what to install before anything is asked
        code = load_tools(what.targets)
        report_binding(bind_code(store, code)[1])
        manager = manager_of(store, code, lifecycle=self.policy, judge=what.judge)
        named = (*what.tool, *what.explore)
        if absent := [name for name in named if name not in manager.library]:
            raise UsageError(f"the library has no tool {', '.join(map(repr, absent))}")
        self._explore(store, code, manager.library)
        benchmark = self._benchmark(manager.library)
        reading = self._reading(manager.library, benchmark)
        with (
            opened_if_there(what.answers) as evaluations,
            self._compared(benchmark, reading) as (compare, lessons),
        ):
            traffic = tool_traffic(store, evaluations, reading.cursor.late)
            worth = WorthProposer(manager, traffic=traffic, rules=current_project().rules)
            outcome = wait_for(
                evolve(
                    manager,
                    what.proposers(worth, manager.library, compare),
                    episodes=lessons,
                    reading=reading,
                    compare=compare,
                    rules=current_project().rules,
                    tools=what.tool,
                    mining=MiningConfig() if what.does("mine") else None,
                    learning=what.does("learn"),
                )
            )
        is_done = outcome.has_learned or not outcome.unknown_tools
        if is_done and not outcome.silent and not what.tool:
            self._keep(reading.cursor, self._key(benchmark))
        return outcome

    @property
    def _places(self) -> tuple[str, ...]:
        """The stores of episodes; runs of ``agentkit eval`` have their own."""
        return tuple(dict.fromkeys((self.store_url, self.what.answers)))

    def _reading(self, library: Library, benchmark: Benchmark | None) -> RoundEpisodes:
        """What is new, and what it bears on; everything where the round is about some tools."""
        what, path, tasks = self.what, self._cursor_file, _ids(benchmark)
        is_whole = what.every or what.tool or path is None
        cursor = None if is_whole or path is None else RoundCursor.read(path, self._key(benchmark))
        with ExitStack() as held:
            stores = {name: held.enter_context(opened_if_there(name)) for name in self._places}
            places = [
                EpisodePlace(name=name, store=store, taken=self._taken)
                for name, store in stores.items()
                if store is not None
            ]
            reading = read_round(places, library, cursor, tasks)
            if cursor is not None and benchmark is not None:
                before, now = (
                    deciding_tasks(benchmark.tasks, seen=one.asked)
                    for one in (cursor, reading.cursor)
                )
                if before != now:  # what some tasks showed may be learned from by now, or no more
                    reading = read_round(places, library, None, tasks)
        if not reading.cursor.newest or (reading.fresh is None and not reading.episodes):
            raise UsageError(
                f"{' or '.join(self._places)} holds no episodes to learn from; 'agentkit run', "
                "'agentkit serve' and 'agentkit eval' make some"
            )
        return reading

    def _taken(self, record: Episode) -> Episode | None:
        """An episode as rounds may see it: never the answer to a held-out task."""
        if is_held_out_answer(record):
            return None
        return as_own(record) if self.what.own else record

    def _key(self, benchmark: Benchmark | None) -> str:
        """What rounds of this kind learn from; those of another kind begin anew."""
        what = self.what
        steps = (sorted(what.only), sorted(what.subjects))
        kind = (__version__, what.answers, what.own, steps, what.feedback_model or "")
        return digest([*map(str, kind), *_ids(benchmark)])

    @property
    def _cursor_file(self) -> Path | None:
        """Where it is kept how far rounds have read; None where there is no place for it."""
        file = file_of(self.store_url)
        if file is not None:
            return file.with_name(f"{file.name}.evolved")
        folder = own_folder()
        return folder / f"{digest(self.store_url)[:16]}.evolved" if folder.is_dir() else None

    def _keep(self, cursor: RoundCursor, key: str) -> None:
        """Keep how far this round has read."""
        if (path := self._cursor_file) is not None:
            try:
                cursor.write(path, key)
            except OSError as error:
                say(f"{path} cannot be written, so the next round reads every episode: {error}")

    def _explore(self, store: Store, code: Sequence[Tool], library: Library) -> None:
        """Probe the tools that are asked for; the store keeps the probes for this round."""
        by_name = {one.name: one for one in code}
        for name in self.what.explore:
            definition = library[name].definition
            tool = by_name.get(name, library[name]).with_definition(definition)
            asked = explore(
                tool,
                budget=self.what.budget,
                agreed=self.what.probe_anyway,
                store=store,
                approve=ask_at_terminal(yes=False),
            )
            say(str(wait_for(asked)))

    def _benchmark(self, library: Library) -> Benchmark | None:
        """The held-out tasks."""
        what, how = self.what, self.how
        if not what.tasks:
            return None
        benchmark = load_benchmark(
            what.tasks,
            data=how.data,
            tools=() if how.environment else library.tools.values(),
            environment=how.environment,
        )
        report_left_out(benchmark, what.tasks)
        return benchmark

    @contextmanager
    def _compared(
        self, benchmark: Benchmark | None, reading: RoundEpisodes
    ) -> Iterator[tuple[HeldOut | None, Sequence[Episode]]]:
        """The held-out comparer, None without such tasks, and what may be learned."""
        what, how, episodes = self.what, self.how, reading.episodes
        if benchmark is None:
            yield None, episodes
            return
        ours = (one for one in episodes if not is_imported(one.metadata))
        labels = filter(None, map(EvaluationLabels.of, ours))
        seen = reading.cursor.asked | {one.task for one in labels if one.task}
        deciding = deciding_tasks(benchmark.tasks, seen=seen)
        lessons = [one for one in episodes if one.metadata.get("task") not in deciding]
        model = resolve_model(how.model)
        with opened(what.answers) as answers:
            compare = HeldOut(
                benchmark=benchmark,
                model=model,
                store=answers,
                learned_from={one.task_id for one in benchmark.tasks} - deciding,
                settings=how.settings(),
                concurrency=how.at_once(model),
                begin=lambda words: ignore if self.quiet else listener(LineProgress(words)),
            )
            yield compare, lessons

    def newest(self) -> tuple[str, ...] | None:
        """The ids of the newest records of the places that rounds read; None for none."""
        found = []
        for place in self._places:
            with opened_if_there(place) as store:
                records = () if store is None else store.select()
                newest = (one for one in records if not is_held_out_answer(one))
                found += [one.episode_id for one in islice(newest, 1)]
        return tuple(found) or None


def _ids(benchmark: Benchmark | None) -> list[str]:
    return [] if benchmark is None else [one.task_id for one in benchmark.tasks]


def _watch(round_: _Round, *, pause: float, parent: int | None) -> None:
    """Make a round whenever something happened, until Ctrl-C or until ``parent`` has ended."""
    last = None
    with opened(round_.store_url) as store, _in_turn(round_.store_url, pause=pause, parent=parent):
        say(f"watching {round_.store_url} every {pause:g} s; Ctrl-C stops")
        while parent is None or os.getppid() == parent:
            newest = round_.newest()
            if newest is not None and newest != last:
                last = newest
                try:
                    outcome = round_.make(store)
                except AgentKitError as error:  # the next round may do better
                    say(f"the round failed, and is made again with the next episodes: {error}")
                else:  # what waits as it waited before is left out
                    moved = [one for one in outcome.considered if one.before != one.record.state]
                    at = datetime.now(UTC).isoformat(timespec="seconds")
                    for line in _decisions(replace(outcome, considered=tuple(moved))):
                        say(f"{at} {line}")
            time.sleep(pause)


@contextmanager
def _in_turn(store_url: str, *, pause: float, parent: int | None) -> Iterator[None]:
    """The right to evolve; beside a server it is waited for, since the round of another ends."""
    with ExitStack() as held:
        announced = False
        while True:
            try:
                held.enter_context(evolving(store_url))
                break
            except StoreError as error:
                if parent is None or os.getppid() != parent:
                    raise
                if not announced:
                    say(f"{error}; until then this server does not evolve")
                announced = True
            time.sleep(pause)
        yield


def _print_round(outcome: EvolutionReport) -> None:
    """Report what a round looked at, its decisions, what it skipped, and what to do next."""
    seen = outcome.looked_at
    looked = f"{plural(seen.episodes, 'episode')}, {seen.judged:,} judged"
    also = f"; read {seen.earlier:,} of earlier rounds again" if seen.earlier else ""
    say(f"looked at {looked}, {seen.went_wrong:,} went wrong{also}")
    if seen.imported:
        note = "which anybody may have written; --own learns from them too"
        say(f"skipped {plural(seen.imported, 'imported episode')}, {note}")
    for one in seen.failing[:_MOST_FAILING]:
        labels = ", ".join(f"{label_name(name)} {count:,.0f}" for name, count in one.labels.items())
        calls = plural(round(one.observed), "call")
        say(f"  {shown(one.tool)}: {one.failures:,.0f} of {calls}: {labels}")
    for run in outcome.proposers:
        say(f"  {_cost(run)}")
    for line in _decisions(outcome):
        click.echo(visible(line))
    for passed in outcome.passed_over[:_MOST_PASSED_OVER]:
        click.echo(f"skipped {shown(passed.place)}: {one_line(shown(passed.why, _LONGEST))}")
    rest = len(outcome.passed_over) - _MOST_PASSED_OVER
    if rest > 0:
        say(f"  and {rest:,} more; --json has all")
    if not (outcome.has_learned or outcome.passed_over):
        say(_why_nothing(seen))
    changed = f", library version {outcome.after}" if outcome.after != outcome.before else ""
    count = plural(len(outcome.considered), "proposal")
    say(f"{count}, {len(outcome.promoted)} promoted{changed}")
    for line in _next_commands(outcome):
        say(f"next: {line}{typed('store', 'store_url')}")


def _cost(run: ProposerRun) -> str:
    """Who looked, what came of it, and what it cost."""
    new = f"{len(run.proposals):,} new" if run.proposals else "nothing new"
    came = f"{plural(run.suggestions, 'suggestion')}, {new}" if run.suggestions else "no suggestion"
    if run.proposer.startswith("judge"):
        came = f"read {plural(len(run.proposals), 'proposal')}"
    tokens = f"{plural(run.usage.total_tokens, 'token')}, " if run.usage.requests else ""
    return f"{shown(run.proposer)}: {came} ({tokens}{run.seconds:.1f} s)"


def _decisions(outcome: EvolutionReport) -> Iterator[str]:
    """A line for each proposal, for what was learned, and for each proposer that was silent."""
    for one in outcome.considered:
        record, why = one.record, one.why
        if one.report is not None and one.report.reason not in why:
            why = f"{one.report.reason}; {why}"
        reason = one_line(shown(why, _LONGEST))
        state = STATE_WORDS[record.state]
        yield f"{shown(record.tool_name)}: {state}; {reason} ({shown(record.proposal_id)})"
        if record.reason:
            yield f"  {one_line(shown(record.reason, _LONGEST))}"
    if outcome.learned is not None and outcome.learned.added:
        yield str(outcome.learned)
    for name, error in outcome.silent.items():
        yield f"{name} could not be asked: {shown(error, 200)}"


def _next_commands(outcome: EvolutionReport) -> list[str]:
    """Suggested next commands, the most useful first."""
    found = [f"agentkit review show {one.record.proposal_id}" for one in outcome.waiting[:3]]
    for one in outcome.promoted[:1]:
        found += [f"agentkit review show {one.record.proposal_id}", "agentkit eval"]
        found.append(f"agentkit rollback {shown(one.record.tool_name)}")
    missing = [one.command for one in outcome.passed_over if one.reason == "not_in_library"]
    found += dict.fromkeys(missing)
    has_examples = outcome.learned is not None and bool(outcome.learned.added)
    return found or ["agentkit eval" if has_examples else "agentkit episodes list"]


def _why_nothing(seen: LookedAt) -> str:
    """Why a round found nothing at all."""
    if not seen.episodes and seen.earlier:
        return "nothing is new since the last round; --full reads every episode again"
    if not seen.episodes:
        return "nothing is left to learn from: all episodes were imported, or answer held-out tasks"
    return "no refusal, no failed call and no verdict says what a tool should be like"
