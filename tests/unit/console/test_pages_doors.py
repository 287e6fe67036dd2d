"""Sessions, links, marks and who a proxy says is there: what opens a page, without a browser."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.console.api.problem import Refused
from packhorse.console.api.signing import SignIns
from packhorse.console.pages.cookies import Cookie, cookie_for
from packhorse.console.pages.doorkeeper import Doorkeeper, Ways
from packhorse.console.pages.forms import form_of
from packhorse.console.pages.itsdangerous import Seal
from packhorse.console.pages.links import APART, LASTS, Links
from packhorse.console.pages.origins import Trusted, is_ours, path_on_here
from packhorse.console.pages.sessions import IDLE, RENEW, Ended, How, Session
from packhorse.console.pages.sessions import LASTS as SESSION_LASTS
from packhorse.core.errors import NotSignedIn, SettingsError, UsageError
from packhorse.core.person import Person, hash_of
from packhorse.core.rights import Role, Standing

KEY = b"k" * 32
TOKEN = "phk_" + "t" * 43
"""One that somebody holds in these tests; nobody holds another."""
PROXY = "192.0.2.7"


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 2, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def later(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


class Drawn:
    """Secrets that differ from each other."""

    def __init__(self, first: int = 0) -> None:
        self._n = first

    def secret(self, size: int) -> bytes:
        self._n += 1
        return self._n.to_bytes(size)


class House:
    """A doorkeeper, with what it was given at hand."""

    def __init__(self, *, keys: tuple[bytes, ...] = (KEY,), ways: Ways | None = None, drawn: int = 0) -> None:
        self.time, self.links = Time(), list[str]()
        self.keeper = Doorkeeper(
            self._standing,
            seal=Seal(keys),
            trusted=Trusted(PROXY),
            ways=ways or Ways(user_header="x-user"),
            user="root",
            clock=self.time,
            secrets=Drawn(drawn),
            sign_ins=SignIns(burst=3, every=60),
            tell_link=self.links.append,
        )

    def _standing(self, person: Person) -> Standing:
        if person.token_hash is not None and person.token_hash != hash_of(TOKEN):
            raise NotSignedIn("the token is not known")
        return Standing(name="ann", role=Role.VIEWER)

    def session(
        self, cookie: str | None, *named: str, peer: str = "", is_live: bool = False
    ) -> Session | None:
        found = self.keeper.session_of(cookie, named, peer=peer, is_live=is_live)
        return None if found is None else found.now

    def link(self) -> str:
        assert self.keeper.make_link()
        return self.links[-1].rpartition("=")[2]


def test_a_token_opens_a_session_that_ends_with_its_time_and_with_idleness() -> None:
    """Fails when a session outlives twelve hours of work, or two of none."""
    house = House()
    cookie = house.keeper.by_token(TOKEN, address="a").cookie
    assert (found := house.session(cookie)) is not None
    assert house.keeper.person(found) == Person(user="page", token_hash=hash_of(TOKEN))
    house.time.later(IDLE)
    assert house.session(cookie) is None
    kept = house.keeper.by_token(TOKEN, address="a").cookie
    for _ in range(int(SESSION_LASTS / (IDLE - 1))):
        house.time.later(IDLE - 1)
        now = house.keeper.session_of(kept, (), peer="", is_live=False)
        assert now is not None
        kept = now.cookie or kept
    house.time.later(IDLE - 1)
    assert house.session(kept) is None


def test_looks_that_a_page_makes_by_itself_keep_nobody_signed_in() -> None:
    """Fails when a page left open stays open for ever."""
    house = House()
    cookie = house.keeper.by_token(TOKEN, address="a").cookie
    house.time.later(RENEW)
    live = house.keeper.session_of(cookie, (), peer="", is_live=True)
    looked = house.keeper.session_of(cookie, (), peer="", is_live=False)
    assert live is not None
    assert looked is not None
    assert (live.cookie, looked.cookie is None) == (None, False)


def test_whoever_signs_out_is_out() -> None:
    """Fails when a copied cookie goes on."""
    house = House()
    kept = house.keeper.by_token(TOKEN, address="a")
    house.keeper.end(kept.now)
    assert house.session(kept.cookie) is None


def test_ended_sessions_are_remembered_in_bounded_memory() -> None:
    ended, one = Ended(), Session(id="0", how=How.LINK, who="", made_at=0, used_at=0)
    for n in range(10_001):
        ended.end(replace(one, id=str(n)))
    assert (ended.has(replace(one, id="0")), ended.has(replace(one, id="10000"))) == (False, True)


@given(st.text(max_size=200) | st.builds(lambda b: b.hex(), st.binary(max_size=50)))
def test_what_we_have_not_signed_is_nobody(cookie: str) -> None:
    assert House().session(cookie) is None


def test_keys_change_while_sessions_last_and_an_old_key_signs_nothing_new() -> None:
    """Fails when a new key signs everybody out, or one that was taken away still counts."""
    old, new = b"o" * 32, b"n" * 32
    session = Session(id="x", how=How.TOKEN, who="00" * 32, made_at=0, used_at=0)
    before, both, after = Seal([old]), Seal([old, new]), Seal([new])
    assert both.session(before.cookie(session)) == session
    assert after.session(both.cookie(session)) == session
    assert after.session(before.cookie(session)) is None
    assert both.is_mark(before.mark(session), session)
    assert not after.is_mark(before.mark(session), session)
    assert not both.is_mark(before.mark(replace(session, id="y")), session)


def test_a_mark_is_no_cookie_and_a_cookie_no_mark() -> None:
    """Fails when what stands in every page's source could open a session."""
    seal, session = Seal([KEY]), Session(id="x", how=How.LINK, who="", made_at=0, used_at=0)
    assert seal.session(f"x.{seal.mark(session)}") is None
    assert not seal.is_mark(seal.cookie(session).rpartition(".")[2], session)


