//! Whole scripts: their commands, and their problems with places.

use proptest::prelude::*;

use super::super::command::{Action, Command, Meta};
use super::super::parser::{Strictness, parse_script};
use super::super::variables::Names;

fn parse(source: &str) -> Result<Vec<Command>, Vec<String>> {
    parse_script(
        "f.sql",
        source,
        &mut Names::default(),
        Strictness::AllFaults,
    )
    .map_err(|problems| problems.iter().map(|problem| problem.to_string()).collect())
}

fn labels(source: &str) -> Vec<String> {
    parse(source)
        .unwrap()
        .into_iter()
        .map(|command| command.label)
        .collect()
}

/// The first lines of all problems.
fn problems(source: &str) -> Vec<String> {
    let found = parse(source).unwrap_err();
    found
        .iter()
        .map(|problem| problem.lines().next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_script_of_the_seed_is_two_commands() {
    let source = "\\setrandom userid 1 2000000\nSELECT f_user_login(:userid);\n";
    assert_eq!(
        labels(source),
        [
            "\\setrandom userid 1 2000000",
            "SELECT f_user_login(:userid);"
        ]
    );
    let old = "\\setrandom userid 1 10\nBEGIN\nSELECT f(:userid)\nEND";
    assert_eq!(
        labels(old),
        [
            "\\setrandom userid 1 10",
            "BEGIN",
            "SELECT f(:userid)",
            "END"
        ]
    );
}

#[test]
fn commands_end_with_semicolons_or_backslashes() {
    let source =
        "-- a comment\nselect 1\n  as a \\gset p_\n\\set x :p_a + \\\n  1\nselect :x; select 2";
    assert_eq!(
        labels(source),
        ["select 1", "\\set x :p_a + \\", "select :x;", "select 2"]
    );
    assert_eq!(labels(";;select 1;"), [";", ";", "select 1;"]);
}

#[test]
fn branches_know_where_to_go() {
    let source = "\\if 1\nselect 1;\n\\elif 2\nselect 2;\n\\else\nselect 3;\n\\endif\n";
    let targets: Vec<_> = parse(source)
        .unwrap()
        .iter()
        .filter_map(|command| match &command.action {
            Action::Meta(Meta::If(_, otherwise)) => Some((*otherwise, 0)),
            Action::Meta(Meta::Elif(_, otherwise, end)) => Some((*otherwise, *end)),
            Action::Meta(Meta::Else(end)) => Some((0, *end)),
            _ => None,
        })
        .collect();
    assert_eq!(targets, [(2, 0), (4, 6), (0, 6)]);
}

#[test]
fn a_problem_has_its_place_and_a_caret() {
    let expected =
        "f.sql:2:13: unexpected function name (randon)\n\\set aid 1 + randon(1, 2)\n             ^";
    let found = parse("select 1;\n\\set aid 1 + randon(1, 2)\n").unwrap_err();
    assert_eq!(found, [expected.replace(":13:", ":14:")]);
}

#[test]
fn all_problems_of_a_script_are_told_at_once() {
    let source =
        "\\set 1a 5\n\\foo\n\\sleep 1.5\n\\set x (1\nselect 1;\n\\setrandom v 1\n\\sleep 1 h\n";
    assert_eq!(
        problems(source),
        [
            "f.sql:1:6: invalid variable name: \"1a\"",
            "f.sql:2:1: invalid command \\foo",
            "f.sql:3:9: unrecognized time unit, must be us, ms or s (.5)",
            "f.sql:4:10: syntax error: the expression ends too early",
            "f.sql:6:15: missing argument: the greatest value",
            "f.sql:7:10: unrecognized time unit, must be us, ms or s (h)",
        ]
    );
}

#[test]
fn problems_of_structure_are_found_before_the_start() {
    for (source, expected) in [
        ("", "f.sql:1:1: empty command list for script \"f.sql\""),
        (
            "-- nothing\n",
            "f.sql:1:1: empty command list for script \"f.sql\"",
        ),
        (
            "\\if 1\nselect 1;",
            "f.sql:1:1: \\if without matching \\endif",
        ),
        (
            "select 1;\n\\endif",
            "f.sql:2:1: \\endif without matching \\if",
        ),
        (
            "\\if 1\n\\else\n\\else\n\\endif",
            "f.sql:3:1: \\else after \\else",
        ),
        (
            "\\if 1\n\\else\n\\elif 1\n\\endif",
            "f.sql:3:1: \\elif after \\else",
        ),
        (
            "\\set x 1\n\\gset",
            "f.sql:2:1: \\gset and \\aset must follow an SQL command",
        ),
        (
            "select 1 \\gset\n\\gset",
            "f.sql:2:1: \\gset and \\aset must follow an SQL command of their own",
        ),
        (
            "select 'a;\nselect 2;",
            "f.sql:1:8: unterminated quoted string",
        ),
        (
            "\\startpipeline\nselect 1;",
            "f.sql:1:1: end of script reached with pipeline open",
        ),
        ("\\endpipeline", "f.sql:1:1: not in pipeline mode"),
        ("\\endif foo", "f.sql:1:8: unexpected argument (foo)"),
        ("\\shell", "f.sql:1:7: missing command"),
        (
            "select 1;\0",
            "f.sql:1:10: a zero byte cannot stand in a script",
        ),
    ] {
        assert_eq!(problems(source), [expected], "{source:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(source in any::<String>()) {
        let _ = parse(&source);
    }

    #[test]
    fn anything_like_a_script_is_parsed_or_refused(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "select 1", ";", "\\;", "\n", " ", "\\set x 1", "\\if 1", "\\else", "\\endif", "\\gset", "\\", "\r\n",
            "'", "\"", "$$", "$a$", "/*", "*/", "--", "(", ")", ":x", "::int", "é", "E'\\'", "\\setrandom v 1 2",
            "\\sleep 1 ms", "\\setshell v echo :x", "\\startpipeline", "\\endpipeline", "create function begin",
        ]), 0..16),
    ) {
        let source = pieces.concat();
        if let Err(found) = parse_script("f", &source, &mut Names::default(), Strictness::AsPgbench) {
            for problem in found {
                prop_assert!(problem.line >= 1 && problem.column >= 1);
                let _ = problem.to_string();
            }
        }
    }
}
