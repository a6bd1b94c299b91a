"""The console's door: passwords, sessions, tokens of forms, and the headers of every answer."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from hotset.console import passwords
from hotset.console.app import create
from hotset.console.sessions import Attempts, Limits, Sessions, find_browser, mark_browser
from hotset.console.web import COOKIE, Settings
from hotset.experiment.site import live
from hotset.lab import lab as labs
from hotset.operations import remote
from hotset.operations.jobs import store as jobs
from tests.console_client import (
    HERE,
    LIMITS,
    PASSWORD,
    client,
    hashed,
    token_of,
    try_password,
)

__all__ = ["client", "hashed"]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def another(client: TestClient, address: str = "testclient") -> TestClient:
    """A further browser at the same console."""
    return TestClient(client.app, base_url=HERE, follow_redirects=False, client=(address, 1))


def logged_in(browser: TestClient) -> bool:
    return browser.get("/runs").status_code == 200


def test_the_right_password_opens_and_a_wrong_one_says_so(client: TestClient) -> None:
    wrong = try_password(client, "correct horse batterie")
    assert wrong.status_code == 403
    assert "That is not the password." in wrong.text
    assert not logged_in(client)
    before = client.cookies[COOKIE]
    right = try_password(client)
    assert (right.status_code, right.headers["location"]) == (303, "/")
    assert client.cookies[COOKIE] != before, "a cookie from before the log-in is worth nothing"
    assert logged_in(client)


def test_whether_it_answers_is_told_without_a_log_in_and_nothing_else_is(
    client: TestClient,
) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.text) == (200, "ok\n")
    assert client.post("/healthz").status_code == 405


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.usefixtures("own_folders")
def test_the_cookie_is_for_this_site_and_no_script(tls: bool) -> None:
    passwords.save(PASSWORD)
    with TestClient(create(Settings(tls=tls)), base_url="https://localhost") as browser:
        browser.follow_redirects = False
        given = [
            browser.get("/login").headers["set-cookie"],
            try_password(browser).headers["set-cookie"],
        ]
    for cookie in given:
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert ("Secure" in cookie) is tls
        assert "Domain" not in cookie


@pytest.mark.usefixtures("own_folders")
def test_behind_a_proxy_that_has_the_certificate_the_cookie_is_for_tls_alone() -> None:
    """The hop from the proxy is plain HTTP; what the browser sees is not."""
    passwords.save(PASSWORD)
    settings = Settings(tls=True, public_name="Console.example.org")
    proxied = {"Host": "console.example.org", "X-Forwarded-Proto": "http"}
    with TestClient(create(settings), base_url="http://127.0.0.1", headers=proxied) as browser:
        given = browser.get("/login")
        assert given.status_code == 200
        assert "Secure" in given.headers["set-cookie"]
        assert "max-age" in given.headers["strict-transport-security"]
        assert browser.get("/login", headers={"Host": "evil.example"}).status_code == 421
    with TestClient(create(Settings()), base_url="http://127.0.0.1", headers=proxied) as browser:
        assert browser.get("/login").status_code == 421


def test_who_guesses_has_to_wait_and_others_do_not(client: TestClient) -> None:
    for _ in range(LIMITS.wrong_passwords):
        assert try_password(client, "guess").status_code == 403
    late = try_password(client, PASSWORD)
    assert late.status_code == 429
    assert re.search(r"Too many wrong passwords from testclient\. Try again in \d+ s\.", late.text)
    assert 0 < int(late.headers["retry-after"]) <= LIMITS.wait_s
    assert try_password(another(client, "10.0.0.2")).status_code == 303


def test_whoever_guesses_does_not_keep_a_known_browser_out(client: TestClient) -> None:
    """All users of a tunnel, and of the server itself, come from one address."""
    assert try_password(client).status_code == 303
    client.post("/logout", data={"csrf": token_of(client)})
    stranger = another(client)
    for _ in range(LIMITS.wrong_passwords):
        try_password(stranger, "guess")
    assert try_password(stranger).status_code == 429
    assert try_password(client).status_code == 303


def test_a_known_browser_may_not_guess_on(client: TestClient) -> None:
    try_password(client)
    client.post("/logout", data={"csrf": token_of(client)})
    for _ in range(LIMITS.wrong_passwords):
        assert try_password(client, "guess").status_code == 403
    assert try_password(client).status_code == 429


def test_a_mark_that_was_made_up_or_is_of_an_old_password_is_a_strangers(
    client: TestClient,
) -> None:
    for _ in range(LIMITS.wrong_passwords):
        try_password(another(client), "guess")
    made_up = another(client)
    made_up.cookies.set("hotset-browser", f"x.{'0' * 64}")
    assert try_password(made_up).status_code == 429
    assert find_browser(mark_browser("old hash"), "new hash") is None
    assert find_browser(mark_browser("hash"), "hash") is not None
    for cookie in (None, "", ".", "x", "x.", ".x"):
        assert find_browser(cookie, "hash") is None


def test_another_sites_name_is_not_answered(client: TestClient, subtests: pytest.Subtests) -> None:
    """DNS rebinding: a name of somebody else's that resolves to this computer."""
    file = remote.settings_file()
    file.parent.mkdir(parents=True)
    file.write_text('hosts = ["console.example.org"]')
    for path in ["/login", "/api/v1/jobs", "/metrics", "/static/console.css"]:
        for host, taken in [
            ("localhost:8480", True),
            ("127.0.0.1:8480", True),
            ("[::1]:8480", True),
            ("203.0.113.7", True),
            ("console.example.org", True),
            ("CONSOLE.example.org.:8480", True),
            (socket.gethostname(), True),
            ("attacker.example", False),
            ("127.0.0.1.attacker.example", False),
            ("localhost.attacker.example:8480", False),
            ("", False),
        ]:
            with subtests.test(host=str(host), taken=str(taken), path=str(path)):
                answer = client.get(path, headers={"Host": host})
                assert (answer.status_code != 421) is taken
                if not taken:
                    assert "remote.toml" in answer.text


