"""The official package ``mcp``: protocol and transports. It is loaded where it is used."""

from __future__ import annotations

from agentkit.errors import MissingExtraError


def require_sdk(feature: str) -> None:
    """See to it that the official package is there, in a version that we speak with.

    Args:
        feature: What needs it, as the subject of a sentence.

    Raises:
        MissingExtraError: It is absent, or older than version 2.
    """
    try:
        from mcp import Client
    except ImportError as error:  # version 1 has no Client
        raise MissingExtraError(
            feature, package="mcp>=2", install='pip install "agentkit-evolve[mcp]"'
        ) from error
    assert Client is not None
