"""``create_studio``: the pages as one Starlette application."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from agentkit.agent.agent import Agent
from agentkit.errors import AgentKitError, UsageError
from agentkit.evaluation.results.texts import shown, visible
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.manager import ToolManager
from agentkit.library.store import Store
from agentkit.retrieval.cascade import default_retriever
from agentkit.retrieval.retriever import Retriever
from agentkit.server.limits import ServerLimits
from agentkit.server.runs import Runs
from agentkit_studio.access import (
    Access,
    ForbiddenError,
    Headers,
    Prefix,
    Role,
    User,
    check_form,
    csrf_token,
)

_HERE = Path(__file__).parent
_MOST_FORM_FIELDS = 200


Managed: TypeAlias = Callable[[LifecyclePolicy | None], ToolManager]
"""Makes a Tool Manager; None stands for the project's own policy."""

Agents: TypeAlias = Callable[[int | None, str], Agent[Any, Any]]
"""Makes an agent: pinned to a library version, or None for the newest; and with a model, by name,
or an empty text for the project's."""

_MOST_AGENTS = 8
"""Agents that are kept for the playground."""


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
        notice: What has happened, shown once there.
    """

    route: str
    values: Mapping[str, str] = field(default_factory=dict)
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
        access: Who may do what.
        title: Name of the project.
        places: All addresses.
    """

    manager: ToolManager
    managed: Managed
    store: Store
    access: Access
    agents: Agents | None = None
    title: str = "agentkit"
    places: Sequence[Place] = ()
    _made: dict[tuple[int | None, str], Agent[Any, Any]] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)

    def agent_at(self, version: int | None = None, model: str = "") -> Agent[Any, Any]:
        """The agent of a library version and a model, made when it is first asked for.

        Raises:
            UsageError: The studio was started without tools, so there is none.
        """
        if self.agents is None:
            raise UsageError(
                "the studio has no agent: start it with the agent's tools, "
                "agentkit studio --tools FILE.py"
            )
        key = version, model
        with self._making:
            if key not in self._made:
                while len(self._made) >= _MOST_AGENTS:
                    self._made.pop(next(iter(self._made)))
                self._made[key] = self.agents(version, model)
            return self._made[key]

    @cached_property
    def retriever(self) -> Retriever:
        """Ranks tools as an agent's retriever does."""
        return default_retriever()

    @cached_property
    def templates(self) -> Environment:
        """The templates; whatever they show is text, never markup."""
        made = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.filters |= {"shown": shown, "visible": visible, "when": _when}
        return made

    def written(self, request: Request, user: User, page: Page) -> Response:
        """A page as HTML."""
        template = self.templates.get_template(page.template)
        html = template.render(
            user=user,
            studio=self,
            csrf=csrf_token(request),
            notice=request.session.pop("notice", ""),
            pages=[(place.name, place.title) for place in self.places if place.title],
            section=page.section,
            url=lambda route, /, **parts: request.url_for(route, **parts).path,
            **page.values,
        )
        return HTMLResponse(html, status_code=page.status)


def _when(at: str) -> str:
    """A time as people read it."""
    return at[:16].replace("T", " ")


def create_studio(
    managed: Managed,
    store: Store,
    *,
    access: Access,
    agents: Agents | None = None,
    title: str = "agentkit",
    https: bool = False,
    prefix: str = "",
) -> Starlette:
    """The studio as an ASGI application.

    Args:
        managed: Makes the manager of the library that is reviewed, with a policy or that of the
            project.
        store: Where library and episodes are.
        access: Who may do what.
        agents: Makes the agents that answer in the playground; without it there is none.
        title: Name of the project.
        https: Whether cookies are sent over TLS alone.
        prefix: The path at which a proxy mounts it, whether or not the proxy takes it off.
    """
    from agentkit_studio import calls, episodes, inbox, playground, tools

    places = tuple(
        place for pages in (inbox, tools, episodes, playground, calls) for place in pages.PLACES
    )
    studio = Studio(
        manager=managed(None),
        managed=managed,
        store=store,
        access=access,
        agents=agents,
        title=title,
        places=places,
    )
    routes: list[Any] = [
        Route("/login", _login(studio), name="login", methods=["GET", "POST"]),
        Mount("/static", StaticFiles(directory=_HERE / "static"), name="static"),
        *(
            Route(
                place.path,
                _endpoint(studio, place),
                name=place.name,
                methods=["POST"] if place.acts else ["GET"],
            )
            for place in places
        ),
    ]
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(Prefix, prefix=prefix.rstrip("/")),
            Middleware(Headers),
            Middleware(
                SessionMiddleware,
                secret_key=access.secret,
                session_cookie="agentkit_studio",
                same_site="strict",
                https_only=https,
                max_age=14 * 24 * 3600,
            ),
        ],
        exception_handlers={
            HTTPException: _sorry(studio),
            ForbiddenError: _sorry(studio),
            AgentKitError: _sorry(studio),
            Exception: _sorry(studio),
        },
    )
    app.state.studio = studio
    app.state.limits, app.state.has_keys, app.state.runs = ServerLimits(), True, Runs()
    return app


