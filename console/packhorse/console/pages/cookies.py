"""The cookie that a session is kept in: one for each console that a browser knows. Pure: no I/O."""

from dataclasses import dataclass

from packhorse.console.api.hosts import host_and_port
from packhorse.console.pages.sessions import LASTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """
    The cookie of one console, as a browser has it.

    Cookies know no ports: consoles on several ports of one host, or behind tunnels that end on this machine, would take each other's.
    So its name has the port that the browser asks for, which is the same for consoles that one proxy shares out.

    Attributes:
        secure: The browser came over TLS. Then the name begins with `__Host-`, so that no other host of the domain can put one of
            its own in its place.
        port: As the browser says it; empty where it is the usual one.
    """

    secure: bool
    port: str = ""

    @property
    def name(self) -> str:
        """
        Return its name.

        >>> Cookie(secure=True).name, Cookie(secure=False, port="8400").name
        ('__Host-packhorse', 'packhorse-8400')
        """
        return ("__Host-" if self.secure else "") + "packhorse" + (f"-{self.port}" if self.port else "")

    def keeping(self, value: str) -> str:
        """
        Return the header that gives a browser its session.

        >>> Cookie(secure=True).keeping("x")
        '__Host-packhorse=x; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure'
        """
        return self._header(value, int(LASTS))

    def gone(self) -> str:
        """Return the header that takes it away."""
        return self._header("", 0)

    def _header(self, value: str, seconds: int) -> str:
        secure = "; Secure" if self.secure else ""
        return f"{self.name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def cookie_for(scheme: str, host: str) -> Cookie:
    """Return the cookie of the console that a browser asks for by *host*, the header, over *scheme*."""
    return Cookie(secure=scheme == "https", port=host_and_port(host)[1])
