"""A small project whose files speak of different things, with a history."""

from __future__ import annotations

import subprocess
from pathlib import Path

TOPICS = {
    "auth/login.py": "def check_password(user, secret):\n    return hash_secret(secret) == user.digest\n",
    "auth/tokens.py": "class TokenStore:\n    def revoke_token(self, token):\n        self.expired.add(token)\n",
    "billing/invoice.py": "class InvoicePrinter:\n    def render_total(self, currency):\n        vat(currency)\n",
    "billing/discount.py": "def apply_coupon(basket, coupon):\n    return basket.total - coupon.rebate\n",
    "mail/smtp.py": "class SmtpRelay:\n    def deliver(self, envelope):\n        self.socket.send(envelope)\n",
    "search/ranking.ts": "export function rankDocuments(hits: Hit[]) {\n  return hits.sort(byScore)\n}\n",
    "storage/blob.go": "package storage\n\nfunc (s *Store) WriteBlob(name string) error {\n\treturn nil\n}\n",
}


def made(root: Path, others: int = 60) -> Path:
    """Write the project; returns its root, resolved."""
    for path, text in TOPICS.items():
        file = root / "src" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for number in range(others):
        file = root / "src" / "plain" / f"unit_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"def step_{number}(value):\n    return value + {number}\n")
    (root / "tests").mkdir(exist_ok=True)
    (root / "tests" / "test_login.py").write_text("def test_check_password():\n    assert check_password\n")
    (root / "README.md").write_text("# Shop\n\nInvoices, coupons, passwords and mail.\n")
    return root.resolve()


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, "-C", str(root), *arguments], capture_output=True, check=True, text=True)
    return done.stdout


def committed(root: Path, message: str, *paths: str) -> None:
    git(root, "add", "--", *(paths or (".",)))
    git(root, "commit", "-q", "-m", message)
