-- Returns one row: checkpoints, and who wrote buffers out (counted in blocks).
-- Since 17: pg_stat_checkpointer has the checkpoints, pg_stat_io the writes and fsyncs of everybody else.
-- Cost: a few rows of shared statistics, one hundred or so for pg_stat_io.
SELECT c.num_timed AS checkpoints_timed,
       c.num_requested AS checkpoints_requested,
       c.write_time AS checkpoint_write_time_ms,
       c.sync_time AS checkpoint_sync_time_ms,
       c.buffers_written AS checkpoint_buffers,
       b.buffers_clean AS cleaner_buffers,
       b.maxwritten_clean AS cleaner_stops,
       io.writes AS backend_buffers,
       io.fsyncs AS backend_fsyncs,
       b.buffers_alloc AS buffers_allocated
  FROM pg_catalog.pg_stat_checkpointer AS c
 CROSS JOIN pg_catalog.pg_stat_bgwriter AS b
 CROSS JOIN (SELECT coalesce(sum(writes), 0)::bigint AS writes,
                    coalesce(sum(fsyncs), 0)::bigint AS fsyncs
               FROM pg_catalog.pg_stat_io
              WHERE object = 'relation'
                AND backend_type NOT IN ('checkpointer', 'background writer')) AS io
