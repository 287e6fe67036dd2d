"""What to do next when a database lets nobody in: told by what the driver says, for each part's adapter."""

_NEXT = (
    (
        "certificate verify failed",
        "sslrootcert in {setting} must name the certificate of the authority that signed the server's, and neither may have run out",
    ),
    (
        "does not match host name",
        "the host in {setting} must be one that the server's certificate names; hostaddr can give its address apart",
    ),
    (
        "root certificate file",
        "name the authority's certificate in sslrootcert of {setting}, or sslrootcert=system for those that this machine trusts",
    ),
    (
        "server does not support SSL",
        "switch TLS on at the server, or ask for less in sslmode of {setting} where the network is your own",
    ),
    (
        "no pg_hba.conf entry",
        "let this role in from here in the server's pg_hba.conf; with `no encryption` in the text, sslmode=require in {setting}",
    ),
    (
        "password",
        "the role and the password in {setting} must be the server's; special characters are percent-encoded",
    ),
    ("too many clients", "raise max_connections, or go through a pooler"),
    ("remaining connection slots", "raise max_connections, or go through a pooler"),
)


def next_step(said: str, *, setting: str = "PACKHORSE_DATABASE_URL") -> str:
    """
    Return what to do about a connection that failed, by what the driver *said*.

    >>> next_step('server certificate for "db" does not match host name "10.0.0.7"')
    "the host in PACKHORSE_DATABASE_URL must be one that the server's certificate names; hostaddr can give its address apart"
    >>> next_step("Connection refused")
    'is it up, and is PACKHORSE_DATABASE_URL right?'
    """
    found = next((text for sign, text in _NEXT if sign in said), "is it up, and is {setting} right?")
    return found.format(setting=setting)
