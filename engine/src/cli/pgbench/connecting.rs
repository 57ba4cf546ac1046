//! Where a command line leads, and sessions there: pgbench's default database, one question for a password, and libpq's
//! words for what goes wrong.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::options::Options;
use super::stop::Stop;
use super::voice::Voice;
use crate::destination::Destination;
use crate::session::{Failure, Session};
use crate::wire::conninfo::words::Words;
use crate::wire::conninfo::{ConninfoError, parse, resolve_words};
use crate::wire::target::Address;

/// What authentication says when the server wants a password and nobody gave one.
const PASSWORD_WANTED: &str = "the server asks for a password and none is known";

/// Where a command line leads.
pub struct Place {
    /// Ready to be connected to.
    pub destination: Arc<Destination>,
    /// The database's name.
    pub database: String,
}

/// A way that is known, and the first session at its end.
pub struct Arrival {
    /// Where.
    pub place: Place,
    /// A session there.
    pub session: Session,
}

/// Find out where the options lead, and open a session; where the server asks for a password, ask for it once.
///
/// # Errors
/// It was told what is wrong.
pub fn arrive(options: &Options, voice: &Voice) -> Result<Arrival, Stop> {
    let mut words = words(options, voice)?;
    loop {
        let place = place(words.clone(), voice)?;
        match open(&place.destination) {
            Ok(session) => return Ok(Arrival { place, session }),
            Err(message) => {
                let asks = message.contains(PASSWORD_WANTED) && !words.contains_key("password");
                match asks.then(ask_password).and_then(Result::ok) {
                    Some(password) => words.insert("password".into(), password),
                    None => {
                        voice.error(&message);
                        return Err(Stop::Failed);
                    }
                };
            }
        }
    }
}

/// What the options say as words of a conninfo; those of a conninfo in place of a database's name win.
fn words(options: &Options, voice: &Voice) -> Result<Words, Stop> {
    let mut words = Words::new();
    let given = [
        ("host", &options.host),
        ("port", &options.port),
        ("user", &options.user),
    ];
    for (name, value) in given {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            words.insert(name.into(), value.clone());
        }
    }
    let database = options.database.clone().unwrap_or_else(default_database);
    let is_conninfo = database.contains('=')
        || ["postgresql://", "postgres://"]
            .iter()
            .any(|scheme| database.starts_with(scheme));
    if is_conninfo {
        words.extend(parse(&database).map_err(|error| tell(voice, &[error]))?);
    } else {
        words.insert("dbname".into(), database);
    }
    words
        .entry("fallback_application_name".into())
        .or_insert_with(|| voice.program().to_owned());
    Ok(words)
}

/// PGDATABASE, else PGUSER, else the operating system's user.
fn default_database() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    variable("PGDATABASE")
        .or_else(|| variable("PGUSER"))
        .or_else(|| crate::wire::passfile::account().map(|(name, _)| name))
        .unwrap_or_default()
}

