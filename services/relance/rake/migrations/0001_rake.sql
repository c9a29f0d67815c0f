-- The rake service: schedules in all their versions, and one row for every hand that was paid.

DO $$ BEGIN CREATE ROLE relance_rake NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
DO $$ BEGIN CREATE ROLE relance_audit NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;

CREATE SCHEMA rake;

-- A band of a house's schedule in a version that an operator put: a serialised RakeSchedule. Never changed: a change
-- is a new version. The first version of each band is the house's own and comes with the program.
CREATE TABLE rake.schedule (
    id         text NOT NULL,
    band       text NOT NULL,
    version    integer NOT NULL CHECK (version >= 1),
    body       bytea NOT NULL,
    put_by     text NOT NULL,
    put_at     bigint NOT NULL,
    request_id text NOT NULL,
    PRIMARY KEY (id, band, version)
);
CREATE UNIQUE INDEX schedule_request ON rake.schedule (put_by, request_id);

-- How far the events of each table were taken in.
CREATE TABLE rake.followed (
    stream  text PRIMARY KEY,
    version bigint NOT NULL
) WITH (fillfactor = 50);

-- What is needed of a table to recompute its next hand: what it plays, and the running hand so far.
CREATE TABLE rake.game_table (
    id    text PRIMARY KEY,
    state jsonb NOT NULL
) WITH (fillfactor = 50);

-- A hand that was paid. Written in the transaction that moves the position past it, so it is there exactly once.
-- open: its rake is to be collected; collected: it is on the house's account; stopped: what the table took is not what
-- the schedule says, and people have to look; refused: the wallet said no, for good; none: nothing was taken.
CREATE TABLE rake.hand (
    table_id  text NOT NULL,
    hand      bigint NOT NULL,
    ended_at  bigint NOT NULL,
    currency  integer NOT NULL,
    house     text NOT NULL,
    game      text NOT NULL,
    betting   integer NOT NULL,
    schedule  text NOT NULL,
    players   integer NOT NULL,
    pot       bigint NOT NULL CHECK (pot >= 0),
    rake      bigint NOT NULL CHECK (rake >= 0),
    expected  bigint NOT NULL CHECK (expected >= 0),
    mismatch  text NOT NULL,
    state     text NOT NULL CHECK (state IN ('none', 'open', 'collected', 'stopped', 'refused')),
    attempts  integer NOT NULL DEFAULT 0,
    due_at    bigint NOT NULL,
    settled_at bigint,
    refusal   text NOT NULL DEFAULT '',
    PRIMARY KEY (table_id, hand),
    CONSTRAINT a_mismatch_is_never_collected CHECK (mismatch = '' OR state IN ('none', 'stopped'))
) WITH (fillfactor = 80);
CREATE INDEX hand_outstanding ON rake.hand (due_at) WHERE state = 'open';
CREATE INDEX hand_by_end ON rake.hand (ended_at);

GRANT USAGE ON SCHEMA rake TO relance_rake, relance_audit;
GRANT SELECT ON ALL TABLES IN SCHEMA rake TO relance_rake, relance_audit;
GRANT INSERT ON rake.schedule TO relance_rake;
GRANT INSERT, UPDATE ON rake.followed, rake.game_table TO relance_rake;
GRANT INSERT, UPDATE (state, attempts, due_at, settled_at, refusal) ON rake.hand TO relance_rake;