def test_waiting_doubles_and_ends_and_success_forgets() -> None:
    clock = Clock()
    attempts = Attempts(Limits(wrong_passwords=2, wait_s=60), clock)
    waits = []
    for _ in range(4):
        attempts.record_failure("a")
        waits.append(attempts.wait_s("a"))
    assert waits == [0, 60, 120, 240]
    clock.now += 239
    assert (attempts.wait_s("a"), attempts.wait_s("b")) == (1, 0)
    clock.now += 1
    assert attempts.wait_s("a") == 0
    attempts.record_success("a")
    attempts.record_failure("a")
    assert attempts.wait_s("a") == 0


def test_a_session_ends_by_idleness_and_by_age() -> None:
    clock = Clock()
    sessions = Sessions(Limits(idle_s=100, absolute_s=250), clock)
    idle, busy = sessions.begin("hash"), sessions.begin("hash")
    for _ in range(2):
        clock.now += 99
        assert sessions.alive(busy, "hash", touch=True)
    assert not sessions.alive(idle, "hash"), "nothing was done for longer than 100 s"
    clock.now += 53
    assert not sessions.alive(busy, "hash", touch=True), "older than 250 s"
    assert not sessions.alive(None, "hash")


def test_an_expired_session_is_led_to_the_login_and_says_why(client: TestClient) -> None:
    try_password(client)
    token = token_of(client)
    client.app.state.console.sessions._open.clear()  # what time does, see above
    gone = client.get("/disks")
    assert (gone.status_code, gone.headers["location"]) == (303, "/login?next=%2Fdisks&expired=1")
    assert "You were logged out" in client.get(gone.headers["location"]).text
    part = client.post("/logout", data={"csrf": token}, headers={"HX-Request": "true"})
    assert part.headers["hx-redirect"] == "/login?expired=1"


def test_what_a_browser_asks_by_itself_does_not_keep_a_session(client: TestClient) -> None:
    try_password(client)
    (session,) = client.app.state.console.sessions._open.values()
    session.seen -= LIMITS.idle_s - 5
    for _ in range(2):
        assert client.get("/warmup/jobs").status_code == 200
    left = LIMITS.idle_s - (time.monotonic() - session.seen)
    assert left < 6
    assert logged_in(client)
    assert LIMITS.idle_s - (time.monotonic() - session.seen) > 3000


def test_two_browsers_and_one_logs_out(client: TestClient) -> None:
    other = another(client)
    try_password(client)
    try_password(other)
    assert client.post("/logout", data={"csrf": token_of(client)}).status_code == 303
    assert not logged_in(client)
    assert logged_in(other)


def test_a_new_password_logs_everyone_out(client: TestClient) -> None:
    try_password(client)
    passwords.save("another long password")
    assert not logged_in(client)
    assert try_password(client).status_code == 403
    assert try_password(client, "another long password").status_code == 303


def routes(client: TestClient, method: str) -> list[str]:
    """Every path of the console's own pages, with something in place of what varies."""
    found = [
        re.sub(r"{\w+}", "flush", route.path)
        for route in client.app.routes
        if isinstance(route, Route) and method in (route.methods or ())
    ]
    # The module is no secret, and one line of PowerShell fetches it.
    open_to_all = ("/healthz", "/login", "/metrics", "/powershell/Hotset.zip")
    return [path for path in found if path not in open_to_all]


def test_nothing_is_shown_without_a_login(client: TestClient) -> None:
    assert len(routes(client, "GET")) > 20
    for path in routes(client, "GET"):
        answer = client.get(path)
        assert answer.status_code == 303, path
        assert answer.headers["location"].startswith("/login")
    for path in routes(client, "POST"):
        assert client.post(path).headers["location"] == "/login?expired=1", path