fn place(words: Words, voice: &Voice) -> Result<Place, Stop> {
    let target = resolve_words(words).map_err(|errors| tell(voice, &errors))?;
    let parameter = |wanted: &str| {
        let found = target.parameters.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let database = parameter("database");
    let destination = Destination::new(target).map_err(|errors| tell(voice, &errors))?;
    let destination = destination.look_up().map_err(|message| {
        voice.error(&untranslated(&message));
        Stop::Failed
    })?;
    Ok(Place {
        destination: Arc::new(destination),
        database,
    })
}

/// libpq's words for a host that has no address.
fn untranslated(message: &str) -> String {
    let told = message.strip_prefix("cannot find the server at ");
    let Some((host, why)) = told.and_then(|told| told.split_once(", port ")) else {
        return message.to_owned();
    };
    let why = why.rsplit(": ").next().unwrap_or_default();
    format!("could not translate host name \"{host}\" to address: {why}")
}

fn tell(voice: &Voice, errors: &[ConninfoError]) -> Stop {
    for error in errors {
        voice.error(&error.message);
        if let Some(hint) = &error.hint {
            voice.hint(hint);
        }
    }
    Stop::Failed
}

/// Open a session with the first server that will do.
///
/// # Errors
/// What every attempt was told, in libpq's words.
pub fn open(destination: &Destination) -> Result<Session, String> {
    let mut route = destination.route(0);
    let mut told: Vec<String> = Vec::new();
    loop {
        let attempt = route.attempt(&destination.possibilities);
        match Session::attempt(destination, attempt) {
            Ok(mut session) => {
                session.tell_notices(|words| eprintln!("{words}"));
                return Ok(session);
            }
            Err((failed, failure)) => {
                let address = &destination.host(attempt.place).address;
                let message = format!("{} {}", failed_at(address), reason(&failure, address));
                if !told.contains(&message) {
                    told.push(message);
                }
                if !route.advance(&destination.possibilities, failed) {
                    return Err(told.join("\n"));
                }
            }
        }
    }
}

/// `connection to server on socket "…" failed:`
pub fn failed_at(address: &Address) -> String {
    match address {
        Address::Unix(path) => {
            format!(
                "connection to server on socket \"{}\" failed:",
                path.display()
            )
        }
        Address::Tcp(host, port) => {
            let number = match host.parse::<IpAddr>() {
                Ok(_) => None,
                Err(_) => std::net::ToSocketAddrs::to_socket_addrs(&(host.as_str(), *port))
                    .ok()
                    .and_then(|mut found| found.next()),
            };
            let number = number.map_or(String::new(), |found| format!(" ({})", found.ip()));
            format!("connection to server at \"{host}\"{number}, port {port} failed:")
        }
    }
}

/// Why a client of a run could not connect: what it was told last. A server's words begin with a small letter, the
/// operating system's with a capital.
pub fn refusal(destination: &Destination, told: &str) -> String {
    let address = destination.target.hosts.first().map(|host| &host.address);
    let Some(address) = address.filter(|_| destination.target.hosts.len() == 1) else {
        return told.to_owned();
    };
    let told = told.strip_prefix(&format!("{address}: ")).unwrap_or(told);
    let sqlstate = told.starts_with(char::is_lowercase).then(String::new);
    let failure = Failure {
        sqlstate,
        ..Failure::local(told)
    };
    format!("{} {}", failed_at(address), reason(&failure, address))
}

fn reason(failure: &Failure, address: &Address) -> String {
    let message = &failure.message;
    if failure.sqlstate.is_some() {
        return format!("FATAL:  {message}");
    }
    let nobody = ["No such file or directory", "Connection refused"]
        .iter()
        .any(|reason| message.contains(reason));
    let question = match address {
        _ if !nobody => "",
        Address::Unix(_) => {
            "\n\tIs the server running locally and accepting connections on that socket?"
        }
        Address::Tcp(..) => {
            "\n\tIs the server running on that host and accepting TCP/IP connections?"
        }
    };
    format!("{message}{question}")
}

/// Ask for the password on the terminal, without showing it; where there is none, on the standard streams.
fn ask_password() -> io::Result<String> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let mut password = String::new();
    match terminal {
        Ok(mut terminal) => {
            terminal.write_all(b"Password: ")?;
            let hidden = Hidden::begin(terminal.as_raw_fd());
            BufReader::new(&terminal).read_line(&mut password)?;
            drop(hidden);
            terminal.write_all(b"\n")?;
        }
        Err(_) => {
            eprint!("Password: ");
            io::stdin().read_line(&mut password)?;
        }
    }
    password.truncate(password.trim_end_matches(['\r', '\n']).len());
    Ok(password)
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Hidden {
    terminal: i32,
    before: Option<libc::termios>,
}

impl Hidden {
    fn begin(terminal: i32) -> Self {
        // SAFETY: termios is plain data for which zero is valid, and the pointers are to variables of ours.
        let before = unsafe {
            let mut settings: libc::termios = std::mem::zeroed();
            if libc::tcgetattr(terminal, &raw mut settings) == 0 {
                let silent = libc::termios {
                    c_lflag: settings.c_lflag & !libc::ECHO,
                    ..settings
                };
                libc::tcsetattr(terminal, libc::TCSAFLUSH, &raw const silent);
                Some(settings)
            } else {
                None
            }
        };
        Self { terminal, before }
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: the pointer is to a variable of ours, which holds what the terminal had.
            unsafe { libc::tcsetattr(self.terminal, libc::TCSAFLUSH, &raw const *before) };
        }
    }
}
