-- A changed password ends the sessions that the one before began: tokens say of which generation they are.

ALTER TABLE lobby.player ADD COLUMN generation integer NOT NULL DEFAULT 0;

GRANT UPDATE (generation) ON lobby.player TO relance_lobby;
