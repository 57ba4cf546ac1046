//! Programs through the trait, with rows as the server would send them.

use std::sync::Arc;

use super::super::language::ScriptLanguage;
use crate::plan::{Plan, Protocol};
use crate::program::{Completion, Language, Program, StatementId, Step};
use crate::wire::message::{Columns, Row};
use crate::wire::outgoing::{Encodings, Outgoing};

/// A plan of scripts with these weights, in a protocol.
pub fn plan(protocol: &str, scripts: &[(u32, &str)]) -> Plan {
    let types: Vec<_> = scripts
        .iter()
        .enumerate()
        .map(|(index, (weight, script))| {
            serde_json::json!({"name": format!("t{index}"), "weight": weight, "source": "f.sql", "script": script})
        })
        .collect();
    let plan = serde_json::json!({
        "name": "x", "conninfo": "", "protocol": protocol, "clients": 3, "threads": 1, "seed": 42,
        "duration_s": 1, "variables": {"given": "text'"}, "transaction_types": types, "output_dir": "/o",
    });
    serde_json::from_value(plan).unwrap()
}

/// One client and what it sends.
struct Client {
    program: Box<dyn Program>,
    outgoing: Outgoing,
}

impl Client {
    fn new(protocol: &str, script: &str) -> Self {
        let language = ScriptLanguage::new(&plan(protocol, &[(1, script)])).unwrap();
        let wants: Vec<_> = language
            .statements()
            .iter()
            .map(|statement| statement.wants_rows)
            .collect();
        let protocol: Protocol = serde_json::from_value(protocol.into()).unwrap();
        let encodings = Encodings::new(protocol, language.statements(), &wants);
        let mut client = Self {
            program: language.program(2),
            outgoing: Outgoing::new(Arc::new(encodings)),
        };
        client.program.begin(0);
        client
    }

    /// The next step, in short.
    fn step(&mut self) -> String {
        match self.program.next(&mut self.outgoing) {
            Step::Request { .. } => format!("send {}", self.sent()),
            Step::Queued { .. } => format!("queue {}", self.sent()),
            Step::Flush { .. } => "flush".to_owned(),
            Step::Local { statement } => format!("local {}", statement.0),
            Step::Sleep { duration_ns, .. } => format!("sleep {duration_ns}"),
            Step::Done => "done".to_owned(),
            Step::Abort(abort) => format!("abort {}: {}", abort.statement.0, abort.message),
        }
    }

    /// What is readable of the bytes sent: the query, or the values bound.
    fn sent(&mut self) -> String {
        let bytes = std::mem::take(self.outgoing.bytes_mut());
        if bytes[0] == b'Q' {
            return String::from_utf8(bytes[5..bytes.len() - 1].to_vec()).unwrap();
        }
        let bind = bytes.iter().rposition(|&byte| byte == b'B').unwrap();
        let body = &bytes[bind + 5..];
        let name_end = 1 + body[1..].iter().position(|&byte| byte == 0).unwrap();
        let mut rest = &body[name_end + 3..];
        let count = u16::from_be_bytes([rest[0], rest[1]]);
        rest = &rest[2..];
        let mut values = Vec::new();
        for _ in 0..count {
            let length = i32::from_be_bytes(rest[..4].try_into().unwrap());
            rest = &rest[4..];
            if length < 0 {
                values.push("NULL".to_owned());
            } else {
                let (value, after) = rest.split_at(length as usize);
                values.push(String::from_utf8(value.to_vec()).unwrap());
                rest = after;
            }
        }
        format!("[{}]", values.join(", "))
    }

    /// The server answers with one result.
    fn answer(&mut self, statement: u32, columns: &[&str], rows: &[&[Option<&str>]]) {
        let statement = StatementId(statement);
        let mut description = (columns.len() as u16).to_be_bytes().to_vec();
        for column in columns {
            description.extend_from_slice(column.as_bytes());
            description.extend_from_slice(&[0; 19]);
        }
        self.program
            .columns(statement, &Columns::new(&description).unwrap());
        for row in rows {
            let mut body = (row.len() as u16).to_be_bytes().to_vec();
            for value in *row {
                let length = value.map_or(-1, |value| value.len() as i32);
                body.extend_from_slice(&length.to_be_bytes());
                body.extend_from_slice(value.unwrap_or_default().as_bytes());
            }
            self.program.row(statement, &Row::new(&body).unwrap());
        }
        let rows = rows.len() as u64;
        self.program.complete(Completion {
            statement,
            rows,
            succeeded: true,
        });
    }
}

