//! What is wrong with a script, in pgbench's form:
//!
//! ```text
//! f.sql:3: syntax error, unexpected $end in command "set"
//! \set i 1 +
//!           ^ error found here
//! ```

use crate::program::ScriptProblem;
use crate::script::meta::line_end;
use crate::script::sql_text::{Newline, next_piece};

/// The message of a problem in the script `text`, without the program's name.
pub fn message(problem: &ScriptProblem, text: &str) -> String {
    let ScriptProblem {
        source,
        line,
        message,
        ..
    } = problem;
    if message.starts_with("empty command list") || message.starts_with("statement has too many") {
        return message.clone();
    }
    let offset = offset(problem, text);
    let Some((begin, end)) = command_around(text, offset) else {
        return format!("{source}:{line}: {message}");
    };
    let command = text[begin..end].trim_end_matches(['\n', '\r']);
    let name = command[1..]
        .split_ascii_whitespace()
        .next()
        .unwrap_or_default();
    if let Some(structure) = structural(message) {
        // What stays open is noticed behind the last command.
        let unclosed = structure.contains("matching \\endif");
        let number = number(text, if unclosed { text.len() } else { begin });
        return format!("condition error in script \"{source}\" command {number}: {structure}");
    }
    let told = told(message, name);
    let line = text[..begin].matches('\n').count() + 1;
    if told.contains("must follow an SQL command") {
        let before = meta_before(text, begin).map(|before| format!(" ({before})"));
        return format!("{source}:{line}: {told}{}", before.unwrap_or_default());
    }
    let place = format!("{source}:{line}: {told} in command \"{name}\"");
    if name == "set" && told == "missing argument" {
        return place;
    }
    let head = format!("{place}\n{command}");
    let without_caret = told == "invalid command"
        || told.starts_with("missing")
        || told.ends_with("argument")
        || (told == "too many arguments" && name.ends_with("set"));
    if without_caret {
        return head;
    }
    let offset = offset.clamp(begin, end);
    let length = if told.contains("argument") && name != "sleep" {
        call_length(&text[offset..end])
    } else if name == "sleep" {
        1
    } else {
        token_length(&text[offset..end])
    };
    // Under the last character that was read.
    let column = text[begin..offset].chars().count() + length.saturating_sub(1);
    format!("{head}\n{}^ error found here", " ".repeat(column))
}

/// pgbench's words for a message about the command `name`.
fn told(message: &str, name: &str) -> String {
    let begins = |part| message.starts_with(part);
    if begins("syntax error") {
        "syntax error".into()
    } else if begins("invalid command") {
        "invalid command".into()
    } else if begins("missing argument") || (begins("missing command") && name == "setshell") {
        "missing argument".into()
    } else if begins("unexpected argument (") && !message.contains("must be") {
        "unexpected argument".into()
    } else if begins("too many arguments") {
        "too many arguments".into()
    } else if message.contains("must follow an SQL command") {
        format!("\\{name} must follow an SQL command")
    } else if let Some(word) = message.strip_prefix("not a whole number ") {
        format!("invalid sleep time, must be an integer {word}")
    } else {
        message.to_owned()
    }
}

/// Branches that do not fit together.
fn structural(message: &str) -> Option<&str> {
    let told = ["without matching", "after \\else"];
    told.iter()
        .any(|part| message.contains(part))
        .then_some(message)
}

/// Byte offset of a problem.
fn offset(problem: &ScriptProblem, text: &str) -> usize {
    let lines = text.split_inclusive('\n').take(problem.line - 1);
    let line_begin: usize = lines.map(str::len).sum();
    let rest = &text[line_begin.min(text.len())..];
    let column = rest.char_indices().nth(problem.column - 1);
    line_begin + column.map_or(rest.len(), |(at, _)| at)
}

/// The backslash command that holds `offset` (or ends there): its first byte and the one after its last.
fn command_around(text: &str, offset: usize) -> Option<(usize, usize)> {
    let mut begin = text[..offset.min(text.len())]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    // A line may go on where the one before ends with a backslash.
    while begin > 0 {
        let before = text[..begin - 1].trim_end_matches('\r');
        if !before.ends_with('\\') {
            break;
        }
        begin = before.rfind('\n').map_or(0, |newline| newline + 1);
    }
    let backslash = begin + text[begin..].find('\\')?;
    let end = line_end(text, backslash);
    (backslash <= offset && offset <= end).then_some((backslash, end))
}

