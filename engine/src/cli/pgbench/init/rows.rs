//! Rows of the standard tables in COPY's text format, in messages of many rows.

use super::statements::{ACCOUNTS, BRANCHES, TELLERS};

/// Most rows of one message; progress is told between messages.
pub const ROWS_PER_MESSAGE: u64 = 10_000;

/// A standard table that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// pgbench_branches
    Branches,
    /// pgbench_tellers
    Tellers,
    /// pgbench_accounts
    Accounts,
}

/// Which columns a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// All of them.
    All,
    /// Those that differ from row to row; the others have defaults.
    Varying,
}

impl Columns {
    /// What stands behind pgbench_accounts in its COPY.
    pub fn named(self) -> &'static str {
        match self {
            Self::All => "",
            Self::Varying => "(aid, bid)",
        }
    }
}

impl Table {
    /// In the order of loading, which foreign keys allow.
    pub const ALL: [Self; 3] = [Self::Branches, Self::Tellers, Self::Accounts];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Branches => "pgbench_branches",
            Self::Tellers => "pgbench_tellers",
            Self::Accounts => "pgbench_accounts",
        }
    }

    /// Rows for each unit of scale.
    pub fn rows_per_scale(self) -> u64 {
        match self {
            Self::Branches => BRANCHES,
            Self::Tellers => TELLERS,
            Self::Accounts => ACCOUNTS,
        }
    }

    /// The CopyData message of rows `low` to `high`, both included, from 1.
    pub fn message(self, (low, high): (u64, u64), columns: Columns, message: &mut Vec<u8>) {
        message.clear();
        message.extend_from_slice(b"d\0\0\0\0");
        let constant: &[u8] = match (columns, self) {
            (Columns::Varying, _) => b"\n",
            (Columns::All, Self::Accounts) => b"\t0\t\n",
            (Columns::All, _) => b"\t0\t\\N\n",
        };
        let mut digits = itoa::Buffer::new();
        for number in low..=high {
            message.extend_from_slice(digits.format(number).as_bytes());
            if self != Self::Branches {
                message.push(b'\t');
                let branch = (number - 1) / self.rows_per_scale() + 1;
                message.extend_from_slice(digits.format(branch).as_bytes());
            }
            message.extend_from_slice(constant);
        }
        let length = (message.len() - 1) as u32;
        message[1..5].copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(table: Table, span: (u64, u64), columns: Columns) -> String {
        let mut message = Vec::new();
        table.message(span, columns, &mut message);
        let length = u32::from_be_bytes(message[1..5].try_into().unwrap());
        assert_eq!((b'd', message.len()), (message[0], length as usize + 1));
        String::from_utf8(message[5..].to_vec()).unwrap()
    }

    #[test]
    fn rows_are_those_of_pgbench() {
        assert_eq!("3\t0\t\\N\n", rows(Table::Branches, (3, 3), Columns::All));
        assert_eq!(
            "10\t1\t0\t\\N\n11\t2\t0\t\\N\n",
            rows(Table::Tellers, (10, 11), Columns::All)
        );
        assert_eq!(
            "100000\t1\t0\t\n100001\t2\t0\t\n",
            rows(Table::Accounts, (100_000, 100_001), Columns::All)
        );
        assert_eq!(
            "100000\t1\n100001\t2\n",
            rows(Table::Accounts, (100_000, 100_001), Columns::Varying)
        );
    }
}
