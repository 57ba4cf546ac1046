-- All users are alike but for their number. crt_time is fixed, so that the data are the same each time.
{% for shard in range(shards) %}
{% set suffix = '_%d' % shard if shards > 1 else '' %}
{% set before = shard * users // shards %}
{% set rows = (shard + 1) * users // shards - before %}
{% set userid = ':userid' if before else ':row' %}
-- section user_info{{ suffix }}: {{ rows }} rows
COPY user_info{{ suffix }} (userid, engname, cnname, occupation, birthday, signname, email, qq, crt_time, mod_time) FROM STDIN;
{% if before %}
\set userid :row + {{ before }}
{% endif %}
{{ userid }}	digoal.zhou	德哥	DBA	1970-01-01	公益是一辈子的事, I'm Digoal.Zhou, Just do it!	digoal@126.com	276732431	2013-03-28 15:52:44	\N
\.

-- section user_session{{ suffix }}: {{ rows }} rows
COPY user_session{{ suffix }} (userid) FROM STDIN;
{% if before %}
\set userid :row + {{ before }}
{% endif %}
{{ userid }}
\.

{% endfor %}
