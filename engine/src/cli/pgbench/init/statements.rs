//! The SQL of each step of `-i`: the standard tables, to the letter of pgbench's own statements.

use super::super::emulation::Emulation;
use super::super::options::{InitOptions, Options, PartitionMethod, Switch};

/// Rows of pgbench_branches for each unit of scale.
pub const BRANCHES: u64 = 1;
/// Rows of pgbench_tellers for each unit of scale.
pub const TELLERS: u64 = 10;
/// Rows of pgbench_accounts for each unit of scale.
pub const ACCOUNTS: u64 = 100_000;
/// From this scale on, the number of an account needs 64 bits.
const WIDE_SCALE: u32 = 20_000;
/// The first server that has no unlogged partitioned tables.
const NO_UNLOGGED_PARENTS_SINCE: u32 = 18;

/// What the statements depend on.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'a> {
    /// `-F`, tablespaces, partitions.
    pub init: &'a InitOptions,
    /// `-s`
    pub scale: u32,
    /// `--unlogged-tables`
    pub unlogged: bool,
    /// Before 18, pgbench marks the partitioned table itself as unlogged.
    pub emulation: Emulation,
    /// Of the server.
    pub server_major: u32,
}

/// Whether `-F` holds for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    None,
    Fillfactor,
}

/// Name, columns (`{aid}` stands for the type of an account's number) and room of each table, in pgbench's order.
const TABLES: [(&str, &str, Room); 4] = [
    (
        "pgbench_history",
        "tid int,bid int,aid {aid},delta int,mtime timestamp,filler char(22)",
        Room::None,
    ),
    (
        "pgbench_tellers",
        "tid int not null,bid int,tbalance int,filler char(84)",
        Room::Fillfactor,
    ),
    (
        "pgbench_accounts",
        "aid {aid} not null,bid int,abalance int,filler char(84)",
        Room::Fillfactor,
    ),
    (
        "pgbench_branches",
        "bid int not null,bbalance int,filler char(88)",
        Room::Fillfactor,
    ),
];

/// All four, for one statement, so that foreign keys between them do not matter.
const ALL_TABLES: &str = "pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers";

impl<'a> Schema<'a> {
    /// Of these options.
    pub fn new(options: &Options, init: &'a InitOptions, server_major: u32) -> Self {
        Self {
            init,
            scale: options.scale.unwrap_or(1),
            unlogged: options.has(Switch::UnloggedTables),
            emulation: options.emulation,
            server_major,
        }
    }

    fn partitioned(&self) -> bool {
        self.init.partitions > 0
    }

    /// Step `t`, without partitions.
    pub fn tables(&self) -> Vec<String> {
        TABLES.map(|table| self.table(table)).into()
    }

    fn table(&self, (name, columns, room): (&str, &str, Room)) -> String {
        // Blanks make both types equally long, as pgbench writes them.
        let aid = if self.scale >= WIDE_SCALE {
            "bigint"
        } else {
            "   int"
        };
        let old = self.emulation < Emulation::V18 && self.server_major < NO_UNLOGGED_PARENTS_SINCE;
        let unlogged = self.unlogged && (!self.partitioned() || old);
        let mut sql = format!(
            "create{} table {name}({})",
            if unlogged { " unlogged" } else { "" },
            columns.replace("{aid}", aid)
        );
        if self.partitioned() && name == "pgbench_accounts" {
            let method = match self.init.partition_method {
                PartitionMethod::Range => "range",
                PartitionMethod::Hash => "hash",
            };
            sql.push_str(&format!(" partition by {method} (aid)"));
        } else if room == Room::Fillfactor {
            sql.push_str(&format!(" with (fillfactor={})", self.init.fillfactor));
        }
        if let Some(tablespace) = &self.init.tablespace {
            sql.push_str(&format!(" tablespace {}", quoted(tablespace)));
        }
        sql
    }

    /// The partitions of pgbench_accounts, open at both ends.
    pub fn partitions(&self) -> Vec<String> {
        (1..=self.init.partitions)
            .map(|number| self.partition(number))
            .collect()
    }

    /// Rows of a range partition; the last ones may have fewer.
    fn partition_rows(&self) -> u64 {
        (ACCOUNTS * u64::from(self.scale)).div_ceil(u64::from(self.init.partitions))
    }

