//! Conninfos as libpq reads them.

use proptest::prelude::*;

use super::*;
use crate::wire::target::*;

/// A target in surroundings that are the same everywhere: user `me`, home `/of/me`, a socket in `/tmp`.
pub fn resolved(conninfo: &str, variables: &[(&str, &str)]) -> Result<Target, Vec<ConninfoError>> {
    let variable = |name: &str| {
        variables
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| v.to_string())
    };
    let surroundings = Surroundings {
        variable: &variable,
        os_user: Some("me".into()),
        home: Some("/of/me".into()),
        exists: &|path| path.starts_with("/tmp"),
    };
    resolve_in(conninfo, &surroundings)
}

fn addresses(conninfo: &str) -> Vec<String> {
    let target = resolved(conninfo, &[]).unwrap();
    target
        .hosts
        .iter()
        .map(|host| host.address.to_string())
        .collect()
}

/// What is wrong, and the advice.
fn wrong(conninfo: &str) -> Vec<(String, Option<String>)> {
    let problems = resolved(conninfo, &[]).unwrap_err();
    problems
        .into_iter()
        .map(|problem| (problem.message, problem.hint))
        .collect()
}

#[test]
fn words_and_uris_mean_the_same() {
    for (words, uri) in [
        (
            r"host=db.example port=5433 dbname='a b\'c' user=jo password=s\ t",
            "postgresql://jo:s%20t@db.example:5433/a%20b'c",
        ),
        ("host=a,b port=1,2", "postgres://a:1,b:2"),
        ("host=a,b,c port=,2,", "postgres://a,b:2,c"),
        ("host=::1,b port=5433,", "postgresql://[::1]:5433,b/"),
        ("host=/run/x dbname=d", "postgresql:///d?host=/run/x"),
        ("host=/run/x", "postgresql://%2Frun%2Fx"),
        ("sslmode=require", "postgresql://?ssl=true"),
        ("user = jo  dbname\t=\nd", "postgres://jo@/d"),
        (
            "host=h target_session_attrs=standby",
            "postgres://h?target_session_attrs=standby",
        ),
        ("host=h options='-c a=b'", "postgres://h?options=-c%20a%3Db"),
        ("user=a host='b@c'", "postgres://a@b@c"),
        ("dbname=d", "d"),
    ] {
        assert_eq!(
            resolved(words, &[]).unwrap(),
            resolved(uri, &[]).unwrap(),
            "{uri}"
        );
    }
}

#[test]
fn what_is_missing_comes_from_the_surroundings() {
    let target = resolved(
        "",
        &[
            ("PGPASSWORD", "x"),
            ("PGOPTIONS", "-c a=b"),
            ("PGSSLMODE", "disable"),
        ],
    )
    .unwrap();
    assert_eq!(
        Address::Unix("/tmp/.s.PGSQL.5432".into()),
        target.hosts[0].address
    );
    assert_eq!(
        ("me", Some("x")),
        (target.user.as_str(), target.hosts[0].password.as_deref())
    );
    assert_eq!(SslMode::Disable, target.tls.mode);
    assert!(
        target
            .parameters
            .contains(&("options".into(), "-c a=b".into()))
    );
    let both = resolved(
        "user=conninfo sslmode=allow",
        &[("PGUSER", "env"), ("PGREQUIRESSL", "1")],
    )
    .unwrap();
    assert_eq!(
        ("conninfo", SslMode::Allow),
        (both.user.as_str(), both.tls.mode)
    );
    let required = resolved("", &[("PGREQUIRESSL", "1")]).unwrap();
    assert_eq!(SslMode::Require, required.tls.mode);
}

#[test]
fn hosts_and_addresses() {
    assert_eq!(vec!["/run/x/.s.PGSQL.7"], addresses("host=/run/x port=7"));
    assert_eq!(vec!["@x/.s.PGSQL.5432"], addresses("host=@x"));
    assert_eq!(vec!["::1, port 7"], addresses("postgres://[::1]:7/"));
    assert_eq!(vec!["a, port 1", "b, port 1"], addresses("host=a,b port=1"));
    assert_eq!(
        vec!["a, port 5432", "/tmp/.s.PGSQL.5432"],
        addresses("host=a,")
    );
    let numbered = resolved("host=db.example hostaddr=127.0.0.1", &[]).unwrap();
    assert_eq!(
        (Address::Tcp("127.0.0.1".into(), 5432), "db.example"),
        (
            numbered.hosts[0].address.clone(),
            numbered.hosts[0].name.as_str()
        )
    );
}

