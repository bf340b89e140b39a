"""Clients that say how to generate, where the operator lets them."""

import pytest

URL = "/v1/chat/completions"


@pytest.fixture
def asked():
    """The settings that reached the model."""
    return []


@pytest.fixture
def noting(asked):
    """A model that notes its settings."""

    def note(request):
        asked.append(request.settings)
        return "Yes."

    return note


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
async def test_settings_are_followed(make_app, talk, body, asked, noting, name, stream):
    """They reach the model, and only what did not is listed."""
    app = make_app(noting, client_settings=True)
    fields = {"temperature": 0, "top_p": 0.5, name: 9, "seed": 4, "presence_penalty": 1}
    async with talk(app) as client:
        answer = await client.post(URL, json=body("Hi", stream=stream, **fields))
    (settings,) = asked
    assert (settings.temperature, settings.top_p) == (0, 0.5)
    assert (settings.max_tokens, settings.seed) == (9, 4)
    assert '"not_honoured":["presence_penalty"]' in answer.text


async def test_they_are_not_followed_by_default(make_app, talk, body, asked, noting):
    """Settings are the agent's, and nonsense in them is nobody's business."""
    async with talk(make_app(noting)) as client:
        answer = await client.post(URL, json=body("Hi", temperature="hot", seed=4))
    assert answer.json()["agentkit"]["not_honoured"] == ["seed", "temperature"]
    (settings,) = asked
    assert settings.seed is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "hot"),
        ("temperature", True),
        ("temperature", 2.1),
        ("temperature", -1),
        ("temperature", 10**400),
        ("top_p", 0),
        ("top_p", [1]),
        ("max_tokens", 0),
        ("max_tokens", 1.5),
        ("max_completion_tokens", "9"),
        ("seed", 2**64),
        ("seed", {}),
    ],
)
async def test_nonsense_is_refused(make_app, talk, body, asked, noting, name, value):
    """The error names the field, and no run begins."""
    async with talk(make_app(noting, client_settings=True)) as client:
        answer = await client.post(URL, json=body("Hi", **{name: value}))
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)
    assert not asked
