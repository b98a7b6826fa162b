from __future__ import annotations

import pytest

from swecli.core import secret_names as module
from swecli.core.secret_names import check_pattern, secret_names

SECRET = """.env .env.local .env.production prod.env .envrc .dev.vars .dev.vars.staging local.settings.json
config/.env .envs/.production/.django .env~ .env.bak .env.old .env.save .env.swp #.env# .#.env .env-backup
.env_20240101 .env.backup.20240101 .env.zip terraform.tfvars prod.auto.tfvars prod.tfvars.json terraform.tfvars.bak
terraform.tfstate.backup .terraformrc .secrets.toml .streamlit/secrets.toml secrets.yml config/secrets.yml
app.secret.json db-secrets.yaml prod.secret.exs secrets/db_password secrets/prod/values.yaml .secrets/api
docker/secrets/tls.txt private_keys/app.txt kubeconfig prod.kubeconfig kubeconfig-prod staging_kubeconfig
.kube/config etc/kubernetes/admin.conf k3s.yaml service-account.json my-service-account.json serviceAccountKey.json
shop-firebase-adminsdk-x1y2-0a1b.json gcp-key.json client_secret_1234.apps.googleusercontent.com.json
application_default_credentials.json .vault_pass .vault_pass.txt .vault-pass vault_password.txt .vault-token
cluster-keys.json passwords.txt password.txt passwords.csv db_password.txt api_key.txt .apikey github_token bot_token
.gitlab_token my_tokens.txt slack_tokens.json access_tokens.txt user-token.txt
gmail_token.json token.json access_token oauth_creds.json credentials.json aws_creds.yml
.aws/credentials .azure/accessTokens.json .oci/config .databrickscfg rclone.conf .config/rclone/rclone.conf .s3cfg
.boto id_rsa id_rsa.bak .id_rsa.swp id_ed25519.old ssh_host_rsa_key ssh_host_ed25519_key deploy_rsa server.pem
tls.key app.p12 AuthKey_ABC.p8 release.keystore upload.jks krb5.keytab db.kdbx site.ovpn wg0.conf
etc/wireguard/home.conf .npmrc .yarnrc.yml .pypirc .m2/settings.xml .gradle/gradle.properties .cargo/credentials.toml
.gem/credentials auth.json .dockercfg .dockerconfigjson .docker/config.json .git-credentials .config/git/credentials
.netrc _netrc .pgpass .my.cnf wp-config.php wp-config.php.bak sites/default/settings.php app/etc/env.php
local_settings.py .htpasswd tomcat-users.xml .vscode/sftp.json filezilla.xml .idea/dataSources.local.xml
key.properties kaggle.json .sentryclirc ngrok.yml .bash_history .local/share/fish/fish_history .viminfo cookies.txt
logins.json key4.db wallet.dat etc/shadow shadow- config/database.yml group_vars/prod/vault.yaml
appsettings.Development.json appsettings.Local.json config/initializers/secret_token.rb instance/config.py
app/config/parameters.yml mosquitto_passwd smbpasswd logins.csv dump.sql session.rdp confCons.xml putty.reg
.age-key .snowflake/connections.toml jupyter_server_config.json .erlang.cookie users.acl grafana.db sssd.conf
.Renviron .modal.toml talosconfig .ngrok.yml cloudflare.ini clouds.yaml admin-openrc.sh keystonerc_admin"""

ORDINARY = """src/lib/secrets.py secret.go token.go tokenizer.json design-tokens.json tokens.json
src/secrets/index.ts src/secrets/package.json internal/secrets/go.mod internal/token/token.go credentials_test.go
passwords_controller.rb tests/test_secrets.py tests/fixtures/tokens.json tests/fixtures/secrets.json
testdata/token.json kubeconfig.go password_reset.html templates/secret.yaml locales/en/password.json
secrets/README.md docs/secrets.md credentials.ts .env.example .env.sample .env.template .env.dist example.env
terraform.tfvars.example local.settings.example.json secrets.example.yml wp-config-sample.php
config/credentials.template.json id_rsa.pub deploy.pub sealed-secret.yaml settings.xml gradle.properties settings.py
config.json package.json package-lock.json pip.conf vite-env.d.ts environment.ts keymap.json keys.py turkey.json
monkey.txt history.py auth.ts data_2.json v1.2.3 report-2024.csv Makefile main.tf users.csv notes.txt
usual_tokens.txt special_tokens.json added-tokens.json pkg/__pycache__/secrets.cpython-311.pyc build/Secrets.class
lib/credentials.o dist/token.js.map .vscode/settings.json .gitignore .flaskenv app.config.js appsettings.json
database.yml.example config/app.yml
templates/database.yml docs/vault.md redis.conf nuget.config backup.sql web.config authorized_keys"""


@pytest.mark.parametrize("name", SECRET.split())
def test_names_of_secrets_are_known_at_any_depth_and_in_any_case(name: str) -> None:
    names = secret_names()
    assert names.matches(f"/{name}")
    assert names.matches(f"/deep/below/{name}")
    assert names.matches(f"/{name.upper()}")


@pytest.mark.parametrize("name", ORDINARY.split())
def test_program_text_samples_and_test_data_are_ordinary(name: str) -> None:
    assert not secret_names().matches(f"/{name}")


def test_each_name_has_a_source_and_none_is_listed_twice() -> None:
    rows = [line.split("\t") for line in module._LIST.read_text().splitlines() if line and not line.startswith("#")]
    assert {len(row) for row in rows} == {4}
    assert {row[1] for row in rows} == {"any", "data", "settings"}
    assert all(row[2] and row[3].startswith("https://") for row in rows)
    patterns = [row[0] for row in rows]
    assert sorted(set(patterns)) == sorted(patterns)
    for pattern in patterns:
        check_pattern(pattern)


def test_users_add_names_and_take_some_away() -> None:
    names = secret_names(("*.vault", "private/", "/config/keys.yml", "!public.pem"))
    assert names.matches("/a/b.VAULT")
    assert names.matches("/private/notes.txt")
    assert names.matches("/app/config/keys.yml")
    assert not names.matches("/keys.yml")
    assert not names.matches("/public.pem")
    assert names.matches("/other.pem")
    assert not secret_names().matches("/a/b.vault")


@pytest.mark.parametrize("pattern", ["", "*", "!", "/", "~/", "a/b", "**/x", "!a/b", "a\nb", "//x"])
def test_a_pattern_that_names_nothing_or_everything_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"name|slash"):
        check_pattern(pattern)


def test_examples_stand_for_every_kind_of_name() -> None:
    examples = secret_names().examples
    assert {".env", "id_rsa", "server.pem", ".tfvars", "kubeconfig"} <= set(examples)
    assert all(secret_names().matches(f"/{name}") for name in examples)