def _endpoint(studio: Studio, place: Place) -> Callable[[Request], Awaitable[Response]]:
    """An address as Starlette takes it: the user is known, forms are checked, the view runs."""

    async def answer(request: Request) -> Response:
        user = studio.access.user_of(request)
        if user is None:
            return await _let_in(studio, request)
        if not user.may(place.role):
            raise ForbiddenError(f"{user.name} is a {user.role}; this takes a {place.role}")
        form: dict[str, str] = {}
        if place.acts:
            async with request.form(max_fields=_MOST_FORM_FIELDS, max_files=0) as sent:
                form = {name: value for name, value in sent.items() if isinstance(value, str)}
            check_form(request, form.pop("csrf", "") or request.headers.get("x-csrf", ""))
        asked = Asked(
            studio=studio,
            user=user,
            path=dict(request.path_params),
            query=dict(request.query_params),
            form=form,
        )
        given: Any
        if inspect.iscoroutinefunction(place.view):
            given = await place.view(asked)
        else:
            given = await run_in_threadpool(place.view, asked)
        found: Answer = given
        if isinstance(found, Page):
            return await run_in_threadpool(studio.written, request, user, found)
        if isinstance(found, Goto):
            request.session["notice"] = found.notice[:300]
            return RedirectResponse(request.url_for(found.route, **found.values).path, 303)
        return found

    return answer


async def _let_in(studio: Studio, request: Request) -> Response:
    """A stranger's request: a key in the address opens a session and leaves the address."""
    key = request.query_params.get("key", "")
    if key and studio.access.log_in(request, key) is not None:
        return RedirectResponse(request.url.path, 303)
    if studio.access.keys is None:
        raise ForbiddenError("the proxy in front of the studio named no user")
    return RedirectResponse(request.url_for("login").path, 303)


def _login(studio: Studio) -> Callable[[Request], Awaitable[Response]]:
    """The form that takes a key."""

    async def answer(request: Request) -> Response:
        wrong = False
        if request.method == "POST":
            async with request.form(max_fields=4, max_files=0) as sent:
                check_form(request, str(sent.get("csrf", "")))
                if studio.access.log_in(request, str(sent.get("key", ""))) is not None:
                    return RedirectResponse(request.url_for("inbox").path, 303)
                wrong = True
        nobody = User(name="", role="viewer")
        page = Page(template="login.html", values={"wrong": wrong}, status=403 if wrong else 200)
        return studio.written(request, nobody, page)

    return answer


def _sorry(studio: Studio) -> Callable[[Request, Exception], Awaitable[Response]]:
    """What could not be done, in words, on a page of its own or as a notice on the page."""

    async def answer(request: Request, error: Exception) -> Response:
        words = str(error)
        match error:
            case HTTPException(status_code=404):
                status, words = 404, f"There is no page {request.url.path[:200]}."
            case HTTPException(status_code=status):
                pass
            case ForbiddenError():
                status = 403
            case AgentKitError():
                status = 409
            case _:  # Starlette raises it again, so that the log has it
                status, words = 500, "Something unexpected went wrong; the studio's log has it."
        user = studio.access.user_of(request) or User(name="", role="viewer")
        page = Page(template="sorry.html", values={"words": words, "status": status}, status=status)
        return await run_in_threadpool(studio.written, request, user, page)

    return answer