def test_a_link_is_good_once_and_for_a_while() -> None:
    """Fails when a link opens the console twice, or one of the log of last week does."""
    house = House()
    word = house.link()
    kept = house.keeper.by_link(word, address="b")
    assert house.keeper.person(kept.now) == Person(user="root")
    with pytest.raises(NotSignedIn):
        house.keeper.by_link(word, address="c")
    house.time.later(APART)
    late = house.link()
    house.time.later(LASTS)
    with pytest.raises(NotSignedIn):
        house.keeper.by_link(late, address="d")


def test_who_asks_for_links_again_and_again_keeps_nobody_out_who_reads_the_terminal() -> None:
    """Fails when a new link makes those before it void, or a stranger's request leaves the terminal without one that is good."""
    house = House()
    first = house.link()
    for _ in range(int(LASTS / APART) - 1):
        house.time.later(APART)
        assert house.keeper.make_link()
        assert not house.keeper.make_link()
    assert house.keeper.by_link(first, address="a")
    assert house.keeper.by_link(house.links[-1].rpartition("=")[2], address="a")
    assert len(house.links) == LASTS / APART


def test_who_tries_too_often_keeps_nobody_out_who_has_a_link() -> None:
    """Fails when a stranger at the same address (a proxy's, or that of one machine) uses up the attempts of whoever has a link."""
    house = House()
    word = house.link()
    for _ in range(3):
        with pytest.raises(NotSignedIn):
            house.keeper.by_link("x", address="a")
    with pytest.raises(Refused):
        house.keeper.by_link("x", address="a")
    assert house.keeper.by_link(word, address="a")


def test_the_session_of_a_link_counts_at_the_console_that_made_it_alone() -> None:
    """Fails when consoles that share a key lend each other's roles, or a session goes on where links were switched off."""
    first, other = House(), House(drawn=100)
    cookie = first.keeper.by_link(first.link(), address="a").cookie
    assert first.session(cookie) is not None
    assert other.session(cookie) is None
    assert other.session(first.keeper.by_token(TOKEN, address="a").cookie) is not None


def test_what_is_no_token_is_told_in_words_of_the_page_and_not_repeated() -> None:
    with pytest.raises(NotSignedIn, match="begins with phk_") as told:
        House().keeper.by_token("hunter2", address="a")
    assert not re.search("hunter2|Authorization|Bearer", str(told.value))


def test_where_links_are_off_none_is_made_and_none_opens() -> None:
    house = House(ways=Ways(links=False))
    assert not house.keeper.make_link()
    with pytest.raises(NotSignedIn):
        house.keeper.by_link("", address="a")


def test_who_tries_too_often_waits() -> None:
    """Fails when somebody may ask the database about tokens without a bound."""
    house = House()
    for n in range(3):
        with pytest.raises(NotSignedIn):
            house.keeper.by_token(TOKEN[:-1] + str(n), address="a")
    with pytest.raises(Refused):
        house.keeper.by_token(TOKEN[:-1] + "9", address="a")
    with pytest.raises(Refused):
        house.keeper.by_link("x", address="a")
    assert house.keeper.by_token(TOKEN, address="b").cookie


def test_links_of_two_threads_are_used_by_one() -> None:
    links = Links()
    links.keep("w", now=0)
    assert [links.use("w", now=1), links.use("w", now=1)] == [True, False]