#[test]
fn choices_are_read() {
    let target = resolved(
        "sslmode=verify-full sslrootcert=/r sslcert=/c sslkey=/k sslnegotiation=direct sslsni=0 \
         ssl_min_protocol_version=TLSv1.3 channel_binding=require target_session_attrs=prefer-standby \
         load_balance_hosts=random connect_timeout=1 keepalives=0 keepalives_idle=9 tcp_user_timeout=7 \
         require_auth=scram-sha-256,md5",
        &[],
    )
    .unwrap();
    let file = |path: &str| TlsFile {
        path: path.into(),
        named: true,
    };
    assert_eq!(
        TlsChoice {
            mode: SslMode::VerifyFull,
            negotiation: SslNegotiation::Direct,
            roots: Roots::File(file("/r")),
            certificate: Some(file("/c")),
            key: Some(file("/k")),
            revoked: Some(TlsFile {
                path: "/of/me/.postgresql/root.crl".into(),
                named: false
            }),
            server_name_sent: false,
            oldest: TlsVersion::Tls13,
            newest: TlsVersion::Tls13,
        },
        target.tls
    );
    assert_eq!(ChannelBindingChoice::Require, target.channel_binding);
    assert_eq!(SessionKind::PreferStandby, target.session_kind);
    assert_eq!(HostOrder::Random, target.host_order);
    // libpq never waits less than two seconds.
    assert_eq!(
        Some(std::time::Duration::from_secs(2)),
        target.connect_timeout
    );
    assert_eq!(
        (false, Some(9), Some(7)),
        (
            target.socket_options.keepalives,
            target.socket_options.keepalives_idle_s,
            target.socket_options.user_timeout_ms
        )
    );
    assert!(target.allowed_methods.allows(AuthenticationMethod::Md5));
    assert!(
        !target
            .allowed_methods
            .allows(AuthenticationMethod::Password)
    );
    let except = resolved("require_auth=!password,!none", &[])
        .unwrap()
        .allowed_methods;
    assert!(
        except.allows(AuthenticationMethod::Scram) && !except.allows(AuthenticationMethod::None)
    );
    let system = resolved("sslrootcert=system", &[]).unwrap().tls;
    assert_eq!(
        (SslMode::VerifyFull, Roots::System),
        (system.mode, system.roots)
    );
}

#[test]
fn what_is_wrong_is_said() {
    for (conninfo, message) in [
        ("hots=a", "conninfo has an unknown word 'hots'"),
        ("port=0", "port '0' is not a port number"),
        ("port=70000", "port '70000' is not a port number"),
        ("host=a,b port=1,2,3", "conninfo has 2 hosts and 3 ports"),
        (
            "host=a,b hostaddr=127.0.0.1",
            "conninfo has 2 hosts and 1 addresses (hostaddr)",
        ),
        (
            "hostaddr=localhost",
            "hostaddr 'localhost' is not the number of an address",
        ),
        (
            "user='x",
            "conninfo: the quote after 'user=' is never closed",
        ),
        ("a b=c", "conninfo: no '=' after 'a'"),
        ("=c", "conninfo: no '=' after ''"),
        (
            "postgresql://h/d%zz",
            "conninfo URI: 'd%zz' has a bad % sequence",
        ),
        (
            "postgresql://h/d%00",
            "conninfo URI: 'd%00' has a bad % sequence",
        ),
        ("postgresql://[::1", "conninfo URI: '[' is never closed"),
        (
            "postgresql://[::1]x",
            "conninfo URI: 'x' after ']' where a port or the end should be",
        ),
        ("postgresql://h?a", "conninfo URI: no '=' after 'a'"),
        ("sslmode=maybe", "sslmode 'maybe' is not known"),
        (
            "connect_timeout=soon",
            "connect_timeout 'soon' is not a whole number",
        ),
        (
            "sslmode=prefer sslnegotiation=direct",
            "sslnegotiation=direct is too weak with sslmode=prefer",
        ),
        (
            "sslrootcert=system sslmode=require",
            "sslrootcert=system is too weak with sslmode=require",
        ),
        (
            "gssencmode=require",
            "gssencmode=require asks for GSSAPI encryption, which is not built in",
        ),
        (
            "replication=database",
            "conninfo word 'replication' cannot be followed",
        ),
        (
            "require_auth=magic",
            "require_auth method 'magic' is not known",
        ),
        (
            "ssl_max_protocol_version=TLSv1.1",
            "ssl_max_protocol_version is older than TLSv1.2",
        ),
    ] {
        let problems = wrong(conninfo);
        assert_eq!(
            vec![message],
            problems.iter().map(|(m, _)| m.as_str()).collect::<Vec<_>>(),
            "{conninfo}"
        );
    }
}

