//! What a statement's text asks for, as far as an answer of constants needs to know it. Nothing is copied.
//!
//! Only the first word counts, and whether a data-changing statement returns rows. Texts are split at semicolons that
//! stand outside quotes, dollar quotes and comments.

/// What the null server answers to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Nothing but spaces and comments.
    Empty,
    /// The constant rows, counted in the tag.
    Select,
    /// The constant rows with this tag (`INSERT … RETURNING`).
    Returning(&'static str),
    /// One row with the value of a setting: index into `SETTINGS`.
    Show(usize),
    /// One row with the number of branches that pgbench's built-in scripts ask for at their start.
    Branches,
    /// Opens a transaction block.
    Begin,
    /// Ends it.
    Commit,
    /// Gives it up.
    Rollback,
    /// Goes back to a savepoint: the block stays open, and is healthy again.
    RollbackTo,
    /// Does nothing but say this tag.
    Command(&'static str),
    /// Something the null server refuses (COPY).
    Refused,
}

/// Settings that clients ask for: name in lower case and value. An unknown one has the last value, an empty one.
pub const SETTINGS: &[(&str, &str)] = &[
    ("synchronous_commit", "on"),
    ("server_version", super::answers::SERVER_VERSION),
    ("server_version_num", "150000"),
    ("standard_conforming_strings", "on"),
    ("transaction_read_only", "off"),
    ("default_transaction_isolation", "read committed"),
    ("transaction_isolation", "read committed"),
    ("search_path", "\"$user\", public"),
    ("max_connections", "1000000"),
    ("", ""),
];

/// What pgbench's built-in scripts ask at their start: the scale, as the number of branches, and how the accounts are
/// partitioned. A server that refuses the second is taken for an old one without partitions.
const COUNT_BRANCHES: &[u8] = b" count(*) from pgbench_branches";
const FIND_PARTITIONS: &[u8] = b" o.n, p.partstrat, pg_catalog.count(";

/// First words, and what they mean.
const WORDS: &[(&str, Statement)] = &[
    ("select", Statement::Select),
    ("update", Statement::Command("UPDATE 1")),
    ("insert", Statement::Command("INSERT 0 1")),
    ("delete", Statement::Command("DELETE 1")),
    ("merge", Statement::Command("MERGE 1")),
    ("begin", Statement::Begin),
    ("start", Statement::Begin),
    ("end", Statement::Commit),
    ("commit", Statement::Commit),
    ("rollback", Statement::Rollback),
    ("abort", Statement::Rollback),
    ("with", Statement::Select),
    ("values", Statement::Select),
    ("table", Statement::Select),
    ("execute", Statement::Select),
    ("fetch", Statement::Select),
    ("explain", Statement::Select),
    ("call", Statement::Command("CALL")),
    ("do", Statement::Command("DO")),
    ("set", Statement::Command("SET")),
    ("reset", Statement::Command("RESET")),
    ("show", Statement::Show(SETTINGS.len() - 1)),
    ("savepoint", Statement::Command("SAVEPOINT")),
    ("release", Statement::Command("RELEASE")),
    ("lock", Statement::Command("LOCK TABLE")),
    ("vacuum", Statement::Command("VACUUM")),
    ("analyze", Statement::Command("ANALYZE")),
    ("truncate", Statement::Command("TRUNCATE TABLE")),
    ("create", Statement::Command("CREATE TABLE")),
    ("drop", Statement::Command("DROP TABLE")),
    ("alter", Statement::Command("ALTER TABLE")),
    ("checkpoint", Statement::Command("CHECKPOINT")),
    ("discard", Statement::Command("DISCARD ALL")),
    ("deallocate", Statement::Command("DEALLOCATE")),
    ("prepare", Statement::Command("PREPARE")),
    ("declare", Statement::Command("DECLARE CURSOR")),
    ("close", Statement::Command("CLOSE CURSOR")),
    ("listen", Statement::Command("LISTEN")),
    ("unlisten", Statement::Command("UNLISTEN")),
    ("notify", Statement::Command("NOTIFY")),
    ("copy", Statement::Refused),
];

impl Statement {
    /// Read the text of one statement, without its semicolon.
    pub fn read(text: &[u8]) -> Self {
        let (word, rest) = first_word(text);
        if word.is_empty() {
            let text = skip_blank(text);
            // A query in parentheses is still a query; anything else without a word is refused.
            return match text.first() {
                None => Self::Empty,
                Some(b'(') => Self::Select,
                Some(_) => Self::Refused,
            };
        }
        let known = WORDS
            .iter()
            .find(|(known, _)| word.eq_ignore_ascii_case(known.as_bytes()));
        match known.map(|&(_, statement)| statement) {
            Some(Self::Command(tag)) if returns_rows(tag, rest) => Self::Returning(tag),
            Some(Self::Show(unknown)) => Self::Show(setting(first_word(rest).0, unknown)),
            Some(Self::Select) if starts_with(rest, COUNT_BRANCHES) => Self::Branches,
            Some(Self::Select) if starts_with(rest, FIND_PARTITIONS) => Self::Refused,
            Some(Self::Rollback) if goes_to_savepoint(rest) => Self::RollbackTo,
            Some(statement) => statement,
            None => Self::Command("OK"),
        }
    }

    /// Whether it answers with rows.
    pub fn has_rows(self) -> bool {
        matches!(
            self,
            Self::Select | Self::Returning(_) | Self::Show(_) | Self::Branches
        )
    }
}

/// The first statement of a text, and what follows its semicolon (None: it was the last).
pub fn split_statement(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at = match byte {
            b';' => return (&text[..at], Some(&text[at + 1..])),
            b'\'' | b'"' => end_after(text, at + 1, &[byte]),
            b'-' if text[at..].starts_with(b"--") => end_after(text, at + 2, b"\n"),
            b'/' if text[at..].starts_with(b"/*") => end_after(text, at + 2, b"*/"),
            b'$' => match dollar_tag(&text[at..]) {
                Some(tag) => end_after(text, at + tag.len(), tag),
                None => at + 1,
            },
            _ => at + 1,
        };
    }
    (text, None)
}

