//! Sections, rows and batches, without a server.

use std::sync::Arc;

use super::jobs::{Job, batches};
use super::plan::LoadSection;
use super::ranges::Range;
use super::rows::RowWriter;
use super::section::{Copy, RangeSlots, Streams, Work, compile};
use crate::clock::now_ns;
use crate::script::variables::{Names, Variables};

const ACCOUNTS: &str = "-- accounts\nCOPY pgbench_accounts (aid, bid, abalance, filler) FROM STDIN;\n\
                        \\set bid (:row - 1) / 100000 + 1\n:row\t:bid\t0\t\n\\.\n";

fn section(script: &str) -> LoadSection {
    LoadSection {
        name: "s".into(),
        rows: 10,
        source: "load.sql".into(),
        script: script.into(),
    }
}

/// A COPY section and what its rows need.
fn copy(script: &str, given: &[(&str, &str)]) -> (Copy, RangeSlots, Variables) {
    let mut names = Names::default();
    let slots = RangeSlots::new(&mut names);
    let given_slots: Vec<_> = given.iter().map(|(name, _)| names.slot(name)).collect();
    let work = compile(&section(script), &mut names, &given_slots).unwrap();
    let mut variables = Variables::new(Arc::new(names));
    given
        .iter()
        .for_each(|(name, value)| variables.set_text_by_name(name, value.as_bytes()));
    match work {
        Work::Copy(copy) => (copy, slots, variables),
        Work::Sql(_) => panic!("not a COPY"),
    }
}

/// All rows of a range as text, headers of messages taken off.
fn text(script: &str, given: &[(&str, &str)], range: Range) -> String {
    let (copy, slots, variables) = copy(script, given);
    let mut writer = RowWriter::new(&copy, slots, variables, "s", range);
    let mut all = Vec::new();
    while let Some(message) = writer.next_message().unwrap() {
        let message = message.bytes;
        assert_eq!(message[0], b'd');
        let length = u32::from_be_bytes(message[1..5].try_into().unwrap()) as usize;
        assert_eq!(length, message.len() - 1);
        all.extend_from_slice(&message[5..]);
    }
    String::from_utf8(all).unwrap()
}

/// The problems of a section, first lines only.
fn problems(script: &str) -> Vec<String> {
    let found = compile(&section(script), &mut Names::default(), &[]).unwrap_err();
    found
        .iter()
        .map(|problem| problem.to_string().lines().next().unwrap().to_owned())
        .collect()
}

#[test]
fn rows_follow_the_template() {
    let rows = text(
        ACCOUNTS,
        &[],
        Range {
            low: 99_999,
            high: 100_001,
        },
    );
    assert_eq!(rows, "99999\t1\t0\t\n100000\t1\t0\t\n100001\t2\t0\t\n");
}

#[test]
fn values_are_escaped_and_literals_are_not() {
    let script = "copy t from stdin;\n\\set n null\n:word\t:n\t\\N\tat 15:52:44\n";
    let rows = text(script, &[("word", "a\tb\\c\nd")], Range { low: 1, high: 1 });
    assert_eq!(rows, "a\\tb\\\\c\\nd\t\\N\t\\N\tat 15:52:44\n");
}

#[test]
fn random_values_do_not_depend_on_the_ranges() {
    let script = "COPY t FROM STDIN;\n\\set r random(1, 1000000)\n:r\n\\.\n";
    let whole = text(script, &[], Range { low: 1, high: 6 });
    let halves = [Range { low: 1, high: 2 }, Range { low: 3, high: 6 }]
        .map(|range| text(script, &[], range));
    assert_eq!(whole, halves.concat());
    assert_eq!(
        whole
            .lines()
            .collect::<std::collections::HashSet<_>>()
            .len(),
        6
    );
}

#[test]
fn other_sql_is_run_for_every_range() {
    let work = compile(
        &section("INSERT INTO t SELECT generate_series(:lo, :hi);"),
        &mut Names::default(),
        &[],
    );
    assert!(matches!(work.unwrap(), Work::Sql(_)));
}

#[test]
fn freeze_means_one_stream() {
    let (frozen, ..) = copy(
        "COPY \"my table\" (a) FROM STDIN WITH (FREEZE);\n:row\n",
        &[],
    );
    assert_eq!(
        (frozen.table.as_str(), frozen.streams),
        ("\"my table\"", Streams::OneFrozen)
    );
    let (spread, ..) = copy(ACCOUNTS, &[]);
    assert_eq!(
        (spread.table.as_str(), spread.streams),
        ("pgbench_accounts", Streams::Many)
    );
}

#[test]
fn problems_of_sections_have_places() {
    assert_eq!(
        problems("COPY t FROM STDIN;\n\\set b :nope + 1\n\\sleep 1\n:b\t:other\n:row\n\\.\n"),
        [
            "load.sql:2:1: undefined variable \"nope\"",
            "load.sql:3:1: only \\set can stand before a row",
            "load.sql:4:4: undefined variable \"other\"",
            "load.sql:5:1: a section has one row; this is a second one",
        ]
    );
    assert_eq!(
        problems("COPY t FROM STDIN;\n\\.\n"),
        ["load.sql:1:19: the row of the COPY is missing"]
    );
    assert_eq!(
        problems("-- nothing"),
        ["load.sql:1:1: section s has no SQL"]
    );
}

#[test]
fn sql_waits_for_what_is_before_it_and_long_frozen_copies_begin_first() {
    let frozen = |script: &str| Work::Copy(copy(script, &[]).0);
    let plain = frozen(ACCOUNTS);
    let one = frozen("COPY f FROM STDIN (FREEZE);\n:row\n");
    let mut names = Names::default();
    let sql = compile(&section("SELECT 1"), &mut names, &[]).unwrap();
    let works = [
        (plain.clone(), 20),
        (one.clone(), 500_000),
        (one, 900_000),
        (sql, 0),
        (plain, 600_000),
    ];
    let found: Vec<Vec<(usize, u64)>> = batches(&works, 2)
        .iter()
        .map(|batch| {
            batch
                .iter()
                .map(|Job { section, range }| (*section, range.rows()))
                .collect()
        })
        .collect();
    assert_eq!(found[0], [(2, 900_000), (1, 500_000), (0, 20)]);
    assert_eq!(found[1], [(3, 0)]);
    assert_eq!(found[2], [(4, 150_000); 4]);
}

#[test]
#[ignore = "a measurement: run it alone, in release"]
fn rows_are_made_faster_than_a_server_takes_them() {
    let (copy, slots, variables) = copy(ACCOUNTS, &[]);
    let rows = 20_000_000;
    let mut writer = RowWriter::new(&copy, slots, variables, "s", Range::whole(rows));
    let begin_ns = now_ns();
    while writer.next_message().unwrap().is_some() {}
    let rows_per_s = rows as f64 * 1e9 / (now_ns() - begin_ns) as f64;
    eprintln!("{rows_per_s:.0} rows/s");
    assert!(rows_per_s > 5e6, "{rows_per_s:.0} rows/s");
}
