-- What a live process carries, so that new tables go where there is least. NULL: it takes none (it is being stopped, or
-- is of a version that does not say).

ALTER TABLE log.process ADD COLUMN tables integer, ADD COLUMN seats integer;
