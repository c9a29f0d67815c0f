-- Credits of the club (V1-V3): passes, refills that are granted later, and what hands at credit tables won and lost.

-- Credits that are to be granted, and those that were. The key of the transfer is the row's own, so a grant that is
-- asked of the ledger twice is one transfer.
CREATE TABLE wallet.credit_grant (
    key        text COLLATE "C" PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 200),
    player     text COLLATE "C" NOT NULL CHECK (player ~ '^[a-z0-9-]{1,40}$'),
    purpose    text NOT NULL CHECK (purpose IN ('PASS', 'REFILL')),
    amount     bigint NOT NULL CHECK (amount BETWEEN 1 AND 1000000),
    -- Who asked: the player, or the cashier who sold the pass.
    actor      text NOT NULL CHECK (length(actor) BETWEEN 1 AND 100),
    -- Microseconds since 1970 UTC, like all times here.
    asked_at   bigint NOT NULL,
    due_at     bigint NOT NULL CHECK (due_at BETWEEN asked_at AND asked_at + 7200000000),
    state      text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'granted', 'refused')),
    settled_at bigint,
    refusal    text NOT NULL DEFAULT ''
) WITH (fillfactor = 80);
CREATE INDEX credit_grant_due ON wallet.credit_grant (due_at) WHERE state = 'pending';
CREATE INDEX credit_grant_by_player ON wallet.credit_grant (player, asked_at);
-- V3: one pending at a time, whatever two requests at once believe.
CREATE UNIQUE INDEX one_refill_pending ON wallet.credit_grant (player) WHERE state = 'pending' AND purpose = 'REFILL';

-- Members of the club. The row is also what two requests of one player wait for each other at.
CREATE TABLE wallet.member (
    player     text COLLATE "C" PRIMARY KEY CHECK (player ~ '^[a-z0-9-]{1,40}$'),
    pass_until bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 80);

-- A sold pass and how long it made the player's pass last.
CREATE TABLE wallet.pass (
    key    text COLLATE "C" PRIMARY KEY REFERENCES wallet.credit_grant,
    player text NOT NULL,
    days   integer NOT NULL CHECK (days BETWEEN 1 AND 366),
    until  bigint NOT NULL
);

-- How far the events of each table were taken in, and the currency that it plays in ('' before its first event).
CREATE TABLE wallet.followed (
    stream   text PRIMARY KEY,
    version  bigint NOT NULL,
    currency text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);

-- What a player won and lost in hands at credit tables, in all. With the ledger this is everything that V3 asks for:
-- account + chips at tables + transfers under way = what came from outside + what was won. A buy-in, a top-up, a
-- cash-out changes neither side, wherever it is on its way.
CREATE TABLE wallet.winnings (
    player text COLLATE "C" PRIMARY KEY,
    credit bigint NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION wallet.settled_grants_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'pending' THEN
        RAISE EXCEPTION 'grant % is % for good', OLD.key, OLD.state USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER grants_settle_once BEFORE UPDATE ON wallet.credit_grant
    FOR EACH ROW EXECUTE FUNCTION wallet.settled_grants_stay();

GRANT SELECT ON ALL TABLES IN SCHEMA wallet TO relance_wallet, relance_audit;
GRANT INSERT, UPDATE (state, settled_at, refusal) ON wallet.credit_grant TO relance_wallet;
GRANT INSERT, UPDATE ON wallet.member, wallet.followed, wallet.winnings TO relance_wallet;
GRANT INSERT ON wallet.pass TO relance_wallet;
