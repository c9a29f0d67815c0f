"""Settings from the environment."""

from __future__ import annotations

import pytest

from relance.runtime.settings import ServiceSettings, SettingsError, load


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("RELANCE_DATABASE_URL", "postgresql://lobby:hunter2@127.0.0.1/relance")
    monkeypatch.setenv("RELANCE_KEYRING", "/etc/relance/keyring.json")
    return monkeypatch


def test_settings_come_from_variables_and_have_defaults(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("RELANCE_TABLE_ADDRESSES", "table-1:7003, table-2:7003")
    environment.setenv("RELANCE_METRICS", "")
    environment.setenv("RELANCE_PLAINTEXT", "allow")
    settings = load(ServiceSettings)
    assert settings.table_addresses == ("table-1:7003", "table-2:7003")
    assert (settings.listen, settings.metrics, settings.drain_timeout) == ("127.0.0.1:0", "", 15.0)
    assert load(ServiceSettings).instance != settings.instance


def test_secrets_do_not_show(environment: pytest.MonkeyPatch) -> None:
    settings = load(ServiceSettings)
    assert "hunter2" not in f"{settings!r} {settings} {settings.model_dump_json()}"
    assert "hunter2" in settings.database_url.get_secret_value()


def test_every_fault_is_in_one_line_that_holds_no_value(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("RELANCE_KEYRING")
    environment.setenv("RELANCE_LISTEN", "hunter3")
    environment.setenv("RELANCE_DRAIN_TIMEOUT", "0")
    environment.setenv("RELANCE_LOG_FORMAT", "xml")
    with pytest.raises(SettingsError) as caught:
        load(ServiceSettings)
    text = str(caught.value)
    assert "\n" not in text
    assert "hunter" not in text
    assert "RELANCE_KEYRING: is missing" in text
    assert "RELANCE_LISTEN: must be host:port, for example 127.0.0.1:7001" in text
    assert "RELANCE_DRAIN_TIMEOUT: Input should be greater than 0" in text
    assert "RELANCE_LOG_FORMAT" in text


@pytest.mark.parametrize(
    "url",
    [
        "hunter2",
        "mysql://a:hunter2@127.0.0.1/x",
        "postgresql://a:hunter2/more@db.example/x",
        "postgresql://a:hunter2#more@db.example/x",
        "postgresql://a:99/hunter2@db.example/x",
        "postgresql://a:b@hunter2:port/x",
        "postgresql://a:b@127.0.0.1:99999/hunter2",
        "postgresql://a:b@[::1/hunter2",
    ],
)
def test_what_is_no_url_of_a_database_is_refused_and_nothing_of_it_told(
    environment: pytest.MonkeyPatch, url: str
) -> None:
    """A password with a slash that is not written as %2F ends up where hosts stand."""
    environment.setenv("RELANCE_DATABASE_URL", url)
    with pytest.raises(SettingsError, match="RELANCE_DATABASE_URL: is no URL such as") as caught:
        load(ServiceSettings)
    assert "hunter2" not in str(caught.value)
    assert "db.example" not in str(caught.value)


@pytest.mark.parametrize("address", ["127.0.0.1:65536", "7001", "host:", ":7001", "a b:1", "host:port"])
def test_what_is_no_address_is_refused(environment: pytest.MonkeyPatch, address: str) -> None:
    environment.setenv("RELANCE_LISTEN", address)
    with pytest.raises(SettingsError, match="RELANCE_LISTEN"):
        load(ServiceSettings)
