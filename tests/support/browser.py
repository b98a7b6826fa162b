"""A headless Chromium, driven by its DevTools protocol through a pipe: no port, no other package."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.waiting import PATIENCE

_EXEC = """
import fcntl, os, sys
pair = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(pair[0], 3), os.dup2(pair[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""A program that becomes the browser, which reads from descriptor 3 and writes to 4."""
TROUBLE = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")


class Browser:
    """One page of one browser. ``requests`` are addresses that it has asked for since, ``trouble`` what it complained
    about: errors of the console, refusals of a policy, exceptions."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="swecli-browser-")
        read_commands, self._commands = os.pipe()
        self._answers, write_answers = os.pipe()
        arguments = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._folder.name}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _EXEC, str(read_commands), str(write_answers), *arguments],
            pass_fds=(read_commands, write_answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        self._rest = b""
        self._number = 0
        self._session = ""
        self.requests: list[str] = []
        self.trouble: list[str] = []

    def __enter__(self) -> Self:
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._commands)
        os.close(self._answers)
        self._folder.cleanup()

    def ask(self, method: str, **parameters: Any) -> Mapping[str, Any]:
        """Send a command and wait for its result."""
        self._number += 1
        number = self._number
        command: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            message = self._next(deadline)
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                return message["result"]
            self._hear(message)
        raise TimeoutError(f"no answer to {method}")

    def _next(self, deadline: float) -> Mapping[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._answers, 1 << 20) if ready else b""
            assert data, "the browser said nothing more"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _hear(self, message: Mapping[str, Any]) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method in TROUBLE:
            self.trouble.append(json.dumps(parameters)[:500])

    def size(self, width: int, height: int, *, dark: bool = False, mobile: bool = False) -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, page: Path | str) -> None:
        """Show a file or an address; returns when it is loaded."""
        self.ask("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        deadline = time.monotonic() + PATIENCE
        while self.value("document.readyState") != "complete" or self.value("location.href") == "about:blank":
            assert time.monotonic() < deadline, "the page was never loaded"

    def open_another(self, address: str) -> None:
        """Show an address on a second page of the browser, with the cookies of the first."""
        mine, self._session = self._session, ""
        self.ask("Target.createTarget", url=address)
        self._session = mine

    def value(self, expression: str) -> Any:
        """What a piece of script comes to, as the page's own could compute it."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=13)

    def type(self, text: str) -> None:
        self.ask("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Press the mouse where the element is."""
        box = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'});"
            " const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def picture(self, form: str = "webp") -> bytes:
        return base64.b64decode(self.ask("Page.captureScreenshot", format=form, quality=82)["data"])