#[test]
fn values_are_substituted_or_bound() {
    let script = "\\set x random(1, 100)\nselect :x, ':given', :client_id, :nope::int, :scale;";
    let mut simple = Client::new("simple", script);
    assert_eq!(simple.step(), "local 0");
    assert!(simple.step().ends_with(", 'text'', 2, :nope::int, 1;"));
    assert_eq!(simple.step(), "done");
    let mut prepared = Client::new("prepared", script);
    prepared.step();
    assert!(prepared.step().ends_with(", text', 2, NULL, 1]"));
}

#[test]
fn the_first_clients_draws_are_pgbenchs_and_a_retry_draws_them_again() {
    let language = ScriptLanguage::new(&plan(
        "simple",
        &[(1, "\\set x random(1, 100)\nselect :x;")],
    ))
    .unwrap();
    let encodings = Encodings::new(Protocol::Simple, language.statements(), &[false, false]);
    let outgoing = Outgoing::new(Arc::new(encodings));
    let mut client = Client {
        program: language.program(0),
        outgoing,
    };
    client.program.begin(0);
    let draw = |client: &mut Client| {
        client.step();
        client.step()
    };
    // What `pgbench --random-seed=42 -t 4` draws; a retry goes back one transaction.
    let drawn: Vec<_> = (0..3)
        .map(|_| {
            client.program.begin(0);
            draw(&mut client)
        })
        .collect();
    assert_eq!(
        drawn,
        ["send select 82;", "send select 82;", "send select 8;"]
    );
    client.program.rewind();
    assert_eq!(draw(&mut client), "send select 8;");
    client.program.begin(0);
    assert_eq!(draw(&mut client), "send select 38;");
}

#[test]
fn skipped_branches_are_not_run() {
    let script = "\\if :given_number\nselect 1;\n\\elif :scale = 1\nselect 2;\n\\else\nselect 3;\n\\endif\nselect 4;";
    let script = script.replace(":given_number", "0");
    let mut client = Client::new("simple", &script);
    let steps: Vec<_> = (0..7).map(|_| client.step()).collect();
    assert_eq!(
        steps,
        [
            "local 0",
            "local 2",
            "send select 2;",
            "local 4",
            "local 6",
            "send select 4;",
            "done"
        ]
    );
}

#[test]
fn nested_branches_end_where_they_should() {
    let script = "\\if 0\n\\if 1\nselect 1;\n\\endif\n\\else\n\\if 0\nselect 2;\n\\else\nselect 3;\n\\endif\n\\endif";
    let mut client = Client::new("simple", script);
    let sent: Vec<_> = (0..8)
        .map(|_| client.step())
        .filter(|step| step.starts_with("send"))
        .collect();
    assert_eq!(sent, ["send select 3;"]);
}

#[test]
fn gset_takes_the_only_row_of_the_last_result() {
    let mut client = Client::new(
        "simple",
        "select 1 as a \\; select 2 as a, null as b \\gset p_\nselect :p_a, ':p_b';",
    );
    client.step();
    client.answer(0, &["a"], &[&[Some("1")]]);
    client.answer(0, &["a", "b"], &[&[Some("2"), None]]);
    assert_eq!(client.step(), "send select 2, '';");
}

#[test]
fn gset_wants_exactly_one_row() {
    let rows: [&[&[Option<&str>]]; 2] = [&[], &[&[Some("1")], &[Some("2")]]];
    for (rows, count) in rows.iter().zip([0, 2]) {
        let mut client = Client::new("prepared", "select 1 as a \\gset\nselect :a;");
        client.step();
        client.answer(0, &["a"], rows);
        assert_eq!(
            client.step(),
            format!("abort 0: expected one row, got {count}")
        );
    }
}

