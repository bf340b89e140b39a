"""Who gets in, what their role lets them do, and what no other site can do in their name."""

from __future__ import annotations

import pytest

from agentkit.errors import UsageError
from agentkit.server.keys import Keys
from agentkit_studio import Access

from .conftest import KEYS


def test_strangers_see_the_form_for_a_key(studio):
    """No page, and no word about the library."""
    answer = studio("").get("/")
    assert answer.url.path == "/login"
    assert "Your key" in answer.text
    assert "Inbox" not in answer.text


def test_a_key_opens_a_session_and_leaves_the_address(studio):
    """The cookie is for this site alone and out of reach of scripts."""
    client = studio("")
    answer = client.get(f"/?key={KEYS['vera']}", follow_redirects=False)
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert KEYS["vera"] not in cookie
    assert "Inbox" in client.get("/").text


def test_the_form_takes_a_key_and_refuses_others(studio):
    """A wrong one is said to be wrong, and nothing more."""
    client = studio("")
    csrf = client.get("/login").text.partition('name="csrf" content="')[2].partition('"')[0]
    wrong = client.post("/login", data={"csrf": csrf, "key": "key-of-nobody-0123456789"})
    assert wrong.status_code == 403
    assert "not known here" in wrong.text
    assert "Inbox" in client.post("/login", data={"csrf": csrf, "key": KEYS["vera"]}).text


def test_a_forged_cookie_is_a_stranger(studio):
    """Cookies are signed."""
    client = studio("")
    client.cookies.set("agentkit_studio", "eyJ1c2VyIjogIm9sZ2EifQ==.aaaaaa.bbbbbbbbbbbbbbbbbbbb")
    assert client.get("/").url.path == "/login"


@pytest.mark.parametrize(("name", "what"), [("vera", "approve"), ("rita", "rollback")])
def test_a_role_bounds_what_may_be_done(studio, act, manager, proposal_id, name, what):
    """The page refuses, whatever the buttons showed."""
    answer = act(studio(name), what, reason="x")
    assert answer.status_code == 403
    manager.refresh()
    assert manager.ledger.proposals[proposal_id].is_open


def test_read_only_holds_for_everybody(studio, act, manager, proposal_id):
    """Not even an operator changes anything."""
    assert act(studio("olga", read_only=True), "approve").status_code == 403
    manager.refresh()
    assert manager.ledger.proposals[proposal_id].is_open


@pytest.mark.parametrize(
    ("form", "headers"),
    [
        ({}, {}),
        ({"csrf": "guessed"}, {}),
        (None, {"origin": "https://elsewhere.example"}),
    ],
)
def test_forms_of_other_sites_change_nothing(studio, act, manager, proposal_id, form, headers):
    """Neither without the token of the session nor from another origin."""
    client = studio("rita")
    page = client.get(f"/inbox/{proposal_id}").text
    csrf = page.partition('name="csrf" content="')[2].partition('"')[0]
    sent = {"csrf": csrf} if form is None else form
    answer = client.post(f"/inbox/{proposal_id}/approve", data=sent, headers=headers)
    assert answer.status_code == 403
    manager.refresh()
    assert manager.ledger.proposals[proposal_id].is_open


def test_an_act_is_no_link(studio, proposal_id):
    """A page that is only visited changes nothing."""
    assert studio("olga").get(f"/inbox/{proposal_id}/approve").status_code == 405


def test_a_proxy_names_users(store, studio):
    """By the header that it was told to; without it nobody gets in."""
    client = studio("", keys=None, user_header="X-Remote-User", roles={"rita": "reviewer"})
    assert client.get("/").status_code == 403
    page = client.get("/", headers={"x-remote-user": "rita"})
    assert page.status_code == 200
    assert "rita" in page.text


def test_a_name_that_was_sent_twice_is_nobodys(studio):
    """A proxy that appends its header to a forged one lets nobody in."""
    client = studio("", keys=None, user_header="X-Remote-User", roles={"olga": "operator"})
    twice = [("x-remote-user", "olga"), ("x-remote-user", "vera")]
    assert client.get("/", headers=twice).status_code == 403


def test_a_session_ends_with_its_key(studio, tmp_path):
    """Taken away or changed in the file, it is a stranger's at once."""
    path, now = tmp_path / "keys", [0.0]
    for after in ("vera=key-of-vera-0123456789\n", "olga=another-key-0123456789\n"):
        path.write_text("".join(f"{name}={key}\n" for name, key in KEYS.items()))
        client = studio("olga", keys=Keys.from_file(path, clock=lambda: now[0]))
        assert client.get("/").url.path == "/"
        path.write_text(after)
        now[0] += 2
        assert client.get("/").url.path == "/login"


def test_it_works_behind_a_prefix(studio, proposal_id):
    """Whether or not the proxy takes the prefix off, links and the cookie carry it."""
    client = studio("vera", prefix="/tools/studio")
    [cookie] = client.cookies.jar
    assert cookie.path == "/tools/studio/"
    for path in ("/tools/studio/", "/"):  # the browser asks for the first one in both cases
        page = client.get(path, headers={"cookie": f"{cookie.name}={cookie.value}"})
        assert f'href="/tools/studio/inbox/{proposal_id}"' in page.text
    assert client.get("/tools/studio/static/studio.css").status_code == 200


def test_every_answer_forbids_scripts_of_others(studio):
    """Also errors and files."""
    client = studio()
    for path in ("/", "/nowhere", "/static/studio.js"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_somebody_has_to_get_in():
    """A studio that nobody could open, and roles that do not exist, are refused at once."""
    with pytest.raises(UsageError, match="nobody could get in"):
        Access()
    with pytest.raises(UsageError, match="the role of ann is 'boss'"):
        Access(user_header="x-user", roles={"ann": "boss"})
