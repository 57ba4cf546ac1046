-- Logging in and out, once per shard, in the language asked for. Replaced before every use, so that
-- another language needs no other data.
{% for shard in range(shards) %}
{% set suffix = '_%d' % shard if shards > 1 else '' %}
drop function if exists f_user_login{{ suffix }}(int);
drop function if exists f_user_logout{{ suffix }}(int);
{% if functions == 'plpgsql' %}
create function f_user_login{{ suffix }} (
    i_userid int,
    out o_userid int,
    out o_engname text,
    out o_cnname text,
    out o_occupation text,
    out o_birthday date,
    out o_signname text,
    out o_email text,
    out o_qq numeric
) as $body$
begin
    select userid, engname, cnname, occupation, birthday, signname, email, qq
    into o_userid, o_engname, o_cnname, o_occupation, o_birthday, o_signname, o_email, o_qq
    from user_info{{ suffix }} where userid = i_userid;
    insert into user_login_rec (userid, login_time, ip) values (i_userid, now(), inet_client_addr());
    update user_session{{ suffix }} set logintime = now(), login_count = login_count + 1
    where userid = i_userid;
    return;
end;
$body$ language plpgsql;

create function f_user_logout{{ suffix }} (i_userid int, out o_result int) as $body$
begin
    insert into user_logout_rec (userid, logout_time, ip) values (i_userid, now(), inet_client_addr());
    update user_session{{ suffix }}
    set logouttime = now(), online_interval = online_interval + (now() - logintime)
    where userid = i_userid;
    o_result := 0;
    return;
exception
    when others then
        o_result := 1;
        return;
end;
$body$ language plpgsql;
{% else %}
create function f_user_login{{ suffix }} (
    i_userid int,
    out userid int,
    out engname text,
    out cnname text,
    out occupation text,
    out birthday date,
    out signname text,
    out email text,
    out qq numeric
) as $body$
    insert into user_login_rec (userid, login_time, ip) values (i_userid, now(), inet_client_addr());
    update user_session{{ suffix }} as s set logintime = now(), login_count = s.login_count + 1
    where s.userid = i_userid;
    select u.userid, u.engname, u.cnname, u.occupation, u.birthday, u.signname, u.email, u.qq
    from user_info{{ suffix }} as u where u.userid = i_userid;
$body$ language sql strict volatile;

create function f_user_logout{{ suffix }} (i_userid int) returns void as $body$
    insert into user_logout_rec (userid, logout_time, ip) values (i_userid, now(), inet_client_addr());
    update user_session{{ suffix }} as s
    set logouttime = now(), online_interval = s.online_interval + (now() - s.logintime)
    where s.userid = i_userid;
$body$ language sql strict volatile;
{% endif %}
{% endfor %}
