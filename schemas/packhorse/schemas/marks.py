"""Personal marks that a new version has lost: from then on screens and errors would show what they hid before."""

from collections.abc import Iterator

from packhorse.schemas.tree import Array, Field, Map, Node, Record, Schema, Union


def lost_marks(older: Schema, newer: Schema) -> tuple[str, ...]:
    """
    Return the paths, in *newer*, of the fields that *older* marks as personal and that are not marked any more.

    A field that says `"packhorse.personal": false` itself was unmarked on purpose. A field that is gone lost nothing.
    """
    return tuple(dict.fromkeys(_Walk(older, newer).lost(older.root, newer.root, "", frozenset())))


class _Walk:
    def __init__(self, older: Schema, newer: Schema) -> None:
        self._older, self._newer = older, newer

    def lost(self, old: Node, new: Node, path: str, inside: frozenset[tuple[str, str]]) -> Iterator[str]:
        was, now = self._older.resolved(old), self._newer.resolved(new)
        match was, now:
            case Union(branches=branches), _:
                for branch in branches:
                    yield from self.lost(branch, now, path, inside)
            case _, Union(branches=branches):
                for branch in branches:
                    yield from self.lost(was, branch, path, inside)
            case Array(), Array():
                yield from self.lost(was.items, now.items, f"{path}[]", inside)
            case Map(), Map():
                yield from self.lost(was.values, now.values, f"{path}{{}}", inside)
            case Record(), Record() if _same(was, now) and (was.name, now.name) not in inside:
                yield from self._in_fields(was, now, path, inside | {(was.name, now.name)})
            case _:
                return

    def _in_fields(
        self, was: Record, now: Record, path: str, inside: frozenset[tuple[str, str]]
    ) -> Iterator[str]:
        old = {field.name: field for field in was.fields}
        for field in now.fields:
            before = next((old[name] for name in (field.name, *field.aliases) if name in old), None)
            if before is not None:
                yield from self._in_field(before, field, f"{path}.{field.name}".removeprefix("."), inside)

    def _in_field(
        self, before: Field, field: Field, path: str, inside: frozenset[tuple[str, str]]
    ) -> Iterator[str]:
        if field.personal or field.unmarked:
            return
        if before.personal:
            yield path
        else:
            yield from self.lost(before.type, field.type, path, inside)


def _same(was: Record, now: Record) -> bool:
    short = was.name.rpartition(".")[2]
    return short == now.name.rpartition(".")[2] or was.name in now.aliases or short in now.aliases
