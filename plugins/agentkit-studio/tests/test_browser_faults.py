"""What can go wrong while people look: others act too, the connection or the store goes, words bite."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.library.chain import verify_chain
from agentkit.messages import AssistantMessage, ToolCall, ToolResult

from .test_browser import ask, pages_of

pytestmark = pytest.mark.timeout(180)
HOSTILE = (
    "</pre><script>alert(1)</script><img src=x onerror=alert(2)> \u202eesrever\u202c \x1b[31mred"
)


def kinds(project, proposal_id):
    """What happened to a proposal, in order."""
    return [one.kind for one in project.store.events() if one.proposal_id == proposal_id]


def send(page, what):
    """Send a form of the page without waiting for an answer."""
    page.evaluate(f"document.querySelector('form[action$={what}]').requestSubmit()")


def test_two_people_approve_at_once(project, sign_in):
    """Both are told that it serves, and it was promoted once."""
    proposal_id = project.learn()
    people = [sign_in(project, name) for name in ("rita", "olga")]
    for page in people:
        page.goto(f"{project.url}/inbox/{proposal_id}")
    project.store.seconds = 0.02  # so that both are at work together
    for page in people:
        send(page, "approve")
    for page in people:
        page.locator(".state.active, .card").first.wait_for()
    assert kinds(project, proposal_id).count("active") == 1
    project.manager.refresh()
    assert "one of 24, 36, 48" in project.manager.library["car_loan"].definition.text
    verify_chain(project.store.events())


def test_one_approves_while_another_rejects(project, sign_in):
    """One of them decides, the other is told of it, and nothing is half done."""
    proposal_id = project.learn()
    rita, olga = (sign_in(project, name) for name in ("rita", "olga"))
    for page in (rita, olga):
        page.goto(f"{project.url}/inbox/{proposal_id}")
    olga.locator("#reason").evaluate("(field) => { field.value = 'not now'; }")
    project.store.seconds = 0.02
    send(rita, "approve")
    send(olga, "reject")
    for page in (rita, olga):
        page.locator(".state.active, .state.rejected, .card").first.wait_for()
    done = kinds(project, proposal_id)
    assert ("active" in done) != ("rejected" in done)
    serves = "one of 24" in project.manager.refresh()["car_loan"].definition.text
    assert serves == ("active" in done)
    verify_chain(project.store.events())


def test_a_slow_store_is_waited_for(project, sign_in):
    """A form is sent once however often it is clicked, and says what came of it."""
    proposal_id = project.learn()
    page = sign_in(project, "rita")
    page.goto(f"{project.url}/inbox/{proposal_id}")
    project.store.seconds = 0.04
    button = page.get_by_role("button", name="Approve")
    button.dblclick(no_wait_after=True)
    page.get_by_text("car_loan: in use").wait_for()
    assert kinds(project, proposal_id).count("approved") == 1


@pytest.mark.parametrize("calls_left", [0, 3, 30, 31])  # nothing, approved, about to serve
def test_a_store_that_goes_away_leaves_nothing_half_done(project, sign_in, calls_left):
    """Wherever in an act it goes, the page says so, and the act can be done again afterwards."""
    proposal_id = project.learn()
    page = sign_in(project, "rita")
    page.goto(f"{project.url}/inbox/{proposal_id}")
    project.store.calls_left = calls_left
    page.get_by_role("button", name="Approve").click()
    page.locator(".state, .card").first.wait_for()
    project.store.calls_left = None
    verify_chain(project.store.events())
    page.goto(f"{project.url}/inbox/{proposal_id}")
    if page.get_by_role("button", name="Approve").is_visible():
        page.get_by_role("button", name="Approve").click()
        page.get_by_text("car_loan: in use").wait_for()
    assert kinds(project, proposal_id).count("active") == 1
    assert kinds(project, proposal_id).count("approved") == 1


def test_a_lost_connection_is_told_where_one_reads(project, page):
    """What was said stays, and the field can be used again once the connection is back."""
    page.goto(f"{project.url}/playground")
    ask(page, "A loan over 24 months")
    page.context.set_offline(True)
    page.keyboard.type("A loan over 36 months")
    page.keyboard.press("Enter")
    page.get_by_text("The connection was lost").wait_for()
    assert page.get_by_role("button", name="Send").is_enabled()
    page.context.set_offline(False)
    assert "A loan over 24 months" in ask(page, "A loan over 48 months")


def test_a_connection_that_is_cut_in_the_middle_is_told(project, page):
    """The run is cancelled, and its episode says so; nobody waits for an answer for ever."""
    page.goto(f"{project.url}/playground")
    page.evaluate(
        """() => {
            const real = window.fetch;
            window.fetch = async (...sent) => {
                const answer = await real(...sent);
                const reader = answer.body.getReader();
                const body = new ReadableStream({ async pull(out) {
                    out.enqueue((await reader.read()).value);
                    out.error(new TypeError("cut"));
                }});
                return new Response(body, { status: answer.status });
            };
        }"""
    )
    page.keyboard.press("/")
    page.keyboard.type("A loan over 36 months")
    page.keyboard.press("Enter")
    page.get_by_text("The connection was lost").wait_for()
    assert page.get_by_role("button", name="Send").is_enabled()


def hostile(project):
    """Hostile words in every place that a stranger can write: tools, proposals, episodes."""
    one = project.manager.refresh()["sell_car"].definition
    words = replace(one.description, summary=HOSTILE, parameters={"number": HOSTILE})
    project.manager.register([replace(one, name="evil", description=words)])
    project.learn()
    kept = next(one for one in project.store.select() if one.results[0].status == "failed")
    call = ToolCall(call_id=HOSTILE, name="car_loan", arguments={"months": HOSTILE, HOSTILE: 1})
    huge = ToolResult(
        call_id=HOSTILE, name="car_loan", status="failed", text=HOSTILE + "x" * 10_000_000
    )
    turn = replace(
        kept.turns[0], message=AssistantMessage(text=HOSTILE, tool_calls=(call,)), results=(huge,)
    )
    labels = {"user": HOSTILE, "note": HOSTILE}
    project.store.append(
        replace(
            kept,
            episode_id="ffffffffffffffff",
            request=HOSTILE,
            turns=(turn,),
            output=HOSTILE,
            error=HOSTILE,
            session_id="s1",
            metadata=labels,
        )
    )


def test_hostile_words_are_text_on_every_page(project, sign_in):
    """No script runs, no element of theirs is there, nothing turns round, and no page is huge."""
    hostile(project)
    page = sign_in(project)
    page.goto(f"{project.url}/tools/evil")
    page.locator(".write summary").click()
    page.locator("#text").fill(f"Marks it. {HOSTILE}"[:120])
    page.locator("#because").fill(HOSTILE[:120])
    page.get_by_role("button", name="Propose", exact=True).click()
    page.locator(".state").first.wait_for()
    page.goto(f"{project.url}/findings")
    page.get_by_role("button", name="Propose to mend it").first.click()
    page.locator(".state").first.wait_for()
    for path in (*pages_of(project), "/episodes/ffffffffffffffff", "/tools/evil"):
        page.goto(project.url + path)
        page.wait_for_timeout(100)
        seen = page.evaluate(
            """() => ({
                strange: document.querySelectorAll("main script, main img, main [onerror]").length,
                size: document.documentElement.outerHTML.length,
                text: document.documentElement.textContent,
            })"""
        )
        assert seen["strange"] == 0, path
        assert seen["size"] < 400_000, path
        assert "\u202e" not in seen["text"], path
        assert "\x1b" not in seen["text"], path
