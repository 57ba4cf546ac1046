-- Each statement runs on a connection of its own. One pair of tables has the key names of 2013, several have those of 2014.
-- The defaults of user_info were for loading only.
{% for shard in range(shards) %}
{% set suffix = '_%d' % shard if shards > 1 else '' %}
alter table user_info{{ suffix }}
    add {{ 'constraint pk_user_info ' if shards == 1 }}primary key (userid),
    alter engname drop default,
    alter cnname drop default,
    alter occupation drop default,
    alter birthday drop default,
    alter signname drop default,
    alter email drop default,
    alter qq drop default,
    alter crt_time drop default;
alter table user_session{{ suffix }}
    add {{ 'constraint pk_user_session ' if shards == 1 }}primary key (userid);
{% endfor %}
