"""One call as a request: URL, headers and body, without anything of HTTP's machinery."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from agentkit.errors import ModelRetry, ToolFailed
from agentkit.tools.sources.openapi.bodies import EncodedBody, encode_body
from agentkit.tools.sources.openapi.credentials import Secrets
from agentkit.tools.sources.openapi.parameters import PLACEHOLDER
from agentkit.tools.sources.openapi.plan import Parameter, RequestPlan
from agentkit.tools.sources.openapi.serialise import (
    header_text,
    path_text,
    query_pairs,
    scalar_text,
)

_PATH_CHARACTERS = "/:@!$&'()*+,;=~%-._"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class PreparedRequest:
    """What is sent. It has no ``repr``, since it holds secrets.

    Attributes:
        method: In capitals.
        url: The whole URL.
        headers: Names and values.
        body: The body, if there is one.
        is_known: Whether it goes where the caller's own credentials may; see ``RequestPlan``.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: EncodedBody | None
    is_known: bool = True


def prepare(plan: RequestPlan, arguments: Mapping[str, Any], secrets: Secrets) -> PreparedRequest:
    """The request of one call.

    Args:
        plan: How arguments are sent.
        arguments: By argument name, as the tool's schema allows.
        secrets: What proves who is calling.

    Raises:
        ModelRetry: A value can not be sent where it belongs.
        ToolFailed: No server is known.
    """
    if not plan.server:
        raise ToolFailed(
            f"no server is known for {plan.tool_name}: the API's description names no absolute "
            "URL. The person who runs this program has to give the URL of its server"
        )
    given = [
        (each, arguments[each.argument])
        for each in plan.parameters
        if arguments.get(each.argument) is not None
    ]
    headers = _headers(plan, given, secrets)
    body = encode_body(plan.body, arguments) if plan.body is not None else None
    if body is not None and body.media_type:
        headers["Content-Type"] = body.media_type
    headers.update(secrets.headers)
    query = _query(given, secrets)
    url = f"{plan.server}{_path(plan, given)}"
    if query:
        url += ("&" if "?" in url else "?") + query
    return PreparedRequest(
        method=plan.method, url=url, headers=headers, body=body, is_known=plan.is_known
    )


def _path(plan: RequestPlan, given: list[tuple[Parameter, Any]]) -> str:
    values = {each.name: (each, value) for each, value in given if each.location == "path"}
    path, question, fixed = plan.path.partition("?")
    segments = []
    for segment in path.split("/"):
        made = ""
        end = 0
        for match in PLACEHOLDER.finditer(segment):
            made += quote(segment[end : match.start()], safe=_PATH_CHARACTERS)
            made += _placed(match[1], values)
            end = match.end()
        made += quote(segment[end:], safe=_PATH_CHARACTERS)
        if end and made.replace("%2E", ".") in {"", ".", ".."}:
            name = PLACEHOLDER.findall(segment)[0]
            raise ModelRetry(f"the value of {name} would change which address is called")
        segments.append(made)
    text = "/".join(segments)
    return (text if text.startswith("/") else f"/{text}") + question + fixed


def _placed(name: str, values: Mapping[str, tuple[Parameter, Any]]) -> str:
    if name not in values:
        raise ModelRetry(f"a value for {name} is needed, since it is part of the address")
    parameter, value = values[name]
    if parameter.as_json:
        return quote(scalar_text(_jsonable(value)), safe="")
    made = path_text(name, value, style=parameter.style, explode=parameter.explode)
    if not made:
        raise ModelRetry(
            f"`{parameter.argument}` may not be empty, since it is part of the address"
        )
    return made


def _jsonable(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _query(given: list[tuple[Parameter, Any]], secrets: Secrets) -> str:
    pairs: list[str] = []
    for parameter, value in given:
        if parameter.location != "query":
            continue
        if parameter.as_json:
            pairs.append(f"{quote(parameter.name, safe='')}={quote(_jsonable(value), safe='')}")
            continue
        found = query_pairs(
            parameter.name,
            value,
            style=parameter.style,
            explode=parameter.explode,
            allow_reserved=parameter.allow_reserved,
        )
        pairs += [f"{name}={text}" for name, text in found]
    pairs += [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in secrets.query]
    return "&".join(pairs)


def _headers(
    plan: RequestPlan, given: list[tuple[Parameter, Any]], secrets: Secrets
) -> dict[str, str]:
    accept = ", ".join(
        [*plan.accept, "*/*;q=0.1"] if plan.accept else ["application/json", "*/*;q=0.1"]
    )
    headers = {"Accept": accept}
    cookies: list[str] = []
    for parameter, value in given:
        if parameter.location == "header":
            text = (
                _jsonable(value)
                if parameter.as_json
                else header_text(value, explode=parameter.explode)
            )
            headers[parameter.name] = _one_line(text, parameter)
        elif parameter.location == "cookie":
            cookies += _cookies(parameter, value)
    cookies += [f"{name}={value}" for name, value in secrets.cookies]
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    return headers


def _cookies(parameter: Parameter, value: Any) -> list[str]:
    if parameter.as_json:
        return [f"{quote(parameter.name, safe='')}={quote(_jsonable(value), safe='')}"]
    found = query_pairs(parameter.name, value, style="form", explode=parameter.explode)
    return [f"{name}={text}" for name, text in found]


def _one_line(text: str, parameter: Parameter) -> str:
    if not text.isprintable():
        raise ModelRetry(
            f"`{parameter.argument}` is sent as a header, so it may hold no line breaks"
        )
    return text.strip()
