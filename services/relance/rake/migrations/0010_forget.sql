-- Reading a table's events again from the first one, while the rake service runs.

DO $$ BEGIN CREATE ROLE relance_operator NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
DO $$ BEGIN GRANT relance_audit TO relance_operator; EXCEPTION WHEN unique_violation THEN NULL; END $$;

-- Forget the hands of a table and the position, so that they are taken in and asked for anew; the wallet knows their
-- keys and moves nothing twice. A table with a collection that people released is kept: what they decided stands in its
-- rows alone. False: nothing was forgotten.
CREATE FUNCTION rake.forget(wanted text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    IF EXISTS (SELECT FROM rake.release WHERE table_id = wanted) THEN
        RETURN false;
    END IF;
    -- First, for a follower that is at this table holds this row until its transaction is over.
    DELETE FROM rake.followed WHERE stream = wanted;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM rake.share WHERE table_id = wanted;
    DELETE FROM rake.hand WHERE table_id = wanted;
    DELETE FROM rake.game_table WHERE id = wanted;
    RETURN true;
END $$;

REVOKE EXECUTE ON FUNCTION rake.forget(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rake.forget(text) TO relance_operator;
GRANT USAGE ON SCHEMA rake TO relance_operator;
