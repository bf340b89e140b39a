"""Who gets in, what their role lets them do, and what no other site can do in their name."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient
from support.app_stage import NO_BODIES, raw_answer

from agentkit.errors import UsageError
from agentkit.server import serving
from agentkit.server.keys import Keys
from agentkit_studio import Access
from agentkit_studio.access import Headers

from .conftest import KEYS


def test_strangers_see_the_form_for_a_key(studio):
    """No page, and no word about the library."""
    answer = studio("").get("/")
    assert answer.url.path == "/login"
    assert "Your key" in answer.text
    assert "Inbox" not in answer.text


def test_an_address_opens_one_session(studio):
    """Its code leaves the address; the cookie is for this site alone and out of reach of scripts."""
    client = studio("")
    code = client.app.state.studio.access.invite("vera")
    answer = client.get(f"/?once={code}", follow_redirects=False)
    assert answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert code not in cookie
    assert "Inbox" in client.get("/").text
    client.cookies.clear()
    assert client.get(f"/?once={code}").url.path == "/login"


def test_no_link_signs_anybody_in_with_a_key(studio):
    """Another site could make a browser somebody else's, who then types what others read."""
    assert studio("").get(f"/?key={KEYS['vera']}").url.path == "/login"
    client = studio("")
    code = client.app.state.studio.access.invite("vera")
    client.head(f"/?once={code}")  # a preview of the address does not use it up
    assert client.get(f"/?once={code}").url.path == "/"


def test_wrong_keys_have_to_wait(studio, csrf_of_login):
    """After a few, from one address, the right one has to wait too."""
    client = studio("")
    for number in range(6):
        form = {"csrf": csrf_of_login(client), "key": f"key-of-nobody-{number}-012345"}
        assert client.post("/login", data=form).status_code == 403
    form = {"csrf": csrf_of_login(client), "key": KEYS["vera"]}
    answer = client.post("/login", data=form)
    assert answer.status_code == 429
    assert "wait a minute" in answer.text


def test_wrong_keys_of_many_addresses_have_to_wait(studio, csrf_of_login):
    """A header that a proxy sets, or who poses as one, names any address."""
    app, seen = studio("").app, []
    for number in range(61):
        client = TestClient(app, base_url="http://127.0.0.1", client=(f"10.0.0.{number}", 5_000))
        form = {"csrf": csrf_of_login(client), "key": f"key-of-nobody-{number}-012345"}
        seen.append(client.post("/login", data=form).status_code)
    assert seen == [403] * 60 + [429]


@pytest.mark.parametrize(
    ("sent", "passed_on"),
    [
        (b"agentkit_studio=a.b", [b"agentkit_studio=a.b"]),
        (b"theme=dark; agentkit_studio=a.b; x=1", [b"agentkit_studio=a.b"]),
        (b"agentkit_studio=a; agentkit_studio=b", [b"agentkit_studio=a"]),
        (b'agentkit_studio="' + b'\\"' * 30_000 + b'"', []),
        (b'theme="' + b'\\"' * 30_000 + b'"', []),
    ],
)
async def test_no_cookie_but_a_short_one_of_ours_is_read(sent, passed_on):
    """Python unquotes long cookies in quadratic time, before anybody is known."""
    seen = []

    async def app(scope, receive, send):
        seen.extend(value for name, value in scope["headers"] if name == b"cookie")

    scope = {"type": "http", "path": "/", "headers": [(b"host", b"x"), (b"cookie", sent)]}
    await Headers(app)(scope, None, None)
    assert seen == passed_on


@pytest.mark.parametrize("charset", ["undefined", "idna", "nothing"])
def test_a_form_in_no_character_set_is_refused(studio, charset):
    """It is no error of the studio's."""
    body = b'--b\r\nContent-Disposition: form-data; name="key"\r\n\r\nx\xff\r\n--b--\r\n'
    kind = f"multipart/form-data; boundary=b; charset={charset}"
    answer = studio("").post("/login", content=body, headers={"content-type": kind})
    assert answer.status_code in {400, 403}


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_form_without_end_is_read_to_a_bound(studio, kind):
    """Before anybody is known; reading a megabyte of separators would hold up all for seconds."""
    start = b"--b\r\nContent-Disposition: form-data; name=key\r\n\r\n"
    headers = {"content-type": f"{kind}; boundary=b"}
    answer = studio("").post("/login", content=start + b"&" * 2**20, headers=headers)
    assert answer.status_code == 413
    assert "at most 262,144 bytes" in answer.text


