"""``GET /metrics`` in Prometheus' text format."""

from agentkit.server.metrics import Counter, Histogram

URL = "/v1/chat/completions"


async def test_what_happened_is_counted(make_app, talk, body, keys, store):
    """Requests, tokens, tool failures by label, runs and episodes."""
    key = "sk-0123456789abcdef"
    async with talk(make_app(keys=keys), key) as client:
        await client.post(URL, json=body("Hi"))
        await client.post(URL, json=body("call broken", stream=True))
        await client.post(URL, json=body("call add {}"))
        await client.post(URL, json=body("call made_up_name_7 {}"))
        await client.post(URL, json=body("Hi", n=2))
        await client.get("/secret/path", headers={"authorization": "Bearer x"})
        answer = await client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.text.splitlines()
    assert "# TYPE agentkit_request_seconds histogram" in lines
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    expected = {
        f'requests_total{{route="{URL}",status="200",key="shop"}}': 4,
        f'requests_total{{route="{URL}",status="400",key="shop"}}': 1,
        'requests_total{route="(other)",status="401",key=""}': 1,
        f'request_seconds_count{{route="{URL}"}}': 5,
        f'request_seconds_bucket{{route="{URL}",le="+Inf"}}': 5,
        "first_text_seconds_count": 1,
        "runs_started_total": 4,
        "episodes_kept_total": 4,
        'runs_ended_total{outcome="finished"}': 4,
        'tokens_total{kind="prompt"}': 7 * 7,
        'tool_failures_total{tool="broken",label="tool_error"}': 1,
        'tool_failures_total{tool="add",label="invalid_arguments"}': 1,
        'tool_failures_total{tool="(unknown)",label="unknown_tool"}': 1,
        "runs_in_flight": 0,
        "draining": 0,
    }
    assert {name: float(samples[f"agentkit_{name}"]) for name in expected} == expected
    assert "made_up_name_7" not in answer.text
    assert "secret" not in answer.text


def test_labels_are_escaped_and_bounds_belong_below():
    """Quotes, backslashes and line breaks of a value do not end it; buckets are less-or-equal."""
    counter = Counter("c_total", "Words.", "name")
    counter.add('a"b\\c\nd')
    assert list(counter.lines())[2] == r'c_total{name="a\"b\\c\nd"} 1'
    histogram = Histogram("h_seconds", "Time.", (1, 2))
    for seconds in (0.5, 1, 1.5, 2, 99):
        histogram.observe(seconds)
    assert list(histogram.lines())[2:] == [
        'h_seconds_bucket{le="1"} 2',
        'h_seconds_bucket{le="2"} 4',
        'h_seconds_bucket{le="+Inf"} 5',
        "h_seconds_sum 104",
        "h_seconds_count 5",
    ]
