//! Any text as an expression: parsed or refused with a place in it, evaluated or failed, never a panic; and what
//! was drawn once is drawn again from the same state.
#![no_main]

use std::sync::Arc;

use engine_parts::random::Generator;
use engine_parts::random::seeding::{DefaultSeed, Generators};
use engine_parts::script::evaluation::{Place, Scope};
use engine_parts::script::expression::Expression;
use engine_parts::script::expression_parser::parse_expression;
use engine_parts::script::values::Value;
use engine_parts::script::variables::{Names, Variables};
use libfuzzer_sys::fuzz_target;

/// What an expression can name; any other name is undefined.
const NAMED: [(&str, &[u8]); 6] = [
    ("a", b"7"),
    ("b", b"-0.5"),
    ("c", b"yes"),
    ("d", b"null"),
    ("e", b"abc"),
    ("default_seed", b"-1"),
];

fn evaluate(tree: &Expression, names: &Names, mut generator: Generator) -> Result<Value, String> {
    let names = Arc::new(names.clone());
    let mut variables = Variables::new(Arc::clone(&names));
    for (name, text) in NAMED {
        variables.set_text_by_name(name, text);
    }
    let mut scope = Scope {
        variables: &mut variables,
        generator: &mut generator,
        place: Place::default(),
    };
    scope.evaluate(tree).map_err(|error| error.to_string())
}

fuzz_target!(|text: &str| {
    // It would print.
    if text.to_ascii_lowercase().contains("debug") {
        return;
    }
    let mut names = Names::default();
    match parse_expression(text, (0, text.len()), &mut names) {
        Ok(tree) => {
            let generator = Generators::new(1, 1, 1, DefaultSeed::Drawn).clients[0];
            let first = evaluate(&tree, &names, generator);
            let again = evaluate(&tree, &names, generator);
            // NaN is not equal to itself: compare what is shown.
            assert_eq!(format!("{first:?}"), format!("{again:?}"));
        }
        Err(fault) => {
            let problem = fault.locate("f", text);
            assert!(problem.line >= 1 && problem.column >= 1);
            assert!(!problem.to_string().is_empty());
        }
    }
});
