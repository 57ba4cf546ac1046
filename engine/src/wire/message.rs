//! What the server's messages hold: rows, columns, errors; views into the bytes received, nothing is copied.

/// A place where the server broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError(pub String);

impl std::fmt::Display for ProtocolError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the server broke the protocol: {}", self.0)
    }
}

/// A whole DataRow, checked when it was made: reading it cannot fail.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    count: usize,
    fields: &'a [u8],
}

impl<'a> Row<'a> {
    /// Check the body of a DataRow: its fields must fill it exactly.
    pub fn new(body: &'a [u8]) -> Result<Self, ProtocolError> {
        let malformed = || ProtocolError("malformed DataRow".into());
        let (count, fields) = take_u16(body).ok_or_else(malformed)?;
        let mut rest = fields;
        for _ in 0..count {
            let (length, after) = take_i32(rest).ok_or_else(malformed)?;
            let length = if length == -1 {
                0
            } else {
                usize::try_from(length).map_err(|_| malformed())?
            };
            rest = after.get(length..).ok_or_else(malformed)?;
        }
        if !rest.is_empty() {
            return Err(malformed());
        }
        Ok(Self {
            count: count as usize,
            fields,
        })
    }

    /// The values in order; None is NULL.
    pub fn values(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let (count, mut rest) = (self.count, self.fields);
        (0..count).map(move |_| {
            let (length, after) = take_i32(rest).unwrap_or((-1, &[]));
            let Ok(length) = usize::try_from(length) else {
                rest = after;
                return None;
            };
            let (value, after) = after.split_at_checked(length).unwrap_or((&[], &[]));
            rest = after;
            Some(value)
        })
    }

    /// The value of column `index` (from 0); None when NULL or not there.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.values().nth(index).flatten()
    }
}

/// A RowDescription, checked when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    count: usize,
    fields: &'a [u8],
}

/// Bytes of a column's description after its name: table, column, type, size, modifier, format.
const COLUMN_TAIL: usize = 4 + 2 + 4 + 2 + 4 + 2;

impl<'a> Columns<'a> {
    /// Check the body of a RowDescription.
    pub fn new(body: &'a [u8]) -> Result<Self, ProtocolError> {
        let malformed = || ProtocolError("malformed RowDescription".into());
        let (count, fields) = take_u16(body).ok_or_else(malformed)?;
        let mut rest = fields;
        for _ in 0..count {
            let (_, after) = take_cstring(rest).ok_or_else(malformed)?;
            rest = after.get(COLUMN_TAIL..).ok_or_else(malformed)?;
        }
        if !rest.is_empty() {
            return Err(malformed());
        }
        Ok(Self {
            count: count as usize,
            fields,
        })
    }

    /// The names in order.
    pub fn names(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (count, mut rest) = (self.count, self.fields);
        (0..count).map(move |_| {
            let (name, after) = take_cstring(rest).unwrap_or((&[], &[]));
            rest = after.get(COLUMN_TAIL..).unwrap_or(&[]);
            name
        })
    }
}

/// The fields of an ErrorResponse or NoticeResponse that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerError<'a> {
    /// `ERROR`, `FATAL`, `WARNING`, … never translated (field V, or S of servers before 9.6).
    pub severity: &'a [u8],
    /// Five characters.
    pub sqlstate: &'a [u8],
    /// Primary text.
    pub message: &'a [u8],
    /// Further advice of the server.
    pub hint: &'a [u8],
    /// The whole body of the message.
    pub body: &'a [u8],
}

impl<'a> ServerError<'a> {
    /// Read the body of an ErrorResponse or NoticeResponse; unknown fields are passed over.
    pub fn new(body: &'a [u8]) -> Self {
        let mut error = Self {
            body,
            ..Self::default()
        };
        let mut rest = body;
        while let Some((&kind, after)) = rest.split_first() {
            let Some((value, after)) = take_cstring(after) else {
                break;
            };
            match kind {
                b'V' => error.severity = value,
                b'S' if error.severity.is_empty() => error.severity = value,
                b'C' => error.sqlstate = value,
                b'M' => error.message = value,
                b'H' => error.hint = value,
                _ => {}
            }
            rest = after;
        }
        error
    }

    /// The primary text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.message).into_owned()
    }

    /// Any field by its letter; empty when it is not there.
    pub fn field(&self, wanted: u8) -> &'a [u8] {
        let mut rest = self.body;
        while let Some((&kind, after)) = rest.split_first() {
            let Some((value, after)) = take_cstring(after) else {
                break;
            };
            if kind == wanted {
                return value;
            }
            rest = after;
        }
        &[]
    }

    /// The SQLSTATE as text.
    pub fn state(&self) -> String {
        String::from_utf8_lossy(self.sqlstate).into_owned()
    }
}

/// A big-endian u16 and what follows.
pub fn take_u16(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    Some((u16::from_be_bytes(*head), rest))
}

/// A big-endian i32 and what follows.
pub fn take_i32(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    Some((i32::from_be_bytes(*head), rest))
}

/// A text that ends with a zero byte (not included), and what follows.
pub fn take_cstring(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_row_gives_its_values_and_nulls() {
        let body = [0, 3, 0, 0, 0, 2, b'4', b'2', 255, 255, 255, 255, 0, 0, 0, 0];
        let row = Row::new(&body).unwrap();
        assert_eq!(
            vec![Some(&b"42"[..]), None, Some(&b""[..])],
            row.values().collect::<Vec<_>>()
        );
        assert_eq!(Some(&b"42"[..]), row.get(0));
        assert_eq!(None, row.get(1));
        assert_eq!(None, row.get(3));
    }

    #[test]
    fn columns_give_their_names() {
        let mut body = vec![0, 2];
        for name in ["id", "ret"] {
            body.extend_from_slice(name.as_bytes());
            body.extend_from_slice(&[0; 1 + COLUMN_TAIL]);
        }
        let columns = Columns::new(&body).unwrap();
        assert_eq!(
            vec![&b"id"[..], b"ret"],
            columns.names().collect::<Vec<_>>()
        );
    }

    #[test]
    fn an_error_gives_its_fields() {
        let error = ServerError::new(b"SFEHLER\0VERROR\0C23505\0Mduplicate key\0Xwhat\0\0");
        assert_eq!(
            (&b"ERROR"[..], "23505".into(), "duplicate key".into()),
            (error.severity, error.state(), error.text())
        );
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(row) = Row::new(&body) {
                prop_assert_eq!(row.count, row.values().count());
            }
            if let Ok(columns) = Columns::new(&body) {
                prop_assert_eq!(columns.count, columns.names().count());
            }
            let _ = ServerError::new(&body);
        }
    }
}
