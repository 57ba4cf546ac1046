//! A script from text: all its commands, or all its problems at once. Never panics, whatever the
//! text is.

use super::branches::resolve_branches;
use super::command::{Action, Command, Meta, Sql};
use super::meta::{Parsed, line_end, parse_meta};
use super::problem::{Fault, Noticed};
use super::sql_text::{Newline, next_piece};
use super::template::Template;
use super::variables::Names;
use crate::program::ScriptProblem;

/// What becomes of faults that pgbench notices only when a client comes to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// They are problems of the script.
    AllFaults,
    /// They end the client that comes to them.
    AsPgbench,
}

/// Parse one script. Variables become slots of `names`, which all scripts of a plan share.
///
/// # Errors
/// Every problem found, in the order of the text.
pub fn parse_script(
    file: &str,
    source: &str,
    names: &mut Names,
    strictness: Strictness,
) -> Result<Vec<Command>, Vec<ScriptProblem>> {
    let mut parser = Parser {
        strictness,
        source,
        names,
        commands: Vec::new(),
        faults: Vec::new(),
    };
    parser.read();
    let Parser {
        mut commands,
        mut faults,
        ..
    } = parser;
    if commands.is_empty() && faults.is_empty() {
        faults.push(Fault::new(
            0,
            format!("empty command list for script \"{file}\""),
        ));
    }
    // Branches of a script whose commands did not all parse would only give echoes.
    if faults.is_empty() {
        faults.extend(resolve_branches(&mut commands));
    }
    if faults.is_empty() && strictness == Strictness::AllFaults {
        faults.extend(check_pipelines(&commands));
    }
    if faults.is_empty() {
        return Ok(commands);
    }
    Err(faults
        .into_iter()
        .map(|fault| fault.locate(file, source))
        .collect())
}

/// Whether a script is of the age of `\setrandom`, when a line was a command.
fn newline_rule(source: &str) -> Newline {
    let uses = |line: &str| {
        line.trim_start()
            .get(..10)
            .is_some_and(|start| start.eq_ignore_ascii_case("\\setrandom"))
    };
    if source.lines().any(uses) {
        Newline::EndsCommand
    } else {
        Newline::Blank
    }
}

struct Parser<'a> {
    strictness: Strictness,
    source: &'a str,
    names: &'a mut Names,
    commands: Vec<Command>,
    faults: Vec<Fault>,
}

impl Parser<'_> {
    fn read(&mut self) {
        if let Some(offset) = self.source.find('\0') {
            self.faults
                .push(Fault::new(offset, "a zero byte cannot stand in a script"));
            return;
        }
        let newline = newline_rule(self.source);
        let mut offset = 0;
        while offset < self.source.len() {
            let piece = match next_piece(self.source, offset, newline) {
                Ok(piece) => piece,
                Err(_) if self.strictness == Strictness::AsPgbench => {
                    return self.push_rest(offset);
                }
                // Behind an open quote nothing is certain: stop here.
                Err(fault) => return self.faults.push(fault),
            };
            offset = piece.end;
            if !piece.text.is_empty() {
                let template = Template::parse(&piece.text, self.names);
                let action = Action::Sql(Sql {
                    template,
                    capture: None,
                });
                self.push(piece.begin, &piece.text, action);
            }
            if piece.before_backslash {
                offset = line_end(self.source, piece.end);
                self.meta(piece.end, offset);
            }
        }
    }

    /// Text with an open quote or comment is one command: the server says what is wrong with it.
    fn push_rest(&mut self, offset: usize) {
        let text = self.source[offset..].trim_start();
        let template = Template::parse(text, self.names);
        let action = Action::Sql(Sql {
            template,
            capture: None,
        });
        self.push(self.source.len() - text.len(), text, action);
    }

    fn push(&mut self, offset: usize, text: &str, action: Action) {
        let label = text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned();
        self.commands.push(Command {
            offset,
            label,
            action,
        });
    }

    fn meta(&mut self, begin: usize, end: usize) {
        match parse_meta(self.source, (begin, end), self.names) {
            Ok(None) => {}
            Ok(Some(Parsed::Meta(meta))) => {
                let text = &self.source[begin..end];
                self.push(begin, text, Action::Meta(meta));
            }
            Ok(Some(Parsed::Capture(capture))) => match self.commands.last_mut() {
                Some(Command {
                    action: Action::Sql(sql),
                    ..
                }) if sql.capture.is_none() => {
                    sql.capture = Some(capture);
                }
                Some(Command {
                    action: Action::Sql(_),
                    ..
                }) => {
                    self.faults.push(Fault::new(
                        begin,
                        "\\gset and \\aset must follow an SQL command of their own",
                    ));
                }
                _ => self.faults.push(Fault::new(
                    begin,
                    "\\gset and \\aset must follow an SQL command",
                )),
            },
            Err(fault)
                if self.strictness == Strictness::AsPgbench
                    && fault.noticed == Noticed::WhenRun =>
            {
                let text = &self.source[begin..end];
                let name = text[1..]
                    .split_ascii_whitespace()
                    .next()
                    .unwrap_or_default();
                let meta = Meta::Faulty(format!("{name}: {}", fault.message).into());
                self.push(begin, text, Action::Meta(meta));
            }
            Err(fault) => self.faults.push(fault),
        }
    }
}

/// Pipelines of a script without branches: opened and closed in turn, no rows wanted inside.
///
/// With branches only running the script can tell, and the program does.
fn check_pipelines(commands: &[Command]) -> Vec<Fault> {
    let mut opened = None;
    let mut faults = Vec::new();
    for command in commands {
        let offset = command.offset;
        match &command.action {
            Action::Meta(Meta::If(..)) => return Vec::new(),
            Action::Meta(Meta::StartPipeline) if opened.is_some() => {
                faults.push(Fault::new(offset, "already in pipeline mode"));
            }
            Action::Meta(Meta::StartPipeline) => opened = Some(offset),
            Action::Meta(Meta::SyncPipeline | Meta::EndPipeline) if opened.is_none() => {
                faults.push(Fault::new(offset, "not in pipeline mode"));
            }
            Action::Meta(Meta::EndPipeline) => opened = None,
            Action::Sql(Sql {
                capture: Some(_), ..
            }) if opened.is_some() => {
                faults.push(Fault::new(
                    offset,
                    "\\gset and \\aset are not allowed in pipeline mode",
                ));
            }
            _ => {}
        }
    }
    if let Some(offset) = opened {
        faults.push(Fault::new(
            offset,
            "end of script reached with pipeline open",
        ));
    }
    faults
}
