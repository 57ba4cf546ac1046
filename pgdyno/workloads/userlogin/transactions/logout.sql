{% set suffix = '_%d' % shard if shards > 1 else '' %}
\set userid random({{ shard * users // shards + 1 }}, {{ (shard + 1) * users // shards }})
SELECT f_user_logout{{ suffix }}(:userid);
