-- Users, sessions and logins that sessions have counted, one row. Reads all sessions: about 0.2 s for 2 million.
select
    (select sum(n) from (
        {% for shard in range(shards) %}
        {% set suffix = '_%d' % shard if shards > 1 else '' %}
        {{ 'union all ' if shard }}select count(*) as n from user_info{{ suffix }}
        {% endfor %}
    ) i) as users,
    sum(n) as sessions,
    sum(logins) as login_count
from (
    {% for shard in range(shards) %}
    {% set suffix = '_%d' % shard if shards > 1 else '' %}
    {{ 'union all ' if shard }}select count(*) as n, coalesce(sum(login_count), 0) as logins from user_session{{ suffix }}
    {% endfor %}
) s
