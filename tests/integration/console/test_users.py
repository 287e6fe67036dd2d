"""What users may do, whom a proxy has signed in: on a real database, as a server asks for them."""

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
from tests.support.cli import Ran, packhorse
from tests.support.console_services import service_over
from tests.support.roles import Roles
from tests.support.wait import eventually

from packhorse.console.acting.person import Person, this_process
from packhorse.console.acting.postgres import Database, opened
from packhorse.console.operators.model import Kind, Wanted
from packhorse.console.operators.service import Operators
from packhorse.core.errors import Forbidden, UnknownId, UsageError
from packhorse.core.rights import Right, Role
from packhorse.relay.postgres.acting import allowed

ANN = "ann@example.org"
WAITS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def signed_in(name: str = ANN) -> Person:
    return Person(user="web", signed_in=name)


def user(name: str = ANN, role: Role = Role.VIEWER, **given: Any) -> Wanted:
    return Wanted(kind=Kind.USER, name=name, role=role, **given)


@pytest.fixture
def tables(database: str) -> Iterator[Database]:
    """Provide the database as its owner has it, who lends nothing to users."""
    with opened(database, schema="packhorse", timeout=30) as found:
        yield found


@pytest.fixture
def owner(tables: Database) -> Operators:
    return service_over(tables).operators


def run(database: str, *arguments: object) -> Ran:
    return packhorse("operators", *arguments, PACKHORSE_DATABASE_URL=database)


