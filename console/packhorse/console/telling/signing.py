"""Sign what a webhook is sent, so that the receiver knows who sent it, and when. Pure: no I/O, no clock."""

import hashlib
import hmac
import json
from datetime import UTC, datetime
from uuid import UUID

from packhorse.processor.noticing.messages import NeedsPerson

SIGNATURE, MESSAGE_ID = "Packhorse-Signature", "Packhorse-Id"


def body_of(notice: NeedsPerson, message_id: UUID) -> bytes:
    """Return *notice* as the JSON that a webhook is sent; nothing of any message is in it."""
    fields = {
        "id": str(message_id),
        "failure": notice.print,
        "group": notice.group,
        "topic": notice.topic,
        "type": notice.message_type,
        "reason": notice.reason,
        "error": notice.site,
        "quarantined": notice.count,
        "first_at": _at(notice.first_at),
        "last_at": _at(notice.last_at),
        "contact": notice.contact,
    }
    return json.dumps(fields, ensure_ascii=True).encode()


def signature_of(body: bytes, *, secret: bytes, at: int) -> str:
    """
    Return the header that signs *body* at *at* (Unix seconds): HMAC-SHA256 over the time, a dot and the body.

    >>> signature_of(b"{}", secret=b"s" * 16, at=1)[:12]
    't=1,v1=ba3a8'
    """
    digest = hmac.new(secret, str(at).encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def headers_of(body: bytes, *, secret: bytes, at: int, message_id: UUID) -> dict[str, str]:
    """Return the headers of a request: the signature, and the id by which the receiver drops a repetition."""
    return {
        "Content-Type": "application/json",
        "User-Agent": "packhorse",
        SIGNATURE: signature_of(body, secret=secret, at=at),
        MESSAGE_ID: str(message_id),
    }


def _at(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
