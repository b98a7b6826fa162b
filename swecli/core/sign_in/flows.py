"""The flows themselves: in a browser with a redirect to this machine, by a code on another device, and renewing."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast
from urllib.parse import parse_qs, urlencode, urlsplit

from swecli.core.sign_in.tokens import Definition, SignInError, Tokens, renewed_from, tokens_of

WAIT = 600.0
"""Seconds for the user to sign in."""
ANSWER = 30.0
"""Seconds of one request."""
LARGEST = 1_000_000
_PAGE = (
    "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {size}\r\n"
    "Connection: close\r\n\r\n{text}"
)
Sleep = Callable[[float], Awaitable[None]]


async def sign_in_by_browser(
    definition: Definition, show: Callable[[str], None], pasted: Callable[[], Awaitable[str]] | None = None
) -> Tokens:
    """Sign in on a page. ``show`` gets its address; ``pasted`` waits for the address at which the browser ended, for a
    browser that can't reach this machine.

    Raises:
        SignInError: it was refused, or took too long.
    """
    verifier, state = secrets.token_urlsafe(64), secrets.token_urlsafe(32)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = await _listen(definition, answer)
    typing: asyncio.Task[None] | None = None
    try:
        port = server.sockets[0].getsockname()[1]
        redirect = f"http://localhost:{port}{definition.redirect_path}"
        query = {
            "response_type": "code",
            "client_id": definition.client_id,
            "redirect_uri": redirect,
            "scope": definition.scope,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "state": state,
            **definition.parameters,
        }
        show(f"{definition.authorize_url}?{urlencode(query)}")
        if pasted is not None:
            typing = asyncio.create_task(_take(pasted, answer))
        target = await asyncio.wait_for(answer, WAIT)
    except TimeoutError:
        raise SignInError(f"Nobody signed in within {WAIT / 60:.0f} minutes.") from None
    finally:
        server.close()
        if typing is not None:
            typing.cancel()
    parameters = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
    if not hmac.compare_digest(parameters.get("state", "").encode(), state.encode()):
        raise SignInError("The answer belongs to another attempt to sign in; nothing was stored.")
    if "code" not in parameters:
        raise SignInError(
            f"Signing in was refused: {parameters.get('error_description') or parameters.get('error', '?')}"[:300]
        )
    form = {"grant_type": "authorization_code", "code": parameters["code"], "redirect_uri": redirect}
    form |= {"client_id": definition.client_id, "code_verifier": verifier}
    return tokens_of(await _post(definition.token_url, form), definition, definition.client_id, time.time())


async def _listen(definition: Definition, answer: asyncio.Future[str]) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await asyncio.wait_for(reader.readline(), ANSWER)
            words = line.decode("ascii", "replace").split(" ")
            target = words[1] if len(words) > 1 else "/"
            parts = urlsplit(target)
            wanted = parts.path == definition.redirect_path and bool({"code", "error"} & parse_qs(parts.query).keys())
            text = "swecli has the answer; you can close this page.\n" if wanted else "Nothing is here.\n"
            status = "200 OK" if wanted else "404 Not Found"
            writer.write(_PAGE.format(status=status, size=len(text), text=text).encode())
            await writer.drain()
            if wanted and not answer.done():
                answer.set_result(target)
        except (OSError, ValueError, TimeoutError):
            pass
        finally:
            writer.close()

    try:
        return await asyncio.start_server(serve, "127.0.0.1", definition.redirect_port)
    except OSError as error:
        taken = f"Port {definition.redirect_port} of this machine is taken, and the sign-in page returns to it"
        raise SignInError(f"{taken} ({error.strerror}). Close the other program and try again.") from error


async def _take(pasted: Callable[[], Awaitable[str]], answer: asyncio.Future[str]) -> None:
    text = (await pasted()).strip()
    if text and not answer.done():
        answer.set_result(text)


async def sign_in_by_device(
    definition: Definition, client_id: str, show: Callable[[str, str], None], sleep: Sleep = asyncio.sleep
) -> Tokens:
    """Sign in with a code on any device. ``show`` gets the page's address and the code.

    Raises:
        SignInError: it was refused, or took too long.
    """
    asked = await _post(definition.device_url, {"client_id": client_id, "scope": definition.scope})
    code, shown, page = (asked.get(name) for name in ("device_code", "user_code", "verification_uri"))
    if not isinstance(code, str) or not isinstance(shown, str) or not isinstance(page, str):
        raise SignInError(f"The sign-in server gave no code: {_why(asked)}")
    if not page.startswith(("https://", "http://127.0.0.1")):
        raise SignInError("The sign-in server named a page that is not https; nothing was opened.")
    show(page, shown)
    interval, waited = _number(asked.get("interval"), 5.0), 0.0
    most = min(_number(asked.get("expires_in"), WAIT), 3600.0)
    form = {"client_id": client_id, "device_code": code, "grant_type": "urn:ietf:params:oauth:grant-type:device_code"}
    while waited < most:
        await sleep(interval)
        waited += interval
        answer = await _post(definition.token_url, form)
        match answer.get("error"):
            case None:
                return tokens_of(answer, definition, client_id, time.time())
            case "authorization_pending":
                continue
            case "slow_down":
                interval = max(interval + 5.0, _number(answer.get("interval"), 0.0))
            case _:
                raise SignInError(f"Signing in was refused: {_why(answer)}")
    raise SignInError("The code was not entered in time.")


async def renew(definition: Definition, tokens: Tokens) -> Tokens:
    """New tokens for old ones.

    Raises:
        SignInError: they can't be renewed.
    """
    if not tokens.refresh:
        raise SignInError("The sign-in has ended and can't be renewed.")
    form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh, "client_id": tokens.client_id}
    answer = await _post(definition.token_url, form)
    if "error" in answer:
        raise SignInError(f"The sign-in could not be renewed: {_why(answer)}")
    return renewed_from(tokens, tokens_of(answer, definition, tokens.client_id, time.time()))


def _why(answer: Mapping[str, Any]) -> str:
    reason = answer.get("error_description") or answer.get("error") or "it gives no reason"
    return " ".join(str(reason).split())[:200]


def _number(value: object, usual: float) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e6
    return float(cast("float", value)) if usable else usual


async def _post(url: str, form: Mapping[str, str]) -> Mapping[str, Any]:
    """The JSON object that a form is answered with, whatever the status.

    Raises:
        SignInError: there is none.
    """
    import json

    import httpx  # only to sign in and to renew

    host = urlsplit(url).hostname or ""
    near = host in ("127.0.0.1", "localhost")
    if not near and not url.startswith("https://"):
        raise SignInError(f"{host} is not asked, because its address is not https.")
    status = 0
    try:
        async with (
            httpx.AsyncClient(trust_env=not near, follow_redirects=False, timeout=ANSWER) as client,
            client.stream("POST", url, data=dict(form), headers={"Accept": "application/json"}) as reply,
        ):
            body, status = b"", reply.status_code
            async for piece in reply.aiter_bytes():
                body += piece
                if len(body) > LARGEST:
                    raise SignInError(f"The answer of {host} is too long.")
        answer = json.loads(body)
    except (httpx.HTTPError, OSError) as error:
        raise SignInError(f"Cannot reach {host}: {str(error) or type(error).__name__}.") from error
    except (ValueError, RecursionError) as error:
        raise SignInError(f"{host} answered with status {status} and no JSON.") from error
    if not isinstance(answer, dict):
        raise SignInError(f"{host} answered with no JSON object.")
    return cast("dict[str, Any]", answer)
