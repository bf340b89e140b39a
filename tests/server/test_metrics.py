"""``GET /metrics`` in Prometheus' text format, read by a parser of that format."""

import re

from agentkit.server.metrics import Counter, Histogram

URL = "/v1/chat/completions"
SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})? (?P<value>[^ ]+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)')
KINDS = {"counter": {""}, "gauge": {""}, "histogram": {"_bucket", "_sum", "_count"}}


def parse(text):
    """Samples by name and labels; fails on anything that the format does not allow."""
    assert text.endswith("\n")
    samples, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds, f"{name} is described twice"
            kinds[name] = kind
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        pairs = LABEL.findall(match["labels"] or "")
        assert "".join(f'{k}="{v}",' for k, v in pairs).rstrip(",") == (match["labels"] or "")
        owner = next(n for n in kinds if match["name"].removeprefix(n) in KINDS[kinds[n]])
        assert owner == list(kinds)[-1], "samples of a metric stand together"
        key = (match["name"], tuple(sorted(pairs)))
        assert key not in samples, f"{key} stands twice"
        samples[key] = float(match["value"])
    check_histograms(samples, kinds)
    return samples


def check_histograms(samples, kinds):
    """Buckets grow, and the last one is the count."""
    for name in (name for name, kind in kinds.items() if kind == "histogram"):
        groups = {}
        for (sample, labels), value in samples.items():
            if sample == f"{name}_bucket":
                own = tuple(pair for pair in labels if pair[0] != "le")
                groups.setdefault(own, []).append((float(dict(labels)["le"]), value))
        for own, buckets in groups.items():
            bounds, values = zip(*buckets, strict=True)
            assert list(bounds) == sorted(bounds)
            assert list(values) == sorted(values)
            assert bounds[-1] == float("inf")
            assert values[-1] == samples[f"{name}_count", own]
            assert (f"{name}_sum", own) in samples


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
    samples = parse(answer.text)

    def value(name, **labels):
        return samples[name, tuple(sorted(labels.items()))]

    assert value("agentkit_requests_total", route=URL, status="200", key="shop") == 4
    assert value("agentkit_requests_total", route=URL, status="400", key="shop") == 1
    assert value("agentkit_requests_total", route="(other)", status="401", key="") == 1
    assert value("agentkit_request_seconds_count", route=URL) == 5
    assert value("agentkit_first_text_seconds_count") == 1
    assert value("agentkit_runs_started_total") == value("agentkit_episodes_kept_total") == 4
    assert value("agentkit_runs_ended_total", outcome="finished") == 4
    assert value("agentkit_tokens_total", kind="prompt") == 7 * 7
    assert value("agentkit_tool_failures_total", tool="broken", label="tool_error") == 1
    assert value("agentkit_tool_failures_total", tool="add", label="invalid_arguments") == 1
    assert value("agentkit_tool_failures_total", tool="(unknown)", label="unknown_tool") == 1
    assert value("agentkit_runs_in_flight") == value("agentkit_draining") == 0
    assert "made_up_name_7" not in answer.text
    assert "secret" not in answer.text


def test_labels_are_escaped():
    """Quotes, backslashes and line breaks of a value do not end it."""
    counter = Counter("c_total", "Back\\slash and\nline.", "name")
    counter.add('a"b\\c\nd')
    lines = list(counter.lines())
    assert lines[0] == r"# HELP c_total Back\\slash and\nline."
    assert lines[2] == r'c_total{name="a\"b\\c\nd"} 1'
    assert parse("\n".join(lines) + "\n")


def test_a_value_on_a_bound_belongs_below_it():
    """Buckets are less-or-equal."""
    histogram = Histogram("h_seconds", "Time.", (1, 2))
    for seconds in (0.5, 1, 1.5, 2, 99):
        histogram.observe(seconds)
    samples = parse("\n".join(histogram.lines()) + "\n")
    assert [v for (name, _), v in samples.items() if name == "h_seconds_bucket"] == [2, 4, 5]
    assert samples["h_seconds_sum", ()] == 104
