"""The doctor's look at the schema registry, over its HTTP API."""

import httpx

from packhorse.core.errors import RegistryUnavailable
from packhorse.core.redaction import secrets_of, without_secrets

_ACCEPT = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}


class RegistryCheck:
    """
    Look at one registry.

    Args:
        url: The Confluent API's base URL.
        user, password: For basic authentication; None without.
        timeout: Seconds for connect, and for each read.
    """

    def __init__(self, url: str, *, user: str | None, password: str | None, timeout: float) -> None:
        self._url = url.rstrip("/")
        self._auth = None if user is None else (user, password or "")
        self._timeout = timeout

    def subjects(self) -> int:
        """
        Return how many subjects the registry has.

        Raises:
            RegistryUnavailable: It does not answer in time, or not as a registry does.
        """
        found = self._get("/subjects").json()
        if not isinstance(found, list):
            raise self._away(
                "it answers, but not with a list of subjects: is the path of its Confluent API right?"
            )
        return len(found)

    def has_id(self, schema_id: int) -> bool:
        """
        Say whether the registry knows *schema_id*.

        Raises:
            RegistryUnavailable: It does not answer in time.
        """
        return (
            self._get(f"/schemas/ids/{schema_id}", absent_is_fine=True).status_code != httpx.codes.NOT_FOUND
        )

    def _get(self, path: str, *, absent_is_fine: bool = False) -> httpx.Response:
        try:
            answer = httpx.get(
                self._url + path,
                auth=self._auth,
                timeout=self._timeout,
                headers=_ACCEPT,
                follow_redirects=False,
            )
            answer.json()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._away(str(error) or type(error).__name__) from None
        except ValueError:
            raise self._away("it answers, but not in JSON: is the path of its Confluent API right?") from None
        if answer.status_code != httpx.codes.OK and not (
            absent_is_fine and answer.status_code == httpx.codes.NOT_FOUND
        ):
            raise self._away(f"it answers {answer.status_code} {answer.reason_phrase}")
        return answer

    def _away(self, reason: str) -> RegistryUnavailable:
        known = secrets_of("PACKHORSE_REGISTRY_URL", self._url)
        return RegistryUnavailable(without_secrets(f"registry {self._url}: {reason}", known))
