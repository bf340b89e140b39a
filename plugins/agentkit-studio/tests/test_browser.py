"""One story in a real browser: a tool is refused, a proposal is read and approved, and it works.

Needs Playwright's Python package and a Chromium (Debian's ``chromium``); where either is missing,
the tests are skipped. ``STUDIO_PICTURES=FOLDER`` keeps pictures of the pages.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentkit import Agent, ModelRetry, open_store, tool
from agentkit.agent import StorePolicy
from agentkit.cli.stores import manager_of
from agentkit.evolution import EvidenceProposer, ToolManager, evolve
from agentkit.messages import ToolCall
from agentkit.server import serving
from agentkit.server.keys import Keys
from agentkit.testing import FunctionModel
from agentkit_studio import Access, create_studio

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium, such as Debian's"),
    pytest.mark.timeout(180),
]
KEY = "key-of-olga-0123456789"
PICTURES = os.environ.get("STUDIO_PICTURES", "")


@tool(effects=["reads"])
def loan_offer(amount: float, months: int) -> float:
    """Calculate the monthly instalment of a car loan.

    Args:
        amount: Sum of the loan in euros.
        months: Number of months.
    """
    if months not in {24, 36, 48}:
        raise ModelRetry("months must be one of 24, 36, 48")
    return round(amount / months * 1.05, 2)


@tool(effects=["destructive"])
def sell_car(number: str) -> str:
    """Mark a car as sold."""
    return f"{number} is sold"


def reads_the_schema(request):
    """Takes the customer's number of months, unless the schema allows others: then the nearest."""
    last = request.messages[-1]
    if last.role == "tool":
        failed = "must be" in last.text
        return "I could not work that out." if failed else f"That is {last.text} euros a month."
    if last.text.startswith("sell"):
        return [ToolCall(call_id="1", name="sell_car", arguments={"number": "C-101"})]
    [offered] = [one for one in request.tools if one.name == "loan_offer"]
    allowed = offered.parameters_schema["properties"]["months"].get("enum", [30])
    wanted = int(last.text.split()[-2])
    months = (
        wanted
        if wanted in allowed or allowed == [30]
        else min(allowed, key=lambda m: abs(m - wanted))
    )
    return [ToolCall(call_id="1", name="loan_offer", arguments={"amount": 9000, "months": months})]


@pytest.fixture
def project(tmp_path):
    """The address of a studio, its store and its manager."""
    store = open_store(f"sqlite:///{tmp_path / 'library.db'}")

    def agents(version, model):
        return Agent(
            FunctionModel(reads_the_schema, name=model or "project"),
            tools=[loan_offer, sell_car],
            store=store,
            store_policy=StorePolicy(pin=version),
        )

    first = agents(None, "")
    for number, months in enumerate([30, 24, 12, 36, 60, 48] * 4):
        first.run_sync(f"A loan over {months} months", metadata={"user": f"u{number}"})
    asyncio.run(first.close())
    access = Access(keys=Keys({"olga": KEY}), roles={"olga": "operator"})
    app = create_studio(
        lambda policy: manager_of(store, lifecycle=policy), store, access=access, agents=agents
    )
    with serving(app) as url:
        yield url, store, ToolManager(store), access
    store.close()


@pytest.fixture
def page(project):
    """A page that is signed in; an error of its scripts or its policy fails the test.

    A connection that a test cuts is none.
    """
    url, _, _, access = project
    problems: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda said: problems.append(said.text) if said.type == "error" else None,
        )
        page.goto(f"{url}/?once={access.invite('olga')}")
        yield page
        browser.close()
    assert [one for one in problems if "ERR_FAILED" not in one] == []


def picture(page, name):
    """Keep a picture, if somebody wants one."""
    if PICTURES:
        page.wait_for_timeout(300)
        page.screenshot(path=str(Path(PICTURES) / f"studio-{name}.png"), full_page=True)