#[test]
fn gset_refuses_columns_that_no_variable_can_be_named_after() {
    let mut client = Client::new("simple", "select 1 \\gset\nselect 2;");
    client.step();
    client.answer(0, &["?column?"], &[&[Some("1")]]);
    assert_eq!(
        client.step(),
        "abort 0: gset: invalid variable name: \"?column?\""
    );
}

#[test]
fn aset_takes_the_last_row_of_every_result_that_has_one() {
    let mut client = Client::new(
        "simple",
        "select a \\; select b \\; select c \\aset\nselect :a, :b, :c;",
    );
    client.step();
    client.answer(0, &["a"], &[&[Some("1")], &[Some("2")]]);
    client.answer(0, &["b"], &[]);
    client.answer(0, &["c"], &[&[Some("3")]]);
    assert_eq!(client.step(), "send select 2, :b, 3;");
}

#[test]
fn variables_live_on_in_the_next_transaction() {
    let mut client = Client::new(
        "simple",
        "\\if :scale = 1\n\\set n 5\n\\set scale 2\n\\endif\nselect :n;",
    );
    let first: Vec<_> = (0..6).map(|_| client.step()).collect();
    assert_eq!(first[4], "send select 5;");
    client.program.begin(0);
    let second: Vec<_> = (0..4).map(|_| client.step()).collect();
    assert_eq!(second, ["local 0", "local 3", "send select 5;", "done"]);
}

#[test]
fn sleeps_and_shells() {
    let mut client = Client::new(
        "simple",
        "\\set n 2\n\\sleep 3\n\\sleep :n us\n\\sleep 1ms\n\\setshell v echo 7 :n\n\\setshell v echo ::n 7\n",
    );
    let steps: Vec<_> = (0..5).map(|_| client.step()).collect();
    assert_eq!(
        steps[..4],
        ["local 0", "sleep 3000000000", "sleep 2000", "sleep 1000000"]
    );
    assert_eq!(
        steps[4],
        "abort 4: echo: shell command must return an integer (not \"7 2\")"
    );
    let mut client = Client::new("simple", "\\setshell v echo 42\nselect :v;");
    client.step();
    assert_eq!(client.step(), "send select 42;");
    let mut client = Client::new("simple", "\\shell exit 3\n");
    assert!(
        client
            .step()
            .starts_with("abort 0: exit: could not launch shell command")
    );
}

#[test]
fn pipelines_are_queued_and_flushed() {
    let script =
        "\\startpipeline\nselect 1;\n\\syncpipeline\nselect :scale;\n\\endpipeline\nselect 3;";
    let mut client = Client::new("prepared", script);
    let steps: Vec<_> = (0..7).map(|_| client.step()).collect();
    assert_eq!(
        steps,
        [
            "local 0",
            "queue []",
            "local 2",
            "queue [1]",
            "flush",
            "send []",
            "done"
        ]
    );
}

#[test]
fn a_pipeline_left_open_on_one_path_is_an_error_when_it_happens() {
    let mut client = Client::new("prepared", "\\if 1\n\\startpipeline\n\\endif\nselect 1;");
    let steps: Vec<_> = (0..5).map(|_| client.step()).collect();
    assert_eq!(
        steps[4],
        "abort 3: end of script reached with pipeline open"
    );
}

#[test]
fn an_expression_that_fails_aborts_with_pgbenchs_words() {
    let mut client = Client::new("simple", "\\set x 1 / 0");
    assert_eq!(client.step(), "abort 0: division by zero");
    let mut client = Client::new("simple", "\\set x :nope + 1");
    assert_eq!(client.step(), "abort 0: undefined variable \"nope\"");
}

#[test]
fn what_the_protocol_forbids_is_a_problem_of_the_script() {
    let pipeline = ScriptLanguage::new(&plan(
        "simple",
        &[(1, "select 1;\n\\startpipeline\n\\endpipeline")],
    ));
    let problems = pipeline.unwrap_err();
    assert_eq!((problems[0].line, problems[0].column), (2, 1));
    let many = format!("select {};", vec![":x"; 256].join(","));
    assert!(ScriptLanguage::new(&plan("simple", &[(1, &many)])).is_ok());
    let problems = ScriptLanguage::new(&plan("prepared", &[(1, &many)])).unwrap_err();
    assert!(problems[0].message.contains("maximum is 255"));
}

