"""``create_studio``: the pages as one Starlette application."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Message

from agentkit.episodes import error_line
from agentkit.errors import AgentKitError, StoreLookupError, StoreUnavailableError, UsageError
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateConfig
from agentkit.evolution.manager import ToolManager
from agentkit.library.store import EpisodeStore, Store
from agentkit.retrieval.cascade import default_retriever
from agentkit.retrieval.retriever import Retriever
from agentkit.server.limits import ServerLimits
from agentkit.server.runs import Runs
from agentkit_studio import episodes, health, inbox, judging, playground, tools
from agentkit_studio.access import (
    COOKIE,
    Access,
    ForbiddenError,
    Headers,
    Prefix,
    TooManyTriesError,
)
from agentkit_studio.pages import (
    HERE,
    Agents,
    Answer,
    Asked,
    BadRequestError,
    Goto,
    Managed,
    NotThereError,
    Page,
    Place,
    Studio,
    address_of,
    from_part,
)

_LOG = logging.getLogger(__name__)

_LONGEST_FORM = 256 * 1024
"""Bytes; strangers may send one to sign in, and reading takes longer than sending."""
_PATH = re.compile(r"(/[\w.~-]+)+/?", re.ASCII)
_WARMING_SECONDS = 5.0
_CANARY = LifecyclePolicy(canary=True)


def create_studio(
    managed: Managed,
    store: Store,
    *,
    access: Access,
    agents: Agents | None = None,
    models: Sequence[str] = (),
    replays: Agents | None = None,
    retriever: Retriever | None = None,
    gates: GateConfig = GateConfig(),  # noqa: B008 - frozen
    evaluations: EpisodeStore | None = None,
    title: str = "agentkit",
    https: bool = False,
    prefix: str = "",
) -> Starlette:
    """The studio as an ASGI application.

    Args:
        managed: Makes the manager of the library that is reviewed, with the policy that it is
            given, or for None that of the project.
        store: Where library and episodes are.
        access: Who may do what.
        agents: Makes the agents that answer in the playground; without it there is none.
        models: Models that the playground may ask beside the project's. Choose with care: a model's
            name can hold an address, to which the provider's key is sent.
        replays: Makes agents that answer as those of ``agents`` do and run no call, to ask what the
            present library would do; without it nothing is replayed.
        retriever: Ranks tools, as the project's agents do; None for the default. It is asked once
            at the start.
        gates: The knobs of the gates, as the project has them.
        evaluations: Where answers of ``agentkit eval`` are, which show what changes are worth.
        title: Name of the project.
        https: Whether cookies are sent over TLS alone.
        prefix: The path at which a proxy mounts it, whether or not the proxy takes it off.

    Raises:
        UsageError: ``managed`` makes no manager, or does not use the policy, so that a canary would
            serve everybody; or ``prefix`` is no path.
    """
    if prefix and not _PATH.fullmatch(prefix):
        raise UsageError(f"prefix is {prefix!r:.100}; it is a path such as '/studio'")
    for policy in (_CANARY, None):
        if not isinstance(made := managed(policy), ToolManager):
            raise UsageError(f"managed gave {made!r:.100}; return a ToolManager")
    if managed(_CANARY).policy != _CANARY:
        raise UsageError(
            "managed leaves out the policy that it is given, so a canary would serve everybody; "
            "use it: lambda policy: ToolManager(store, lifecycle=policy or LifecyclePolicy())"
        )
    places = tuple(
        place
        for pages in (inbox, tools, episodes, judging, playground, health)
        for place in pages.PLACES
    )
    studio = Studio(
        manager=managed(None),
        managed=managed,
        store=store,
        access=access,
        agents=agents,
        models=tuple(models),
        replays=replays,
        retriever=retriever or default_retriever(),
        gates=gates,
        evaluations=evaluations,
        title=title,
        places=places,
    )
    routes: list[Any] = [
        Route("/login", _login(studio), name="login", methods=["GET", "POST"]),
        Mount("/static", StaticFiles(directory=HERE / "static"), name="static"),
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
        lifespan=lambda _: _warmed(studio),
        middleware=[
            Middleware(Prefix, prefix=prefix.rstrip("/")),
            Middleware(Headers),
            Middleware(
                SessionMiddleware,
                secret_key=access.secret,
                session_cookie=COOKIE,
                path=f"{prefix.rstrip('/')}/",
                same_site="strict",
                https_only=https,
                max_age=14 * 24 * 3600,
            ),
        ],
        exception_handlers={
            HTTPException: _sorry(studio),
            ForbiddenError: _sorry(studio),
            TooManyTriesError: _sorry(studio),
            AgentKitError: _sorry(studio),
            Exception: _sorry(studio),
        },
    )
    app.state.studio = studio
    app.state.limits, app.state.has_keys, app.state.runs = ServerLimits(), True, Runs()
    return app


@asynccontextmanager
async def _warmed(studio: Studio) -> AsyncIterator[None]:
    """Bring about what the first page would wait for: the index of a search, and the counts."""
    library = studio.manager.library
    if len(library):
        search = studio.retriever.retrieve(library.definitions[0].name, library)
        first = asyncio.ensure_future(search)
        await asyncio.wait([first], timeout=_WARMING_SECONDS)
        if first.done() and (error := first.exception()) is not None:
            _LOG.warning("tools cannot be searched yet: %s", error_line(error))
    studio.health.update(wait=0)
    yield


def _endpoint(studio: Studio, place: Place) -> Callable[[Request], Awaitable[Response]]:
    """An address as Starlette takes it: the user is known, forms are checked, the view runs."""

    async def answer(request: Request) -> Response:
        if "once" in request.query_params and request.method == "GET":  # HEAD is a preview's
            studio.access.accept(request, request.query_params["once"])
            return RedirectResponse(request.url.path, 303)  # the code leaves the address
        user = studio.access.user_of(request)
        if user is None and studio.access.keys is None:
            raise ForbiddenError("the proxy in front of the studio named no user")
        if user is None:
            return RedirectResponse(request.url_for("login").path, 303)
        if not user.may(place.role):
            is_known = user.role != "nobody"
            own = f"is a {user.role}" if is_known else "has no role in this studio"
            raise ForbiddenError(f"{user.name} {own}; this takes a {place.role}")
        form: dict[str, str] = {}
        if place.acts:
            form = await _form(request)
            token = form.pop("csrf", "") or request.headers.get("x-csrf", "")
            studio.access.check_form(request, user, token)
        asked = Asked(
            studio=studio,
            user=user,
            path={name: from_part(str(part)) for name, part in request.path_params.items()},
            query=dict(request.query_params),
            form=form,
        )
        if not place.acts:
            studio.waiting.add(id(request))
        try:
            return await _answered(studio, request, place, asked)
        finally:
            studio.waiting.discard(id(request))

    return answer


async def _answered(studio: Studio, request: Request, place: Place, asked: Asked) -> Response:
    """What the view of a place gives, as a response."""
    given: Any
    if inspect.iscoroutinefunction(place.view):
        given = await place.view(asked)
    else:
        given = await run_in_threadpool(place.view, asked)
    found: Answer = given
    if isinstance(found, Page):
        return await run_in_threadpool(studio.written, request, asked.user, found)
    if isinstance(found, Goto):
        request.session["notice"] = found.notice[:300]
        address = address_of(request, found.route, **found.values)
        behind = f"?{urlencode(found.query)}" if found.query else ""
        return RedirectResponse(address + behind, 303)
    return found


async def _form(request: Request) -> dict[str, str]:
    """The texts of a form, in which each field stands once."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > _LONGEST_FORM:
            raise HTTPException(413, f"A form has at most {_LONGEST_FORM:,} bytes.")
        return message

    try:
        async with Request(request.scope, counted).form(max_files=0) as sent:
            if len(sent.multi_items()) > len(sent):  # two answers, of which one would be lost
                raise BadRequestError("A field of the form is sent twice; send each field once.")
            return {name: value for name, value in sent.items() if isinstance(value, str)}
    except ClientDisconnect as error:  # nobody reads it, and no traceback is written of it
        raise BadRequestError("the form was cut off") from error
    except (LookupError, UnicodeError) as error:  # it names a character set that there is not
        raise BadRequestError(f"the form cannot be read: {error}") from error


def _login(studio: Studio) -> Callable[[Request], Awaitable[Response]]:
    """The form that takes a key."""

    async def answer(request: Request) -> Response:
        wrong = False
        if request.method == "POST":
            sent, user = await _form(request), studio.access.user_of(request)
            studio.access.check_form(request, user, sent.get("csrf", ""))
            if studio.access.log_in(request, sent.get("key", "")):
                return RedirectResponse(request.url_for("inbox").path, 303)
            wrong = True
        page = Page(template="login.html", values={"wrong": wrong}, status=403 if wrong else 200)
        return studio.written(request, None, page)

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
            case TooManyTriesError():
                status = 429
            case BadRequestError():
                status = 400
            case NotThereError() | StoreLookupError():
                status = 404
            case StoreUnavailableError():
                status = 503
            case AgentKitError():
                status = 409
            case _:  # Starlette raises it again, so that the log has it
                status, words = 500, "Something unexpected went wrong; the studio's log has it."
        page = Page(template="sorry.html", values={"words": words, "status": status}, status=status)
        return await run_in_threadpool(
            studio.written, request, studio.access.user_of(request), page
        )

    return answer
