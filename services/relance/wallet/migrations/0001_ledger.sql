-- The ledger: accounts, and transfers that are written once and never changed.
--
-- Money moves in wallet.transfer_batch() and nowhere else. The service's role may execute that function and read;
-- the tables belong to the role that ran this file. What must never be false is held here, not in the service:
--   * player, escrow and house balances are never negative, none passes 10^15;
--   * the accounts of a currency sum to zero after every statement;
--   * transfers are never updated, deleted or truncated; accounts only change their balance, by way of the function;
--   * a key has one content and one answer, for ever.
--
-- Ids are bigints from a sequence: eight bytes in every index, and within one account they rise with the commits,
-- because they are drawn while the account is locked. The tables are not partitioned: a key must be unique over all
-- time, which no partitioning by time can promise; the indexes are narrow and only ever appended to at their right.

CREATE SCHEMA wallet;

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['relance_wallet', 'relance_audit'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- another migration made it meanwhile: roles belong to the whole cluster
        END;
    END LOOP;
END
$$;

-- What an account's name says that it is; NULL for a name that is none.
CREATE FUNCTION wallet.account_kind(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN name ~ '^players/[a-z0-9-]{1,40}/(eur|credit)$' THEN 'player'
    WHEN name ~ '^tables/[a-z0-9-]{1,40}$' THEN 'escrow'
    WHEN name ~ '^house/(eur|credit)$' THEN 'house'
    WHEN name ~ '^world/(eur|credit)$' THEN 'world'
    WHEN name = 'issuance/credit' THEN 'issuance'
END;

CREATE TABLE wallet.account (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    kind text NOT NULL,
    currency text NOT NULL CHECK (currency IN ('eur', 'credit')),
    -- Minor units. World and issuance run below zero by what they have put into the room.
    balance bigint NOT NULL DEFAULT 0,
    -- Time of the last transfer, microseconds since 1970 UTC: an account's times never run backwards.
    moved_at bigint NOT NULL DEFAULT 0,
    CONSTRAINT account_kind_is_its_name CHECK (kind IS NOT DISTINCT FROM wallet.account_kind(name)),
    CONSTRAINT account_currency_is_its_name CHECK (kind = 'escrow' OR currency = substring(name FROM '[a-z]+$')),
    CONSTRAINT balance_not_negative CHECK (kind IN ('world', 'issuance') OR balance >= 0),
    CONSTRAINT balance_within_limit CHECK (
        CASE WHEN kind IN ('world', 'issuance') THEN balance BETWEEN -1000000000000000000 AND 1000000000000000000
             ELSE balance <= 1000000000000000 END)
) WITH (fillfactor = 50);

CREATE SEQUENCE wallet.transfer_id;

CREATE TABLE wallet.transfer (
    id bigint PRIMARY KEY,
    key text COLLATE "C" NOT NULL UNIQUE CHECK (length(key) BETWEEN 1 AND 200),
    -- SHA-256 of payer, payee, amount, currency and purpose: what the key stands for.
    hash bytea NOT NULL CHECK (length(hash) = 32),
    payer bigint NOT NULL REFERENCES wallet.account,
    payee bigint NOT NULL REFERENCES wallet.account,
    amount bigint NOT NULL CHECK (amount BETWEEN 1 AND 1000000000000000),
    currency text NOT NULL CHECK (currency IN ('eur', 'credit')),
    purpose text NOT NULL CHECK (length(purpose) <= 64),
    -- Who asked: a service, a player or an operator.
    actor text NOT NULL CHECK (length(actor) BETWEEN 1 AND 100),
    -- Microseconds since 1970 UTC; within an account it rises with the id.
    at bigint NOT NULL,
    -- Why the money did not move, for good; NULL: it moved.
    refusal text CHECK (refusal IN ('NO_MONEY', 'BALANCE_TOO_LARGE', 'CURRENCY_MISMATCH')),
    -- Balances after it (of a refusal: at the time).
    payer_balance bigint NOT NULL,
    payee_balance bigint NOT NULL,
    CONSTRAINT two_accounts CHECK (payer <> payee)
);
ALTER SEQUENCE wallet.transfer_id OWNED BY wallet.transfer.id;

CREATE INDEX transfer_by_payer ON wallet.transfer (payer, at, id);
CREATE INDEX transfer_by_payee ON wallet.transfer (payee, at, id);

CREATE FUNCTION wallet.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on wallet.% is refused: the ledger only grows', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER transfers_are_immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON wallet.transfer
    FOR EACH STATEMENT EXECUTE FUNCTION wallet.refuse_change();
CREATE TRIGGER accounts_stay BEFORE DELETE OR TRUNCATE ON wallet.account
    FOR EACH STATEMENT EXECUTE FUNCTION wallet.refuse_change();
CREATE TRIGGER account_names_are_immutable BEFORE UPDATE ON wallet.account FOR EACH ROW
    WHEN ((OLD.id, OLD.name, OLD.kind, OLD.currency) IS DISTINCT FROM (NEW.id, NEW.name, NEW.kind, NEW.currency))
    EXECUTE FUNCTION wallet.refuse_change();

-- No statement may make or lose money: what it adds to the accounts of each currency is zero.
CREATE FUNCTION wallet.sum_stays_zero() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    broken text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT currency INTO broken FROM after GROUP BY currency HAVING sum(balance) <> 0 LIMIT 1;
    ELSE
        SELECT currency INTO broken FROM (
            SELECT currency, balance FROM after UNION ALL SELECT currency, -balance FROM before
        ) AS change GROUP BY currency HAVING sum(balance) <> 0 LIMIT 1;
    END IF;
    IF broken IS NOT NULL THEN
        RAISE EXCEPTION 'the accounts of % would no longer sum to zero', broken USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER new_accounts_sum_to_zero AFTER INSERT ON wallet.account
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION wallet.sum_stays_zero();
CREATE TRIGGER accounts_sum_to_zero AFTER UPDATE ON wallet.account
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION wallet.sum_stays_zero();

-- Make a batch of transfers, each by itself, in the order given; one row an order, in that order.
--
-- settled: the money has moved, now or at an earlier call. recorded: the answer stands in wallet.transfer and is
-- final; KEY_REUSED (other content under a known key) is the one answer that is not recorded. fresh: this call did it.
--
-- Accounts are made before any is locked, in the order of their names, then locked in the order of their ids: two
-- batches never wait for each other in a circle. Known keys are read after the locks are held, so that whoever
-- asks twice at once waits and finds the first answer. A key that two callers use at once for different accounts
-- fails one of the batches with unique_violation as a whole; called again, it answers KEY_REUSED.
CREATE FUNCTION wallet.transfer_batch(
    keys text[], payers text[], payees text[], amounts bigint[], currencies text[], purposes text[], actors text[]
) RETURNS TABLE (
    id bigint, at bigint, refusal text, settled boolean, recorded boolean, fresh boolean,
    payer_balance bigint, payee_balance bigint
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- One plan for ever, by index: never a plan that was good while the table was small.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    most CONSTANT bigint := 1000000000000000;        -- largest balance of the room's own accounts
    outside CONSTANT bigint := 1000000000000000000;  -- how far world and issuance may run below zero
    count CONSTANT integer := cardinality(keys);
    account_ids bigint[];
    account_names text[];
    account_kinds text[];
    account_currencies text[];
    balances bigint[];
    moved bigint[];
    hashes bytea[];
    ids bigint[] := array_fill(NULL::bigint, ARRAY[count]);
    ats bigint[] := ids;
    payer_balances bigint[] := ids;
    payee_balances bigint[] := ids;
    refusals text[] := array_fill(NULL::text, ARRAY[count]);
    made boolean[] := array_fill(false, ARRAY[count]);
    asked record;
    clock bigint;
    room bigint;
    why text;
BEGIN
    IF count NOT BETWEEN 1 AND 256 THEN
        RAISE EXCEPTION 'a batch has 1 to 256 orders, not %', count USING ERRCODE = 'invalid_parameter_value';
    END IF;

    -- Escrow takes the currency of the first order that names it.
    INSERT INTO wallet.account (name, kind, currency)
    SELECT wanted.name, wallet.account_kind(wanted.name), coalesce(substring(wanted.name FROM '/(eur|credit)$'), wanted.currency)
    FROM (
        SELECT DISTINCT ON (side.name) side.name, side.currency
        FROM (
            SELECT o.payer AS name, o.currency, o.ord FROM unnest(payers, currencies) WITH ORDINALITY AS o(payer, currency, ord)
            UNION ALL
            SELECT o.payee, o.currency, o.ord FROM unnest(payees, currencies) WITH ORDINALITY AS o(payee, currency, ord)
        ) AS side
        WHERE NOT EXISTS (SELECT FROM wallet.account AS known WHERE known.name = side.name)
        ORDER BY side.name, side.ord
    ) AS wanted
    ORDER BY wanted.name
    ON CONFLICT (name) DO NOTHING;

    SELECT array_agg(held.id), array_agg(held.name), array_agg(held.kind), array_agg(held.currency),
           array_agg(held.balance), array_agg(held.moved_at)
    INTO account_ids, account_names, account_kinds, account_currencies, balances, moved
    FROM (
        SELECT account.id, account.name, account.kind, account.currency, account.balance, account.moved_at
        FROM wallet.account WHERE account.name = ANY (payers || payees)
        ORDER BY account.id FOR NO KEY UPDATE
    ) AS held;

    clock := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    SELECT array_agg(sha256(convert_to(
        o.payer || E'\n' || o.payee || E'\n' || o.amount || E'\n' || o.currency || E'\n' || o.purpose, 'UTF8'))
        ORDER BY o.ord)
    INTO hashes
    FROM unnest(payers, payees, amounts, currencies, purposes)
        WITH ORDINALITY AS o(payer, payee, amount, currency, purpose, ord);

    FOR asked IN
        SELECT o.ord::integer AS ord, o.amount, o.currency,
               array_position(account_names, o.payer) AS payer, array_position(account_names, o.payee) AS payee,
               min(o.ord) OVER (PARTITION BY o.key)::integer AS first,
               known.id, known.hash, known.refusal, known.at, known.payer_balance, known.payee_balance
        FROM unnest(keys, payers, payees, amounts, currencies)
            WITH ORDINALITY AS o(key, payer, payee, amount, currency, ord)
        LEFT JOIN wallet.transfer AS known ON known.key = o.key
        ORDER BY o.ord
    LOOP
        IF coalesce(asked.hash, hashes[asked.first]) <> hashes[asked.ord] THEN
            refusals[asked.ord] := 'KEY_REUSED';
        ELSIF asked.id IS NOT NULL THEN
            ids[asked.ord] := asked.id;
            ats[asked.ord] := asked.at;
            refusals[asked.ord] := asked.refusal;
            payer_balances[asked.ord] := asked.payer_balance;
            payee_balances[asked.ord] := asked.payee_balance;
        ELSIF asked.first < asked.ord THEN
            ids[asked.ord] := ids[asked.first];
            ats[asked.ord] := ats[asked.first];
            refusals[asked.ord] := refusals[asked.first];
            payer_balances[asked.ord] := payer_balances[asked.first];
            payee_balances[asked.ord] := payee_balances[asked.first];
        ELSE
            why := CASE
                WHEN account_currencies[asked.payer] <> asked.currency OR account_currencies[asked.payee] <> asked.currency
                    THEN 'CURRENCY_MISMATCH'
                WHEN account_kinds[asked.payer] IN ('world', 'issuance') THEN
                    CASE WHEN balances[asked.payer] - asked.amount < -outside THEN 'BALANCE_TOO_LARGE' END
                WHEN balances[asked.payer] < asked.amount THEN 'NO_MONEY'
            END;
            room := CASE WHEN account_kinds[asked.payee] IN ('world', 'issuance') THEN outside ELSE most END;
            IF why IS NULL AND asked.amount > room - balances[asked.payee] THEN
                why := 'BALANCE_TOO_LARGE';
            END IF;
            IF why IS NULL THEN
                balances[asked.payer] := balances[asked.payer] - asked.amount;
                balances[asked.payee] := balances[asked.payee] + asked.amount;
            END IF;
            ids[asked.ord] := nextval('wallet.transfer_id');
            ats[asked.ord] := greatest(clock, moved[asked.payer], moved[asked.payee]);
            moved[asked.payer] := ats[asked.ord];
            moved[asked.payee] := ats[asked.ord];
            refusals[asked.ord] := why;
            payer_balances[asked.ord] := balances[asked.payer];
            payee_balances[asked.ord] := balances[asked.payee];
            made[asked.ord] := true;
        END IF;
    END LOOP;

    IF true = ANY (made) THEN
        INSERT INTO wallet.transfer (id, key, hash, payer, payee, amount, currency, purpose, actor, at, refusal,
                                     payer_balance, payee_balance)
        SELECT o.id, o.key, o.hash, account_ids[array_position(account_names, o.payer)],
               account_ids[array_position(account_names, o.payee)], o.amount, o.currency, o.purpose, o.actor, o.at,
               o.refusal, o.payer_balance, o.payee_balance
        FROM unnest(made, ids, keys, hashes, payers, payees, amounts, currencies, purposes, actors, ats, refusals,
                    payer_balances, payee_balances)
            AS o(made, id, key, hash, payer, payee, amount, currency, purpose, actor, at, refusal,
                 payer_balance, payee_balance)
        WHERE o.made;

        UPDATE wallet.account SET balance = changed.balance, moved_at = changed.moved_at
        FROM unnest(account_ids, balances, moved) AS changed(id, balance, moved_at)
        WHERE account.id = changed.id
            AND (account.balance, account.moved_at) IS DISTINCT FROM (changed.balance, changed.moved_at);
    END IF;

    RETURN QUERY
    SELECT o.id, o.at, o.refusal, o.id IS NOT NULL AND o.refusal IS NULL, o.id IS NOT NULL, o.made,
           o.payer_balance, o.payee_balance
    FROM unnest(ids, ats, refusals, made, payer_balances, payee_balances)
        WITH ORDINALITY AS o(id, at, refusal, made, payer_balance, payee_balance, ord)
    ORDER BY o.ord;
END
$$;

REVOKE ALL ON FUNCTION wallet.transfer_batch FROM PUBLIC;
GRANT USAGE ON SCHEMA wallet TO relance_wallet, relance_audit;
GRANT SELECT ON wallet.account, wallet.transfer TO relance_wallet, relance_audit;
GRANT EXECUTE ON FUNCTION wallet.transfer_batch TO relance_wallet;
