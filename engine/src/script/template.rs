//! A text with `:variables` in it: SQL commands, shell words and rows of a load.

use super::variables::{Names, Slot, Variables, is_name, is_name_byte};

/// A text cut at its variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Pieces in order; a variable's piece follows the literal before it.
    pieces: Vec<Piece>,
    /// Literal text after the last variable.
    tail: Box<str>,
}

/// A literal and the variable after it.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    literal: Box<str>,
    slot: Slot,
    /// As written, colon included, for variables that are not defined.
    written: Box<str>,
}

impl Template {
    /// Cut a text at its `:name`s. `::` is never a variable, nor is a colon before a digit.
    pub fn parse(text: &str, names: &mut Names) -> Self {
        let bytes = text.as_bytes();
        let mut pieces = Vec::new();
        let (mut literal, mut offset) = (0, 0);
        while let Some(distance) = bytes[offset..].iter().position(|&byte| byte == b':') {
            let colon = offset + distance;
            let length = bytes[colon + 1..]
                .iter()
                .take_while(|&&byte| is_name_byte(byte))
                .count();
            let end = colon + 1 + length;
            if is_name(&bytes[colon + 1..end]) {
                pieces.push(Piece {
                    literal: text[literal..colon].into(),
                    slot: names.slot(&text[colon + 1..end]),
                    written: text[colon..end].into(),
                });
                (literal, offset) = (end, end);
            } else {
                offset = colon
                    + bytes[colon..]
                        .iter()
                        .take_while(|&&byte| byte == b':')
                        .count();
            }
        }
        Self {
            pieces,
            tail: text[literal..].into(),
        }
    }

    /// The variables, in order, once for each mention.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = Slot> + '_ {
        self.pieces.iter().map(|piece| piece.slot)
    }

    /// The text as it was written.
    pub fn written(&self) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            out.push_str(&piece.literal);
            out.push_str(&piece.written);
        }
        out + &self.tail
    }

    /// The text with `$1`, `$2`, … in place of the variables.
    pub fn numbered(&self) -> String {
        let mut out = String::new();
        for (index, piece) in self.pieces.iter().enumerate() {
            out.push_str(&piece.literal);
            out.push_str(&format!("${}", index + 1));
        }
        out + &self.tail
    }

    /// Append the text with the variables' values; what is not defined stays as written.
    pub fn substitute(&self, variables: &Variables, out: &mut Vec<u8>) {
        self.substitute_with(variables, out, Variables::append_text);
    }

    /// As [`Template::substitute`], with `append` writing a value and telling whether it did.
    pub fn substitute_with(
        &self,
        variables: &Variables,
        out: &mut Vec<u8>,
        append: impl Fn(&Variables, Slot, &mut Vec<u8>) -> bool,
    ) {
        for piece in &self.pieces {
            out.extend_from_slice(piece.literal.as_bytes());
            if !append(variables, piece.slot, out) {
                out.extend_from_slice(piece.written.as_bytes());
            }
        }
        out.extend_from_slice(self.tail.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::values::Value;
    use super::{Names, Template, Variables};

    #[test]
    fn variables_are_numbered_by_mention_and_casts_left_alone() {
        let mut names = Names::default();
        let template = Template::parse("select :a::int, '12:30:45', :a || ':b', :é;", &mut names);
        assert_eq!(
            template.numbered(),
            "select $1::int, '12:30:45', $2 || '$3', $4;"
        );
        let slots: Vec<_> = template.slots().collect();
        assert_eq!(slots[0], slots[1]);
    }

    #[test]
    fn undefined_variables_stay_as_written_when_substituted() {
        let mut names = Names::default();
        let template = Template::parse(":a+:b", &mut names);
        let slot = names.slot("a");
        let mut variables = Variables::new(Arc::new(names));
        variables.set(slot, Value::Integer(-5));
        let mut out = Vec::new();
        template.substitute(&variables, &mut out);
        assert_eq!(out, b"-5+:b");
    }
}
