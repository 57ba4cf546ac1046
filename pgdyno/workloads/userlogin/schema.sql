-- Users and their sessions, one pair of tables per shard, and the log tables that all share.
-- The defaults of user_info are there for loading only: the server fills in what is the same for
-- every user instead of parsing it two million times. indexes.sql drops them.
{% for shard in range(shards) %}
{% set suffix = '_%d' % shard if shards > 1 else '' %}
create table user_info{{ suffix }} (
    userid int,
    engname text default 'digoal.zhou',
    cnname text default '德哥',
    occupation text default 'DBA',
    birthday date default '1970-01-01',
    signname text default '公益是一辈子的事, I''m Digoal.Zhou, Just do it!',
    email text default 'digoal@126.com',
    qq numeric default 276732431,
    crt_time timestamp without time zone default '2013-03-28 15:52:44',
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
