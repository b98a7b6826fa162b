"""Invented keys of many kinds as they stand in files and output. None is one: each is put together from parts."""

from __future__ import annotations

import base64

BODY = "aZ3kQ9xT7bR2mN5pL8wY4vC6"
HEX = "9f86d081884c7d659a2feaa0" + "c55ad015"
WORD = "s3cr3t" + "Pw9"
_JWT = ".".join(("eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0", f"dozjgNryP4J3jVmN{BODY}"))
_BASIC = base64.b64encode(f"alad:{WORD}".encode()).decode()

SHOWN: tuple[tuple[str, str], ...] = (
    (f"MY_API_TOKEN={BODY}", BODY),
    (f"CLIENT_SECRET={BODY}", BODY),
    ("CLIENT_SECRET=" + "correct-horse-battery", "correct-horse-battery"),
    (f"SECRET_KEY = 'django-insecure-{BODY}'", BODY),
    (f"db:\n  password: {WORD}", WORD),
    (f'  password: "{WORD}"', WORD),
    (f"DB_PASS={WORD}", WORD),
    (f"spring.datasource.password={WORD}", WORD),
    (f"Server=x;User Id=sa;Password={WORD};", WORD),
    (f"<password>{WORD}</password>", WORD),
    (f"machine example.org login me password {WORD}", WORD),
    (f"postgres://app:{WORD}@db.example.org/x", WORD),
    (f"redis://:{WORD}@localhost:6379/0", WORD),
    (f"https://{BODY}@github.com/a/b", BODY),
    (f"https://h/?access_token={BODY}", BODY),
    (_JWT, _JWT.partition(".")[2]),
    (f"Authorization: Basic {_BASIC}", _BASIC),
    (f"curl -H 'Authorization: Bearer {BODY}'", BODY),
    (f"curl -u admin:{WORD} https://h", WORD),
    (f"Cookie: session={BODY}; theme=dark", BODY),
    (f"Set-Cookie: sid={BODY}; Path=/; HttpOnly", BODY),
    (f"x-api-key: {BODY}", BODY),
    (f"npm_{BODY}abcdefghij01", BODY),
    (f"//registry.npmjs.org/:_authToken={BODY}", BODY),
    (f"pypi-AgEIcHlwaS5vcmc{BODY * 3}", BODY),
    (f"hvs.{BODY}{BODY}", BODY),
    (f"s.{BODY}", BODY),
    (f"SG.{BODY[:22]}.{BODY}{BODY[:19]}", BODY[:22]),
    (f"1234567890:AAF{BODY}abcdefgh", BODY),
    (f"sk_live_{BODY}", BODY),
    (f"xoxb-1234567890-1234567890123-{BODY}", BODY),
    (f"https://hooks.slack.com/services/T00000000/B00000000/{BODY}", BODY),
    ("AKIA" + "IOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"),
    (f"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/{BODY}", BODY),
    (f"AccountKey={BODY}{BODY}==;EndpointSuffix=core", BODY),
    (f"glpat-{BODY}", BODY),
    (f"github_pat_11ABCDEFG0{BODY}", BODY),
    (f"dop_v1_{HEX}{HEX}", HEX),
    (f"shpat_{HEX}", HEX),
    (f"GOCSPX-{BODY}", BODY),
    (f"ya29.{BODY}{BODY}", BODY),
    (f"hf_{BODY}abcdefghij", BODY),
    (f"lin_api_{BODY}{BODY[:16]}", BODY),
    (f"figd_{BODY}{BODY[:16]}", BODY),
    (f"dckr_pat_{BODY}abc", BODY),
    (f'{{"client_secret": "{BODY}"}}', BODY),
    (f'"auth": "{_BASIC}"', _BASIC),
    (f"--token {BODY}", BODY),
    (f"APP_KEY=base64:{BODY}{BODY[:20]}=", BODY),
    ("HEROKU_API_KEY=0f1e2d3c-" + "4b5a-6978-8796-a5b4c3d2e1f0", "4b5a-6978-8796-a5b4c3d2e1f0"),
    (f"const apiKey = '{BODY}';", BODY),
    (f"root:$6$abcdefgh${BODY * 3}", BODY),
    (f"mysql -uroot -p{WORD} db", WORD),
    (f"sshpass -p {WORD} ssh h", WORD),
    (f"data:\n  password: {BODY}==", BODY),
    (f"define('DB_PASSWORD', '{WORD}');", WORD),
    (f'<add key="ApiKey" value="{BODY}"/>', BODY),
    (f"Passwort: {WORD}", WORD),
)
"""A text, and the part of it that nothing may show."""