/// The highest number behind a `$`: how many parameters the statement has.
pub fn parameter_count(text: &[u8]) -> u16 {
    let mut highest = 0;
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'$') {
        rest = &rest[at + 1..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..digits])
            .ok()
            .and_then(|digits| digits.parse().ok());
        highest = highest.max(number.unwrap_or(0));
    }
    highest
}

/// Whether a data-changing statement has a RETURNING.
fn returns_rows(tag: &str, rest: &[u8]) -> bool {
    matches!(tag, "UPDATE 1" | "INSERT 0 1" | "DELETE 1" | "MERGE 1")
        && rest.windows(b" returning".len()).any(|part| {
            part[0].is_ascii_whitespace() && part[1..].eq_ignore_ascii_case(b"returning")
        })
}

/// Whether a text begins so, in capitals or not.
fn starts_with(text: &[u8], begin: &[u8]) -> bool {
    text.get(..begin.len())
        .is_some_and(|found| found.eq_ignore_ascii_case(begin))
}

fn goes_to_savepoint(rest: &[u8]) -> bool {
    let (word, after) = first_word(rest);
    let noise = [&b"work"[..], b"transaction"];
    let word = if noise.iter().any(|noise| word.eq_ignore_ascii_case(noise)) {
        first_word(after).0
    } else {
        word
    };
    word.eq_ignore_ascii_case(b"to")
}

fn setting(name: &[u8], unknown: usize) -> usize {
    SETTINGS
        .iter()
        .position(|(known, _)| !name.is_empty() && name.eq_ignore_ascii_case(known.as_bytes()))
        .unwrap_or(unknown)
}

