-- Reading a table's events again from the first one, while the lobby runs.

DO $$ BEGIN CREATE ROLE relance_operator NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
DO $$ BEGIN GRANT relance_audit TO relance_operator; EXCEPTION WHEN unique_violation THEN NULL; END $$;

-- Forget what follows from the events of a table, its position too: whoever follows finds that position gone and begins
-- anew. What came by request (accounts, waiting lists, protections granted) stays. False: nothing was followed.
CREATE FUNCTION lobby.forget(wanted text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    -- First, for a follower that is at this table holds this row until its transaction is over.
    DELETE FROM lobby.followed WHERE stream = wanted;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM lobby.game_table WHERE id = wanted;
    DELETE FROM lobby.played WHERE "table" = wanted;
    DELETE FROM lobby.seat WHERE "table" = wanted;
    RETURN true;
END $$;

REVOKE EXECUTE ON FUNCTION lobby.forget(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lobby.forget(text) TO relance_operator;
GRANT USAGE ON SCHEMA lobby TO relance_operator;
