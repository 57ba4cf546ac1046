-- Users and their sessions, one pair of tables per shard, and the log tables that all share.
{% for shard in range(shards) %}
{% set suffix = '_%d' % shard if shards > 1 else '' %}
create table user_info{{ suffix }} (
    userid int,
    engname text,
    cnname text,
    occupation text,
    birthday date,
    signname text,
    email text,
    qq numeric,
    crt_time timestamp without time zone,
    mod_time timestamp without time zone
);
create table user_session{{ suffix }} (
    userid int,
    logintime timestamp(0) without time zone,
    login_count bigint default 0,
    logouttime timestamp(0) without time zone,
    online_interval interval default interval '0'
);
{% endfor %}
{% set persistence = 'unlogged ' if log_tables == 'unlogged' else '' %}
create {{ persistence }}table user_login_rec (
    userid int,
    login_time timestamp without time zone,
    ip inet
);
create {{ persistence }}table user_logout_rec (
    userid int,
    logout_time timestamp without time zone,
    ip inet
);