/// The first word behind spaces and comments, and what follows it.
fn first_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = skip_blank(text);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = text.iter().take_while(|byte| is_part(byte)).count();
    text.split_at(length)
}

fn skip_blank(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        let end = if text.starts_with(b"--") {
            end_after(text, 2, b"\n")
        } else if text.starts_with(b"/*") {
            end_after(text, 2, b"*/")
        } else {
            return text;
        };
        text = &text[end..];
    }
}

/// Where the first `mark` at or behind `from` ends; the end of the text where there is none.
fn end_after(text: &[u8], from: usize, mark: &[u8]) -> usize {
    text[from..]
        .windows(mark.len())
        .position(|part| part == mark)
        .map_or(text.len(), |at| from + at + mark.len())
}

/// The tag that opens a dollar quote, both its dollars included; None for `$1`.
fn dollar_tag(text: &[u8]) -> Option<&[u8]> {
    let name = text[1..]
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    let opens = text.get(1 + name) == Some(&b'$') && !text[1].is_ascii_digit();
    opens.then(|| &text[..name + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_says_what_is_answered() {
        let cases: &[(&str, Statement)] = &[
            ("", Statement::Empty),
            ("  -- nothing", Statement::Empty),
            ("/* a */ SELECT 1", Statement::Select),
            ("(select 1) union (select 2)", Statement::Select),
            ("SELECT", Statement::Select),
            ("select count(*) from pgbench_branches", Statement::Branches),
            ("select count(*) from others", Statement::Select),
            (
                "select o.n, p.partstrat, pg_catalog.count(i.inhparent) from",
                Statement::Refused,
            ),
            ("selection", Statement::Command("OK")),
            ("begin isolation level serializable", Statement::Begin),
            ("END", Statement::Commit),
            ("rollback", Statement::Rollback),
            ("Rollback Work To Savepoint a", Statement::RollbackTo),
            ("rollback to a", Statement::RollbackTo),
            (
                "UPDATE t SET a = 1 WHERE b = $1",
                Statement::Command("UPDATE 1"),
            ),
            (
                "insert into t values (1)\nreturning id",
                Statement::Returning("INSERT 0 1"),
            ),
            (
                "insert into t values (1) RETURNING id",
                Statement::Returning("INSERT 0 1"),
            ),
            ("copy t from stdin", Statement::Refused),
            ("?", Statement::Refused),
        ];
        for (text, expected) in cases {
            assert_eq!(*expected, Statement::read(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn show_finds_the_setting() {
        let Statement::Show(index) = Statement::read(b"SHOW Synchronous_Commit") else {
            panic!("not a show");
        };
        assert_eq!(("synchronous_commit", "on"), SETTINGS[index]);
        let Statement::Show(index) = Statement::read(b"show something_else") else {
            panic!("not a show");
        };
        assert_eq!("", SETTINGS[index].1);
    }

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_split() {
        let text = b"select ';', \";\", $$;$$, $a$;$a$ -- ;\n /* ; */ , $1; commit";
        let (first, rest) = split_statement(text);
        assert!(first.ends_with(b"$1"), "{}", first.escape_ascii());
        assert_eq!(Some(&b" commit"[..]), rest);
        assert_eq!((&b" commit"[..], None), split_statement(rest.unwrap()));
    }

    #[test]
    fn an_open_quote_ends_with_the_text() {
        for text in [
            "select 'a;",
            "select \"a;",
            "/* ;",
            "$$ ;",
            "$a$ ; $",
            "-- ;",
            "$",
        ] {
            assert_eq!((text.as_bytes(), None), split_statement(text.as_bytes()));
        }
    }

    #[test]
    fn parameters_are_counted_by_the_highest() {
        assert_eq!(0, parameter_count(b"select 1"));
        assert_eq!(12, parameter_count(b"select $2, $12, $1 $ $"));
        assert_eq!(0, parameter_count(b"$99999999999"));
    }
}
