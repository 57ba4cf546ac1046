-- Log rows beside the logins that sessions have counted, one row of one snapshot.
select
    (select count(*) from user_login_rec) as login_rows,
    (select count(*) from user_logout_rec) as logout_rows,
    sum(logins) as login_count
from (
    {% for shard in range(shards) %}
    {% set suffix = '_%d' % shard if shards > 1 else '' %}
    {{ 'union all ' if shard }}select coalesce(sum(login_count), 0) as logins from user_session{{ suffix }}
    {% endfor %}
) s
