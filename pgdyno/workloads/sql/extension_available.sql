-- Whether an extension could be installed. Cheap.
select exists (select 1 from pg_available_extensions where name = %(name)s)
