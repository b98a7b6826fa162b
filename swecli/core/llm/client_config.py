"""What a model client is made of: the model, the server with its key, time limits."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from swecli.core.llm.addresses import without_password
from swecli.core.llm.protocols.base import Target
from swecli.core.llm.remedies import ErrorContext, KeySource
from swecli.core.llm.transport import Timeouts
from swecli.core.llm.types import ModelInfo
from swecli.core.ports import Authorisation


class ClientConfig(Struct, frozen=True):
    """A client's configuration. ``base_url`` has no trailing slash and may include a password, and ``headers`` carry
    the key: representations and messages exclude both."""

    info: ModelInfo
    target: Target
    base_url: str
    headers: Mapping[str, str] = field(default_factory=lambda: {})
    key_variables: tuple[str, ...] = ()
    timeouts: Timeouts = Timeouts()
    key: KeySource = "environment"
    authorisation: Authorisation | None = None
    """Adds to the headers of each request."""

    def __repr__(self) -> str:
        return f"ClientConfig({self.info!r}, {self.shown_url!r})"

    @property
    def shown_url(self) -> str:
        """The base URL for messages and files."""
        return without_password(self.base_url)

    @property
    def error_context(self) -> ErrorContext:
        return ErrorContext(
            provider=self.info.provider,
            model=self.info.name,
            base_url=self.shown_url,
            key_variables=self.key_variables,
            key=self.key,
        )
