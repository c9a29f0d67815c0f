-- What each player put into the pots and bore of the rake, for rakeback; and collections that an operator released.

CREATE TABLE rake.share (
    table_id    text NOT NULL,
    hand        bigint NOT NULL,
    player      text NOT NULL,
    contributed bigint NOT NULL CHECK (contributed >= 0),
    -- Part of the hand's rake by what was put in: the parts of a hand sum to its rake.
    rake        bigint NOT NULL CHECK (rake >= 0),
    PRIMARY KEY (table_id, hand, player),
    FOREIGN KEY (table_id, hand) REFERENCES rake.hand
);

-- attempt: a refusal of the wallet is final under its key, so a release asks under the next one.
ALTER TABLE rake.hand
    ADD COLUMN attempt integer NOT NULL DEFAULT 1 CHECK (attempt BETWEEN 1 AND 99),
    ADD COLUMN released_by text NOT NULL DEFAULT '';
ALTER TABLE rake.hand DROP CONSTRAINT a_mismatch_is_never_collected;
ALTER TABLE rake.hand ADD CONSTRAINT a_mismatch_is_collected_by_people CHECK (
    mismatch = '' OR state IN ('none', 'stopped') OR released_by <> '');

-- Who let a collection go on, and why. Never changed.
CREATE TABLE rake.release (
    table_id text NOT NULL,
    hand     bigint NOT NULL,
    attempt  integer NOT NULL,
    operator text NOT NULL CHECK (operator <> ''),
    reason   text NOT NULL CHECK (reason <> ''),
    at       bigint NOT NULL,
    PRIMARY KEY (table_id, hand, attempt),
    FOREIGN KEY (table_id, hand) REFERENCES rake.hand
);

GRANT SELECT ON rake.share, rake.release TO relance_rake, relance_audit;
GRANT INSERT ON rake.share, rake.release TO relance_rake;
GRANT UPDATE (attempt, released_by) ON rake.hand TO relance_rake;
