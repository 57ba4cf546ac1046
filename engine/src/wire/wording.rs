//! A server's error or notice in libpq's words: what people and scripts know from psql and pgbench.
//!
//! ```text
//! ERROR:  relation "t" does not exist
//! LINE 1: SELECT * FROM t
//!                       ^
//! HINT:  …
//! ```

use super::message::ServerError;

/// Characters of a statement's line that are shown at most.
const SHOWN_CHARS: usize = 60;
/// Characters that remain to the right of the place of an error.
const KEPT_RIGHT_CHARS: usize = 10;

/// What kind of message it is: only errors tell their context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// ErrorResponse.
    Error,
    /// NoticeResponse.
    Notice,
}

/// All lines of a message, without a newline at the end; `sql` is the statement a position points into.
pub fn wording(message: &ServerError<'_>, sql: Option<&str>, told: Told) -> String {
    let field = |letter: u8| String::from_utf8_lossy(message.field(letter)).into_owned();
    let severity = match field(b'S') {
        translated if translated.is_empty() => field(b'V'),
        translated => translated,
    };
    let mut text = format!("{severity}:  {}", message.text());
    let (position, internal_query) = (field(b'P'), field(b'q'));
    let pointed_at = match (position.parse().ok(), sql) {
        (Some(position), Some(sql)) => Some((sql, position)),
        (Some(_), None) => {
            text.push_str(&format!(" at character {position}"));
            None
        }
        (None, _) => field(b'p')
            .parse()
            .ok()
            .map(|position| (internal_query.as_str(), position)),
    };
    if let Some(place) = pointed_at.and_then(|(query, position)| place(query, position)) {
        text.push_str(&place);
    }
    let mut add = |label: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("\n{label}:  {value}"));
        }
    };
    add("DETAIL", &field(b'D'));
    add("HINT", &field(b'H'));
    add("QUERY", &internal_query);
    if told == Told::Error {
        add("CONTEXT", &field(b'W'));
    }
    text
}

/// The line of the `position`th character (from 1) and a mark below it, cut so that the place can be seen. None when
/// the text has no such place.
fn place(query: &str, position: usize) -> Option<String> {
    let shown = |c: char| if c == '\t' { ' ' } else { c };
    let chars: Vec<char> = query.chars().map(shown).collect();
    let at = position.checked_sub(1).filter(|&at| at <= chars.len())?;
    let ends_line = |&c: &char| c == '\n' || c == '\r';
    let before = &chars[..at];
    let begin = before
        .iter()
        .rposition(ends_line)
        .map_or(0, |newline| newline + 1);
    let end = chars[at..]
        .iter()
        .position(ends_line)
        .map_or(chars.len(), |length| at + length);
    // A carriage return and the newline after it are one end of a line.
    let single = |(index, c): (usize, &char)| match c {
        '\n' => true,
        '\r' => chars.get(index + 1) != Some(&'\n'),
        _ => false,
    };
    let line = 1 + before
        .iter()
        .enumerate()
        .filter(|&pair| single(pair))
        .count();
    let (mut first, mut last) = (begin, end);
    if end - begin > SHOWN_CHARS {
        if begin + SHOWN_CHARS >= at + KEPT_RIGHT_CHARS {
            last = begin + SHOWN_CHARS;
        } else {
            last = end.min(at + KEPT_RIGHT_CHARS);
            first = begin.max(last.saturating_sub(SHOWN_CHARS));
        }
    }
    let dots = |cut: bool| if cut { "..." } else { "" };
    let head = format!("LINE {line}: {}", dots(first > begin));
    let body: String = chars[first..last].iter().collect();
    let mark = " ".repeat(head.chars().count() + at - first);
    Some(format!("\n{head}{body}{}\n{mark}^", dots(last < end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn worded(body: &[u8], sql: Option<&str>, told: Told) -> String {
        wording(&ServerError::new(body), sql, told)
    }

    #[test]
    fn an_error_tells_its_place_and_everything_else() {
        let body = b"SERROR\0VERROR\0C42P01\0Mrelation \"t\" does not exist\0P15\0Dd\0Hh\0Wc\0\0";
        assert_eq!(
            "ERROR:  relation \"t\" does not exist\nLINE 1: SELECT * FROM t\n                      ^\n\
             DETAIL:  d\nHINT:  h\nCONTEXT:  c",
            worded(body, Some("SELECT * FROM t"), Told::Error)
        );
        assert_eq!(
            "ERROR:  relation \"t\" does not exist at character 15\nDETAIL:  d\nHINT:  h",
            worded(body, None, Told::Notice)
        );
    }

    #[test]
    fn an_inner_query_is_told() {
        let body = b"SERROR\0C42601\0Msyntax error\0p3\0qx\n y\0WPL/pgSQL function f()\0\0";
        assert_eq!(
            "ERROR:  syntax error\nLINE 2:  y\n        ^\nQUERY:  x\n y\nCONTEXT:  PL/pgSQL function f()",
            worded(body, Some("select f()"), Told::Error)
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let line: String = ('a'..='z').cycle().take(150).collect();
        // As psql 15 shows them.
        assert_eq!(
            format!("\nLINE 1: {}...\n            ^", &line[..60]),
            place(&line, 5).unwrap()
        );
        assert_eq!(
            format!("\nLINE 1: ...{}...\n{}^", &line[49..109], " ".repeat(61)),
            place(&line, 100).unwrap()
        );
        assert_eq!(
            format!("\nLINE 2: ...{}\n{}^", &line[90..150], " ".repeat(70)),
            place(&format!("x\r\n{line}"), 153).unwrap()
        );
    }

    proptest! {
        #[test]
        fn any_place_is_fine(query in "[a-zä\\n\\r\\t]{0,200}", position in 0_usize..300) {
            let shown = place(&query, position);
            prop_assert_eq!(position == 0 || position > query.chars().count() + 1, shown.is_none());
        }
    }
}
