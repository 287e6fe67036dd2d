"""
A database server that speaks TLS, whatever the one behind it was built with.

    authority = Authority(folder)
    with TlsFront(server, authority.certificate("localhost")) as front: ...

It answers libpq's question for TLS, shows a certificate made here, and forwards what it decrypts.
"""

import contextlib
import select
import socket
import ssl
import threading
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from packhorse.core.clock import SYSTEM_CLOCK

_ASKS_FOR_TLS = (8).to_bytes(4) + (80877103).to_bytes(4)
_FIELDS = b"SFATAL\0VFATAL\0C28000\0Mno connection in the clear\0\0"
_REFUSED = b"E" + (4 + len(_FIELDS)).to_bytes(4) + _FIELDS


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files of a server's certificate and its key."""

    chain: Path
    key: Path


class Authority:
    """Signs certificates; `root` is the file that those who trust it name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority of {folder.name}")])
        self.root = folder / "root.crt"
        signed = self._signed(
            self._name, self._key.public_key(), x509.BasicConstraints(ca=True, path_length=None)
        )
        self.root.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def certificate(self, host: str) -> Certificate:
        """Return a certificate for *host*."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        signed = self._signed(subject, key.public_key(), x509.SubjectAlternativeName([x509.DNSName(host)]))
        made = Certificate(self._folder / f"{host}.crt", self._folder / f"{host}.key")
        made.chain.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        plain = serialization.NoEncryption()
        form = serialization.PrivateFormat.PKCS8
        made.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
        return made

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = SYSTEM_CLOCK.now()
        return (
            x509.CertificateBuilder(self._name, subject, key, x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            .sign(self._key, hashes.SHA256())
        )


class TlsFront:
    """Takes connections at `port`, in TLS alone; one thread a connection, which ends with it."""

    host = "127.0.0.1"

    def __init__(self, target: tuple[str, int], certificate: Certificate) -> None:
        self._target = target
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate.chain, certificate.key)
        self._open: set[socket.socket] = set()

    def __enter__(self) -> Self:
        self._listener = socket.create_server((self.host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._take, name="tls-front")]
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _take(self) -> None:
        with contextlib.suppress(OSError):  # the listener was shut
            while True:
                client, _ = self._listener.accept()
                self._open.add(client)
                thread = threading.Thread(target=self._serve, args=(client,), name="tls-front-connection")
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client:
                if (asked := client.recv(8, socket.MSG_WAITALL)) == _ASKS_FOR_TLS:
                    client.sendall(b"S")
                    with (
                        self._context.wrap_socket(client, server_side=True) as inside,
                        socket.create_connection(self._target) as server,
                    ):
                        self._open |= {inside, server}
                        _forward(inside, server)
                        self._open -= {inside, server}
                elif asked:
                    client.sendall(_REFUSED)
        except OSError:
            pass  # TLS was refused, or one of both is gone
        finally:
            self._open.discard(client)


def _forward(client: ssl.SSLSocket, server: socket.socket) -> None:
    """Forward both ways until one end is closed."""
    while True:
        ready = [client] if client.pending() else select.select([client, server], [], [])[0]
        for one, other in ((client, server), (server, client)):
            if one in ready:
                piece = one.recv(1 << 16)
                if not piece:
                    return
                other.sendall(piece)
