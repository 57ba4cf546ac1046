//! `\setshell` and `\shell`: a command for the system's shell, waited for. It holds up the whole
//! thread.

use std::process::{Command, Stdio};

use super::command::Word;
use super::variables::Variables;

/// Longest command, as in pgbench.
const COMMAND_BYTES_MAX: usize = 255;

/// Put the words of a command together.
///
/// # Errors
/// Undefined variables, and commands that are too long.
fn command_line(words: &[Word], variables: &Variables) -> Result<String, String> {
    let mut line = Vec::new();
    for word in words {
        if !line.is_empty() {
            line.push(b' ');
        }
        match word {
            Word::Literal(text) => line.extend_from_slice(text.as_bytes()),
            Word::Variable(slot) => {
                if !variables.append_text(*slot, &mut line) {
                    let name = variables.names().name(*slot);
                    let program = String::from_utf8_lossy(&line);
                    return Err(format!(
                        "{}: undefined variable \":{name}\"",
                        first(&program)
                    ));
                }
            }
        }
    }
    if line.len() > COMMAND_BYTES_MAX {
        return Err(format!(
            "shell command is too long (maximum is {COMMAND_BYTES_MAX} bytes)"
        ));
    }
    String::from_utf8(line).map_err(|_| "shell command is not valid UTF-8".to_owned())
}

/// The program a command runs.
fn first(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// Run a command for its effect.
///
/// # Errors
/// A command that cannot be started, or ends with another status than 0.
pub fn run(words: &[Word], variables: &Variables) -> Result<(), String> {
    let line = command_line(words, variables)?;
    let status = Command::new("/bin/sh").arg("-c").arg(&line).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) | Err(_) => Err(format!("{}: could not launch shell command", first(&line))),
    }
}

/// Run a command for the integer it prints.
///
/// # Errors
/// As [`run`], and output that is not an integer of 32 bits.
pub fn integer(words: &[Word], variables: &Variables) -> Result<i64, String> {
    let line = command_line(words, variables)?;
    let output = Command::new("/bin/sh")
        .arg("-c")
        .arg(&line)
        .stderr(Stdio::inherit())
        .output();
    let output = output.map_err(|_| format!("{}: could not launch shell command", first(&line)))?;
    if output.stdout.is_empty() {
        let program = first(&line);
        return Err(format!("{program}: could not read result of shell command"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().next().unwrap_or_default().trim();
    match answer.parse::<i32>() {
        Ok(number) => Ok(i64::from(number)),
        Err(_) => Err(format!(
            "{}: shell command must return an integer (not \"{answer}\")",
            first(&line)
        )),
    }
}
