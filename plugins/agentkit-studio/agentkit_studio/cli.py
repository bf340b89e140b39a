"""``agentkit studio``: serve the pages."""

from __future__ import annotations

import secrets
import sys
from dataclasses import replace
from typing import Annotated, Any

from agentkit.agent.agent import Agent
from agentkit.cli.options import Answers, StoreUrl, command, option
from agentkit.cli.output import say
from agentkit.cli.project import current_project
from agentkit.cli.run import AgentOptions, make_agent
from agentkit.cli.stores import manager_of, opened, opened_if_there, person, retriever_of
from agentkit.errors import UsageError
from agentkit.server.keys import Keys
from agentkit_studio.access import Access, Role

_SWITCH_SECONDS = 0.0005
"""After which a thread that counts hands over: each row of the store that a page reads waits for
that, and Python's usual 5 ms would be a quarter of a second for a list of fifty."""


@command()
def studio(
    *,
    name: str = "agent",
    host: str = "127.0.0.1",
    port: Annotated[int, option(low=0)] = 8787,
    keys_from: str = "",
    viewer: tuple[str, ...] = (),
    reviewer: tuple[str, ...] = (),
    operator: tuple[str, ...] = (),
    user_header: str = "",
    also: tuple[str, ...] = (),
    prefix: str = "",
    https: bool = False,
    read_only: bool = False,
    options: AgentOptions,
    answers: Answers,
    store_url: StoreUrl,
) -> None:
    """Review proposals, watch runs and try the agent in the browser.

    On this machine an address that works once and a fresh key are printed, and whoever has either
    may do everything. For a team give each a key, or let a proxy name them. The table [studio] of
    agentkit.toml takes these options too.

    Args:
        name: The agent's name, as serve --name has it: only its own calls can be decided here.
        host: Where to listen.
        port: Where to listen; 0 for any free port.
        keys_from (VARIABLE|FILE): Keys of users, NAME=KEY with commas between them in an
            environment variable, or one a line in a file.
        viewer (NAME): A user who may read. Without any, everybody who gets in may.
        reviewer (NAME): A user who may also decide on proposals.
        operator (NAME): A user who may do everything.
        user_header (HEADER): A header in which a proxy names the user. Only behind that proxy.
        also (MODEL): A model that the playground may ask beside --model.
        prefix (PATH): The path at which a proxy mounts the studio, such as /studio.
        https: Send cookies over TLS only.
        read_only: Let nobody change anything.

    Examples:
      agentkit studio
      agentkit studio --tools shop.py --model openai:gpt-5
      agentkit studio --host 0.0.0.0 --keys-from STUDIO_KEYS --operator ada --https
    """
    from agentkit.server.running import is_loopback, serve
    from agentkit_studio.app import create_studio

    if not (keys_from or user_header) and not is_loopback(host):
        raise UsageError(
            "beyond this machine users need keys: --keys-from VARIABLE or FILE, or --user-header"
        )
    roles: dict[str, Role] = {
        **dict.fromkeys(viewer, "viewer"),
        **dict.fromkeys(reviewer, "reviewer"),
        **dict.fromkeys(operator, "operator"),
    }
    keys = None
    key = me = ""
    if keys_from:
        keys = Keys.named(keys_from, current_project().root)
        if keyless := sorted(roles.keys() - set(keys.names)):
            say(f"There is no key of {', '.join(keyless)} yet.")
    elif not user_header:
        key = secrets.token_urlsafe(24)
        me = (
            "".join(letter for letter in person().name if letter.isalnum() or letter in "_-")[:64]
            or "me"
        )
        keys, roles, viewer = Keys({me: key}), {me: "operator"}, ()

    access = Access(
        keys=keys,
        roles=roles,
        default_role="nobody" if viewer else "viewer",
        user_header=user_header,
        read_only=read_only,
    )

    def announce(url: str) -> None:
        say(f"{url}{prefix}/{f'?once={access.invite(me)}' if key else ''}")
        if key:
            say(f"The address works once; in other browsers sign in with the key {key}")

    with opened(store_url) as store, opened_if_there(answers) as evaluations:

        def agent_at(version: int | None, model: str) -> Agent[Any, Any]:
            changed = replace(options, pin=version, model=model or options.model)
            return make_agent(changed, store, name=name)

        def replaying_at(version: int | None, model: str) -> Agent[Any, Any]:
            changed = replace(options, pin=version, model=model or options.model)
            return make_agent(
                replace(changed, targets=(), catalogue=True), store, name="studio replay"
            )

        app = create_studio(
            lambda policy: manager_of(store, lifecycle=policy),
            store,
            access=access,
            agents=agent_at if options.targets else None,
            models=also,
            replays=replaying_at if options.targets else None,
            retriever=retriever_of(store),
            gates=current_project().rules,
            evaluations=evaluations,
            https=https,
            prefix=prefix,
        )
        usual = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_SECONDS)
        try:
            serve(app, host=host, port=port, on_start=announce)
        finally:
            sys.setswitchinterval(usual)
