"""A language server over stdio that can be as unkind as a test wants: ``python unkind_server.py [WAY ...]``.

A line with ERR has an error, with WARN a warning, with FLOOD 100,000 errors. ``record=FILE`` keeps what it was told.
``disk``: it reads files, once ``until=FILE`` is there, instead of the texts that it is sent.
"""

import json
import os
import signal
import sys
import time

WAYS = sys.argv[1:]
OPTIONS = dict(way.split("=", 1) for way in WAYS if "=" in way)
texts = {}
versions = {}
bad = set()
number = 1000


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def raw(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def receive():
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if not line.strip():
            break
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    message = json.loads(sys.stdin.buffer.read(length))
    if "record" in OPTIONS:
        with open(OPTIONS["record"], "a") as file:
            file.write(json.dumps(message) + "\n")
    return message


def ask(method, params):
    global number
    number += 1
    send({"id": number, "method": method, "params": params})


def found(text):
    entries = []
    for line, content in enumerate(text.replace("\r\n", "\n").split("\n")):
        if "FLOOD" in content:
            entries += [entry(line, 0, f"flooded {count}", 1) for count in range(100_000)]
        for word, severity in (("ERR", 1), ("WARN", 2)):
            if word in content:
                column = len(content[: content.index(word)].encode("utf-16-le")) // 2
                entries.append(entry(line, column, f"bad: {content.strip()}", severity))
    return entries


def entry(line, column, message, severity):
    place = {"start": {"line": line, "character": column}, "end": {"line": line, "character": column + 3}}
    return {"range": place, "severity": severity, "message": message, "code": "E1", "source": "unkind"}


def publish(uri, entries=None):
    version = {} if "versionless" in WAYS else {"version": versions.get(uri)}
    entries = found(texts[uri]) if entries is None else entries
    send({"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "diagnostics": entries, **version}})


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)


def changed(uri):
    if "disk" in WAYS:
        wait_for(OPTIONS["until"])
        with open(uri.removeprefix("file://")) as file:
            texts[uri] = file.read()
    if "pull" in WAYS or "register" in WAYS:
        return
    if "late" in OPTIONS and versions[uri] > 1:
        wait_for(OPTIONS["late"])
    if "silent" in WAYS and not found(texts[uri]) and uri not in bad:
        return
    bad.add(uri)
    if "stale" in WAYS:
        publish(uri, [])
    publish(uri)


def capabilities():
    features = ("definitionProvider", "referencesProvider", "documentSymbolProvider", "workspaceSymbolProvider")
    kept = {} if "bare" in WAYS else dict.fromkeys(features, True)
    if "pull" in WAYS:
        kept["diagnosticProvider"] = {"identifier": "unkind", "interFileDependencies": True}
    if "tsserver" in WAYS:
        kept["executeCommandProvider"] = {"commands": ["other", "typescript.tsserverRequest"]}
    sync = {"openClose": True, "change": 0 if "nochange" in WAYS else 1, "save": {"includeText": True}}
    return {**kept, "textDocumentSync": sync}


def begun():
    if "asks" in WAYS:
        ask("workspace/configuration", {"items": [{"section": "a.b"}, {"section": "none"}, {}]})
        ask("window/workDoneProgress/create", {"token": "t"})
        ask("workspace/applyEdit", {"edit": {"changes": {}}})
        ask("client/registerCapability", {"registrations": [{"id": "1", "method": "textDocument/didSave"}]})
        ask("window/showMessageRequest", {"type": 1, "message": "?", "actions": [{"title": "yes"}]})
        ask("workspace/diagnostic/refresh", None)
        ask("telepathy/read", {})
    if "register" in WAYS:
        ask("client/registerCapability", {"registrations": [{"id": "1", "method": "textDocument/diagnostic"}]})
    if "reads" in OPTIONS:
        send({"method": "$/progress", "params": {"token": "t", "value": {"kind": "begin", "title": "Indexing"}}})
        wait_for(OPTIONS["reads"])
        send({"method": "$/progress", "params": {"token": "t", "value": {"kind": "end"}}})
    if "junk" in WAYS:
        raw(b"Debugger listening on ws://127.0.0.1\n\nand: more\r\n")
        raw(b"Content-Length: 9\r\n\r\n{not json")
        raw(b"Content-Length: 2\r\n\r\n[]without an end of line")
        raw(b"content-length: 4\r\nContent-Type: x\r\n\r\nnull")
        raw(b"Content-Length: 33\r\n\r\n" + b'{"jsonrpc": "2.0", "id": "\xff\xfe"   }')


def place(uri, line, column, length):
    return {
        "uri": uri,
        "range": {"start": {"line": line, "character": column}, "end": {"line": line, "character": column + length}},
    }


def under(params):
    """The word at a position, counted in UTF-16 units."""
    line = texts[params["textDocument"]["uri"]].replace("\r\n", "\n").split("\n")[params["position"]["line"]]
    rest = line.encode("utf-16-le")[2 * params["position"]["character"] :].decode("utf-16-le")
    return rest.split(" ")[0]


def uses(word):
    for uri, text in texts.items():
        for line, content in enumerate(text.replace("\r\n", "\n").split("\n")):
            if word and word in content.split(" "):
                column = len(content[: content.index(word)].encode("utf-16-le")) // 2
                yield place(uri, line, column, len(word))


def handed_on(command, arguments):
    if "interrupted" in WAYS:
        WAYS.remove("interrupted")
        return {"type": "cancelled"}
    entries = found(texts[arguments["file"]]) if command == "semanticDiagnosticsSync" else []
    for one in entries:
        start, category = one["range"]["start"], "error" if one["severity"] == 1 else "suggestion"
        one |= {"category": category, "startLocation": {"line": start["line"] + 1, "offset": start["character"] + 1}}
    return {"type": "response", "body": entries}


def answered(method, params):
    if method == "initialize":
        if "mute" in WAYS:
            time.sleep(600)
        return {"capabilities": capabilities()}
    if method == "textDocument/diagnostic":
        if "busy" in WAYS:
            WAYS.remove("busy")
            raise RuntimeError("server cancelled")
        return {"kind": "full", "items": found(texts[params["textDocument"]["uri"]])}
    if method == "workspace/executeCommand":
        return handed_on(*params["arguments"])
    if method == "textDocument/references":
        return list(uses(under(params)))
    if method == "textDocument/definition":
        one = next(uses(under(params)), None)
        if one is None:
            return None
        return [{"targetUri": one["uri"], "targetRange": one["range"], "targetSelectionRange": one["range"]}]
    if method == "textDocument/documentSymbol":
        where = place("", 0, 0, 3)["range"]
        child = {"name": "inner", "kind": 12, "range": where, "selectionRange": where}
        return [{"name": "outer", "kind": 5, "range": where, "selectionRange": where, "children": [child]}, {"name": 3}]
    if method == "workspace/symbol":
        return [{"name": params["query"], "kind": 12, "location": one} for one in uses(params["query"])]
    return None


def told(method, params):
    if method == "initialized":
        begun()
        return
    document = params.get("textDocument", {})
    uri = document.get("uri")
    if method == "textDocument/didOpen":
        texts[uri], versions[uri] = document["text"], document["version"]
        changed(uri)
    elif method == "textDocument/didChange":
        if "crash" in WAYS:
            sys.stderr.write("Segmentation fault, so sorry\n")
            sys.stderr.flush()
            os._exit(7)
        if "huge" in WAYS:
            raw(b"Content-Length: 999999999999\r\n\r\n")
        texts[uri], versions[uri] = params["contentChanges"][0]["text"], document["version"]
        changed(uri)
    elif method == "textDocument/didClose":
        texts.pop(uri, None)
    elif method == "exit" and "deaf" not in WAYS:
        sys.exit(0)


if "deaf" in WAYS:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "dead" in WAYS:
    sys.stderr.write("error: no such component\n")
    sys.exit(3)
if "noisy" in WAYS:
    sys.stderr.write("x" * 3_000_000)
while True:
    message = receive()
    if "id" in message and "method" in message:
        try:
            send({"id": message["id"], "result": answered(message["method"], message.get("params") or {})})
        except RuntimeError as error:
            send({"id": message["id"], "error": {"code": -32802, "message": str(error)}})
    elif "method" in message:
        told(message["method"], message.get("params") or {})
