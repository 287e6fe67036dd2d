"""Post to a webhook: one request, no redirect followed, certificates verified, everything bounded."""

import http.client
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from packhorse.core.errors import PackhorseError

MOST_READ = 64 * 1024
"""Bytes of an answer that are read before the connection is closed; nothing in it matters."""


class WebhookAway(PackhorseError):
    """Say that a webhook did not answer: it can't be reached, breaks off, or takes too long."""

    retryable = True


def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout: float) -> int:
    """
    Send *body* and return the status of the answer; *timeout* bounds connect, and each read, in seconds.

    Raises:
        WebhookAway: There is no answer.
    """
    parts = urlsplit(url)
    host, path = parts.hostname or "", parts.path or "/"
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=context)
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=timeout)
    try:
        connection.request("POST", f"{path}?{parts.query}" if parts.query else path, body, dict(headers))
        answer = connection.getresponse()
        answer.read(MOST_READ)
    except (OSError, http.client.HTTPException) as error:
        raise WebhookAway(f"{host}: {type(error).__name__}") from error
    else:
        return answer.status
    finally:
        connection.close()
