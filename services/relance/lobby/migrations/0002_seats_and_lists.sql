-- Who sits where, more of what a table can be found by, waiting lists with offers, templates, private tables, houses in
-- maintenance.

-- The catalogue comes back from the tables' first events, with what it did not keep before.
TRUNCATE lobby.followed, lobby.game_table, lobby.played;

ALTER TABLE lobby.game_table
    ADD COLUMN low_limit bigint NOT NULL,
    ADD COLUMN ante bigint NOT NULL,
    ADD COLUMN min_buy_in bigint NOT NULL,
    ADD COLUMN max_buy_in bigint NOT NULL,
    ADD COLUMN private boolean NOT NULL,
    ADD COLUMN paused boolean NOT NULL,
    -- What tables of the same kind have in common, in hexadecimal: templates count by it.
    ADD COLUMN kind text COLLATE "C" NOT NULL,
    -- What a player may wait for who is served by this table: the table itself, and its kinds.
    ADD COLUMN targets text[] NOT NULL,
    -- Since when nobody has had a seat, microseconds since 1970 UTC; 0: somebody has one.
    ADD COLUMN empty_since bigint NOT NULL;
CREATE INDEX game_table_kind ON lobby.game_table (kind) WHERE NOT closed;

-- Seats with a player, and those held for one.
CREATE TABLE lobby.seat (
    "table" text COLLATE "C" NOT NULL,
    seat integer NOT NULL,
    player text COLLATE "C" NOT NULL,
    held boolean NOT NULL,
    PRIMARY KEY ("table", seat)
);
CREATE INDEX seat_player ON lobby.seat (player);

-- Houses that were ever in maintenance.
CREATE TABLE lobby.house (
    id text COLLATE "C" PRIMARY KEY,
    maintenance boolean NOT NULL,
    operator text NOT NULL,
    reason text NOT NULL,
    changed_at bigint NOT NULL,
    -- Rises with each begin and end; part of the ids of the requests to tables.
    round bigint NOT NULL
);
-- Tables that maintenance paused: these and no others are resumed.
CREATE TABLE lobby.paused_table (
    "table" text COLLATE "C" PRIMARY KEY,
    house text COLLATE "C" NOT NULL,
    round bigint NOT NULL,
    -- Whether it was paused already by somebody else: then it stays paused.
    by_others boolean NOT NULL
);

-- Places on waiting lists.
CREATE TABLE lobby.wait (
    id text COLLATE "C" PRIMARY KEY,
    -- Who came first has the lower number.
    number bigint GENERATED ALWAYS AS IDENTITY,
    player text COLLATE "C" NOT NULL,
    -- What for: one of game_table.targets.
    target text COLLATE "C" NOT NULL,
    -- relance.api.lobby.v1.TableKind where any table of a kind will do; null: the target is a table.
    kind bytea,
    created_at bigint NOT NULL,
    UNIQUE (player, target)
);
CREATE INDEX wait_target ON lobby.wait (target, number);

-- Seats that are offered to players from the lists.
CREATE TABLE lobby.offer (
    id text COLLATE "C" PRIMARY KEY,
    wait text COLLATE "C" NOT NULL,
    player text COLLATE "C" NOT NULL,
    "table" text COLLATE "C" NOT NULL,
    -- 0 until the table holds one.
    seat integer NOT NULL,
    -- 0: the table is asked to hold a seat; 1 to 6: relance.api.lobby.v1.OfferState; 7: the table had none.
    state integer NOT NULL,
    created_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    -- Until when it is answered or the seat is taken.
    expires_at bigint NOT NULL,
    -- When somebody has to do the next thing: ask for the seat, let the offer expire, give the seat back. Null: all is
    -- done. Whoever does it moves this on first, so that another does it if they die.
    due_at bigint
);
-- One seat of a table is asked for at a time: who came first is served first.
CREATE UNIQUE INDEX offer_asked ON lobby.offer ("table") WHERE state = 0;
CREATE UNIQUE INDEX offer_wait ON lobby.offer (wait) WHERE state IN (0, 1, 2);
CREATE UNIQUE INDEX offer_player ON lobby.offer (player, "table") WHERE state IN (0, 1, 2);
CREATE INDEX offer_table ON lobby.offer ("table", created_at);
CREATE INDEX offer_due ON lobby.offer (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX offer_changed ON lobby.offer (changed_at);

-- Kinds of tables that are kept open.
CREATE TABLE lobby.template (
    id text COLLATE "C" PRIMARY KEY,
    number bigint GENERATED ALWAYS AS IDENTITY,
    house text NOT NULL,
    -- relance.api.table.v1.OpenTableRequest, and the name that its tables are numbered by.
    request bytea NOT NULL,
    title text NOT NULL,
    -- As game_table.kind.
    kind text COLLATE "C" NOT NULL UNIQUE,
    min_open integer NOT NULL,
    max_open integer NOT NULL,
    stopped boolean NOT NULL,
    -- Deleted ones stay until their last table is closed.
    deleted boolean NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    problem text NOT NULL,
    -- Number of its last table.
    opened integer NOT NULL,
    -- When it is looked at again. Whoever looks moves this on first.
    due_at bigint NOT NULL
);
CREATE INDEX template_due ON lobby.template (due_at);

-- Tables of templates, from the moment that they are asked for until they are closed.
CREATE TABLE lobby.template_table (
    template text COLLATE "C" NOT NULL REFERENCES lobby.template ON DELETE CASCADE,
    number integer NOT NULL,
    -- The request as it was sent: a repeat after a crash opens no second table.
    request bytea NOT NULL,
    -- Null until the table service has answered.
    "table" text COLLATE "C",
    closing boolean NOT NULL,
    PRIMARY KEY (template, number)
);

-- Private tables that the lobby knows more of than that they are private.
CREATE TABLE lobby.private_table (
    id text COLLATE "C" PRIMARY KEY,
    -- Player who opened it; null: an operator did.
    host text COLLATE "C",
    -- Id of the request that opened it; empty: an operator did.
    request text COLLATE "C" NOT NULL,
    -- argon2id; null: there is none.
    password text,
    created_at bigint NOT NULL
);
CREATE INDEX private_table_host ON lobby.private_table (host);
CREATE TABLE lobby.invite (
    "table" text COLLATE "C" NOT NULL,
    player text COLLATE "C" NOT NULL,
    invited_by text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY ("table", player)
);
CREATE INDEX invite_player ON lobby.invite (player);

GRANT UPDATE (password) ON lobby.player TO relance_lobby;
GRANT SELECT, INSERT, UPDATE, DELETE ON lobby.seat, lobby.house, lobby.paused_table, lobby.wait, lobby.offer,
    lobby.template, lobby.template_table, lobby.private_table, lobby.invite TO relance_lobby;
GRANT SELECT ON lobby.seat, lobby.house, lobby.paused_table, lobby.wait, lobby.offer, lobby.template,
    lobby.template_table, lobby.invite TO relance_audit;
GRANT SELECT (id, host, created_at) ON lobby.private_table TO relance_audit;
