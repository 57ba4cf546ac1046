-- Whether anything was ever loaded here by pgdyno. Cheap.
select to_regclass('pgdyno.state') is not null as exists
