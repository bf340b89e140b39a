"""``OAuthFile``: where tokens of MCP servers are kept between two starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agentkit.episodes.replacing import replaced
from agentkit.reading import open_plain, read_json

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
    from pydantic import BaseModel

RecordT = TypeVar("RecordT", bound="BaseModel")


_MOST_BYTES = 1_000_000


class OAuthFile:
    """Keeps tokens and the client's registration in a file that only its owner reads.

    It is what the providers of ``mcp.client.auth`` call a token storage. A file that is absent or
    damaged holds nothing: tokens are fetched again.

    Args:
        path: The file, one for each server.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens of the last start."""
        from mcp.shared.auth import OAuthToken

        return _read(OAuthToken, self._record().get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        self._put("tokens", tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client's registration."""
        from mcp.shared.auth import OAuthClientInformationFull

        return _read(OAuthClientInformationFull, self._record().get("client"))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the client's registration."""
        self._put("client", client_info)

    def _record(self) -> dict[str, Any]:
        try:
            with open_plain(self._path) as file:  # a pipe would never end
                found = read_json(file.read(_MOST_BYTES).decode())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _put(self, name: str, value: BaseModel) -> None:
        record = {**self._record(), name: value.model_dump(mode="json", exclude_none=True)}
        with replaced(self._path) as draft:
            draft.chmod(0o600)  # an old file may have been open to others
            draft.write_text(json.dumps(record), encoding="utf-8")


def _read(kind: type[RecordT], found: object) -> RecordT | None:
    from pydantic import ValidationError

    try:
        return None if found is None else kind.model_validate(found)
    except ValidationError:
        return None