/// The number of the command at `begin`, from 1, counting backslash commands and the SQL between them alike.
fn number(text: &str, begin: usize) -> usize {
    let (mut offset, mut number) = (0, 1);
    while let Ok(piece) = next_piece(text, offset, Newline::Blank) {
        number += usize::from(!piece.text.is_empty());
        if piece.end >= begin || piece.end <= offset && !piece.before_backslash {
            break;
        }
        offset = piece.end;
        if piece.before_backslash {
            let end = line_end(text, piece.end);
            let captures = ["\\gset", "\\aset"]
                .iter()
                .any(|name| text[offset..end].starts_with(name));
            number += usize::from(!captures);
            offset = end;
        }
    }
    number
}

/// The backslash command that ends right before `begin`, unless it belongs to SQL itself.
fn meta_before(text: &str, begin: usize) -> Option<&str> {
    let line = text[..begin].trim_end().lines().last()?.trim_start();
    let captures = line.starts_with("\\gset") || line.starts_with("\\aset");
    (line.starts_with('\\') && !captures).then_some(line)
}

/// Characters of the word, number or operator that a text begins with.
fn token_length(text: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.') || !c.is_ascii();
    let word = text.chars().enumerate();
    let length = word
        .take_while(|&(at, c)| is_word(c) || (at == 0 && c == ':'))
        .count();
    let two = ["<=", "<>", "<<", ">=", ">>", "!="];
    match length {
        0 => 1 + usize::from(two.iter().any(|operator| text.starts_with(operator))),
        _ => length,
    }
}

/// Characters of the call that a text begins with, up to its closing parenthesis.
fn call_length(text: &str) -> usize {
    let mut open = 0_u32;
    for (at, c) in text.chars().enumerate() {
        match c {
            '(' => open += 1,
            ')' if open <= 1 => return at + 1,
            ')' => open -= 1,
            _ => {}
        }
    }
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::parser::{Strictness, parse_script};
    use crate::script::variables::Names;

    fn told(text: &str) -> String {
        let problems =
            parse_script("f.sql", text, &mut Names::default(), Strictness::AsPgbench).unwrap_err();
        message(&problems[0], text)
    }

    #[test]
    fn a_syntax_error_shows_the_whole_command() {
        let shown = told("select 1;\n\\set i 1 \\\n  + \nselect 2;\n");
        let lines: Vec<_> = shown.lines().collect();
        assert!(lines[0].starts_with("f.sql:2: syntax error"), "{shown}");
        assert!(lines[0].ends_with(" in command \"set\""), "{shown}");
        assert!(shown.contains("\\set i 1 \\\n  +"), "{shown}");
        assert!(lines.last().unwrap().ends_with("^ error found here"));
    }

    #[test]
    fn the_caret_stands_under_the_last_character_read() {
        for (command, column) in [
            ("\\set a foo(1)", 9),
            ("\\set a abs(1, (2))", 17),
            ("\\set a 1 between 2", 15),
            ("\\set a 1 = <> 2", 12),
            ("\\set a", 6),
            ("\\set a (1", 9),
            ("\\sleep 1 h", 9),
            ("\\sleep 1 h 3", 11),
            ("\\sleep abc", 7),
        ] {
            let shown = told(command);
            let caret = shown.lines().last().unwrap().find('^');
            assert_eq!(Some(column), caret, "{shown}");
        }
    }

    #[test]
    fn other_problems_have_their_forms() {
        assert!(told("\\nosuch\n").starts_with("f.sql:1: invalid command in command \"nosuch\"\n"));
        assert!(told("\\sleep\n").ends_with("in command \"sleep\"\n\\sleep"));
        assert_eq!(
            "condition error in script \"f.sql\" command 2: \\if without matching \\endif",
            told("\\if 1\n")
        );
        assert_eq!(
            "empty command list for script \"f.sql\"",
            told("-- nothing\n")
        );
    }
}
