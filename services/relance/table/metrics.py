"""What a table process counts, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.registry import REGISTRY


class TableMetrics:
    """Figures of one process; tests give a registry of their own."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.tables = Gauge("relance_table_tables", "Tables that this process runs.", registry=registry)
        self.seats = Gauge("relance_table_seats", "Seats taken at them.", registry=registry)
        self.streams = Gauge("relance_table_streams", "Play and Watch streams open.", registry=registry)
        self.quarantined = Gauge("relance_table_quarantined", "Tables stopped after a fault.", registry=registry)
        self.running = Gauge("relance_table_hands_running", "Hands that run now.", registry=registry)
        self.hands = Counter("relance_table_hands", "Hands that ended, by how.", ["end"], registry=registry)
        self.paid, self.voided = self.hands.labels("paid"), self.hands.labels("voided")
        self.refused = Counter("relance_table_mailbox_full", "Commands refused for a full mailbox.", registry=registry)
        self.mailbox = Gauge("relance_table_mailbox_depth", "Commands that wait in all mailboxes.", registry=registry)
        self.append_seconds = Histogram(
            "relance_table_append_seconds",
            "From decision to durable.",
            buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30),
            registry=registry,
        )
        self.publish_lag = Gauge(
            "relance_table_publish_lag",
            "Appends that NATS lacks, and tables that are behind with it.",
            registry=registry,
        )
        self.heartbeat_age = Gauge(
            "relance_table_heartbeat_age_seconds", "Since the last durable heartbeat.", registry=registry
        )
        self.transfers = Gauge(
            "relance_table_transfers_open", "Transfers without a definite answer.", registry=registry
        )
        self.transfers_oldest = Gauge(
            "relance_table_transfers_oldest_seconds",
            "How long the oldest of them has been asked for.",
            registry=registry,
        )
        self.parked = Gauge("relance_table_transfers_parked", "Cash-outs that the wallet refused.", registry=registry)
        self.passed_on = Gauge(
            "relance_table_calls_passed_on", "Calls under way that other processes answer.", registry=registry
        )
        self.landed = Gauge(
            "relance_table_calls_landed",
            "Calls under way that other processes passed on to this one.",
            registry=registry,
        )