    /// Where accounts lie by number: each table with its first and its last one. Hash partitions are not told apart.
    pub fn account_ranges(&self) -> Vec<(String, (u64, u64))> {
        let all = ACCOUNTS * u64::from(self.scale);
        if !self.partitioned() || self.init.partition_method == PartitionMethod::Hash {
            return vec![("pgbench_accounts".to_owned(), (1, all))];
        }
        let rows = self.partition_rows();
        (1..=u64::from(self.init.partitions))
            .map(|number| ((number - 1) * rows + 1, all.min(number * rows)))
            .take_while(|(first, _)| *first <= all)
            .zip(1..)
            .map(|(span, number)| (format!("pgbench_accounts_{number}"), span))
            .collect()
    }

    fn partition(&self, number: u32) -> String {
        let partitions = self.init.partitions;
        let values = match self.init.partition_method {
            PartitionMethod::Range => {
                let rows = self.partition_rows();
                let bound = |number: u32| (u64::from(number) * rows + 1).to_string();
                let low = match number {
                    1 => "minvalue".into(),
                    _ => bound(number - 1),
                };
                let high = if number == partitions {
                    "maxvalue".into()
                } else {
                    bound(number)
                };
                format!("from ({low}) to ({high})")
            }
            PartitionMethod::Hash => {
                format!("with (modulus {partitions}, remainder {})", number - 1)
            }
        };
        format!(
            "create{} table pgbench_accounts_{number}\n  partition of pgbench_accounts\n  for values {values} with (fillfactor={})",
            if self.unlogged { " unlogged" } else { "" },
            self.init.fillfactor
        )
    }

    /// Step `p`.
    pub fn primary_keys(&self) -> Vec<String> {
        let tablespace = self.init.index_tablespace.as_ref();
        let tablespace = tablespace.map(|name| format!(" using index tablespace {}", quoted(name)));
        let tablespace = tablespace.unwrap_or_default();
        [("branches", "bid"), ("tellers", "tid"), ("accounts", "aid")]
            .map(|(table, key)| {
                format!("alter table pgbench_{table} add primary key ({key}){tablespace}")
            })
            .into()
    }

    /// Rows made by the server, in step `G`.
    pub fn server_side_rows(&self) -> Vec<String> {
        let rows = |each: u64| each * u64::from(self.scale);
        vec![
            format!(
                "insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, {}) as bid",
                rows(BRANCHES)
            ),
            format!(
                "insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / {TELLERS} + 1, 0 \
                 from generate_series(1, {}) as tid",
                rows(TELLERS)
            ),
            format!(
                "insert into pgbench_accounts(aid,bid,abalance,filler) select aid, (aid - 1) / {ACCOUNTS} + 1, 0, '' \
                 from generate_series(1, {}) as aid",
                rows(ACCOUNTS)
            ),
        ]
    }
}

/// Step `d`.
pub fn drop_tables() -> String {
    format!("drop table if exists {ALL_TABLES}")
}

/// What comes before rows are made.
pub fn truncate_tables() -> String {
    format!("truncate table {ALL_TABLES}")
}

/// Step `v`.
pub fn vacuum() -> Vec<String> {
    ["branches", "tellers", "accounts", "history"]
        .map(|table| format!("vacuum analyze pgbench_{table}"))
        .into()
}

/// Step `f`.
pub fn foreign_keys() -> Vec<String> {
    [
        ("tellers", "bid", "branches"),
        ("accounts", "bid", "branches"),
        ("history", "bid", "branches"),
        ("history", "tid", "tellers"),
        ("history", "aid", "accounts"),
    ]
    .map(|(table, column, other)| {
        format!(
            "alter table pgbench_{table} add constraint pgbench_{table}_{column}_fkey \
             foreign key ({column}) references pgbench_{other}"
        )
    })
    .into()
}

