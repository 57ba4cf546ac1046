//! Command lines: what they mean, and which are refused.

use super::arguments::read;
use super::emulation::Emulation;
use super::options::{Length, Options, PartitionMethod, Switch};
use super::stop::Stop;
use super::voice::Voice;
use crate::plan::Protocol;

fn options(line: &str) -> Result<Options, Stop> {
    let words: Vec<_> = line.split_ascii_whitespace().map(str::to_owned).collect();
    read(&words, &Voice::new("pgbench"), "pgbench")
}

#[test]
fn nothing_given_means_pgbenchs_defaults() {
    let plain = options("").unwrap();
    assert_eq!(
        (1, 1, Length::Transactions(10), Protocol::Simple, 1),
        (
            plain.clients,
            plain.jobs,
            plain.length,
            plain.protocol,
            plain.max_tries
        )
    );
    assert_eq!("<builtin: TPC-B (sort of)>", plain.scripts[0].description);
    assert_eq!("pgbench_log", plain.log_prefix);
    assert!(plain.init.is_none() && plain.database.is_none() && plain.switches.is_empty());
}

#[test]
fn a_run_is_what_was_asked_for() {
    let line = "-c 8 -j 99 -T60 bench -M prepared -S -b simple@3 -D a=1 -Db=x=y -R 5x -L 1.5 --rand 7 -rnl --max-tries=3";
    let run = options(line).unwrap();
    assert_eq!((8, 8), (run.clients, run.jobs));
    assert_eq!(Length::Seconds(60), run.length);
    assert_eq!(Some("bench"), run.database.as_deref());
    let weights: Vec<_> = run.scripts.iter().map(|script| script.weight).collect();
    assert_eq!(vec![1, 3], weights);
    let variables = [("a".into(), "1".into()), ("b".into(), "x=y".into())];
    assert_eq!(variables.to_vec(), run.variables);
    assert_eq!((Some(5.0), 7, 3), (run.rate_per_s, run.seed, run.max_tries));
    assert_eq!(1500, run.latency_limit.unwrap().as_micros());
    for switch in [Switch::ReportPerCommand, Switch::NoVacuum, Switch::Log] {
        assert!(run.has(switch), "{switch:?}");
    }
}

#[test]
fn initialization_has_its_steps_in_order() {
    let steps = |line| options(line).unwrap().init.unwrap().steps;
    assert_eq!("dtgvp", steps("-i"));
    assert_eq!("dtg p", steps("-in"));
    assert_eq!("dtpgf", steps("-i -I dtpg --foreign-keys"));
    assert_eq!("dtfpg", steps("-i -I dtfpg --foreign-keys"));
    let all = options("-i -s 9 -F 90 --partitions 3 --partition-method HASH -j 4 -q --unlogged");
    let all = all.unwrap();
    let init = all.init.as_ref().unwrap();
    assert_eq!(Some(9), all.scale);
    assert_eq!(
        (90, 3, PartitionMethod::Hash, 4),
        (
            init.fillfactor,
            init.partitions,
            init.partition_method,
            init.jobs
        )
    );
    assert!(all.has(Switch::Quiet) && all.has(Switch::UnloggedTables));
}

#[test]
fn d_means_what_the_version_says() {
    let of = |line: &str| {
        let options = options(line).unwrap();
        (options.has(Switch::Debug), options.database)
    };
    assert_eq!((true, Some("x".into())), of("--emulate=15 -d x"));
    assert_eq!((false, Some("x".into())), of("--emulate=17 -d x"));
    assert_eq!((false, Some("x".into())), of("-d x"));
    assert_eq!((true, None), of("-d -n"));
    assert_eq!((true, Some("x".into())), of("x --debug"));
    assert_eq!(Emulation::V16, options("--emulate 16").unwrap().emulation);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for line in [
        "-c 0",
        "-j none",
        "-t 1 -T 1",
        "-D novalue",
        "-D 1=1",
        "-M quick",
        "-R 0",
        "-L 0",
        "--max-tries=-1",
        "--max-tries=0",
        "--sampling-rate=0.5",
        "-l --sampling-rate=2",
        "-l --sampling-rate=0.5 --aggregate-interval=1",
        "--aggregate-interval=1",
        "-l -T 5 --aggregate-interval=3",
        "-l -T 1 --aggregate-interval=3",
        "--log-prefix=x",
        "--progress-timestamp",
        "--random-seed=one",
        "-b none",
        "-b s",
        "-S@0",
        "-b se@0",
        "-f /no/such/file",
        "-i -S",
        "-S -F 90",
        "-I dtg",
        "-i -I x",
        "-i --partition-method=hash",
        "-i --partition-method=list --partitions=2",
        "a b",
        "--nope",
        "--emulate=14",
        "-S --version",
        "-S --percentiles=101",
    ] {
        assert_eq!(Err(Stop::Failed), options(line), "{line}");
    }
    assert_eq!(Err(Stop::Failed), options(&"-S ".repeat(129)));
    assert_eq!(Err(Stop::Done), options("-b list"));
    assert_eq!(Err(Stop::Done), options("--show-script=tpcb"));
}
