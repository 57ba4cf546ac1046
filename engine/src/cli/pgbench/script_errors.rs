//! What is wrong with a script, in pgbench's form:
//!
//! ```text
//! f.sql:3: syntax error, unexpected $end in command "set"
//! \set i 1 +
//!           ^ error found here
//! ```

use crate::program::ScriptProblem;
use crate::script::meta::line_end;

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
    let name = command[1..].split_ascii_whitespace().next().unwrap_or_default();
    if let Some(structure) = structural(message) {
        let number = number(text, begin);
        return format!("condition error in script \"{source}\" command {number}: {structure}");
    }
    let told = told(message, name);
    let line = text[..begin].matches('\n').count() + 1;
    if told.contains("must follow an SQL command") {
        return format!("{source}:{line}: {told}");
    }
    let head = format!("{source}:{line}: {told} in command \"{name}\"\n{command}");
    if told == "invalid command" || told.starts_with("missing") || told.ends_with("argument") {
        return head;
    }
    let column = text[begin..offset.clamp(begin, end)].chars().count();
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
    let before = text[..begin].lines();
    let is_command = |line: &&str| {
        let line = line.trim();
        line.starts_with('\\') || line.ends_with(';')
    };
    before.filter(is_command).count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::parser::{Strictness, parse_script};
    use crate::script::variables::Names;

    fn told(text: &str) -> String {
        let problems = parse_script("f.sql", text, &mut Names::default(), Strictness::AsPgbench).unwrap_err();
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
    fn other_problems_have_their_forms() {
        assert!(told("\\nosuch\n").starts_with("f.sql:1: invalid command in command \"nosuch\"\n"));
        assert!(told("\\sleep\n").contains("in command \"sleep\"\n\\sleep\n"));
        assert_eq!(
            "condition error in script \"f.sql\" command 1: \\if without matching \\endif",
            told("\\if 1\n")
        );
        assert_eq!("empty command list for script \"f.sql\"", told("-- nothing\n"));
    }
}
