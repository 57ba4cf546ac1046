//! Every option there is, under the names it has in the emulated version.

use super::emulation::Emulation;
use super::getopt::{Known, Spelling, Takes};

/// An option by what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "named as on the command line, where --help tells"
)]
pub enum Meaning {
    Builtin,
    Client,
    Connect,
    Debug,
    DatabaseOrDebug,
    Dbname,
    Define,
    File,
    Fillfactor,
    Host,
    Initialize,
    InitSteps,
    Jobs,
    Log,
    LatencyLimit,
    NoVacuum,
    SkipSomeUpdates,
    Progress,
    Port,
    Protocol,
    Quiet,
    ReportPerCommand,
    Rate,
    Scale,
    SelectOnly,
    Time,
    Transactions,
    Username,
    VacuumAll,
    UnloggedTables,
    Tablespace,
    IndexTablespace,
    SamplingRate,
    AggregateInterval,
    ProgressTimestamp,
    LogPrefix,
    ForeignKeys,
    RandomSeed,
    ShowScript,
    Partitions,
    PartitionMethod,
    FailuresDetailed,
    MaxTries,
    VerboseErrors,
    ExitOnAbort,
    ContinueOnError,
    Emulate,
    Percentiles,
    Json,
    Hdr,
    Reconnect,
    TimeIncludesConnect,
    Advise,
}

/// All options as `emulation` knows them, and what each means.
///
/// `chosen`: somebody asked for that version. Where nobody did, `-d` is what the word after it allows.
pub fn options(emulation: Emulation, chosen: bool) -> Vec<(Known, Meaning)> {
    use Meaning as M;
    const VALUE: Takes = Takes::Value;
    const NONE: Takes = Takes::Nothing;
    let stock = [
        ("builtin", "b", VALUE, M::Builtin),
        ("client", "c", VALUE, M::Client),
        ("connect", "C", NONE, M::Connect),
        ("dbname", "", VALUE, M::Dbname),
        ("debug", "", NONE, M::Debug),
        ("define", "D", VALUE, M::Define),
        ("file", "f", VALUE, M::File),
        ("fillfactor", "F", VALUE, M::Fillfactor),
        ("host", "h", VALUE, M::Host),
        ("initialize", "i", NONE, M::Initialize),
        ("init-steps", "I", VALUE, M::InitSteps),
        ("jobs", "j", VALUE, M::Jobs),
        ("log", "l", NONE, M::Log),
        ("latency-limit", "L", VALUE, M::LatencyLimit),
        ("no-vacuum", "n", NONE, M::NoVacuum),
        ("port", "p", VALUE, M::Port),
        ("progress", "P", VALUE, M::Progress),
        ("protocol", "M", VALUE, M::Protocol),
        ("quiet", "q", NONE, M::Quiet),
        ("report-per-command", "r", NONE, M::ReportPerCommand),
        ("rate", "R", VALUE, M::Rate),
        ("scale", "s", VALUE, M::Scale),
        ("select-only", "S", NONE, M::SelectOnly),
        ("skip-some-updates", "N", NONE, M::SkipSomeUpdates),
        ("time", "T", VALUE, M::Time),
        ("transactions", "t", VALUE, M::Transactions),
        ("username", "U", VALUE, M::Username),
        ("vacuum-all", "v", NONE, M::VacuumAll),
        ("unlogged-tables", "", NONE, M::UnloggedTables),
        ("tablespace", "", VALUE, M::Tablespace),
        ("index-tablespace", "", VALUE, M::IndexTablespace),
        ("sampling-rate", "", VALUE, M::SamplingRate),
        ("aggregate-interval", "", VALUE, M::AggregateInterval),
        ("progress-timestamp", "", NONE, M::ProgressTimestamp),
        ("log-prefix", "", VALUE, M::LogPrefix),
        ("foreign-keys", "", NONE, M::ForeignKeys),
        ("random-seed", "", VALUE, M::RandomSeed),
        ("show-script", "", VALUE, M::ShowScript),
        ("partitions", "", VALUE, M::Partitions),
        ("partition-method", "", VALUE, M::PartitionMethod),
        ("failures-detailed", "", NONE, M::FailuresDetailed),
        ("max-tries", "", VALUE, M::MaxTries),
        ("verbose-errors", "", NONE, M::VerboseErrors),
        ("exit-on-abort", "", NONE, M::ExitOnAbort),
        ("continue-on-error", "", NONE, M::ContinueOnError),
    ];
    let own = [
        ("emulate", "", VALUE, M::Emulate),
        ("percentiles", "", Takes::ValueInWord, M::Percentiles),
        ("json", "", VALUE, M::Json),
        ("hdr", "", VALUE, M::Hdr),
        ("reconnect", "", NONE, M::Reconnect),
        ("time-includes-connect", "", NONE, M::TimeIncludesConnect),
        ("advise", "", NONE, M::Advise),
    ];
    let d = match (emulation >= Emulation::V17, chosen) {
        (true, true) => ("", "d", VALUE, M::Dbname),
        (true, false) => ("", "d", Takes::ValueUnlessOption, M::DatabaseOrDebug),
        (false, _) => ("", "d", NONE, M::Debug),
    };
    let known = |spelling| {
        move |(long, letter, takes, meaning): (&'static str, &str, Takes, Meaning)| {
            let known = Known {
                long,
                letter: letter.chars().next(),
                takes,
                spelling,
            };
            (known, meaning)
        }
    };
    let stock = stock.into_iter().chain([d]).map(known(Spelling::Short));
    stock
        .chain(own.into_iter().map(known(Spelling::Full)))
        .collect()
}
