"""What the reason codes of stopped messages mean, in words. Pure."""

NOT_EDITABLE = {"undecodable", "unknown-schema", "no-tombstone-handler"}
"""Reasons of messages that `packhorse quarantine edit` refuses: they have no payload that can be read."""
MEANS = {
    "failed": "the handler raised an error that may pass",
    "contention": "it kept losing to other transactions",
    "connection-lost": "its runs ended the database connection again and again while the database was well",
    "timeout": "it outlasted the handler's time-out",
    "crashed": "the process died during each of its runs",
    "down": "a system behind the handler is down",
    "later": "the handler put it off",
    "id-reused": "its id is in the inbox already, for another payload",
    "broken-transaction": "the handler ended the transaction that it was given",
    "attempts-exhausted": "all its attempts failed",
    "budget-exhausted": "the time for its attempts is used up",
    "permanent": "the handler declares errors of this class as permanent",
    "refused": "a database or server refuses its values, whatever anybody else does",
    "undecodable": "its bytes cannot be decoded",
    "unknown-schema": "the registry does not know its schema",
    "unknown-type": "no handler of the group takes its type",
    "no-tombstone-handler": "it is a tombstone, and no handler takes those",
    "uncertain": "an outside effect may or may not have happened",
    "deadline": "the job was not done within the time that its type declares",
    "bad-result": "what the job's function returned is no JSON, or too large to be kept",
    "no-job": "this database knows no job of the message's id",
    "cancelled": "somebody took the job back",
    "job-over": "its job had ended before",
    "other-group": "another group has the workers of its job",
    "expired": "its expires-at had passed",
}


def reason_text(reason: str | None, error: str | None) -> str:
    """
    Return a reason code with its meaning, and the error's class and place.

    >>> reason_text("permanent", "ValueError at handlers.py:12"), reason_text("no-seat", None), reason_text(None, None)
    ('permanent (the handler declares errors of this class as permanent), ValueError at handlers.py:12', 'no-seat', 'no reason on record')
    """
    if reason is None:
        return error or "no reason on record"
    means = f" ({MEANS[reason]})" if reason in MEANS else ""
    told = MEANS[reason] if reason == "failed" else f"{reason}{means}"
    return told + (f", {error}" if error else "")
