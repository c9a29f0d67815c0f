-- Removing whole streams whose archive was verified; nothing else is ever removed.

DO $$ BEGIN CREATE ROLE relance_operator NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
DO $$ BEGIN GRANT relance_audit TO relance_operator; EXCEPTION WHEN unique_violation THEN NULL; END $$;

-- What was removed, and what its archive must hold. A name in here is never used again.
CREATE TABLE log.archived (
    stream     text COLLATE "C" PRIMARY KEY,
    head       bigint NOT NULL,
    digest     bytea NOT NULL,
    manifest   text NOT NULL,
    removed_by text NOT NULL,
    removed_at timestamptz NOT NULL DEFAULT now()
);

-- SHA-256 over the SHA-256 of each event: its columns as text with bars between, then its body.
CREATE FUNCTION log.digest(wanted text) RETURNS bytea LANGUAGE sql STABLE AS $$
    SELECT sha256(coalesce(string_agg(
        sha256(convert_to(concat_ws('|', version, fence, append_id, hand, type, time_us), 'UTF8') || body),
        '' ORDER BY version), ''))
    FROM log.event WHERE stream = wanted
$$;

-- As before, but for the rows of the stream that log.remove_archived is removing.
CREATE OR REPLACE FUNCTION log.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    removing text := coalesce(current_setting('relance.removing', true), '');
BEGIN
    IF TG_OP = 'DELETE' AND removing <> '' AND EXISTS (SELECT FROM log.archived WHERE stream = removing) THEN
        IF TG_LEVEL = 'STATEMENT' THEN
            RETURN NULL;
        ELSIF OLD.stream = removing THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION '% of %.% is refused: the log is append-only', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER only_archived BEFORE DELETE ON log.event FOR EACH ROW EXECUTE FUNCTION log.refuse_change();
ALTER TABLE log.event ENABLE ALWAYS TRIGGER only_archived;
CREATE TRIGGER only_archived BEFORE DELETE ON log.stream FOR EACH ROW EXECUTE FUNCTION log.refuse_change();
ALTER TABLE log.stream ENABLE ALWAYS TRIGGER only_archived;

CREATE FUNCTION log.refuse_archived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'stream % was archived: its name is not used again', NEW.stream USING ERRCODE = 'unique_violation';
END $$;
CREATE FUNCTION log.is_archived(wanted text) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = '' RETURN EXISTS (SELECT FROM log.archived WHERE stream = wanted);
CREATE TRIGGER never_again BEFORE INSERT ON log.stream FOR EACH ROW WHEN (log.is_archived(NEW.stream))
    EXECUTE FUNCTION log.refuse_archived();

-- Remove a closed stream that is, event by event, what its verified archive holds. `manifest`: the archive's entry.
CREATE FUNCTION log.remove_archived(wanted text, expected_head bigint, expected_digest bytea, manifest text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    found_head bigint;
    waiting bigint;
BEGIN
    SELECT head INTO found_head FROM log.stream WHERE stream = wanted FOR UPDATE;
    IF found_head IS NULL THEN
        RAISE EXCEPTION 'there is no stream %', wanted USING ERRCODE = 'no_data_found';
    END IF;
    IF found_head <> expected_head OR log.digest(wanted) <> expected_digest THEN
        RAISE EXCEPTION 'stream % is not what its manifest says: it is kept', wanted
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    SELECT count(*) FILTER (WHERE type = 'transfer_requested') - count(*) FILTER (WHERE type = 'transfer_settled')
        - count(*) FILTER (WHERE type = 'transfer_refused') INTO waiting FROM log.event WHERE stream = wanted;
    IF waiting <> 0 OR NOT EXISTS (SELECT FROM log.event WHERE stream = wanted AND type = 'table_closed') THEN
        RAISE EXCEPTION 'stream % is not closed, or money is on its way: it is kept', wanted
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    INSERT INTO log.archived (stream, head, digest, manifest, removed_by)
    VALUES (wanted, expected_head, expected_digest, manifest, session_user);
    PERFORM set_config('relance.removing', wanted, true);
    DELETE FROM log.event WHERE stream = wanted;
    DELETE FROM log.snapshot WHERE stream = wanted;
    DELETE FROM log.mark WHERE stream = wanted;
    DELETE FROM log.stream WHERE stream = wanted;
    PERFORM set_config('relance.removing', '', true);
END $$;

REVOKE EXECUTE ON FUNCTION log.remove_archived(text, bigint, bytea, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION log.remove_archived(text, bigint, bytea, text) TO relance_operator;
GRANT SELECT ON log.archived TO relance_table, relance_audit;
GRANT USAGE ON SCHEMA log TO relance_operator;
