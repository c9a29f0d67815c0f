-- Limits that hold a player back: deposit limits and self-exclusion. The ledger itself refuses, under the account's lock,
-- so no two deposits at once pass a limit together, and a buy-in that comes after an exclusion is refused for good.

ALTER TABLE wallet.account ADD COLUMN excluded_until bigint NOT NULL DEFAULT 0;

ALTER TABLE wallet.transfer DROP CONSTRAINT transfer_refusal_check;
ALTER TABLE wallet.transfer ADD CONSTRAINT transfer_refusal_check CHECK (
    refusal IN ('NO_MONEY', 'BALANCE_TOO_LARGE', 'CURRENCY_MISMATCH', 'SELF_EXCLUDED', 'DEPOSIT_LIMIT'));

-- Every exclusion that was asked for. until: microseconds since 1970 UTC; the largest bigint: for good.
CREATE TABLE wallet.exclusion (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    player   text COLLATE "C" NOT NULL,
    until    bigint NOT NULL,
    asked_at bigint NOT NULL,
    actor    text NOT NULL
);
CREATE INDEX exclusion_by_player ON wallet.exclusion (player);

-- Every limit on deposits that was ever set. In force is the one that was set last of those whose time has come: a
-- lower one set after a higher one that still waits has the last word. amount NULL: no limit.
CREATE TABLE wallet.deposit_limit (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    player text COLLATE "C" NOT NULL CHECK (player ~ '^[a-z0-9-]{1,40}$'),
    days   integer NOT NULL CHECK (days IN (1, 7, 30)),
    amount bigint CHECK (amount BETWEEN 1 AND 1000000000000000),
    set_at bigint NOT NULL,
    holds_from bigint NOT NULL CHECK (holds_from >= set_at)
);
CREATE INDEX deposit_limit_by_player ON wallet.deposit_limit (player, days, id);

CREATE TRIGGER exclusions_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON wallet.exclusion
    FOR EACH STATEMENT EXECUTE FUNCTION wallet.refuse_change();
CREATE TRIGGER limits_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON wallet.deposit_limit
    FOR EACH STATEMENT EXECUTE FUNCTION wallet.refuse_change();

-- The limits in force at a moment: days, the most that may be deposited in that time, and what was deposited in it.
CREATE FUNCTION wallet.deposit_limits(account_name text, clock bigint)
RETURNS TABLE (days integer, amount bigint, deposited bigint)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT latest.days, latest.amount, (
        SELECT coalesce(sum(paid.amount), 0)::bigint
        FROM wallet.transfer AS paid
        WHERE paid.payee = (SELECT id FROM wallet.account WHERE name = account_name)
            AND paid.payer = (SELECT id FROM wallet.account WHERE name = 'world/eur')
            AND paid.refusal IS NULL AND paid.at > clock - latest.days * 86400000000
    )
    FROM (
        SELECT DISTINCT ON (l.days) l.days, l.amount FROM wallet.deposit_limit AS l
        WHERE l.player = split_part(account_name, '/', 2) AND l.holds_from <= clock
        ORDER BY l.days, l.id DESC
    ) AS latest
    WHERE latest.amount IS NOT NULL
$$;

-- What may still be deposited at a moment; without a limit more than an account can hold.
CREATE FUNCTION wallet.deposit_room(account_name text, clock bigint) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(min(amount - deposited), 1000000000000000) FROM wallet.deposit_limits(account_name, clock)
$$;

-- Exclude a player until a time, in both currencies. An exclusion is never shortened.
CREATE FUNCTION wallet.exclude(who text, until bigint, clock bigint, actor text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    names CONSTANT text[] := ARRAY['players/' || who || '/credit', 'players/' || who || '/eur'];
    held bigint;
BEGIN
    INSERT INTO wallet.account (name, kind, currency)
    SELECT name, 'player', substring(name FROM '[a-z]+$') FROM unnest(names) AS wanted(name)
    ON CONFLICT (name) DO NOTHING;
    PERFORM FROM wallet.account WHERE name = ANY (names) ORDER BY id FOR NO KEY UPDATE;
    UPDATE wallet.account SET excluded_until = greatest(excluded_until, until) WHERE name = ANY (names);
    INSERT INTO wallet.exclusion (player, until, asked_at, actor) VALUES (who, until, clock, actor);
    SELECT max(excluded_until) INTO held FROM wallet.account WHERE name = ANY (names);
    RETURN held;
END
$$;

-- The ledger's function, as it was, with the two refusals above.
CREATE OR REPLACE FUNCTION wallet.transfer_batch(
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
    excluded bigint[];
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
           array_agg(held.balance), array_agg(held.moved_at), array_agg(held.excluded_until)
    INTO account_ids, account_names, account_kinds, account_currencies, balances, moved, excluded
    FROM (
        SELECT account.id, account.name, account.kind, account.currency, account.balance, account.moved_at,
               account.excluded_until
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
                -- Who has excluded themselves brings no money to a table and none into the room; out it always goes.
                WHEN account_kinds[asked.payee] = 'escrow' AND excluded[asked.payer] > clock
                    OR account_kinds[asked.payer] IN ('world', 'issuance') AND excluded[asked.payee] > clock
                    THEN 'SELF_EXCLUDED'
                WHEN account_kinds[asked.payer] IN ('world', 'issuance') THEN
                    CASE WHEN balances[asked.payer] - asked.amount < -outside THEN 'BALANCE_TOO_LARGE' END
                WHEN balances[asked.payer] < asked.amount THEN 'NO_MONEY'
            END;
            IF why IS NULL AND account_kinds[asked.payer] = 'world' AND account_kinds[asked.payee] = 'player' THEN
                -- Deposits of this very batch are not in the table yet.
                SELECT coalesce(sum(amounts[o.ord]), 0) INTO room FROM generate_series(1, asked.ord - 1) AS o(ord)
                WHERE made[o.ord] AND refusals[o.ord] IS NULL
                    AND payees[o.ord] = payees[asked.ord] AND payers[o.ord] = payers[asked.ord];
                IF asked.amount > wallet.deposit_room(payees[asked.ord], clock) - room THEN
                    why := 'DEPOSIT_LIMIT';
                END IF;
            END IF;
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

REVOKE ALL ON FUNCTION wallet.exclude FROM PUBLIC;
GRANT EXECUTE ON FUNCTION wallet.exclude TO relance_wallet;
GRANT SELECT ON wallet.exclusion, wallet.deposit_limit TO relance_wallet, relance_audit;
GRANT INSERT ON wallet.deposit_limit TO relance_wallet;