#[test]
fn all_problems_come_at_once() {
    let problems = wrong(
        "hots=a port=0 sslmode=maybe require_auth=md5,!none service=nowhere servicefile=/nowhere",
    );
    let messages: Vec<_> = problems
        .iter()
        .map(|(message, _)| message.as_str())
        .collect();
    assert_eq!(
        vec![
            "conninfo has an unknown word 'hots'",
            "cannot read the service file /nowhere: No such file or directory",
            "port '0' is not a port number",
            "sslmode 'maybe' is not known",
            "require_auth 'md5,!none' mixes methods with and without '!'",
        ],
        messages
    );
    assert_eq!(Some("did you mean 'host'?"), problems[0].1.as_deref());
    assert_eq!(
        Some("one of disable, allow, prefer, require, verify-ca, verify-full"),
        problems[3].1.as_deref()
    );
}

#[test]
fn a_service_comes_before_the_variables_and_after_the_conninfo() {
    let file = std::env::temp_dir().join(format!("pgdyno-service-{}", std::process::id()));
    std::fs::write(&file, "[s]\nhost=service\nport=1\nuser=service\n").unwrap();
    let variables = [
        ("PGSERVICEFILE", file.to_str().unwrap()),
        ("PGSERVICE", "s"),
        ("PGPORT", "2"),
        ("PGDATABASE", "variable"),
    ];
    let target = resolved("host=conninfo", &variables);
    std::fs::remove_file(&file).unwrap();
    let target = target.unwrap();
    assert_eq!("conninfo, port 1", target.hosts[0].address.to_string());
    assert_eq!(
        ("service", "variable"),
        (target.user.as_str(), target.parameters[1].1.as_str())
    );
}

#[test]
fn a_password_file_is_looked_at_host_by_host() {
    use std::os::unix::fs::PermissionsExt;
    let file = std::env::temp_dir().join(format!("pgdyno-passfile-{}", std::process::id()));
    std::fs::write(
        &file,
        "a:5432:*:*:one\nb:1:d:u:two\nlocalhost:*:*:*:socket\n",
    )
    .unwrap();
    let conninfo = format!(
        "host=a,b,/tmp port=5432,1,1 dbname=d user=u passfile={}",
        file.display()
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let closed = resolved(&conninfo, &[]);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = resolved(&conninfo, &[]);
    std::fs::remove_file(&file).unwrap();
    let passwords: Vec<_> = closed
        .unwrap()
        .hosts
        .into_iter()
        .map(|host| host.password)
        .collect();
    assert_eq!(
        ["one", "two", "socket"]
            .map(|one| Some(one.to_string()))
            .to_vec(),
        passwords
    );
    let open = open.unwrap();
    assert_eq!(None, open.hosts[0].password);
    assert!(
        open.passfile_problem
            .unwrap()
            .contains("others may read it")
    );
}

#[test]
fn a_password_is_never_shown() {
    assert!(!format!("{:?}", resolved("password=geheim", &[]).unwrap()).contains("geheim"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}|postgresql://.{0,80}") {
        let _ = resolved(&text, &[]);
    }
}
