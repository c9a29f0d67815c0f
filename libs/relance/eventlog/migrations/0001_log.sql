-- The event log. One row a stream says how long it is and who may write; events are only ever added.

DO $$ BEGIN CREATE ROLE relance_table NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
DO $$ BEGIN CREATE ROLE relance_audit NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;

CREATE SCHEMA log;

-- `fence` counts the owners of the stream, `writer` is the process of the present one ('' = released),
-- `claim` the id of the call that made it owner. Names compare as bytes, whatever the database's language.
-- Room on the page keeps the updates of `head` off the index.
CREATE TABLE log.stream (
    stream text COLLATE "C" PRIMARY KEY CHECK (length(stream) BETWEEN 1 AND 40),
    head   bigint NOT NULL CHECK (head >= 1),
    fence  bigint NOT NULL CHECK (fence >= 1),
    writer text NOT NULL,
    claim  uuid NOT NULL
) WITH (fillfactor = 20);

-- No foreign key to stream: the statement that appends holds the stream's row, and the check would lock it again.
-- hand, type and time_us repeat what the body says, for operators' queries.
CREATE TABLE log.event (
    stream    text COLLATE "C" NOT NULL,
    version   bigint NOT NULL CHECK (version >= 1),
    fence     bigint NOT NULL,
    append_id uuid NOT NULL,
    hand      bigint NOT NULL,
    type      text NOT NULL,
    time_us   bigint NOT NULL,
    body      bytea NOT NULL,
    PRIMARY KEY (stream, version)
);

-- A cache: without it every replay starts at the first event.
CREATE TABLE log.snapshot (
    stream  text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    number  bigint NOT NULL,
    body    bytea NOT NULL,
    PRIMARY KEY (stream, version)
);

-- Lower bound of what NATS has acknowledged.
CREATE TABLE log.mark (
    stream  text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL
) WITH (fillfactor = 50);

-- One row a live process; `beat` counts up while it lives.
CREATE TABLE log.process (
    id      text PRIMARY KEY,
    address text NOT NULL,
    beat    bigint NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION log.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of %.% is refused: the log is append-only', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log.event
    FOR EACH STATEMENT EXECUTE FUNCTION log.refuse_change();
ALTER TABLE log.event ENABLE ALWAYS TRIGGER append_only;

CREATE TRIGGER never_removed BEFORE DELETE OR TRUNCATE ON log.stream
    FOR EACH STATEMENT EXECUTE FUNCTION log.refuse_change();
ALTER TABLE log.stream ENABLE ALWAYS TRIGGER never_removed;

CREATE TRIGGER never_back BEFORE UPDATE ON log.stream
    FOR EACH ROW WHEN (NEW.head < OLD.head OR NEW.fence < OLD.fence OR NEW.stream <> OLD.stream)
    EXECUTE FUNCTION log.refuse_change();
ALTER TABLE log.stream ENABLE ALWAYS TRIGGER never_back;

GRANT USAGE ON SCHEMA log TO relance_table, relance_audit;
GRANT SELECT ON ALL TABLES IN SCHEMA log TO relance_table, relance_audit;
GRANT INSERT ON log.event TO relance_table;
GRANT INSERT, UPDATE (head, fence, writer, claim) ON log.stream TO relance_table;
GRANT INSERT, UPDATE, DELETE ON log.snapshot, log.mark, log.process TO relance_table;
