-- What players say at tables: no part of the tables' streams, read back for whoever joins.

CREATE TABLE log.chat (
    stream     text COLLATE "C" NOT NULL,
    number     bigint GENERATED ALWAYS AS IDENTITY,
    player     text COLLATE "C" NOT NULL,
    request_id text COLLATE "C" NOT NULL,
    body       text NOT NULL CHECK (length(body) BETWEEN 1 AND 128),
    time_us    bigint NOT NULL,
    PRIMARY KEY (stream, number),
    UNIQUE (stream, player, request_id)
);

GRANT SELECT ON log.chat TO relance_table, relance_audit;
GRANT INSERT ON log.chat TO relance_table;