def learn(manager, store):
    """One round of evolution, in a thread: Playwright has a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(
            lambda: asyncio.run(evolve(manager, [EvidenceProposer()], episodes=store.select()))
        ).result()


def open_section(page, name):
    """Follow a link of the navigation, and wait until the page is there."""
    page.get_by_role("navigation").get_by_role("link", name=name).click()
    page.locator(f"nav [aria-current]:text-is('{name}')").wait_for()


def open_first(page):
    """Open the first of a list by keys."""
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator(".crumbs").wait_for()


def ask(page, text):
    """Say something in the playground by keys alone, and wait for the end of the answer."""
    ends = page.locator(".end").count()
    page.keyboard.press("/")
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.locator(".end").nth(ends).wait_for()
    return page.locator(".said").inner_text()


def test_the_story_of_a_rule(project, page):
    """It fails, is judged, proposed, read, approved; then it works, shows, and is taken back."""
    url, store, manager, _ = project
    page.goto(f"{url}/playground")
    assert "I could not work that out." in ask(page, "A loan over 30 months")

    open_section(page, "Episodes")
    open_first(page)
    page.get_by_label("What was wrong").fill("we offer 24, 36 and 48 months")
    page.get_by_role("button", name="It was wrong").click()
    page.get_by_text("the next round learns from it").wait_for()

    learn(manager, store)
    open_section(page, "Inbox")
    open_first(page)
    page.get_by_text("months may only be 24, 36 or 48.").first.wait_for()
    picture(page, "proposal")
    page.keyboard.press("a")
    page.get_by_text("loan_offer: in use").wait_for()

    page.goto(f"{url}/playground")
    assert "euros a month" in ask(page, "A loan over 30 months")
    assert "in use" not in page.locator(".said").inner_text()

    open_section(page, "Health")
    page.locator(".chart canvas").first.wait_for()
    page.get_by_text("in version 1").wait_for()  # one version was judged, and a line takes two
    assert page.get_by_role("row").count() >= 3
    picture(page, "health")

    open_section(page, "Inbox")
    page.get_by_role("link", name="Decided").click()
    page.wait_for_url("**/?state=decided")
    open_first(page)
    page.locator("summary", has_text="Roll back").click()
    page.get_by_role("button", name="Roll back").click()
    page.get_by_text("loan_offer: taken back").wait_for()
    manager.refresh()
    assert "must be one of" not in manager.library["loan_offer"].definition.text


def test_a_waiting_call_is_decided_where_it_waits(project, page):
    """Two buttons, of which each works once."""
    url, *_ = project
    page.goto(f"{url}/playground")
    assert "sell_car" in ask(page, "sell it")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("C-101 is sold").first.wait_for()
    assert page.get_by_role("button", name="Approve").is_disabled()
    open_section(page, "Calls")
    page.get_by_text("No call waits.").wait_for()


def test_tools_are_found_as_one_types(project, page):
    """The list follows the field, and the field keeps the focus."""
    url, *_ = project
    page.goto(f"{url}/tools")
    page.keyboard.press("/")
    page.keyboard.type("monthly instalment")
    page.get_by_text("lexical").first.wait_for()
    assert page.evaluate("document.activeElement.name") == "q"
    assert page.locator("[data-item]").first.inner_text().startswith("offered")
    page.get_by_role("link", name="loan_offer").click()


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_no_page_is_wider_than_its_window(project, page, width):
    """Tables that are too wide scroll in themselves."""
    url, store, *_ = project
    page.set_viewport_size({"width": width, "height": 900})
    one = next(iter(store.select()))
    for path in (
        "/",
        "/tools",
        "/tools/loan_offer",
        "/episodes",
        f"/episodes/{one.episode_id}",
        "/playground?compare=1",
        "/health",
        "/calls",
    ):
        page.goto(url + path)
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, path


def test_a_lost_connection_is_told_where_one_reads(project, page):
    """What was said stays, and the field can be used again."""
    url, *_ = project
    page.goto(f"{url}/playground")
    page.route("**/playground/say", lambda route: route.abort())
    page.keyboard.press("/")
    page.keyboard.type("A loan over 24 months")
    page.keyboard.press("Enter")
    page.get_by_text("The connection was lost").wait_for()
    assert page.get_by_role("button", name="Send").is_enabled()