@pytest.mark.case("O-13")
def test_rights_are_given_to_a_name_changed_and_taken_on_the_record(
    connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when a user needs a role of the database, or a change of their rights is not recorded as theirs."""
    given = run(database, "add", ANN, "--user", "--role", "operator", "--why", "on call")
    assert (given.code, given.out, given.err) == (0, f"given: user {ANN}: operator\n", "")
    again = run(database, "add", ANN, "--user", "--role", "operator")
    assert again.out == f"as it was: user {ANN}: operator\n"
    changed = run(
        database, "add", ANN, "--user", "--role", "viewer", "--personal", "--expires", "90d", "--json"
    )
    assert (changed.json()["before"]["role"], changed.json()["after"]["kind"]) == ("operator", "user")
    (listed,) = run(database, "list", "--json").json()["operators"]
    assert (listed["kind"], listed["name"], listed["personal"], listed["gone"]) == ("user", ANN, True, False)
    assert "user" in run(database, "list").out
    no_role = run(database, "remove", ANN)
    assert (no_role.code, "--user a user" in no_role.err) == (6, True)
    both = run(database, "remove", ANN, "--user", "--token")
    assert (both.code, "give one of them" in both.err) == (2, True)
    removed = run(database, "remove", ANN, "--user", "--why", "left")
    assert removed.out == f"removed: user {ANN}, which was viewer, sees personal fields\n"
    assert run(database, "remove", ANN, "--user").code == 6
    rows = connection.execute(
        "SELECT act, detail ->> 'kind', detail ->> 'name', why FROM packhorse.audit ORDER BY id"
    )
    assert rows.fetchall() == [
        ("operators-add", "user", ANN, "on call"),
        ("operators-change", "user", ANN, None),
        ("operators-remove", "user", ANN, "left"),
    ]


@pytest.mark.case("O-13")
def test_a_user_acts_by_their_own_rights_and_not_by_those_of_the_server(
    connection: psycopg.Connection[Any], tables: Database, owner: Operators, database: str
) -> None:
    """Fails when the owner, as whom the server is connected, lends a right; or the record doesn't name the user."""
    owner.add(user())
    anns = service_over(tables, signed_in()).operators
    me = anns.me()
    assert (me.actor, me.is_owner, me.rights) == (f"{ANN} (signed in)", False, [Right.SEE])
    assert me.lines() == [f"signed in as the user {ANN}: viewer"]
    assert [one.name for one in anns.list()] == [ANN]
    with pytest.raises(
        Forbidden, match=f"{ANN} may not say who may do what: that needs the right to administer"
    ):
        anns.add(user("bob"))
    owner.add(user(role=Role.ADMIN))
    anns.add(user("bob"))
    found = connection.execute("SELECT actor, role FROM packhorse.audit WHERE detail ->> 'name' = 'bob'")
    assert found.fetchall() == [(f"{ANN} (signed in)", "postgres")]
    owner.add(user(role=Role.OPERATOR))
    with psycopg.connect(database) as relays:
        assert allowed(relays, "packhorse", signed_in(), Right.ACT, doing="test") == f"{ANN} (signed in)"
        with pytest.raises(Forbidden, match="right to administer"):
            allowed(relays, "packhorse", signed_in(), Right.ADMINISTER, doing="test")
        with pytest.raises(Forbidden, match="eve has no rights here"):
            allowed(relays, "packhorse", signed_in("eve"), Right.ACT, doing="test")


@pytest.mark.case("O-13")
def test_whom_nobody_has_given_rights_may_nothing_and_is_told_so(
    connection: psycopg.Connection[Any], tables: Database, owner: Operators
) -> None:
    """Fails when a name is somebody because a proxy says it: without rights, with rights that are over, or nearly of that name."""
    owner.add(user())
    for name in (ANN.title(), f"{ANN}.", "%", "eve"):
        stranger = service_over(tables, signed_in(name)).operators
        removing = partial(stranger.remove, Kind.USER, ANN)
        for ask in (stranger.me, stranger.list, removing):
            with pytest.raises(Forbidden, match="has no rights here; an admin gives them with `packhorse op"):
                ask()
    connection.execute("UPDATE packhorse.operator SET expires_at = clock_timestamp()")
    with (
        pytest.raises(Forbidden, match=f"{ANN} had rights here that are expired"),
        tables.acting(signed_in(), Right.SEE, doing="test"),
    ):
        pytest.fail("the act was let in")


@pytest.mark.case("P7")
def test_a_users_right_can_not_be_withdrawn_beneath_an_act(
    connection: psycopg.Connection[Any], tables: Database, owner: Operators, database: str
) -> None:
    """Fails when the act does not lock its right, locks another's, or keeps a right that was withdrawn before the second act."""
    owner.add(user(role=Role.OPERATOR))
    owner.add(user("bob"))
    with opened(database, schema="packhorse", timeout=30) as others:
        removing = service_over(others).operators
        remover = threading.Thread(target=removing.remove, args=(Kind.USER, ANN))
        with tables.acting(signed_in(), Right.ACT, doing="test") as act:
            removing.remove(Kind.USER, "bob")
            remover.start()
            eventually(
                lambda: connection.execute(WAITS).fetchone() == (1,), what="the removal waits for the act"
            )
            act.record("test", why=None)
        remover.join(30)
    with pytest.raises(Forbidden), tables.acting(signed_in(), Right.ACT, doing="test"):
        pytest.fail("the second act was let in")
    done = connection.execute(
        "SELECT act, detail ->> 'name' FROM packhorse.audit ORDER BY id OFFSET 2"
    ).fetchall()
    assert done == [("operators-remove", "bob"), ("test", None), ("operators-remove", ANN)]


@pytest.mark.case("O-13")
def test_a_role_a_token_and_a_user_of_one_name_are_three(
    tables: Database, owner: Operators, database: str, roles: Roles
) -> None:
    """Fails when rights are looked up, changed or removed by the name alone."""
    name = roles.make("operator")
    token = owner.token(Wanted(kind=Kind.TOKEN, name=name, role=Role.VIEWER, edit=True)).token
    owner.add(user(name, Role.ADMIN))
    assert [(one.kind, one.role) for one in owner.list()] == [
        (Kind.ROLE, Role.OPERATOR),
        (Kind.TOKEN, Role.VIEWER),
        (Kind.USER, Role.ADMIN),
    ]
    holder = service_over(tables, this_process(token=token)).operators
    users = service_over(tables, signed_in(name)).operators
    with opened(roles.url(name), schema="packhorse", timeout=30) as of_role:
        for operators, kind, role in (
            (service_over(of_role).operators, Kind.ROLE, Role.OPERATOR),
            (holder, Kind.TOKEN, Role.VIEWER),
            (users, Kind.USER, Role.ADMIN),
            (service_over(of_role, signed_in(name)).operators, Kind.USER, Role.ADMIN),
        ):
            me = operators.me()
            assert (me.standing.role, [(one.kind, one.name) for one in me.by]) == (role, [(kind, name)])
        owner.add(user(name))
        assert (holder.me().standing.edit, users.me().standing.role) == (True, Role.VIEWER)
        owner.remove(Kind.USER, name)
        with pytest.raises(Forbidden, match="has no rights here"):
            users.me()
        assert service_over(of_role).operators.me().standing.role is Role.OPERATOR
    assert holder.me().standing.role is Role.VIEWER
    with pytest.raises(UnknownId):
        owner.remove(Kind.USER, name)


@pytest.mark.case("X-07")
def test_a_name_is_data_whatever_it_looks_like(
    connection: psycopg.Connection[Any], tables: Database, owner: Operators, database: str
) -> None:
    """Fails when a name is pasted into a statement, or one that hides what it is gets rights."""
    for name in (
        "o'brien'); DROP TABLE packhorse.operator; --",
        '"; --',
        "{schema}",
        "%s%(token)s",
        "' OR ''='",
    ):
        with pytest.raises(Forbidden):
            service_over(tables, signed_in(name)).operators.me()
        owner.add(user(name))
        assert service_over(tables, signed_in(name)).operators.me().standing.name == name
        owner.remove(Kind.USER, name)
    for name in ("", "x" * 64, "x" * 65, "a\nb", "a\x1b[2J", "a\u202eb", " ann"):
        refused = run(database, "add", name, "--user", "--role", "admin")
        assert (refused.code, "is not allowed" in refused.err, "\x1b" in refused.err) == (2, True, False)
    assert connection.execute("SELECT count(*) FROM packhorse.operator").fetchone() == (0,)


@pytest.mark.case("O-13")
def test_users_are_admins_to_leave_behind_once_one_of_them_has_come_in(
    connection: psycopg.Connection[Any], tables: Database, owner: Operators, roles: Roles
) -> None:
    """Fails when the last admin with a role goes for a user whom perhaps no proxy lets in, or users can never be the only ones."""
    role = roles.make("admin")
    owner.add(user(role=Role.ADMIN))
    owner.add(user("bob", Role.ADMIN))
    with opened(roles.url(role), schema="packhorse", timeout=30) as of_role:
        admins = service_over(of_role).operators
        with pytest.raises(UsageError, match="whether a proxy lets the users in"):
            admins.remove(Kind.ROLE, role)
        anns = service_over(of_role, signed_in()).operators
        anns.remove(Kind.ROLE, role)
        connection.execute("UPDATE packhorse.operator SET expires_at = clock_timestamp() WHERE name = 'bob'")
        for leave in (partial(anns.remove, Kind.USER, ANN), partial(anns.add, user())):
            with pytest.raises(UsageError, match="is the last admin: make another one first"):
                leave()
        connection.execute("UPDATE packhorse.operator SET expires_at = NULL")
        anns.remove(Kind.USER, ANN)
        with pytest.raises(Forbidden):
            anns.list()
    owner.remove(Kind.USER, "bob")
    assert owner.list() == []
