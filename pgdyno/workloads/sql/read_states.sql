-- What pgdyno loaded here: a row for each workload's data. Cheap.
select workload, digest, identity, complete, table_names, table_oids::bigint[] as table_oids
from pgdyno.state
