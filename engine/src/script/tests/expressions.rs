//! Expressions against the recorded output of stock pgbench (`testdata/`, one line an expression).

use std::sync::Arc;

use proptest::prelude::*;

use super::super::evaluation::{Place, Scope};
use super::super::expression::Expression;
use super::super::expression_parser::parse_expression;
use super::super::values::Value;
use super::super::variables::{Names, Variables};
use crate::random::Generator;
use crate::random::seeding::{DefaultSeed, Generators};

/// A first client of pgbench with this seed.
struct Client {
    names: Names,
    generator: Generator,
    default_seed: i64,
}

impl Client {
    fn new(seed: u64) -> Self {
        let generators = Generators::new(seed, 1, 1, DefaultSeed::Drawn);
        let (generator, default_seed) = (generators.clients[0], generators.default_seed.unwrap());
        Self {
            names: Names::default(),
            generator,
            default_seed,
        }
    }

    fn parse(&mut self, text: &str) -> Result<Expression, String> {
        parse_expression(text, (0, text.len()), &mut self.names).map_err(|fault| fault.message)
    }

    fn evaluate(&mut self, expression: &Expression) -> Result<Value, String> {
        let mut variables = Variables::new(Arc::new(self.names.clone()));
        variables.set_text_by_name("scale", b"1");
        variables.set_text_by_name("default_seed", self.default_seed.to_string().as_bytes());
        let generator = &mut self.generator;
        let mut scope = Scope {
            variables: &mut variables,
            generator,
            place: Place::default(),
        };
        scope
            .evaluate(expression)
            .map_err(|error| error.to_string())
    }
}

/// As `debug()` shows it.
fn shown(value: Value) -> String {
    let mut text = Vec::new();
    value.append_text(&mut text);
    let text = String::from_utf8(text).unwrap();
    if value == Value::Null {
        "null".to_owned()
    } else {
        format!("{} {text}", value.type_name())
    }
}

fn lines(data: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    data.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once('\t').unwrap())
}

#[test]
fn a_thousand_expressions_have_pgbenchs_values_and_errors() {
    let mut differences = Vec::new();
    for (text, printed) in lines(include_str!("../testdata/expressions.tsv")) {
        let mut client = Client::new(42);
        // Inner calls of debug() printed before: the last is the expression's own.
        let expected = printed.rsplit(" | ").next().unwrap();
        let found = match client.parse(text) {
            Err(_) => "syntax: ".to_owned(),
            Ok(expression) => match client.evaluate(&expression) {
                Ok(value) => shown(value),
                Err(message) => format!("error: {message}"),
            },
        };
        let agree = match found.as_str() {
            "syntax: " => expected.starts_with("syntax: "),
            _ => found == expected,
        };
        if !agree {
            differences.push(format!(
                "{text}\n    pgbench: {expected}\n    found:   {found}"
            ));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn five_hundred_draws_in_a_row_are_pgbenchs() {
    let mut client = Client::new(9_876_543_210);
    for (text, printed) in lines(include_str!("../testdata/draws.tsv")) {
        let expression = client.parse(text).unwrap();
        assert_eq!(
            shown(client.evaluate(&expression).unwrap()),
            printed,
            "{text}"
        );
    }
}

#[test]
fn hostile_nesting_is_an_error_and_not_a_crash() {
    for text in [
        "(".repeat(100_000),
        "-".repeat(100_000) + "1",
        "1".to_owned() + &" + 1".repeat(100_000),
        "not ".repeat(100_000) + "true",
        "1 ".to_owned() + &"is null ".repeat(100_000),
        "case when ".repeat(50_000),
        "abs(".repeat(50_000),
    ] {
        let message = Client::new(1).parse(&text).unwrap_err();
        assert!(message.contains("nests deeper"), "{message}");
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,40}") {
        let _ = Client::new(1).parse(&text);
    }

    #[test]
    fn anything_like_an_expression_is_evaluated_or_refused(
        words in prop::collection::vec(prop::sample::select(vec![
            "1", "0", "-", "+", "*", "/", "%", "(", ")", ",", "<", ">=", "=", "<<", "~", "#", ":v", "2.5",
            "null", "true", "not", "and", "or", "is", "isnull", "case", "when", "then", "else", "end",
            "random", "abs", "permute", "hash", "9223372036854775808", "9223372036854775807",
        ]), 0..12),
    ) {
        let mut client = Client::new(1);
        if let Ok(expression) = client.parse(&words.join(" ")) {
            let _ = client.evaluate(&expression);
        }
    }
}
