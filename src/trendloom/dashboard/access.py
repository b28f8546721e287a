"""Access control: checks of every request before a page handles it, and headers of every answer.

A browser lets any page on the web send requests to this machine. So the name in the Host header must be one of ours
(else a foreign name was pointed at this address), and a request that changes something must come from our own page.
Beyond loopback a token is needed: given once in the address, it becomes a cookie that holds only a digest of it.
Headers make the browser run no script but ours, to load nothing from elsewhere, and to be shown in no frame.
Cost: a few comparisons a request; those of secrets take the same time wherever they differ.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from flask import Flask, Request, Response, abort, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from trendloom.errors import OptionError, option

LARGEST_BODY = 1_000_000
"""Bytes of a request: a query and what a page remembers take a few thousand."""
SHORTEST_TOKEN = 16
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Access:
    """Where the page listens, and the token it requires. `names`: further names that it is reached by."""

    host: str = "127.0.0.1"
    port: int = 8050
    token: str | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65_536:
            raise OptionError(f"{self.port} is not a port", hint=f"give one from 1 to 65535: {option('port', 8050)}")
        if self.token is None and not is_loopback(self.host):
            raise OptionError(
                f"others can reach {self.host}, so the page needs a token there",
                hint=f"give {option('token')} with at least {SHORTEST_TOKEN} characters, or leave {option('host')} out",
            )
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise OptionError(
                f"a token of {len(self.token)} characters can be guessed",
                hint=f"take at least {SHORTEST_TOKEN}, for example {secrets.token_urlsafe(18)}",
            )

    @property
    def cookie(self) -> str:
        """The cookie's name; browsers keep cookies by host, so pages on other ports need others."""
        return f"trendloom-{self.port}"

    @property
    def address(self) -> str:
        """Where to find the page from this machine."""
        host = "127.0.0.1" if _is_any(self.host) else self.host
        return f"http://[{host}]:{self.port}/" if ":" in host else f"http://{host}:{self.port}/"

    def is_own_host(self, header: str | None) -> bool:
        """Whether a Host header names this server. Numbers cannot be pointed elsewhere, names can."""
        name = _name_of(header)
        if name is None:
            return False
        known = {self.host.lower(), *map(str.lower, self.names)}
        if is_loopback(self.host):
            return name in known | LOOPBACK_NAMES
        own = {socket.gethostname().lower(), socket.getfqdn().lower()}
        return name in known | LOOPBACK_NAMES | own or (_is_any(self.host) and _is_address(name))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_any(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _name_of(header: str | None) -> str | None:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{header}").hostname if header else None
    except ValueError:
        return None


# ------------------------------------------------------------------------------------------------- guarding


def guard(server: Flask, access: Access, scripts: Sequence[str]) -> None:
    """Check every request of a server and set headers of its answers. `scripts`: hashes of the scripts in our page."""
    server.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    admission = _Admission(access)
    server.before_request(admission.admit)
    headers = _headers(scripts)

    @server.after_request
    def set_headers(response: Response) -> Response:
        response.headers.update(headers)
        if not request.path.startswith(("/_dash-component-suites/", "/assets/")):
            response.headers["Cache-Control"] = "no-store"
        return response


class _Admission:
    """The checks of a request, in order."""

    def __init__(self, access: Access) -> None:
        self._access = access
        # The cookie proves that its browser has sent the token, without revealing the token.
        key = secrets.token_bytes(32)
        self._pass = None if access.token is None else hmac.digest(key, access.token.encode(), "sha256").hex()

    def admit(self) -> AnyResponse | None:
        """None lets the request through."""
        if not self._access.is_own_host(request.headers.get("Host")):
            abort(Response("this server is not known by that name\n", 421, mimetype="text/plain"))
        if request.method not in ("GET", "HEAD") and not _from_own_page(request):
            abort(Response("requests of other pages are refused\n", 403, mimetype="text/plain"))
        return None if self._pass is None else self._require_token(self._pass)

    def _require_token(self, wanted: str) -> AnyResponse | None:
        given = request.args.get("token")
        if given is not None and self._is_token(given):
            response = redirect(_without_token(request))
            response.set_cookie(self._access.cookie, wanted, httponly=True, samesite="Lax", secure=request.is_secure)
            return response
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if given is None and (_same(request.cookies.get(self._access.cookie, ""), wanted) or self._is_token(bearer)):
            return None
        said = "a token is needed: open the address with ?token=... once\n"
        return Response(said, 401, mimetype="text/plain", headers={"WWW-Authenticate": "Bearer"})

    def _is_token(self, given: str) -> bool:
        return _same(given, self._access.token or "") and bool(given)


def _same(given: str, wanted: str) -> bool:
    """Compared by digests, which have one length, so that time reveals nothing of the secret's."""
    digests = (hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in (given, wanted))
    return hmac.compare_digest(*digests)


def _from_own_page(asked: Request) -> bool:
    """Browsers send the page that a request comes from; programs that do not send it carry no cookie of a browser."""
    if asked.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = asked.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == asked.headers.get("Host")


def _without_token(asked: Request) -> str:
    """The path asked for, on this server whatever it looks like."""
    rest = [(name, value) for name, value in asked.args.items(multi=True) if name != "token"]
    path = "/" + asked.path.lstrip("/\\")
    return path + ("?" + urlencode(rest) if rest else "")


def _headers(scripts: Iterable[str]) -> dict[str, str]:
    policy = {
        "default-src": "'none'",
        "script-src": " ".join(["'self'", *scripts]),
        "style-src": "'self' 'unsafe-inline'",  # Plotly sizes and colours what it draws by style attributes
        "img-src": "'self' data: blob:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }
