//! The null server's command line: `pgdyno-engine null-server [options]`. All problems are told at once.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use super::answers::Shape;
use super::misbehaviour::Misbehaviour;
use crate::plan::ReactorChoice;

/// What `--help` prints.
pub const HELP: &str = "\
a PostgreSQL server that answers at once with constant rows: the ceiling of any load generator on this machine

usage: pgdyno-engine null-server [options]

  --listen ADDRESS    a folder or path for a Unix socket (a folder gets .s.PGSQL.5432), or HOST:PORT on loopback,
                      port 0 for a free one; may be repeated  [default: 127.0.0.1:0]
  --threads N         threads that answer  [default: 1]
  --reactor KIND      auto, io_uring or epoll  [default: auto, which is io_uring where it works]
  --spin              threads never sleep: no client pays for waking them, and each takes a whole CPU
  --rows N            rows of a result  [default: 1]
  --row-bytes N       bytes of a row's one value  [default: 4]
  --misbehave KIND    be a bad server: close-at=STATE, half-message, slow-loris, garbage, freeze-after=N;
                      STATE: connect, startup, authentication, ready, query, parse, bind, describe, execute,
                      sync, row, complete, commit
  --json              print where it listens and what it cost as lines of JSON
  -h, --help          this text

SIGUSR1 prints what it has cost so far; SIGINT and SIGTERM end it.
";

/// A result larger than this is refused: it is made once and kept.
const RESULT_BYTES_MAX: usize = 16 << 20;
const THREADS_MAX: usize = 256;
const DEFAULT_SOCKET: &str = ".s.PGSQL.5432";

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket at this path.
    Unix(PathBuf),
    /// A loopback address.
    Tcp(SocketAddr),
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// At least one address.
    pub listen: Vec<Listen>,
    /// Threads that answer.
    pub threads: usize,
    /// How they receive and send.
    pub reactor: ReactorChoice,
    /// Whether they never sleep.
    pub spins: bool,
    /// Shape of every result.
    pub shape: Shape,
    /// None: a good server.
    pub misbehaviour: Option<Misbehaviour>,
    /// Reports as JSON.
    pub json: bool,
    /// Only the help is wanted.
    pub help: bool,
}

impl Arguments {
    /// Read the words behind `null-server`; every problem is a line.
    pub fn parse(words: &[&str]) -> Result<Self, Vec<String>> {
        let mut found = Self {
            listen: Vec::new(),
            threads: 1,
            reactor: ReactorChoice::Auto,
            spins: false,
            shape: Shape {
                rows: 1,
                row_bytes: 4,
            },
            misbehaviour: None,
            json: false,
            help: false,
        };
        let mut problems = Vec::new();
        let mut rest = words.iter().copied();
        while let Some(word) = rest.next() {
            let (option, attached) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => {
                    (option, Some(value.to_owned()))
                }
                _ => (word, None),
            };
            let mut value = || {
                attached
                    .clone()
                    .or_else(|| rest.next().map(str::to_owned))
                    .ok_or_else(|| format!("{option} needs a value"))
            };
            let taken = match option {
                "--listen" => value()
                    .and_then(|text| listen(&text))
                    .map(|at| found.listen.push(at)),
                "--threads" => value()
                    .and_then(|text| count(option, &text, 1..=THREADS_MAX))
                    .map(|n| found.threads = n),
                "--rows" => value()
                    .and_then(|text| count(option, &text, 0..=RESULT_BYTES_MAX))
                    .map(|n| found.shape.rows = n),
                "--row-bytes" => value()
                    .and_then(|text| count(option, &text, 0..=RESULT_BYTES_MAX))
                    .map(|n| found.shape.row_bytes = n),
                "--misbehave" => value()
                    .and_then(|text| text.parse())
                    .map(|kind| found.misbehaviour = Some(kind)),
                "--reactor" => value()
                    .and_then(|text| reactor(&text))
                    .map(|kind| found.reactor = kind),
                "--spin" => {
                    found.spins = true;
                    Ok(())
                }
                "--json" => {
                    found.json = true;
                    Ok(())
                }
                "-h" | "--help" => {
                    found.help = true;
                    Ok(())
                }
                _ => Err(format!("unknown option {word}")),
            };
            problems.extend(taken.err());
        }
        if found.misbehaviour.is_some() && found.reactor == ReactorChoice::IoUring {
            problems.push("--misbehave works with epoll only".into());
        }
        if found.shape.rows.saturating_mul(found.shape.row_bytes + 11) > RESULT_BYTES_MAX {
            problems.push(format!(
                "--rows × --row-bytes is above {RESULT_BYTES_MAX} bytes"
            ));
        }
        if found.listen.is_empty() {
            found
                .listen
                .push(Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 0))));
        }
        if problems.is_empty() {
            Ok(found)
        } else {
            Err(problems)
        }
    }
}

fn reactor(text: &str) -> Result<ReactorChoice, String> {
    match text {
        "auto" => Ok(ReactorChoice::Auto),
        "io_uring" => Ok(ReactorChoice::IoUring),
        "epoll" => Ok(ReactorChoice::Epoll),
        _ => Err(format!(
            "--reactor {text}: not one of auto, io_uring, epoll"
        )),
    }
}

fn count(
    option: &str,
    text: &str,
    allowed: std::ops::RangeInclusive<usize>,
) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| allowed.contains(number))
        .ok_or_else(|| {
            format!(
                "{option} {text}: not a whole number from {} to {}",
                allowed.start(),
                allowed.end()
            )
        })
}

/// A path has a slash; anything else is HOST:PORT.
fn listen(text: &str) -> Result<Listen, String> {
    if text.contains('/') {
        let path = Path::new(text);
        let path = if path.is_dir() {
            path.join(DEFAULT_SOCKET)
        } else {
            path.to_owned()
        };
        return Ok(Listen::Unix(path));
    }
    let found = text
        .to_socket_addrs()
        .ok()
        .and_then(|mut all| all.next())
        .ok_or_else(|| format!("--listen {text}: neither a path nor HOST:PORT"))?;
    // Whoever reaches it is let in: it must not be reached from elsewhere.
    if found.ip().is_loopback() {
        Ok(Listen::Tcp(found))
    } else {
        Err(format!(
            "--listen {text}: the null server listens on loopback only"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, Vec<String>> {
        Arguments::parse(words)
    }

    #[test]
    fn options_are_read_in_both_spellings() {
        let found = parse(&[
            "--listen",
            "/tmp/x.sock",
            "--listen=127.0.0.1:5433",
            "--rows=3",
            "--row-bytes",
            "100",
            "--threads",
            "2",
            "--misbehave",
            "close-at=sync",
            "--json",
            "--spin",
            "--reactor=epoll",
        ])
        .unwrap();
        assert_eq!(Listen::Unix("/tmp/x.sock".into()), found.listen[0]);
        assert_eq!(
            Listen::Tcp("127.0.0.1:5433".parse().unwrap()),
            found.listen[1]
        );
        assert_eq!(
            (3, 100, 2),
            (found.shape.rows, found.shape.row_bytes, found.threads)
        );
        assert!(found.json && found.spins && found.misbehaviour.is_some());
        assert_eq!(ReactorChoice::Epoll, found.reactor);
    }

    #[test]
    fn a_folder_gets_the_usual_name() {
        let found = parse(&["--listen", "/tmp"]).unwrap();
        assert_eq!(
            vec![Listen::Unix("/tmp/.s.PGSQL.5432".into())],
            found.listen
        );
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let problems = parse(&[
            "--threads",
            "0",
            "--rows",
            "x",
            "--listen",
            "8.8.8.8:1",
            "--speed",
            "--listen",
        ]);
        assert_eq!(5, problems.unwrap_err().len());
        let bad = parse(&["--reactor", "io_uring", "--misbehave", "garbage"]);
        assert_eq!(1, bad.unwrap_err().len());
        assert!(parse(&["--reactor", "kqueue"]).is_err());
        assert!(parse(&["--rows", "16777216", "--row-bytes", "16777216"]).is_err());
    }

    #[test]
    fn without_an_address_it_is_a_free_loopback_port() {
        assert_eq!(
            vec![Listen::Tcp("127.0.0.1:0".parse().unwrap())],
            parse(&[]).unwrap().listen
        );
    }
}