def test_the_form_takes_a_key_and_refuses_others(studio, csrf_of_login):
    """A wrong one is said to be wrong, and nothing more."""
    client = studio("")
    csrf = csrf_of_login(client)
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
def test_a_role_bounds_what_may_be_done(studio, act, proposal_id, name, what, proposals):
    """The page refuses, whatever the buttons showed."""
    answer = act(studio(name), what, reason="x")
    assert answer.status_code == 403
    assert proposals()[proposal_id].is_open


def test_read_only_holds_for_everybody(studio, act, proposal_id, proposals):
    """Not even an operator changes anything."""
    assert act(studio("olga", read_only=True), "approve").status_code == 403
    assert proposals()[proposal_id].is_open


@pytest.mark.parametrize(
    ("form", "headers"),
    [({}, {}), ({"csrf": "guessed"}, {}), (None, {"origin": "https://elsewhere.example"})],
)
def test_forms_of_other_sites_change_nothing(
    studio, act, proposal_id, form, headers, proposals, csrf
):
    """Neither without the token of the session nor from another origin."""
    client = studio("rita")
    sent = {"csrf": csrf(client)} if form is None else form
    answer = client.post(f"/inbox/{proposal_id}/approve", data=sent, headers=headers)
    assert answer.status_code == 403
    assert proposals()[proposal_id].is_open


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


def test_a_form_belongs_to_the_user_it_was_given_to(studio, proposal_id, proposals):
    """Behind a proxy a cookie of one's own, put into another's browser, lets nobody act as them."""
    roles = {"olga": "operator", "rita": "reviewer"}
    client = studio("", keys=None, user_header="X-Remote-User", roles=roles)
    page = client.get(f"/inbox/{proposal_id}", headers={"x-remote-user": "rita"}).text
    form = {"csrf": page.partition('name="csrf" content="')[2].partition('"')[0]}
    for name, status in (("olga", 403), ("rita", 200)):
        head = {"x-remote-user": name}
        answer = client.post(f"/inbox/{proposal_id}/approve", data=form, headers=head)
        assert answer.status_code == status
        assert proposals()[proposal_id].is_open == (status == 403)


def test_a_name_that_was_sent_twice_is_nobodys(studio):
    """A proxy that appends its header to a forged one lets nobody in."""
    client = studio("", keys=None, user_header="X-Remote-User", roles={"olga": "operator"})
    twice = [("x-remote-user", "olga"), ("x-remote-user", "vera")]
    assert client.get("/", headers=twice).status_code == 403


def test_a_name_with_a_blank_that_nobody_sees_is_another(studio):
    """A proxy that lets it pass makes nobody an operator."""
    client = studio(
        "",
        keys=None,
        user_header="X-Remote-User",
        roles={"olga": "operator"},
        default_role="nobody",
    )
    assert client.get("/", headers=[(b"x-remote-user", b"olga")]).status_code == 200
    assert client.get("/", headers=[(b"x-remote-user", b"olga\xa0")]).status_code == 403


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


def test_where_viewers_are_named_everybody_else_stays_out(studio):
    """Also behind a proxy that knows more users, and also read-only."""
    for read_only in (False, True):
        client = studio(
            "", keys=None, user_header="x-user", default_role="nobody", read_only=read_only
        )
        assert client.get("/", headers={"x-user": "vera"}).status_code == 200
        refused = client.get("/", headers={"x-user": "eve"})
        assert refused.status_code == 403
        assert "eve has no role in this studio" in refused.text


@pytest.mark.parametrize(("header", "sent", "begin"), NO_BODIES)
def test_a_form_that_is_none_costs_a_line(studio, caplog, header, sent, begin):
    """A stranger who sends what is no HTTP, or leaves, fills no log with tracebacks."""
    kind = "Content-Type: application/x-www-form-urlencoded"
    with serving(studio("").app) as url:
        assert raw_answer(url, "/login", sent, kind, header).startswith(begin)
    assert not [record for record in caplog.records if record.exc_info]
