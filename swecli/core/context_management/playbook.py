"""The playbook, at the place that the design names. It lives in ``swecli/core/playbook``."""

from swecli.core.playbook.bullet import Bullet
from swecli.core.playbook.playbook import Playbook

__all__ = ("Bullet", "Playbook")
