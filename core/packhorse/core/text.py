"""Make text from elsewhere safe to show: whatever a header or an error holds, a terminal only prints it."""


def inert(text: str, *, limit: int | None = None) -> str:
    r"""
    Return *text* with control and invisible characters written as escapes, cut to *limit* characters.

    Terminal codes, line breaks, bidirectional overrides and lone surrogates become visible; a backslash stays, so the
    result is for eyes and not for reading back.

    >>> inert("\x1b[2Jgone")
    '\\x1b[2Jgone'
    >>> inert("a\u202eb\n")
    'a\\u202eb\\x0a'
    >>> inert("0123456789", limit=8)
    '0123456…'
    """
    shown = text if limit is None or len(text) <= limit else text[: max(limit - 1, 0)] + "…"
    if shown.isprintable():
        return shown
    return "".join(_escaped(character) for character in shown)


def counted(n: int, one: str, many: str | None = None) -> str:
    """
    Return *n* of what is called *one*, in the plural where it is due; *many* where that is not made with an s.

    >>> counted(1, "member"), counted(0, "member"), counted(1_200, "reply", "replies")
    ('1 member', '0 members', '1200 replies')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
