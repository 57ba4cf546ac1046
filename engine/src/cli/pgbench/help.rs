//! `--help` and `--version`.

use super::emulation::Emulation;

/// What `--version` prints.
pub fn version(emulation: Emulation) -> String {
    format!(
        "pgbench (PostgreSQL) {} (pgdyno {})",
        emulation.version(),
        env!("CARGO_PKG_VERSION")
    )
}

/// What `--help` prints.
pub fn help(program: &str) -> String {
    HELP.replace("PROGRAM", program)
}

const HELP: &str = "\
PROGRAM is a benchmarking tool for PostgreSQL. This one is pgdyno's.

Usage:
  PROGRAM [OPTION]... [DBNAME]

Initialization options:
  -i, --initialize         create and fill the standard tables, then exit
  -I, --init-steps=STEPS   what -i does, in this order (default \"dtgvp\"):
                           d drop tables, t create them, g generate rows here,
                           G generate rows in the server, v vacuum,
                           p primary keys, f foreign keys
  -F, --fillfactor=NUM     fill pages to so many percent
  -j, --jobs=NUM           load over so many connections (pgdyno)
  -n, --no-vacuum          leave out vacuum
  -q, --quiet              a line each 5 seconds, not each 100000 rows
  -s, --scale=NUM          scale factor: 100000 accounts each (default: 1)
  --foreign-keys           foreign keys between the tables
  --index-tablespace=NAME  tablespace of indexes
  --partition-method=(range|hash)
                           how pgbench_accounts is partitioned (default: range)
  --partitions=NUM         partition pgbench_accounts into NUM parts
  --tablespace=NAME        tablespace of tables
  --unlogged-tables        tables that are empty after a crash

Options to select what to run:
  -b, --builtin=NAME[@W]   add a built-in script, weighted at W (default: 1)
                           (\"-b list\" tells what there is)
  -f, --file=FILE[@W]      add a script from a file, weighted at W (default: 1)
  -N, --skip-some-updates  same as \"-b simple-update\"
  -S, --select-only        same as \"-b select-only\"
  --show-script=NAME       show a built-in script, then exit

Benchmarking options:
  -c, --client=NUM         clients, each with a connection (default: 1)
  -C, --connect            a new connection for each transaction
  -D, --define=NAME=VALUE  a variable for scripts
  -j, --jobs=NUM           threads (default: 1)
  -l, --log                a line for each transaction, to a file
  -L, --latency-limit=NUM  count transactions that take more than NUM ms
  -M, --protocol=simple|extended|prepared
                           how statements are sent (default: simple)
  -n, --no-vacuum          no vacuum before the run
  -P, --progress=NUM       a progress line every NUM seconds
  -r, --report-per-command times, failures and retries of each command
  -R, --rate=NUM           start NUM transactions per second
  -s, --scale=NUM          scale factor to report and to give to scripts
  -t, --transactions=NUM   transactions of each client (default: 10)
  -T, --time=NUM           seconds to run
  -v, --vacuum-all         vacuum all four standard tables before the run
  --aggregate-interval=NUM log sums over NUM seconds
  --continue-on-error      go on after errors of SQL
  --exit-on-abort          end when any client is aborted
  --failures-detailed      tell failures by kind
  --log-prefix=PREFIX      what names of log files begin with
                           (default: \"pgbench_log\")
  --max-tries=NUM          tries of a transaction (default: 1)
  --progress-timestamp     progress lines with the time of day (Unix epoch)
  --random-seed=SEED       \"time\", \"rand\", or a number
  --sampling-rate=NUM      share of transactions to log (0.01 for 1%)
  --verbose-errors         tell of every error

pgdyno's own options:
  --advise                 say when this program was the limit
  --emulate=15|16|17|18    speak as this version of pgbench (default: 18)
  --hdr=FILE               write histograms of latency (HdrHistogram log)
  --json=FILE              write everything that was measured
  --percentiles[=LIST]     report percentiles (default: 50,90,95,99,99.9)
  --reconnect              clients that lose their connection get another
  --time-includes-connect  -T counts from before connecting, as pgbench does

Common options:
  -d, --dbname=DBNAME      database to connect to
  --debug                  tell of every step
  -h, --host=HOSTNAME      server's host or socket directory
  -p, --port=PORT          server's port
  -U, --username=USERNAME  database user
  -V, --version            tell the version, then exit
  -?, --help               this help, then exit

Report bugs to the project's issue tracker.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_and_version_have_the_lines_people_look_for() {
        let help = help("pgbench");
        for line in [
            "benchmarking tool for PostgreSQL",
            "Usage:\n  pgbench [OPTION]",
            "Initialization options:",
            "Common options:",
            "Report bugs to",
        ] {
            assert!(help.contains(line), "{line}");
        }
        assert!(help.lines().all(|line| line.len() < 80), "{help}");
        assert!(version(Emulation::V16).starts_with("pgbench (PostgreSQL) 16.14 (pgdyno "));
    }
}
