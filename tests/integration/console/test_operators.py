"""Who may do what, on a real database with real roles; and what people did."""

import csv
import io
import threading
from contextlib import nullcontext
from typing import Any

import psycopg
import pytest
from psycopg import errors as pg
from tests.support.cli import packhorse
from tests.support.console_rows import rested
from tests.support.console_services import service_over
from tests.support.roles import Roles
from tests.support.wait import eventually

from packhorse.console.acting.person import hash_of, this_process
from packhorse.console.acting.postgres import opened
from packhorse.console.operators import sql
from packhorse.console.operators.model import Kind, Wanted
from packhorse.core.errors import Forbidden, NotReady, NotSignedIn, UnknownId, UsageError
from packhorse.core.rights import Right, Role


def acts(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT act, detail, why FROM packhorse.audit ORDER BY id").fetchall()


def environ(url: str, **more: str) -> dict[str, str]:
    return {"PACKHORSE_DATABASE_URL": url, **more}


@pytest.mark.case("O-13")
def test_out_of_the_box_nobody_but_the_owner_may_anything(
    connection: psycopg.Connection[Any], database: str, roles: Roles
) -> None:
    """Fails when a right is given to PUBLIC, or a role without a row of operator is taken for somebody."""
    stranger = roles.make()
    with opened(roles.url(stranger), schema="packhorse", timeout=5) as tables:
        for look in (service_over(tables).operators.list, service_over(tables).operators.me):
            with pytest.raises(NotReady):
                look()
    found = packhorse("operators", "me", "--json", **environ(database)).json()
    assert (found["owner"], found["role"], len(found["rights"])) == (True, "admin", 5)
    roles.grant("viewer", stranger)
    connection.execute("DELETE FROM packhorse.operator")
    with opened(roles.url(stranger), schema="packhorse", timeout=5) as tables:
        service = service_over(tables)
        assert (service.operators.me().rights, service.operators.me().is_owner) == ([], False)
        for act in (service.operators.list, lambda: service.operators.remove(Kind.ROLE, "x")):
            with pytest.raises(Forbidden, match="has no role"):
                act()
    assert acts(connection) == []


def test_rights_are_given_changed_and_taken_on_the_record_without_a_token_in_it(
    connection: psycopg.Connection[Any], database: str, roles: Roles
) -> None:
    """Fails when a change is not recorded with what was before, or the record holds a token or its hash."""
    ann = roles.make()
    env = environ(database)
    given = packhorse("operators", "add", ann, "--role", "operator", "--edit", "--why", "on call", **env)
    assert (given.code, given.out) == (0, f"given: role {ann}: operator, edits\n")
    assert f"the database refuses {ann} what acts need" in given.err
    again = packhorse("operators", "add", ann, "--role", "operator", "--edit", **env)
    assert again.out == f"as it was: role {ann}: operator, edits\n"
    roles.grant("operator", ann)
    changed = packhorse("operators", "add", ann, "--role", "viewer", "--expires", "90d", "--json", **env)
    assert (changed.err, changed.json()["before"]["role"], changed.json()["after"]["role"]) == (
        "",
        "operator",
        "viewer",
    )
    made = packhorse("operators", "token", "ci", "--role", "viewer", "--personal", **env)
    token = made.out.strip()
    assert made.out == f"{token}\n"
    assert token.startswith("phk_")
    assert "given: token ci: viewer, sees personal fields; this is the only time" in made.err
    listed = packhorse("operators", "list", "--json", **env).json()["operators"]
    assert [(one["kind"], one["name"], one["expires_at"] is None) for one in listed] == [
        ("role", ann, False),
        ("token", "ci", True),
    ]
    assert packhorse("operators", "remove", ann, "--why", "left", **env).out.startswith(
        f"removed: role {ann}"
    )
    assert packhorse("operators", "remove", ann, **env).code == 6
    found = acts(connection)
    assert [(act, why) for act, _, why in found] == [
        ("operators-add", "on call"),
        ("operators-change", None),
        ("operators-add", None),
        ("operators-remove", "left"),
    ]
    assert found[1][1]["before"] == {"role": "operator", "personal": False, "edit": True, "expires_at": None}
    text = str(connection.execute("SELECT a::text FROM packhorse.audit AS a").fetchall())
    assert token not in text
    assert hash_of(token).hex() not in text


def test_a_name_that_is_no_role_and_a_name_that_has_a_token_are_refused(database: str, roles: Roles) -> None:
    del roles
    with opened(database, schema="packhorse", timeout=5) as tables:
        operators = service_over(tables).operators
        with pytest.raises(UnknownId, match="CREATE ROLE"):
            operators.add(Wanted(kind=Kind.ROLE, name="no such role", role=Role.VIEWER))
        wanted = Wanted(kind=Kind.TOKEN, name="ci", role=Role.VIEWER)
        first = operators.token(wanted).token
        with pytest.raises(UsageError, match="--renew"):
            operators.token(wanted)
        second = operators.token(wanted, renew=True).token
        assert service_over(tables, this_process(token=second)).operators.me().standing.name == "ci"
        with pytest.raises(NotSignedIn, match="is not known"):
            service_over(tables, this_process(token=first)).operators.me()


@pytest.mark.case("O-13")
def test_a_token_acts_under_its_own_name_and_not_with_the_rights_of_the_role_that_is_connected(
    connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when the owner's rights, under which a server is connected, pass on to whoever brings a viewer's token."""
    message_id = rested(connection)
    tokens = {
        role: packhorse("operators", "token", f"the {role}", "--role", role, **environ(database)).out.strip()
        for role in ("viewer", "operator")
    }
    redrive = ("quarantine", "redrive", message_id, "--why", "mended", "--yes")
    refused = packhorse(*redrive, **environ(database, PACKHORSE_CONSOLE_TOKEN=tokens["viewer"]))
    assert (refused.code, "the viewer may not redrive messages" in refused.err) == (8, True)
    done = packhorse(*redrive, **environ(database, PACKHORSE_CONSOLE_TOKEN=tokens["operator"]))
    assert done.code == 0
    assert connection.execute("SELECT actor FROM packhorse.audit WHERE act = 'redrive'").fetchall() == [
        ("the operator (token)",)
    ]
    unknown = packhorse("operators", "me", **environ(database, PACKHORSE_CONSOLE_TOKEN="phk_x"))
    assert (unknown.code, "phk_x" in unknown.err) == (8, False)


def test_members_of_a_role_have_its_rights_until_they_expire(
    connection: psycopg.Connection[Any], database: str, roles: Roles
) -> None:
    """Fails when membership does not count, or a right outlives its time by the database's clock."""
    group = roles.make("operator")
    ann = roles.make(member_of=group)
    with opened(roles.url(ann), schema="packhorse", timeout=5) as tables:
        me = service_over(tables).operators.me()
        assert (me.standing.name, me.standing.role, me.is_owner) == (ann, Role.OPERATOR, False)
        assert me.lines() == [f"a member of the role {group}: operator"]
        packhorse("operators", "add", group, "--role", "operator", "--expires", "1h", **environ(database))
        assert Right.ACT in service_over(tables).operators.me().rights
        connection.execute("UPDATE packhorse.operator SET expires_at = clock_timestamp()")
        me = service_over(tables).operators.me()
        assert (me.rights, me.lines()) == ([], [f"a member of the role {group}: operator, EXPIRED"])


def test_a_member_of_the_owner_is_the_owner(connection: psycopg.Connection[Any], roles: Roles) -> None:
    owner = roles.make()
    member = roles.make(member_of=owner)
    connection.execute(f"GRANT USAGE ON SCHEMA packhorse TO {owner}".encode())
    connection.execute(f"ALTER TABLE packhorse.operator OWNER TO {owner}".encode())
    connection.execute(f"GRANT EXECUTE ON FUNCTION packhorse.operator_standing TO {owner}".encode())
    with opened(roles.url(member), schema="packhorse", timeout=5) as tables:
        me = service_over(tables).operators.me()
    assert (me.is_owner, me.standing.role, me.lines()) == (True, Role.ADMIN, ["owns the tables: may do all"])
    connection.execute("ALTER TABLE packhorse.operator OWNER TO postgres")


@pytest.mark.case("P7")
def test_a_right_that_is_withdrawn_between_two_acts_is_gone_for_the_second(
    connection: psycopg.Connection[Any], database: str, roles: Roles
) -> None:
    """Fails when a right is looked up once for a session, or outside the act's transaction."""
    ann = roles.make("admin")
    with opened(roles.url(ann), schema="packhorse", timeout=5) as tables:
        operators = service_over(tables).operators
        wanted = Wanted(kind=Kind.TOKEN, name="ci", role=Role.VIEWER)
        operators.token(wanted)
        packhorse("operators", "add", ann, "--role", "operator", **environ(database))
        before = acts(connection)
        with pytest.raises(Forbidden, match="that needs the right to administer"):
            operators.remove(Kind.TOKEN, "ci")
    assert acts(connection) == before
    assert connection.execute("SELECT count(*) FROM packhorse.operator WHERE kind = 'token'").fetchone() == (
        1,
    )


@pytest.mark.case("P7")
def test_a_right_can_not_be_withdrawn_beneath_an_act(
    connection: psycopg.Connection[Any], database: str, roles: Roles
) -> None:
    """Fails when the act does not lock its right: it would be recorded after its actor had lost it."""
    ann = roles.make("operator")
    with (
        opened(roles.url(ann), schema="packhorse", timeout=30) as tables,
        opened(database, schema="packhorse", timeout=30) as owners,
    ):
        remover = threading.Thread(target=service_over(owners).operators.remove, args=(Kind.ROLE, ann))
        with tables.acting(this_process(), Right.ACT, doing="test") as act:
            remover.start()
            eventually(lambda: _waits(connection), what="the removal waits for the act")
            act.record("test", why=None)
        remover.join(30)
    assert [act for act, *_ in acts(connection)] == ["test", "operators-remove"]


@pytest.mark.case("P7")
def test_of_two_admins_who_remove_each_other_at_once_one_stays(
    connection: psycopg.Connection[Any], roles: Roles
) -> None:
    """Fails when acts on rights don't come one after another: both would hold their own right, and wait for each other in a ring."""
    ann, bob = roles.make("admin"), roles.make("admin")
    ended: list[str] = []

    def remove() -> None:
        with opened(roles.url(bob), schema="packhorse", timeout=30) as tables:
            try:
                service_over(tables).operators.remove(Kind.ROLE, ann)
            except Forbidden:
                ended.append("refused")

    second = threading.Thread(target=remove)
    with (
        opened(roles.url(ann), schema="packhorse", timeout=30) as tables,
        tables.acting(this_process(), Right.ADMINISTER, doing="test", turn="operators") as act,
    ):
        second.start()
        eventually(lambda: _waits(connection), what="the second waits for the first")
        assert act.count(sql.REMOVE, {"kind": "role", "name": bob}) == 1
        act.record("operators-remove", why=None)
    second.join(60)
    assert ended == ["refused"]
    assert connection.execute("SELECT name FROM packhorse.operator").fetchall() == [(ann,)]
    with opened(roles.url(ann), schema="packhorse", timeout=5) as tables:
        operators = service_over(tables).operators
        with pytest.raises(UsageError, match="is the last admin"):
            operators.remove(Kind.ROLE, ann)
        with pytest.raises(UsageError, match="is the last admin"):
            operators.add(Wanted(kind=Kind.ROLE, name=ann, role=Role.VIEWER))
    assert [act for act, *_ in acts(connection)] == ["operators-remove"]


@pytest.mark.case("O-14")
def test_the_record_is_read_in_pages_by_whoever_may_see(
    connection: psycopg.Connection[Any], database: str, roles: Roles
) -> None:
    """Fails when a page repeats or leaves out an act of the same moment, or a role without the right may read it."""
    connection.execute(
        "INSERT INTO packhorse.audit (at, actor, act, group_id, why)"
        " SELECT '2026-01-02T00:00:00Z'::timestamptz + (n / 3) * interval '1 hour', CASE n % 2 WHEN 0 THEN 'ann (role a)' ELSE '=bob' END,"
        " 'discard', 'figures', '=cmd' || n FROM generate_series(1, 9) AS n"
    )
    env = environ(database)
    seen: list[str] = []
    after: tuple[str, ...] = ()
    while True:
        page = packhorse("audit", "list", "--limit", "2", *after, "--json", **env).json()
        seen += [act["why"] for act in page["acts"]]
        if page["next"] is None:
            break
        after = ("--after", page["next"])
    assert seen == [f"=cmd{number}" for number in range(9, 0, -1)]
    span = ("--since", "2026-01-02T01:00:00Z", "--until", "2026-01-02T02:00:00Z")
    found = packhorse("audit", "list", *span, "--actor", "ann", "--json", **env).json()
    assert [act["why"] for act in found["acts"]] == ["=cmd4"]
    lines = list(csv.reader(io.StringIO(packhorse("audit", "list", "--actor", "bob", "--csv", **env).out)))
    assert {(line[1], line[7][0]) for line in lines[1:]} == {("'=bob", "'")}
    assert "=cmd9" in packhorse("audit", "list", **env).out
    assert packhorse("audit", "list", "--act", "x", **env).out == "nothing on record fits\n"
    whole = packhorse("audit", "list", "--act", "disc", "--limit", "50", "--json", **env).json()["acts"]
    assert [act["act"] for act in whole] == ["discard"] * 9
    ann = roles.make("viewer")
    assert packhorse("audit", "list", **environ(roles.url(ann))).code == 0
    connection.execute("DELETE FROM packhorse.operator")
    refused = packhorse("audit", "list", **environ(roles.url(ann)))
    assert (refused.code, "may not see what people did" in refused.err) == (8, True)


def _waits(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    ).fetchone()
    return row is not None and row[0] > 0


@pytest.mark.case("O-14")
@pytest.mark.parametrize("all_columns", [False, True])
def test_who_writes_in_another_name_is_on_the_record_with_the_own_role_and_time(
    connection: psycopg.Connection[Any], database: str, roles: Roles, all_columns: bool
) -> None:
    """Fails when the grants or the trigger stamp_act let a role that may add to the record say which role and when it was; grants
    on all columns, which roles of before have, are held to the same."""
    role = roles.make("viewer")
    if all_columns:
        connection.execute(f"GRANT INSERT ON packhorse.audit TO {role}".encode())
    with psycopg.connect(roles.url(role), autocommit=True) as viewer:
        for column, value in (("at", "2020-01-01T00:00:00Z"), ("role", "bob")):
            forged = f"INSERT INTO packhorse.audit (actor, act, {column}) VALUES ('bob (role admin)', 'purge', '{value}')"
            with nullcontext() if all_columns else pytest.raises(pg.InsufficientPrivilege):
                viewer.execute(forged.encode())
        viewer.execute("INSERT INTO packhorse.audit (actor, act) VALUES ('bob (role admin)', 'purge')")
        with pytest.raises(pg.InsufficientPrivilege) if not all_columns else nullcontext():
            viewer.execute(
                "INSERT INTO packhorse.audit (id, actor, act) OVERRIDING SYSTEM VALUE VALUES (99, 'bob', 'purge')"
            )
    found = packhorse("audit", "list", "--json", **environ(database)).json()["acts"]
    assert {act["role"] for act in found} == {role}
    assert all(act["at"] > "2026" for act in found)
    assert role in packhorse("audit", "list", COLUMNS="200", **environ(database)).out


@pytest.mark.case("P8")
@pytest.mark.parametrize("purpose", ["viewer", "operator"])
def test_who_only_looks_reads_no_tokens_hash(
    connection: psycopg.Connection[Any], database: str, roles: Roles, purpose: str
) -> None:
    """Fails when the grants show the hashes of tokens: by one a role could ask for, and lock, the rights of its holder."""
    role = roles.make(purpose)
    packhorse("operators", "token", "ci", "--role", "viewer", **environ(database))
    with psycopg.connect(roles.url(role), autocommit=True) as person:
        for look in ("SELECT token_hash FROM packhorse.operator", "SELECT o FROM packhorse.operator AS o"):
            with pytest.raises(pg.InsufficientPrivilege):
                person.execute(look.encode())
    for command in ("list", "me"):
        assert packhorse("operators", command, **environ(roles.url(role))).code == 0


@pytest.mark.case("P8")
def test_what_the_database_refuses_by_a_rule_of_its_own_is_told_without_the_row(
    connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when an error of the driver's reaches people as it is: its detail quotes the whole row, here the token's hash."""
    connection.execute("ALTER TABLE packhorse.operator ADD CONSTRAINT house_rule CHECK (name <> 'evil')")
    refused = packhorse("operators", "token", "evil", "--role", "viewer", **environ(database))
    assert (refused.code, "refuses it: CheckViolation (23514) of operator.house_rule" in refused.err) == (
        3,
        True,
    )
    assert not any(told in refused.err for told in ("\\x", "Failing row", "Traceback"))
    assert acts(connection) == []


@pytest.mark.case("X-07")
def test_what_somebody_planted_on_the_record_is_only_shown(
    connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when the record's text reaches a terminal or a spreadsheet as it is: whoever acts could plant commands and formulas."""
    planted = '=HYPERLINK("http://x")\x1b[2J\u202e'
    connection.execute(
        "INSERT INTO packhorse.audit (actor, act, group_id, topic, detail, why) VALUES (%(p)s, %(p)s, %(p)s, %(p)s,"
        " jsonb_build_object('x', %(p)s::text), %(p)s)",
        {"p": planted},
    )
    env = environ(database)
    for form in ((), ("--csv",), ("--json",)):
        out = packhorse("audit", "list", *form, **env).out
        assert "HYPERLINK" in out
        assert not {"\x1b", "\u202e"} & set(out)
    cells = next(csv.reader(io.StringIO(packhorse("audit", "list", "--csv", **env).out.splitlines()[1])))
    assert [cell for cell in cells if cell.startswith("=")] == []
    made = packhorse("operators", "token", "ci", "--role", "viewer", "--why", planted, **env)
    assert (made.code, "\x1b" in made.err) == (0, False)
    for name in (planted, "a\x1bb"):
        refused = packhorse("operators", "remove", name, **env)
        assert (refused.code, "\x1b" in refused.err) == (2, False)
