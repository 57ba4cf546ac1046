//! Any text as a script: commands in the order of the text, or problems with places in it; never a panic.
#![no_main]

use engine_parts::script::parser::{Strictness, parse_script};
use engine_parts::script::variables::Names;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    parse(source, Strictness::AllFaults);
    parse(source, Strictness::AsPgbench);
});

fn parse(source: &str, strictness: Strictness) {
    let mut names = Names::default();
    match parse_script("f", source, &mut names, strictness) {
        Ok(commands) => {
            assert!(!commands.is_empty());
            let mut last = 0;
            for command in &commands {
                assert!(last <= command.offset && command.offset <= source.len());
                assert!(source.is_char_boundary(command.offset));
                assert!(!command.label.contains('\n'));
                last = command.offset;
            }
            let again = parse_script("f", source, &mut names, strictness);
            let again = again.expect("it was parsed before");
            assert_eq!(commands.len(), again.len());
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                assert!(problem.line >= 1 && problem.column >= 1);
                assert!(!problem.to_string().is_empty());
            }
        }
    }
}
