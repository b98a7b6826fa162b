from tests.core.extensions.support import places

__all__ = ["places"]
