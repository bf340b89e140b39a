"""What the pages share: a page and a place, who asks, and what they work with."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from agentkit.agent.agent import Agent
from agentkit.episodes import Episode
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import shown, shown_value, visible
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateConfig
from agentkit.evolution.manager import ToolManager
from agentkit.library.store import EpisodeStore, Store
from agentkit.retrieval.cascade import default_retriever
from agentkit.retrieval.retriever import Retriever
from agentkit_studio.access import Access, Role, User
from agentkit_studio.health_fold import Examination, HealthFold

HERE = Path(__file__).parent

Managed: TypeAlias = Callable[[LifecyclePolicy | None], ToolManager]
"""Makes a Tool Manager; None stands for the project's own policy."""

Agents: TypeAlias = Callable[[int | None, str], Agent[Any, Any]]
"""Makes an agent: pinned to a library version, or None for the newest; and with a model, by name,
or an empty text for the project's."""

_LONGEST_NUMBER = 12
_MOST_AGENTS = 8
"""Agents that are kept for the playground."""


class BadRequestError(UsageError):
    """A form or an address that says nothing, or what cannot be."""


class NotThereError(UsageError):
    """There is no proposal, tool or version of that name."""


def whole(text: str) -> int | None:
    """A library version as it was typed; None for nothing.

    Raises:
        BadRequestError: It is no whole number.
    """
    if not text.strip():
        return None
    if not (text.isascii() and text.isdigit() and len(text) < _LONGEST_NUMBER):
        raise BadRequestError(f"{text[:60]!r} is no library version; those are whole numbers.")
    return int(text)


_PLAIN = re.compile(r"[\w:-][\w.:-]{0,200}", re.ASCII)


def address_of(request: Request, route: str, /, **parts: str) -> str:
    """The path of a page.

    Parts that are no plain words, such as ids of strangers, are written in letters that no browser
    and no proxy reads anything into.
    """
    coded = {
        name: part
        if name == "path" or _PLAIN.fullmatch(part)  # ``path`` is that of a file of ours
        else "~" + base64.urlsafe_b64encode(part.encode("utf-8", "surrogatepass")).decode()
        for name, part in parts.items()
    }
    return request.url_for(route, **coded).path


def from_part(part: str) -> str:
    """What a part of a path stands for; the inverse of ``address_of``."""
    if not part.startswith("~"):
        return part
    try:
        return base64.urlsafe_b64decode(part[1:]).decode("utf-8", "surrogatepass")
    except ValueError as error:
        raise NotThereError(f"there is no page of {part[:80]!r}") from error


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page that is ready to be written.

    Attributes:
        template: Its file.
        section: Name of the place in the navigation that it belongs to.
        values: What it shows.
        status: The HTTP status.
    """

    template: str
    section: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, kw_only=True)
class Goto:
    """Another page to go to.

    Attributes:
        route: Name of its route.
        values: Parts of its path.
        query: What stands behind the question mark.
        notice: What has happened, shown once there.
    """

    route: str
    values: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    notice: str = ""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request to a page, with what the pages share.

    Attributes:
        studio: The library, the store and the agent.
        user: Who asks.
        path: Parts of the path.
        query: What stands behind the question mark.
        form: The fields of the form; empty for a page that is only read.
    """

    studio: Studio
    user: User
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)


