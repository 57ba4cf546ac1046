-- Returns one row: checkpoints, and who wrote buffers out (counted in blocks).
-- Since 9.6 (this form to 16: the checkpointer's share moved to a view of its own in 17).
-- Cost: one row of shared statistics.
SELECT checkpoints_timed,
       checkpoints_req AS checkpoints_requested,
       checkpoint_write_time AS checkpoint_write_time_ms,
       checkpoint_sync_time AS checkpoint_sync_time_ms,
       buffers_checkpoint AS checkpoint_buffers,
       buffers_clean AS cleaner_buffers,
       maxwritten_clean AS cleaner_stops,
       buffers_backend AS backend_buffers,
       buffers_backend_fsync AS backend_fsyncs,
       buffers_alloc AS buffers_allocated
  FROM pg_catalog.pg_stat_bgwriter
