-- Before data we loaded is used again: the logs begin empty.
truncate user_login_rec, user_logout_rec;