Answer: TypeAlias = Page | Goto | Response
View: TypeAlias = Callable[[Asked], Answer | Awaitable[Answer]]
"""A page or an act: plain code that reads the store and runs in a thread, or async code."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """One address of the studio.

    Attributes:
        path: Its path, as Starlette writes it.
        name: Of the route, for links.
        view: What answers.
        role: Who may ask.
        acts: Whether it changes something: then it takes forms, and nothing else.
        title: What the navigation calls it; empty for what is not there.
    """

    path: str
    name: str
    view: View
    role: Role = "viewer"
    acts: bool = False
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Studio:
    """What the pages work with.

    Attributes:
        manager: Of the library; every act goes through it, as at the command line.
        managed: Makes a manager of the same library with another policy.
        store: Where library and episodes are.
        agents: For the playground, and to go on with runs that wait; None for none.
        models: Models that the playground may ask beside the project's.
        access: Who may do what.
        replays: Makes agents that answer as those of ``agents`` do and run no call; None for none.
        retriever: Ranks tools, as the project does.
        gates: The knobs of the gates, for the pictures of their numbers.
        title: Name of the project.
        places: All addresses.
        evaluations: Where answers of ``agentkit eval`` are; None for nowhere.
        waiting: Requests for pages that are being answered.
    """

    manager: ToolManager
    managed: Managed
    store: Store
    access: Access
    agents: Agents | None = None
    models: Sequence[str] = ()
    replays: Agents | None = None
    retriever: Retriever = field(default_factory=default_retriever)
    gates: GateConfig = GateConfig()  # noqa: RUF009 - frozen
    title: str = "agentkit"
    places: Sequence[Place] = ()
    evaluations: EpisodeStore | None = None
    waiting: set[int] = field(default_factory=set)
    _made: dict[tuple[int | None, str, bool], Agent[Any, Any]] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)

    def agent_at(
        self, version: int | None = None, model: str = "", *, replays: bool = False
    ) -> Agent[Any, Any]:
        """The agent of a library version and a model, made when it is first asked for.

        Raises:
            UsageError: The studio was started without tools, so there is none; or its factory
                gives none.
        """
        if model and model not in self.models:
            raise BadRequestError(
                f"The studio asks no model {model[:100]!r}; start it with --also."
            )
        agents = self.replays if replays else self.agents
        if agents is None:
            raise UsageError(
                "the studio has no agent: start it with the agent's tools, "
                "agentkit studio --tools FILE.py"
            )
        key = version, model, replays
        with self._making:
            if key not in self._made:
                while len(self._made) >= _MOST_AGENTS:
                    self._made.pop(next(iter(self._made)))
                made = agents(version, model)
                if not isinstance(made, Agent):
                    raise UsageError(
                        f"{'replays' if replays else 'agents'} gave no Agent: {made!r:.100}"
                    )
                self._made[key] = made
            agent = self._made[key]
        if version is None:
            agent.refresh()  # what was promoted a moment ago is to be tried
        return agent

    @cached_property
    def health(self) -> HealthFold:
        """The numbers of the episodes."""
        return HealthFold(
            self.store,
            self.is_busy,
            evaluations=self.evaluations,
            changed=lambda: {
                one.tool_name
                for one in self.manager.ledger.proposals.values()
                if one.activation is not None
            },
        )

    def find(self, episode_id: str) -> Episode | None:
        """An episode of the store, or an answer of ``agentkit eval``."""
        found = self.store.get(episode_id)
        return found if self.evaluations is None or found else self.evaluations.get(episode_id)

    @cached_property
    def examination(self) -> Examination:
        """What the doctor finds."""
        return Examination(self.is_busy)

    def is_busy(self) -> bool:
        """Whether somebody waits for a page."""
        return bool(self.waiting)

    @cached_property
    def templates(self) -> Environment:
        """The templates; whatever they show is text, never markup."""
        made = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.filters |= {"shown": shown, "visible": visible, "when": _when, "value": shown_value}
        return made

    def written(self, request: Request, user: User | None, page: Page) -> Response:
        """A page as HTML; for a stranger without a way to others."""
        template = self.templates.get_template(page.template)
        html = template.render(
            user=user or User(name="", role="viewer"),
            studio=self,
            csrf=self.access.csrf_token(request, user),
            notice=request.session.pop("notice", ""),
            pages=[(place.name, place.title) for place in self.places if place.title],
            section=page.section,
            url=partial(address_of, request),
            **page.values,
        )
        return HTMLResponse(html, status_code=page.status)


def _when(at: str) -> str:
    """A time as people read it."""
    return visible(at[:16].replace("T", " "))
