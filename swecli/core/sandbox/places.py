"""Which places of a machine are secret, writable, or lead out of a sandbox: lists and the few rules about them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from swecli.core.permissions.paths import inside
from swecli.core.sandbox.disk import Disk

GUARDED_NAMES = (".git", ".swecli", ".vscode", ".idea", ".mcp.json", ".envrc")
"""Names at the top of a workspace that must not appear while a command runs: other programs obey them."""

_HOME_SECRETS = (
    *(".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".password-store", ".terraform.d", ".colima/default"),
    *(".config/gcloud", ".config/gh", ".config/hub", ".config/containers", ".config/op", ".local/share/keyrings"),
    *(".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass"),
    *(".my.cnf", ".vault-token", ".terraformrc", ".s3cfg", ".boto", ".htpasswd", ".dockercfg"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"),
    *(".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history"),
    *(".claude", ".claude.json", ".codex", ".gemini", ".config/github-copilot", ".local/share/opencode", ".orbstack"),
    *("Library/Keychains", "Library/Cookies", "Library/Application Support/Google/Chrome"),
)
"""Keys, passwords, private histories and the state of other agents, below the home directory."""

_SOCKET_DIRECTORIES = (
    *("/run", "/var/run", "/var/lib/lxd", "/var/lib/incus", "/var/snap/lxd/common/lxd", "/var/lib/libvirt"),
    *("/var/lib/mysql", "/var/lib/docker", "/var/spool/cron"),
)
"""Where services of this machine listen: a container or session service would run a command outside."""
_RUN_NEEDED = ("/run/current-system", "/run/wrappers", "/run/opengl-driver", "/run/booted-system")
"""What programs themselves need of ``/run`` on some systems."""
_RUN_FOR_NETWORK = ("/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf")
_SOCKET_VARIABLES = ("SSH_AUTH_SOCK", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS", "GPG_AGENT_INFO", "XDG_RUNTIME_DIR")
_SOCKET_PATH = re.compile(r"(?:^|unix:(?:path=)?(?://)?)(/[^,;:]+)")
_CACHES = (
    (("PIP_CACHE_DIR",), ("XDG_CACHE_HOME", "pip"), ".cache/pip"),
    (("UV_CACHE_DIR",), ("XDG_CACHE_HOME", "uv"), ".cache/uv"),
    (("npm_config_cache",), (), ".npm"),
    ((), ("CARGO_HOME", "registry"), ".cargo/registry"),
    ((), ("CARGO_HOME", "git"), ".cargo/git"),
    (("GOMODCACHE",), ("GOPATH", "pkg/mod"), "go/pkg/mod"),
    (("GOCACHE",), ("XDG_CACHE_HOME", "go-build"), ".cache/go-build"),
)
"""Package caches: variables that name one, a variable with a folder below it, the place below home."""

_DOTENV = re.compile(r"\.env(\..*)?")
_DOTENV_FREE = re.compile(r"\.env\.(example|sample|template|dist|defaults?)")


def is_dotenv(name: str) -> bool:
    """Whether a file of this name holds the secrets of a project, as opposed to a sample of them."""
    folded = name.casefold()
    return _DOTENV.fullmatch(folded) is not None and _DOTENV_FREE.fullmatch(folded) is None


def home_secrets(home: str) -> tuple[str, ...]:
    """Secret places of the user."""
    return tuple(posixpath.join(home, name) for name in _HOME_SECRETS) if home else ()


def socket_places(environment: Mapping[str, str], home: str) -> tuple[str, ...]:
    """Directories and sockets of services that run outside."""
    named: list[str] = []
    for variable in _SOCKET_VARIABLES:
        found = _SOCKET_PATH.search(environment.get(variable, ""))
        path = posixpath.normpath(found.group(1)) if found else ""
        if path and inside(home or "/", (path,)) is None:  # a variable could name anything, but not what holds all
            named.append(path)
    return (*_SOCKET_DIRECTORIES, *named)


def needed_of_run(network: bool) -> tuple[str, ...]:
    """Places below ``/run`` that stay readable."""
    return (*_RUN_NEEDED, *(_RUN_FOR_NETWORK if network else ()))


def caches(environment: Mapping[str, str], home: str, disk: Disk) -> Iterator[str]:
    """Package caches that exist. Only directories below the home directory count: a variable could name anything."""
    if not home:
        return
    for variables, (*folder,), usual in _CACHES:
        named = next((environment[name] for name in variables if environment.get(name)), "")
        if not named and folder and environment.get(folder[0]):
            named = posixpath.join(environment[folder[0]], folder[1])
        path = disk.real(named if named.startswith("/") else posixpath.join(home, usual))
        if path != home and inside(path, (home,)) and disk.kind(path) == "directory":
            yield path