def test_no_form_is_taken_without_its_token(client: TestClient) -> None:
    other = another(client)
    try_password(client)
    try_password(other)
    foreign = token_of(other)
    assert len(routes(client, "POST")) > 10
    for path in routes(client, "POST"):
        for sent in ({}, {"csrf": ""}, {"csrf": foreign}):
            answer = client.post(path, data={"yes": "true", "typed": "flush", **sent})
            assert answer.status_code == 403, path
            assert "This form is not from this session" in answer.text
    assert logged_in(client), "nobody was logged out"
    assert jobs.every() == [], "and nothing was started"
    assert client.post("/login", data={"password": PASSWORD}).status_code == 403


def test_the_token_may_come_as_a_header(client: TestClient) -> None:
    try_password(client)
    headers = {"X-CSRF-Token": token_of(client), "HX-Request": "true"}
    answer = client.post("/benchmarks/tpcc", data={"verb": "check"}, headers=headers)
    assert answer.status_code == 422
    assert "dsn: tpcc check needs it" in answer.text


def test_what_gives_something_up_asks_for_its_name(client: TestClient) -> None:
    try_password(client)
    sent = {"csrf": token_of(client), "flash": "/dev/disk/by-id/virtio-flash", "yes": "true"}
    for path in ("/flash/shop/destroy", "/disks/shop/detach", "/flash/create"):
        for typed in ("", "sho", "virtio"):
            answer = client.post(path, data={**sent, "typed": typed})
            assert answer.status_code == 422, path
            assert "nothing was done" in answer.text
    assert jobs.every() == []
    given = client.post("/flash/shop/destroy", data={**sent, "typed": "shop"})
    job = jobs.find(given.headers["location"].removeprefix("/jobs/"))
    assert job.words == ("tier", "destroy")
    assert job.values == {"flash_name": "shop", "machine": "local", "yes": True}


def test_what_a_verb_is_agreed_to_is_said_in_its_own_words(client: TestClient) -> None:
    """Once all of them said "Allow overwriting existing data", which none of them does."""
    try_password(client)
    for path, words in (
        ("/disks/shop/detach", "because the origin is gone"),
        ("/flash/main/destroy", "something on its volume"),
    ):
        text = client.get(path).text
        assert words in text
        assert "overwriting" not in text
    assert "Its size now is not known." in client.get("/disks/shop/resize").text


def test_the_lab_has_its_page_among_the_others_while_it_is_up(client: TestClient) -> None:
    try_password(client)
    link = '<a href="/lab">Lab</a>'
    assert link not in client.get("/runs").text
    facts = labs.lab_folder() / live._FACTS
    facts.write_text("{}")
    assert link in client.get("/runs").text


@pytest.mark.parametrize(
    ("target", "led"),
    [("/runs", "/runs"), ("//evil.example", "/"), ("https://evil.example/", "/"), ("/\\evil", "/")],
)
def test_the_login_leads_nowhere_else(client: TestClient, target: str, led: str) -> None:
    assert try_password(client, target=target).headers["location"] == led


def test_a_flood_is_not_taken_in(client: TestClient) -> None:
    for sent in ({"password": "x" * 100_000}, {f"f{n}": "x" for n in range(101)}):
        assert client.post("/login", data=sent).status_code == 400


def test_every_answer_forbids_foreign_code_and_frames(client: TestClient) -> None:
    try_password(client)
    for path in ("/login", "/", "/runs", "/nowhere", "/static/console.js"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "'unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert client.get("/runs").headers["cache-control"] == "no-store"
    assert client.get("/nowhere").status_code == 404


def test_no_page_has_a_script_or_a_style_of_its_own() -> None:
    """They would be dead: the policy above forbids them."""
    folder = Path(passwords.__file__).parent / "templates"
    for file in folder.glob("*.html"):
        text = file.read_text()
        assert not re.search(
            r"<script(?! src=)|<style|\sstyle=|\son\w+=|hx-on|javascript:", text
        ), file


def test_the_api_stands_beside_it_with_a_door_of_its_own(client: TestClient) -> None:
    try_password(client)
    assert client.get("/api/v1/openapi.json").json()["openapi"].startswith("3.1")
    for path in ("/api/v1/jobs", "/metrics"):
        answer = client.get(path)
        assert answer.status_code == 401, "a browser's session opens no door of the API"
        assert answer.headers["content-type"] == "application/problem+json"


def first_page(client: TestClient) -> dict[str, int]:
    """Bytes on the wire of the overview and all that it loads."""
    page = client.get("/")
    paths = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)
    sizes = {"/": int(page.headers["content-length"])}
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        sizes[path] = int(answer.headers["content-length"])
    return sizes


def test_the_first_page_is_small_and_quick(client: TestClient) -> None:
    try_password(client)
    sizes = first_page(client)
    assert len(sizes) >= 8
    assert sum(sizes.values()) < 100_000, sizes
    took = []
    for _ in range(5):
        begun = time.monotonic()
        first_page(client)
        took.append(time.monotonic() - begun)
    assert min(took) < 1, "the machine may be busy, the page may not be slow"
