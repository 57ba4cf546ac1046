//! The null server's messages, made once: a reply is put together from constant pieces.

use super::statement::SETTINGS;

/// What the null server says it is. Clients read a number at the beginning.
pub const SERVER_VERSION: &str = "15.0 (pgdyno null server)";

/// What is told about the session at its start.
const PARAMETERS: &[(&str, &str)] = &[
    ("server_version", SERVER_VERSION),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("default_transaction_read_only", "off"),
    ("in_hot_standby", "off"),
];

/// The scale that pgbench's built-in scripts find.
const BRANCHES: &[u8] = b"100";

/// Type number of `text`: its text and binary formats are the same bytes, so a client may ask for either.
const TEXT_TYPE: i32 = 25;

/// The constant rows every query is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of a result.
    pub rows: usize,
    /// Bytes of the one value of each row.
    pub row_bytes: usize,
}

/// Constant pieces of replies.
#[derive(Debug)]
pub struct Answers {
    /// The shape of a result.
    pub shape: Shape,
    /// RowDescription of the one column `value`.
    pub columns: Vec<u8>,
    /// One DataRow.
    pub row: Vec<u8>,
    /// All DataRows of a result.
    pub rows: Vec<u8>,
    /// AuthenticationOk and the parameters; BackendKeyData and ReadyForQuery follow.
    pub parameters: Vec<u8>,
    /// RowDescription and DataRow of the number of branches.
    pub branches: (Vec<u8>, Vec<u8>),
    /// For each of `SETTINGS` its RowDescription and its DataRow.
    pub settings: Vec<(Vec<u8>, Vec<u8>)>,
}

/// AuthenticationOk.
pub const AUTHENTICATION_OK: &[u8] = b"R\0\0\0\x08\0\0\0\0";
/// ParseComplete.
pub const PARSE_COMPLETE: &[u8] = b"1\0\0\0\x04";
/// BindComplete.
pub const BIND_COMPLETE: &[u8] = b"2\0\0\0\x04";
/// CloseComplete.
pub const CLOSE_COMPLETE: &[u8] = b"3\0\0\0\x04";
/// NoData.
pub const NO_DATA: &[u8] = b"n\0\0\0\x04";
/// EmptyQueryResponse.
pub const EMPTY_QUERY: &[u8] = b"I\0\0\0\x04";
/// PortalSuspended.
pub const PORTAL_SUSPENDED: &[u8] = b"s\0\0\0\x04";
/// NegotiateProtocolVersion: 3.0 is the newest spoken, every option is known (none is used).
pub const NEGOTIATE_VERSION: &[u8] = b"v\0\0\0\x0c\0\x03\0\0\0\0\0\0";

impl Answers {
    /// Make the pieces for results of this shape.
    pub fn new(shape: Shape) -> Self {
        let mut row = Vec::new();
        let value: Vec<u8> = b"1234567890"
            .iter()
            .copied()
            .cycle()
            .take(shape.row_bytes)
            .collect();
        put_row(&mut row, &value);
        let mut parameters = AUTHENTICATION_OK.to_vec();
        for (name, value) in PARAMETERS {
            put_message(
                &mut parameters,
                b'S',
                &[name.as_bytes(), b"\0", value.as_bytes(), b"\0"],
            );
        }
        let settings = SETTINGS.iter().map(|(name, value)| {
            let mut row = Vec::new();
            put_row(&mut row, value.as_bytes());
            (columns(if name.is_empty() { "setting" } else { name }), row)
        });
        let mut branches = Vec::new();
        put_row(&mut branches, BRANCHES);
        Self {
            shape,
            branches: (columns("count"), branches),
            columns: columns("value"),
            rows: row.repeat(shape.rows),
            row,
            parameters,
            settings: settings.collect(),
        }
    }
}

/// BackendKeyData. The secret is not one: a cancel request is ignored.
pub fn put_key(out: &mut Vec<u8>, session: u32) {
    put_message(out, b'K', &[&session.to_be_bytes(), &session.to_be_bytes()]);
}

/// ReadyForQuery with the transaction's status.
pub fn put_ready(out: &mut Vec<u8>, status: u8) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status]);
}

/// CommandComplete.
pub fn put_complete(out: &mut Vec<u8>, tag: &str) {
    put_message(out, b'C', &[tag.as_bytes(), b"\0"]);
}

/// CommandComplete of a query with so many rows.
pub fn put_selected(out: &mut Vec<u8>, rows: usize) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(rows).as_bytes();
    put_message(out, b'C', &[b"SELECT ", digits, b"\0"]);
}

/// ParameterDescription: so many texts.
pub fn put_parameter_types(out: &mut Vec<u8>, count: u16) {
    let length = 4 + 2 + 4 * i32::from(count);
    out.push(b't');
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&count.to_be_bytes());
    for _ in 0..count {
        out.extend_from_slice(&TEXT_TYPE.to_be_bytes());
    }
}

/// ErrorResponse.
pub fn put_error(out: &mut Vec<u8>, severity: &str, sqlstate: &str, message: &str) {
    let severity = severity.as_bytes();
    let parts: [&[u8]; 9] = [
        b"S",
        severity,
        b"\0V",
        severity,
        b"\0C",
        sqlstate.as_bytes(),
        b"\0M",
        message.as_bytes(),
        b"\0\0",
    ];
    put_message(out, b'E', &parts);
}

fn columns(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let table_and_column = [0; 6];
    let any_size_text_format = [255, 255, 255, 255, 255, 255, 0, 0];
    let parts: [&[u8]; 6] = [
        &1_u16.to_be_bytes(),
        name.as_bytes(),
        b"\0",
        &table_and_column,
        &TEXT_TYPE.to_be_bytes(),
        &any_size_text_format,
    ];
    put_message(&mut out, b'T', &parts);
    out
}

fn put_row(out: &mut Vec<u8>, value: &[u8]) {
    let length = value.len() as u32;
    put_message(
        out,
        b'D',
        &[&1_u16.to_be_bytes(), &length.to_be_bytes(), value],
    );
}

fn put_message(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    out.push(kind);
    out.extend_from_slice(&(length as u32).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}
