-- Where an extension's objects are, as a quoted name; no row where it is not installed. Cheap.
select quote_ident(n.nspname)
from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = %(name)s
