//! `\if`, `\elif`, `\else`, `\endif`: each finds the command to go on with.

use super::command::{Action, Command, Meta};
use super::problem::Fault;

/// A conditional whose `\endif` has not come.
struct Open {
    begin: usize,
    /// The command whose "when false" target is still unknown.
    undecided: Option<usize>,
    /// Commands that go to the `\endif` after a branch was taken.
    leaving: Vec<usize>,
    has_else: bool,
}

/// Fill in the targets of all branches; gives the faults of their structure.
pub fn resolve_branches(commands: &mut [Command]) -> Vec<Fault> {
    let mut open: Vec<Open> = Vec::new();
    let mut faults = Vec::new();
    for index in 0..commands.len() {
        let offset = commands[index].offset;
        let Action::Meta(meta) = &commands[index].action else {
            continue;
        };
        let (name, is_else) = match meta {
            Meta::If(..) => {
                open.push(Open {
                    begin: index,
                    undecided: Some(index),
                    leaving: Vec::new(),
                    has_else: false,
                });
                continue;
            }
            Meta::Elif(..) => ("elif", false),
            Meta::Else(_) => ("else", true),
            Meta::Endif => {
                match open.pop() {
                    Some(closed) => close(commands, closed, index),
                    None => faults.push(Fault::new(offset, "\\endif without matching \\if")),
                }
                continue;
            }
            _ => continue,
        };
        match open.last_mut() {
            None => faults.push(Fault::new(
                offset,
                format!("\\{name} without matching \\if"),
            )),
            Some(current) if current.has_else => {
                faults.push(Fault::new(offset, format!("\\{name} after \\else")));
            }
            Some(current) => {
                let undecided = current.undecided.replace(index);
                current.leaving.push(index);
                current.has_else = is_else;
                if is_else {
                    current.undecided = None;
                }
                if let Some(command) = undecided {
                    set_otherwise(&mut commands[command], index);
                }
            }
        }
    }
    for unclosed in open {
        let offset = commands[unclosed.begin].offset;
        faults.push(Fault::new(offset, "\\if without matching \\endif"));
    }
    faults
}

/// All commands of a conditional learn where its `\endif` is.
fn close(commands: &mut [Command], closed: Open, endif: usize) {
    if let Some(command) = closed.undecided {
        set_otherwise(&mut commands[command], endif);
    }
    for command in closed.leaving {
        if let Action::Meta(Meta::Elif(_, _, end) | Meta::Else(end)) = &mut commands[command].action
        {
            *end = endif;
        }
    }
}

/// Where to go on when a condition is false.
fn set_otherwise(command: &mut Command, target: usize) {
    if let Action::Meta(Meta::If(_, otherwise) | Meta::Elif(_, otherwise, _)) = &mut command.action
    {
        *otherwise = target;
    }
}
