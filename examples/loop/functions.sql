-- Nothing but CPU time of the server: so many turns, no table, no WAL.
CREATE OR REPLACE FUNCTION turn(turns bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    sum bigint := 0;
BEGIN
    FOR i IN 1 .. turns LOOP
        sum := sum + i;
    END LOOP;
    RETURN sum;
END
$$;
