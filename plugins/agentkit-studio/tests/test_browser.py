"""Every page in a real browser, and one story: a tool is refused, a rule is approved, it works.

Needs Playwright's Python package and a Chromium (Debian's ``chromium``); where either is missing,
the tests are skipped. ``STUDIO_PICTURES=FOLDER`` keeps pictures of the pages.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest

from agentkit.evolution.gates import PairedScore, offline_gate

pytestmark = pytest.mark.timeout(180)
PICTURES = os.environ.get("STUDIO_PICTURES", "")


def picture(page, name):
    """Keep a picture, if somebody wants one."""
    if PICTURES:
        page.wait_for_timeout(300)
        page.screenshot(path=str(Path(PICTURES) / f"studio-{name}.png"), full_page=True)


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


def pages_of(project):
    """The address of each page with something on it."""
    failed = next(one for one in project.store.select() if one.results[0].status == "failed")
    project.manager.refresh()
    return (
        "/",
        "/?state=decided",
        *(f"/inbox/{one}" for one in project.manager.ledger.proposals),
        "/tools",
        "/tools?q=monthly+instalment",
        "/findings",
        *(f"/tools/{name}" for name in islice(project.manager.library.tools, 3)),
        "/episodes",
        f"/episodes/{failed.episode_id}",
        "/playground?compare=1",
        "/health",
        "/calls",
        "/inbox/nobody",
    )


def compared(project, proposal_id):
    """Held-out tasks were done with both definitions, as ``agentkit evolve --tasks`` does."""
    pairs = [
        PairedScore(task=f"loan-{n}", control=float(n < 9), candidate=float(n != 3))
        for n in range(24)
    ]
    project.manager.assess(proposal_id, [offline_gate(pairs)])


def test_the_story_of_a_rule(project, page):
    """It fails, is judged, proposed, read, approved; then it works, shows, and is taken back."""
    url = project.url
    page.goto(f"{url}/playground")
    assert "I could not work that out." in ask(page, "A loan over 30 months")

    open_section(page, "Episodes")
    open_first(page)
    page.locator(".judge summary").click()
    page.locator("[name=kind]").select_option("wrong_value")
    page.locator("[name=call]").select_option(index=1)
    page.locator("[name=parameter]").fill("months")
    page.get_by_label("Right would be").fill("36")
    page.get_by_label("What was wrong, in words").fill("we offer 24, 36 and 48 months")
    page.get_by_role("button", name="It was wrong").click()
    page.get_by_text("the next round learns from it").wait_for()
    failed = page.url

    compared(project, project.learn())
    open_section(page, "Inbox")
    open_first(page)
    page.get_by_text("15 gained").wait_for()
    page.get_by_text("months may only be 24, 36 or 48.").first.wait_for()
    picture(page, "proposal")
    page.keyboard.press("a")
    page.get_by_text("car_loan: in use").wait_for()

    page.goto(failed)
    page.get_by_role("button", name="What would happen now?").click()
    page.get_by_text("valid by its definition; nothing is run").wait_for()
    picture(page, "episode")

    page.goto(f"{url}/playground")
    assert "euros a month" in ask(page, "A loan over 30 months")

    open_section(page, "Episodes")
    open_first(page)
    page.get_by_role("button", name="It was right").click()
    page.get_by_text("the next round learns from it").wait_for()
    open_section(page, "Tools")
    page.get_by_role("link", name="car_loan").click()
    page.get_by_text("What each promoted change is worth").wait_for()
    open_section(page, "Health")
    page.locator(".chart canvas").nth(1).wait_for()
    assert "100.0 %" in page.locator(".tiles").inner_text()
    picture(page, "health")

    open_section(page, "Inbox")
    page.get_by_role("link", name="Decided").click()
    page.wait_for_url("**/?state=decided")
    open_first(page)
    page.locator("summary", has_text="Roll back").click()
    page.get_by_label("Why, for the log", exact=True).fill("it was too strict")
    page.get_by_role("button", name="Roll back").click()
    page.get_by_text("car_loan: taken back").wait_for()
    project.manager.refresh()
    assert "must be one of" not in project.manager.library["car_loan"].definition.text


def test_a_waiting_call_is_decided_where_it_waits(project, page):
    """Two buttons, of which each works once."""
    page.goto(f"{project.url}/playground")
    assert "sell_car" in ask(page, "sell it")
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("C-101 is sold").first.wait_for()
    assert page.get_by_role("button", name="Approve").is_disabled()
    open_section(page, "Calls")
    page.get_by_text("No call waits.").wait_for()


def test_the_queue_follows_what_waits_and_nothing_moves(project, sign_in):
    """New calls come to the end, decided ones stay as they stood; a hidden page asks nothing."""
    page, runs, asked = sign_in(project), [], []
    page.on("request", lambda one: asked.append(one.url) if one.url.endswith("/calls") else None)
    page.clock.install()
    page.goto(f"{project.url}/calls")
    page.get_by_text("No call waits.").wait_for()
    for number in ("C-1", "C-2"):
        runs.append(project.ask(f"sell {number}"))
        page.clock.run_for(4_100)
        page.get_by_text(f'number="{number}"').wait_for()
    assert "Calls (2)" in page.title()
    assert page.get_by_text("No call waits.").count() == 0
    page.get_by_label("Why; the model reads it").last.evaluate("(field) => { field.value = 'no'; }")
    places = "[...document.querySelectorAll('[data-run]')].map((row) => row.offsetTop)"
    before = page.evaluate(places)
    gone = page.get_by_text("decided meanwhile")
    assert [gone.nth(at).is_visible() for at in range(2)] == [False, False]
    project.approve(runs[0])
    page.clock.run_for(4_100)
    gone.first.wait_for(state="visible")
    assert not gone.last.is_visible()
    assert page.evaluate(places) == before
    assert page.locator("[data-run]").count() == 2
    assert page.get_by_role("button", name="Approve").first.is_disabled()
    assert page.get_by_role("button", name="Approve").last.is_enabled()
    assert page.locator("textarea").last.evaluate("(field) => field.value") == "no"
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true })")
    count = len(asked)
    page.clock.run_for(20_000)
    assert len(asked) == count


def test_tools_are_found_as_one_types(project, page):
    """The list follows the field, and the field keeps the focus."""
    page.goto(f"{project.url}/tools")
    page.keyboard.press("/")
    page.keyboard.type("monthly instalment")
    page.get_by_text("lexical").first.wait_for()
    assert page.evaluate("document.activeElement.name") == "q"
    assert page.locator("[data-item]").first.inner_text().startswith("offered")
    page.get_by_role("link", name="car_loan").click()


def test_a_proposal_is_decided_by_keys_alone(project, page):
    """J opens it, r asks why, and the reason is typed where one is."""
    project.learn()
    page.goto(project.url)
    open_first(page)
    page.keyboard.press("r")
    page.keyboard.type("we are about to offer 30 months")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("car_loan: rejected").wait_for()
    page.keyboard.press("u")
    page.get_by_text("Nothing waits for you.").wait_for()


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_no_page_is_wider_than_its_window(project, page, width):
    """Tables that are too wide scroll in themselves."""
    project.learn()
    page.set_viewport_size({"width": width, "height": 900})
    for path in pages_of(project):
        page.goto(project.url + path)
        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(project, sign_in, scheme):
    """Names, roles, contrast and order, in both colour schemes."""
    axe = pytest.importorskip("axe_playwright_python.base", reason="needs axe-playwright-python")
    project.learn()
    page = sign_in(project, bypass_csp=True)
    page.emulate_media(color_scheme=scheme)
    script = axe.AXE_FILE_PATH.read_text()
    for path in pages_of(project):
        page.goto(project.url + path)
        page.evaluate(script)
        found = page.evaluate("axe.run()")["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], path
