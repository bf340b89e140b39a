"""From names to models."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from agentkit.errors import MissingExtraError, ModelNotFoundError, UsageError
from agentkit.models.base import resolve_model
from agentkit.models.openai_compatible import OpenAICompatibleModel


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch):
    """Sets which plugins are installed: scheme to ``module:callable``."""

    def install(**targets: str) -> None:
        points = EntryPoints(
            EntryPoint(name=name, value=value, group="agentkit.models")
            for name, value in targets.items()
        )
        monkeypatch.setattr("importlib.metadata.entry_points", points.select)

    return install


@pytest.mark.parametrize(
    ("name", "model", "url"),
    [
        ("qwen3@http://localhost:8080/v1", "qwen3", "http://localhost:8080/v1"),
        ("@cf/meta/llama@https://example.org/v1", "@cf/meta/llama", "https://example.org/v1"),
        ("a@http://user:pw@host/v1?version=2", "a", "http://host/v1"),
    ],
)
def test_server_of_ones_own(name, model, url) -> None:
    """``openai-compatible:MODEL@URL`` names both; credentials stay out of what is shown."""
    opened = resolve_model(f"openai-compatible:{name}")
    assert isinstance(opened, OpenAICompatibleModel)
    assert opened.name == model
    assert repr(opened) == f"OpenAICompatibleModel({model!r}, base_url={url!r})"


@pytest.mark.parametrize("name", ["q@localhost:8080/v1", "q@localhost", "q@ann:s3cret@box.lan:80"])
def test_an_address_without_http_is_told(name) -> None:
    """What is meant as an address is not taken for a part of the model's name, and shows no key."""
    with pytest.raises(UsageError, match=r"write @http://(localhost|box\.lan:80)") as caught:
        resolve_model(f"openai-compatible:{name}")
    assert "s3cret" not in str(caught.value)


def test_plugin_gets_the_rest_of_the_name(plugins) -> None:
    """A scheme that an entry point names is opened by it, with whatever follows the colon."""
    plugins(mine="agentkit.models.openai_compatible:own_server_model")
    assert resolve_model("mine:a:b@http://localhost/v1").name == "a:b"


def test_unknown_scheme_lists_what_there_is(plugins) -> None:
    """The message lists built-in and installed schemes, and makes up no package to install."""
    plugins(mine="json:loads")
    with pytest.raises(ModelNotFoundError, match="If a plugin provides it") as caught:
        resolve_model("moon:base")
    listed = "(anthropic, litellm, mine, openai, openai-compatible, openai-responses)"
    assert listed in str(caught.value)
    assert "pip" not in str(caught.value)


def test_a_slip_in_a_scheme_is_answered_with_the_nearest(plugins) -> None:
    """What looks like a known scheme names that one."""
    plugins()
    with pytest.raises(ModelNotFoundError, match="Did you mean 'openai'"):
        resolve_model("opnai:gpt-4o-mini")


def test_local_without_its_plugin(plugins) -> None:
    """The plugin that is known but absent is named with its pip line."""
    plugins()
    with pytest.raises(MissingExtraError, match="pip install agentkit-local"):
        resolve_model("local:smollm2-135m")


@pytest.mark.parametrize("name", ["gpt-4o-mini", "openai:", "", "http://localhost:8080/v1"])
def test_names_without_a_scheme(name) -> None:
    """A bare name or URL is answered with the forms that work."""
    with pytest.raises(ModelNotFoundError, match="write scheme:name, such as 'openai:gpt-4o-mini'"):
        resolve_model(name)


def test_what_is_no_model() -> None:
    """Something else than a name or a model is refused where it is given."""
    with pytest.raises(UsageError, match="5 is not a model"):
        resolve_model(5)
