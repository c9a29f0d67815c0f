"""The environment of a container, and what is said differently on one machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from relance.cluster.document import ManifestError
from relance.cluster.environment import PodFacts, arguments, environment, expand, service_links
from relance.cluster.manifests import Manifests, Service, ServicePort
from relance.cluster.pods import Container, Mount, Part, PodTemplate, Reference, Variable, VariablesFrom, Volume
from relance.cluster.rewrites import Ledger, Rewriter
from relance.cluster.volumes import mounted, write_volumes

FACTS = PodFacts("table-1-x", "room", "127.0.1.5", labels={"app": "table"})
MANIFESTS = Manifests(
    config_maps={"settings": {"LISTEN": b"0.0.0.0:7000", "LEVEL": b"info"}, "text": {"a.conf": b"dir: /data/x"}},
    secrets={"table": {"url": b"postgresql://relance_table:pw@db:5432/relance", "pem": b"/data"}},
)


def test_values_name_variables_before_them_and_later_ones_replace_earlier_ones() -> None:
    container = Container(
        "service", "relance", ("serve", "--at", "$(HOST):$(PORT)"),
        variables_from=(VariablesFrom("configMap", "settings"),),
        variables=(
            Variable("HOST", reference=Reference("field", "", "status.podIP")),
            Variable("ADVERTISE", "$(HOST):7000 at $(LEVEL), $(LATER), $$(HOST)"),
            Variable("LATER", "x"),
            Variable("LEVEL", "debug"),
            Variable("URL", reference=Reference("secret", "table", "url")),
            Variable("NONE", reference=Reference("secret", "table", "other", optional=True)),
        ),
    )  # fmt: skip
    made = environment(container, FACTS, MANIFESTS)
    assert made == {
        "LISTEN": "0.0.0.0:7000",
        "LEVEL": "debug",
        "HOST": "127.0.1.5",
        "ADVERTISE": "127.0.1.5:7000 at info, $(LATER), $(HOST)",
        "LATER": "x",
        "URL": "postgresql://relance_table:pw@db:5432/relance",
    }
    assert arguments(container, made) == ["serve", "--at", "127.0.1.5:$(PORT)"]


def test_what_is_referred_to_has_to_be_there() -> None:
    container = Container(
        "service", "relance", variables=(Variable("A", reference=Reference("secret", "table", "no")),)
    )
    with pytest.raises(ManifestError, match="no key no in secret table"):
        environment(container, FACTS, MANIFESTS)


def test_the_pod_is_told_about_itself_by_field_paths() -> None:
    paths = ("metadata.name", "metadata.namespace", "metadata.labels['app']", "metadata.annotations['none']")
    assert [FACTS.field(path) for path in paths] == ["table-1-x", "room", "table", ""]
    with pytest.raises(ManifestError, match=r"spec\.other"):
        FACTS.field("spec.other")


def test_a_dollar_that_begins_nothing_stays() -> None:
    assert expand("$5 $(A) $$(A) $(B", {"A": "1"}) == "$5 1 $(A) $(B"


def test_services_with_an_address_make_variables_as_in_a_cluster() -> None:
    service = Service("my-table", {}, (ServicePort("grpc", 7000, "grpc"),))
    links = service_links([service, Service("pods", {}, service.ports, headless=True)], {"my-table": "127.0.1.9"})
    assert links["MY_TABLE_SERVICE_HOST"] == links["MY_TABLE_PORT_7000_TCP_ADDR"] == "127.0.1.9"
    assert links["MY_TABLE_PORT"] == "tcp://127.0.1.9:7000"
    assert not any(name.startswith("PODS") for name in links)


REWRITER_HOSTS = {
    "db": ("127.0.1.5", "wire"),
    "table": ("127.0.1.9", "Service"),
    "table-pods": ("127.0.1.8", "Service"),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://relance_table:db@db:5432/db", "postgresql://relance_table:db@127.0.1.5:5432/db"),
        ("table:7000,table-pods:7000", "127.0.1.9:7000,127.0.1.8:7000"),
        ("table.room:7000", "127.0.1.9:7000"),
        ("nats://table.room.svc.cluster.local:7000", "nats://127.0.1.9:7000"),
        ("0.0.0.0:7000", "127.0.1.5:7000"),
        ("http: [::]:8222", "http: 127.0.1.5:8222"),
        ("my-table:7000 table other.db:1 10.0.0.0:1", "my-table:7000 table other.db:1 10.0.0.0:1"),
        ("/etc/keys/a.pem", "/here/keys/a.pem"),
        ("x?sslrootcert=/etc/keys/ca.crt&y=/etc/keys", "x?sslrootcert=/here/keys/ca.crt&y=/here/keys"),
        ("/etc/keysother /my/etc/keys /tmp", "/etc/keysother /my/etc/keys /here/etc/keys/tmp"),
    ],
)
def test_names_ports_and_paths_are_replaced_and_nothing_that_looks_like_them(text: str, expected: str) -> None:
    mounts = {"/etc/keys": "/here/keys", "/tmp": "/here/etc/keys/tmp"}
    ledger = Ledger()
    rewriter = Rewriter("table", "room", "127.0.1.5", REWRITER_HOSTS, mounts, ledger)
    assert rewriter.text("URL", text) == expected
    assert bool(ledger.lines()) == (text != expected)


def test_volumes_are_files_and_only_texts_of_config_maps_are_rewritten(tmp_path: Path) -> None:
    container = Container("service", "relance", mounts=(Mount("keys", "/etc/keys"), Mount("data", "/data", "x")))
    volumes = (Volume("keys", (Part("secret", "table", (("pem", "in/a.pem"),)), Part("configMap", "text")), 0o440),)
    template = PodTemplate((container,), volumes=(*volumes, Volume("data")))
    write_volumes(template, tmp_path, MANIFESTS, lambda where, text: text.replace("/data", f"[{where}]"))
    assert (tmp_path / "keys/in/a.pem").read_text() == "/data"
    assert (tmp_path / "keys/a.conf").read_text() == "dir: [a.conf]/x"
    assert (tmp_path / "keys/in/a.pem").stat().st_mode & 0o777 == 0o440
    assert mounted(container, tmp_path) == {"/etc/keys": f"{tmp_path}/keys", "/data": f"{tmp_path}/data/x"}
    missing = PodTemplate((container,), volumes=(Volume("no", (Part("secret", "nobody"),)),))
    with pytest.raises(ManifestError, match="no secret nobody"):
        write_volumes(missing, tmp_path, MANIFESTS, lambda _, text: text)