/// A name as an SQL identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init() -> InitOptions {
        InitOptions {
            steps: "dtgvp".into(),
            fillfactor: 100,
            tablespace: None,
            index_tablespace: None,
            partitions: 0,
            partition_method: PartitionMethod::Range,
            jobs: 1,
        }
    }

    fn schema(init: &InitOptions) -> Schema<'_> {
        Schema {
            init,
            scale: 2,
            unlogged: false,
            emulation: Emulation::V18,
            server_major: 18,
        }
    }

    #[test]
    fn plain_tables() {
        assert_eq!(
            [
                "create table pgbench_history(tid int,bid int,aid    int,delta int,mtime timestamp,filler char(22))",
                "create table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)) with (fillfactor=100)",
                "create table pgbench_accounts(aid    int not null,bid int,abalance int,filler char(84)) with (fillfactor=100)",
                "create table pgbench_branches(bid int not null,bbalance int,filler char(88)) with (fillfactor=100)",
            ]
            .to_vec(),
            schema(&init()).tables()
        );
    }

    #[test]
    fn unlogged_partitions_in_a_tablespace_of_a_large_scale() {
        let init = InitOptions {
            partitions: 3,
            fillfactor: 70,
            tablespace: Some("fa\"st".into()),
            index_tablespace: Some("ix".into()),
            ..init()
        };
        let schema = Schema {
            scale: 20_000,
            unlogged: true,
            ..schema(&init)
        };
        assert_eq!(
            "create table pgbench_accounts(aid bigint not null,bid int,abalance int,filler char(84)) \
             partition by range (aid) tablespace \"fa\"\"st\"",
            schema.tables()[2]
        );
        let bounds = [
            "(minvalue) to (666666668)",
            "(666666668) to (1333333335)",
            "(1333333335) to (maxvalue)",
        ];
        for (number, (sql, bounds)) in schema.partitions().iter().zip(bounds).enumerate() {
            let number = number + 1;
            assert_eq!(
                &format!(
                    "create unlogged table pgbench_accounts_{number}\n  partition of pgbench_accounts\n  \
                     for values from {bounds} with (fillfactor=70)"
                ),
                sql
            );
        }
        assert_eq!(
            "alter table pgbench_tellers add primary key (tid) using index tablespace \"ix\"",
            schema.primary_keys()[1]
        );
    }

    #[test]
    fn accounts_are_known_by_range_partition() {
        let ranges = |partitions, partition_method| {
            let init = InitOptions {
                partitions,
                partition_method,
                ..init()
            };
            let one = Schema {
                scale: 1,
                ..schema(&init)
            };
            one.account_ranges()
        };
        let whole = vec![("pgbench_accounts".to_owned(), (1, 100_000))];
        assert_eq!(whole, ranges(0, PartitionMethod::Range));
        assert_eq!(whole, ranges(4, PartitionMethod::Hash));
        let name = |number: u32| format!("pgbench_accounts_{number}");
        assert_eq!(
            vec![
                (name(1), (1, 33_334)),
                (name(2), (33_335, 66_668)),
                (name(3), (66_669, 100_000)),
            ],
            ranges(3, PartitionMethod::Range)
        );
        // More partitions than rows: the last ones stay empty.
        let many = ranges(100_001, PartitionMethod::Range);
        assert_eq!((100_000, (100_000, 100_000)), (many.len(), many[99_999].1));
    }

    #[test]
    fn before_18_a_partitioned_table_was_unlogged_itself() {
        let init = InitOptions {
            partitions: 2,
            partition_method: PartitionMethod::Hash,
            ..init()
        };
        let old = Schema {
            unlogged: true,
            emulation: Emulation::V17,
            server_major: 17,
            ..schema(&init)
        };
        assert_eq!(
            "create unlogged table pgbench_accounts(aid    int not null,bid int,abalance int,filler char(84)) \
             partition by hash (aid)",
            old.tables()[2]
        );
        assert_eq!(
            "create unlogged table pgbench_accounts_2\n  partition of pgbench_accounts\n  \
             for values with (modulus 2, remainder 1) with (fillfactor=100)",
            old.partitions()[1]
        );
        // The server says no to it since 18.
        let refused = Schema {
            server_major: 18,
            ..old
        };
        assert!(refused.tables().iter().all(|sql| !sql.contains("unlogged")));
    }

    #[test]
    fn rows_made_by_the_server() {
        assert_eq!(
            "insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / 10 + 1, 0 from generate_series(1, 20) as tid",
            schema(&init()).server_side_rows()[1]
        );
    }

    #[test]
    fn foreign_keys_have_names() {
        assert_eq!(
            "alter table pgbench_history add constraint pgbench_history_aid_fkey foreign key (aid) references pgbench_accounts",
            foreign_keys()[4]
        );
    }
}
