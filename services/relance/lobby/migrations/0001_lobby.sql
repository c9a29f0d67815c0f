-- The lobby: accounts, tries to sign in, the catalogue of tables with its statistics, protections used.
--
-- Everything but accounts can be lost without loss: the catalogue is a projection of the tables' events and comes back
-- by following them from their first one.

CREATE SCHEMA lobby;

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['relance_lobby', 'relance_audit'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- another migration made it meanwhile: roles belong to the whole cluster
        END;
    END LOOP;
END
$$;

CREATE TABLE lobby.player (
    id text COLLATE "C" PRIMARY KEY,
    -- As others see it, NFC (N1).
    display_name text NOT NULL CHECK (length(display_name) BETWEEN 1 AND 32),
    -- Case-folded: what must be unique (N1).
    folded_name text COLLATE "C" NOT NULL UNIQUE,
    -- argon2id with its parameters and salt.
    password text NOT NULL,
    -- Id of the request that made the account: a repeat has the same answer.
    request_id text COLLATE "C" NOT NULL UNIQUE,
    -- Microseconds since 1970 UTC.
    created_at bigint NOT NULL
);

-- Failed tries, as a level that leaks over time: a try is refused while the level is at its limit.
CREATE TABLE lobby.throttle (
    key text COLLATE "C" PRIMARY KEY,
    level double precision NOT NULL,
    -- When the level was that, microseconds since 1970 UTC.
    at bigint NOT NULL,
    -- When it has leaked away: the row may go.
    empty_at bigint NOT NULL
);
CREATE INDEX throttle_empty ON lobby.throttle (empty_at);

-- The level now, where one try leaks away each `leak` microseconds. A clock that went back leaks nothing.
CREATE FUNCTION lobby.leaked(bucket lobby.throttle, now bigint, leak bigint) RETURNS double precision
LANGUAGE sql IMMUTABLE
RETURN greatest(0, bucket.level - greatest(0, now - bucket.at) / leak::double precision);

-- How far each table's events have been followed: what they led to here is in the same transaction.
CREATE TABLE lobby.followed (
    stream text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL
);

CREATE TABLE lobby.game_table (
    id text COLLATE "C" PRIMARY KEY,
    -- The last event that is in this row.
    version bigint NOT NULL,
    -- relance.api.common.v1.TableConfig.
    config bytea NOT NULL,
    display_name text NOT NULL,
    house text NOT NULL,
    game text NOT NULL,
    betting integer NOT NULL,
    currency integer NOT NULL,
    big_blind bigint NOT NULL,
    turbo boolean NOT NULL,
    micro boolean NOT NULL,
    seats integer NOT NULL,
    -- Numbers of the seats with a player, and of those held for one.
    seated integer[] NOT NULL,
    held integer[] NOT NULL,
    closed boolean NOT NULL,
    last_hand bigint NOT NULL,
    -- Microseconds since 1970 UTC.
    created_at bigint NOT NULL
);
CREATE INDEX game_table_open ON lobby.game_table (created_at, id) WHERE NOT closed;

-- Hands that ended, by table and minute.
CREATE TABLE lobby.played (
    "table" text COLLATE "C" NOT NULL,
    -- Minutes since 1970 UTC.
    minute bigint NOT NULL,
    hands integer NOT NULL,
    -- Sum of the pots, minor units.
    pots bigint NOT NULL,
    -- Hands in which the flop (third card, draw) came, and players who saw it, in all.
    flops integer NOT NULL,
    flop_players integer NOT NULL,
    PRIMARY KEY ("table", minute)
);
CREATE INDEX played_minute ON lobby.played (minute);

-- Artificial all-ins asked for (C2). One that was granted counts for 24 hours, unless its hand was voided, or ended
-- without its being used (the player came back in time).
CREATE TABLE lobby.protection (
    "table" text COLLATE "C" NOT NULL,
    hand bigint NOT NULL,
    seat integer NOT NULL,
    player text COLLATE "C" NOT NULL,
    granted boolean NOT NULL,
    -- Whether the table's events say that it was used.
    used boolean NOT NULL DEFAULT false,
    given_back boolean NOT NULL DEFAULT false,
    -- Microseconds since 1970 UTC.
    at bigint NOT NULL,
    PRIMARY KEY ("table", hand, seat)
);
CREATE INDEX protection_player ON lobby.protection (player, at) WHERE granted AND NOT given_back;

GRANT USAGE ON SCHEMA lobby TO relance_lobby, relance_audit;
GRANT SELECT, INSERT ON lobby.player TO relance_lobby;
GRANT SELECT, INSERT, UPDATE, DELETE ON lobby.throttle, lobby.followed, lobby.game_table, lobby.played,
    lobby.protection TO relance_lobby;
-- Auditors see everything but passwords.
GRANT SELECT (id, display_name, folded_name, created_at) ON lobby.player TO relance_audit;
GRANT SELECT ON lobby.throttle, lobby.followed, lobby.game_table, lobby.played, lobby.protection TO relance_audit;