#[test]
fn statements_are_numbered_over_all_scripts() {
    let scripts = [
        (1, "\\set x 1\nselect :x \\gset\nselect 2;"),
        (2, "select 3;"),
    ];
    let language = ScriptLanguage::new(&plan("prepared", &scripts)).unwrap();
    let table: Vec<_> = language
        .statements()
        .iter()
        .map(|s| {
            (
                s.transaction_type,
                s.number,
                s.sql.as_str(),
                s.parameters,
                s.wants_rows,
            )
        })
        .collect();
    assert_eq!(
        table,
        [
            (0, 1, "", 0, false),
            (0, 2, "select $1", 1, true),
            (0, 3, "select 2;", 0, false),
            (1, 1, "select 3;", 0, false)
        ]
    );
}

#[test]
fn scripts_are_chosen_by_weight() {
    let scripts = [(0, "select 1;"), (3, "select 2;"), (1, "select 3;")];
    let mut mix = ScriptLanguage::new(&plan("simple", &scripts))
        .unwrap()
        .mix();
    let mut counts = [0u32; 3];
    for _ in 0..40_000 {
        counts[mix.choose(0)] += 1;
    }
    assert_eq!(counts[0], 0);
    // Four standard deviations of a binomial with p = 3/4 are 346.
    assert!(counts[1].abs_diff(30_000) < 346, "{counts:?}");
}

/// A plan of `clients` and `threads` with this seed, and scripts that do nothing, of these weights.
fn seeded(seed: u64, clients: usize, weights: &[u32]) -> ScriptLanguage {
    let scripts: Vec<_> = weights
        .iter()
        .map(|weight| (*weight, "select :x;"))
        .collect();
    let mut plan = plan("simple", &scripts);
    (plan.seed, plan.clients, plan.threads) = (seed, clients, clients);
    ScriptLanguage::new(&plan).unwrap()
}

/// The first choices for one client, as digits.
fn choices(language: &ScriptLanguage, client: usize, count: usize) -> String {
    let mut mix = language.mix();
    (0..count).map(|_| mix.choose(client).to_string()).collect()
}

#[test]
fn lanes_choose_the_scripts_that_pgbenchs_threads_choose() {
    // pgbench -t 20 --random-seed=7 with three scripts of these weights.
    assert_eq!(
        choices(&seeded(7, 1, &[1, 3, 2]), 0, 20),
        "10112021111102111110"
    );
    // The same with -c 3 -j 3 and equal weights.
    let three = seeded(7, 3, &[1, 1, 1]);
    for (client, chosen) in ["000211022011", "121221010111", "211011201212"]
        .into_iter()
        .enumerate()
    {
        assert_eq!(choices(&three, client, 12), chosen);
    }
}

#[test]
fn clients_draw_what_pgbenchs_clients_draw() {
    let mut plan = plan(
        "simple",
        &[(
            1,
            "\\set x :client_id * 100000 + random(1, 10000)\nselect :x;",
        )],
    );
    plan.seed = 7;
    let language = ScriptLanguage::new(&plan).unwrap();
    let encodings = Arc::new(Encodings::new(
        Protocol::Simple,
        language.statements(),
        &[false, false],
    ));
    // pgbench -c 3 -t 3 --random-seed=7.
    for (index, drawn) in [
        [368, 5814, 6312],
        [101_020, 107_298, 108_925],
        [201_253, 202_731, 203_126],
    ]
    .iter()
    .enumerate()
    {
        let mut client = Client {
            program: language.program(index),
            outgoing: Outgoing::new(encodings.clone()),
        };
        let mut found = Vec::new();
        for _ in 0..3 {
            client.program.begin(0);
            client.step();
            found.push(client.step());
        }
        found.sort();
        assert_eq!(found, drawn.map(|number| format!("send select {number};")));
    }
}