@pytest.mark.parametrize(
    ("named", "peer", "who"),
    [
        (("ann@example.org",), PROXY, "ann@example.org"),
        ((" ann@example.org ",), PROXY, "ann@example.org"),
        (("ann@example.org",), "192.0.2.8", None),
        (("ann@example.org",), "", None),
        (("ann@example.org", "eve"), PROXY, None),
        ((), PROXY, None),
        (("",), PROXY, None),
        (("a" * 64,), PROXY, None),
        (("a\u202eb",), PROXY, None),
    ],
)
def test_only_the_proxy_says_who_is_there(named: tuple[str, ...], peer: str, who: str | None) -> None:
    """Fails when anybody can say who they are."""
    found = House().session(None, *named, peer=peer)
    assert (None if found is None else found.who) == who


def test_a_session_of_the_proxy_ends_with_its_word() -> None:
    """Fails when somebody who has signed out at the proxy, or another person behind it, goes on in the session of before."""
    house = House()
    kept = house.keeper.session_of(None, ("ann",), peer=PROXY, is_live=False)
    assert kept is not None
    assert house.session(kept.cookie, "ann", peer=PROXY) == kept.now
    assert house.session(kept.cookie, peer=PROXY) is None
    assert house.session(kept.cookie) is None
    other = house.session(kept.cookie, "bob", peer=PROXY)
    assert other is not None
    assert (other.who, other.id == kept.now.id) == ("bob", False)


def test_a_token_s_session_gives_way_to_the_proxy_s_word() -> None:
    house = House()
    cookie = house.keeper.by_token(TOKEN, address="a").cookie
    found = house.session(cookie, "ann", peer=PROXY)
    assert found is not None
    assert found.how is How.PROXY


@pytest.mark.parametrize("text", ["x", "10.0.0.0/99", "10.0.0.1;10.0.0.2"])
def test_what_is_no_address_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="PACKHORSE_CONSOLE_PROXIES"):
        Trusted(text)


def test_networks_are_trusted_whole() -> None:
    trusted = Trusted("10.0.0.0/24, ::1")
    assert [trusted.has(one) for one in ("10.0.0.9", "10.0.1.9", "::1", "::1%eth0", "", "testclient")] == [
        True,
        False,
        True,
        True,
        False,
        False,
    ]
    assert Trusted("*").everybody


@given(st.text(max_size=60))
def test_nobody_is_sent_to_another_host(path: str) -> None:
    found = path_on_here(path)
    assert found.startswith("/")
    assert not found.startswith(("//", "/\\"))
    assert found.isascii()


@given(st.dictionaries(st.sampled_from(["sec-fetch-site", "origin", "host"]), st.text(max_size=30)))
def test_a_request_is_ours_by_what_the_browser_says_alone(headers: dict[str, str]) -> None:
    if is_ours(headers):
        site = headers.get("sec-fetch-site")
        assert site == "same-origin" or (site is None and headers["origin"].endswith(headers["host"]))


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"a=1", "application/json"),
        (b"a=1", "multipart/form-data; boundary=x"),
        (b"a=1&a=2", "application/x-www-form-urlencoded"),
        (b"\xff", "application/x-www-form-urlencoded"),
        (b"a=%ff", "application/x-www-form-urlencoded"),
        (b"nothing", "application/x-www-form-urlencoded"),
        (b"&".join(b"f%d=1" % n for n in range(1_300)), "application/x-www-form-urlencoded"),
    ],
)
def test_what_is_no_form_is_refused(body: bytes, media_type: str) -> None:
    with pytest.raises(UsageError, match="nothing was done"):
        form_of(body, media_type)


def test_over_tls_the_cookie_is_of_this_host_alone() -> None:
    """Fails when another host of the domain could put a cookie of its own in the place of ours, at any port."""
    for host in ("packhorse.example.org", "packhorse.example.org:8443"):
        over = cookie_for("https", host)
        assert over.name.startswith("__Host-")
        assert {"Secure", "Path=/"} <= set(over.keeping("x").split("; "))
        assert {"Secure", "Path=/", "Max-Age=0"} <= set(over.gone().split("; "))
    assert "Secure" not in cookie_for("http", "localhost").keeping("x")


def test_consoles_on_two_ports_of_one_host_have_two_cookies() -> None:
    """Fails when whoever signs in at one console is signed out at another."""
    hosts = ("127.0.0.1:8400", "127.0.0.1:8401", "[::1]:9000", "packhorse.example.org")
    names = [cookie_for("http", host).name for host in hosts]
    assert names == ["packhorse-8400", "packhorse-8401", "packhorse-9000", "packhorse"]
    assert cookie_for("http", "evil;:x").name == "packhorse"
    assert Cookie(secure=True, port="8443").name == "__Host-packhorse-8443"
