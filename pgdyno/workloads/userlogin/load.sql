-- All users are alike but for their number: everything else is a default (see schema.sql).
-- crt_time is fixed, so that the data are the same each time. Frozen rows need no vacuum afterwards.
{% for shard in range(shards) %}
{% set suffix = '_%d' % shard if shards > 1 else '' %}
{% set before = shard * users // shards %}
{% set rows = (shard + 1) * users // shards - before %}
{% for table in ('user_info', 'user_session') %}
-- section {{ table }}{{ suffix }}: {{ rows }} rows
COPY {{ table }}{{ suffix }} (userid) FROM STDIN WITH (FREEZE);
{% if before %}
\set userid :row + {{ before }}
:userid
{% else %}
:row
{% endif %}
\.

{% endfor %}
{% endfor %}
