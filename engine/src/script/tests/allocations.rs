//! Nothing is allocated for a transaction once buffers have grown: counted by `crate::allocations`.

use std::sync::Arc;

use super::running::plan;
use crate::allocations::on_this_thread;
use crate::plan::Protocol;
use crate::program::{Completion, Language, Program, StatementId, Step};
use crate::script::language::ScriptLanguage;
use crate::wire::message::{Columns, Row};
use crate::wire::outgoing::{Encodings, Outgoing};

const SCRIPT: &str = "\\set aid random(1, 100000 * :scale)\n\\set share :aid / 7.0\n\
    \\set skewed random_zipfian(1, 1000, 1.1) + hash(:aid) % 10\nBEGIN;\n\
    SELECT abalance FROM a WHERE aid = :aid \\gset\n\
    \\if :abalance > 5 and :share is not null\nUPDATE a SET x = :share, y = :skewed;\n\
    \\else\nUPDATE a SET x = ':given';\n\\endif\n\\sleep 1 us\nEND;\n";

/// A RowDescription of one column `abalance`, and a DataRow of one value.
const COLUMNS: &[u8] = b"\0\x01abalance\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// One whole transaction, answered as the server would; what was sent is thrown away.
fn transaction(program: &mut dyn Program, outgoing: &mut Outgoing, balance: u8) -> u32 {
    let mut steps = 0;
    program.begin(0);
    loop {
        steps += 1;
        match program.next(outgoing) {
            Step::Request { statement } => answer(program, statement, balance),
            Step::Done => return steps,
            Step::Abort(abort) => panic!("{}", abort.message),
            _ => {}
        }
        outgoing.sync();
        while outgoing.answered().is_some() {}
        outgoing.bytes_mut().clear();
    }
}

fn answer(program: &mut dyn Program, statement: StatementId, balance: u8) {
    program.columns(statement, &Columns::new(COLUMNS).unwrap());
    let row = [0, 1, 0, 0, 0, 1, b'0' + balance];
    program.row(statement, &Row::new(&row).unwrap());
    program.complete(Completion {
        statement,
        rows: 1,
        succeeded: true,
    });
}

#[test]
fn a_transaction_allocates_nothing() {
    for (name, protocol) in [
        ("simple", Protocol::Simple),
        ("extended", Protocol::Extended),
        ("prepared", Protocol::Prepared),
    ] {
        let language = ScriptLanguage::new(&plan(name, &[(1, SCRIPT)])).unwrap();
        let wants: Vec<_> = language
            .statements()
            .iter()
            .map(|statement| statement.wants_rows)
            .collect();
        let encodings = Encodings::new(protocol, language.statements(), &wants);
        let mut outgoing = Outgoing::new(Arc::new(encodings));
        let mut program = language.program(0);
        let mut steps = 0;
        for round in 0..100 {
            steps += transaction(program.as_mut(), &mut outgoing, round % 10);
        }
        let before = on_this_thread();
        for round in 0..100 {
            steps += transaction(program.as_mut(), &mut outgoing, round % 10);
        }
        assert_eq!(on_this_thread() - before, 0, "{name}");
        assert!(steps > 200 * 9, "{steps}");
    }
}
