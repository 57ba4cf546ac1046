-- Returns a row for each physical replication slot of ours that nobody uses: slot_name. Ours begin
-- with 'pgdyno_'. Since 9.6. Cost: one row a slot.
SELECT slot_name
  FROM pg_catalog.pg_replication_slots
 WHERE slot_type = 'physical'
   AND NOT active
   AND pg_catalog.strpos(slot_name::text, 'pgdyno_') = 1
