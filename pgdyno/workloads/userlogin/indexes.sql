-- Each statement runs on a connection of its own. One pair of tables has the key names of 2013, several have those of 2014.
{% for shard in range(shards) %}
{% set suffix = '_%d' % shard if shards > 1 else '' %}
{% if shards == 1 %}
alter table user_info add constraint pk_user_info primary key (userid);
alter table user_session add constraint pk_user_session primary key (userid);
{% else %}
alter table user_info{{ suffix }} add primary key (userid);
alter table user_session{{ suffix }} add primary key (userid);
{% endif %}
{% endfor %}
