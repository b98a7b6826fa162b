"use strict";
const page = document.body.dataset.page;
const terminal = document.getElementById("terminal");
const base = location.href.replace(/[?#].*$/, "");
terminal.dataset.sessionWebsocketUrl = `${base.replace(/^http/, "ws")}ws/${page}`;
terminal.dataset.fontSize = innerWidth < 600 ? 12 : 15;

// textual.js measures the font when it starts, so the font comes first.
document.fonts.load('15px "Roboto Mono"').finally(() => {
  const script = document.createElement("script");
  script.src = "file/textual.js";
  script.onload = () => {
    if (document.readyState === "complete") dispatchEvent(new Event("load"));
    new ResizeObserver(() => dispatchEvent(new Event("resize"))).observe(terminal);
  };
  document.head.append(script);
});

const notice = document.getElementById("notice");
function tell(text, button) {
  notice.querySelector("p").textContent = text;
  notice.querySelector("button").hidden = !button;
  notice.hidden = false;
}
notice.querySelector("button").onclick = () => location.reload();

// The connection has ended: the program has ended, another page has it, or the network was away for a while.
let asking = false;
async function settle() {
  if (asking) return;
  asking = true;
  for (;;) {
    try {
      const answer = await fetch(`state/${page}`);
      if (!answer.ok) return tell("This page has no access any more. Open a new address from swecli.", false);
      const { state } = await answer.json();
      if (state === "ended") return tell("The session has ended.", false);
      if (state === "elsewhere") return tell("The session is open on another page.", true);
      return location.reload();
    } catch {
      tell("The connection is gone. Trying again …", false);
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}
new MutationObserver(() => {
  if (document.body.classList.contains("-closed")) settle();
  else document.querySelector(".xterm-helper-textarea")?.focus();
}).observe(document.body, { attributeFilter: ["class"] });

for (const button of document.querySelectorAll("#keys button")) {
  button.onpointerdown = (event) => {
    event.preventDefault(); // the terminal keeps the focus, and a phone its keyboard
    const { key, code, shift, ctrl } = button.dataset;
    const pressed = new KeyboardEvent("keydown", { key, shiftKey: !!shift, ctrlKey: !!ctrl, bubbles: true, cancelable: true });
    Object.defineProperty(pressed, "keyCode", { value: Number(code) });
    document.querySelector(".xterm-helper-textarea").dispatchEvent(pressed);
  };
}
