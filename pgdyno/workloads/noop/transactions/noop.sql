-- Returns one row of no columns: a full round trip that does no work.
SELECT;
