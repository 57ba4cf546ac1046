//! Variables: names are resolved to slots when scripts are parsed; a client holds one value per
//! slot.
//!
//! A value that came as text (from the plan, the server or a shell) stays text until an expression
//! uses it, and is sent to the server exactly as it came.

use std::collections::HashMap;
use std::sync::Arc;

use super::values::{EvaluationError, Value, fail};

/// Place of a variable in every client's [`Variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

/// All names that the scripts of a plan mention, each with its slot.
#[derive(Clone, Debug, Default)]
pub struct Names {
    slots: HashMap<Box<str>, Slot>,
    names: Vec<Box<str>>,
}

impl Names {
    /// The slot of a name, made at its first mention.
    pub fn slot(&mut self, name: &str) -> Slot {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot = Slot(self.names.len() as u32);
        self.slots.insert(name.into(), slot);
        self.names.push(name.into());
        slot
    }

    /// The slot of a name that is mentioned somewhere.
    pub fn find(&self, name: &str) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    /// The slot of `prefix` followed by `column`, without building the joined name.
    pub fn find_joined(&self, prefix: &str, column: &[u8]) -> Option<Slot> {
        let joined = |name: &str| {
            name.as_bytes()
                .strip_prefix(prefix.as_bytes())
                .is_some_and(|rest| rest == column)
        };
        let index = self.names.iter().position(|name| joined(name))?;
        Some(Slot(index as u32))
    }

    /// The name of a slot.
    pub fn name(&self, slot: Slot) -> &str {
        &self.names[slot.0 as usize]
    }
}

/// Whether a byte may stand in a variable's name (after the first, digits too).
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Whether a text may be a variable's name: letters, `_`, anything not ASCII, and digits but not
/// first.
pub fn is_name(text: &[u8]) -> bool {
    text.first().is_some_and(|first| !first.is_ascii_digit())
        && text.iter().all(|&byte| is_name_byte(byte))
}

/// What a variable holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Content {
    /// Never assigned.
    Undefined,
    /// Result of an expression.
    Computed(Value),
    /// Text that no expression has used yet.
    Text,
    /// Text, and what it is as a value.
    TypedText(Value),
}

/// One variable; its text buffer is kept and reused, so that assigning allocates only at first.
#[derive(Clone, Debug)]
struct Variable {
    content: Content,
    text: Vec<u8>,
}

/// The variables of one client.
#[derive(Clone, Debug)]
pub struct Variables {
    names: Arc<Names>,
    variables: Vec<Variable>,
}

impl Variables {
    /// All undefined.
    pub fn new(names: Arc<Names>) -> Self {
        let variables = vec![
            Variable {
                content: Content::Undefined,
                text: Vec::new()
            };
            names.names.len()
        ];
        Self { names, variables }
    }

    /// The names behind the slots.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Assign the result of an expression.
    #[inline]
    pub fn set(&mut self, slot: Slot, value: Value) {
        self.variables[slot.0 as usize].content = Content::Computed(value);
    }

    /// Assign text.
    pub fn set_text(&mut self, slot: Slot, text: &[u8]) {
        let variable = &mut self.variables[slot.0 as usize];
        variable.content = Content::Text;
        variable.text.clear();
        variable.text.extend_from_slice(text);
    }

    /// Assign text by name, if any script mentions it.
    pub fn set_text_by_name(&mut self, name: &str, text: &[u8]) {
        if let Some(slot) = self.names.find(name) {
            self.set_text(slot, text);
        }
    }

    /// Whether it was ever assigned.
    pub fn is_defined(&self, slot: Slot) -> bool {
        self.variables[slot.0 as usize].content != Content::Undefined
    }

    /// The value an expression sees.
    ///
    /// # Errors
    /// Undefined variables, and text that is no value.
    #[inline]
    pub fn value(&mut self, slot: Slot) -> Result<Value, EvaluationError> {
        match self.variables[slot.0 as usize].content {
            Content::Computed(value) | Content::TypedText(value) => Ok(value),
            Content::Text => self.typed_text(slot),
            Content::Undefined => fail(format!("undefined variable \"{}\"", self.names.name(slot))),
        }
    }

    /// Find out what a text is as a value, once.
    #[cold]
    fn typed_text(&mut self, slot: Slot) -> Result<Value, EvaluationError> {
        let variable = &mut self.variables[slot.0 as usize];
        let Some(value) = Value::from_text(&variable.text) else {
            let (name, text) = (
                self.names.name(slot),
                String::from_utf8_lossy(&variable.text),
            );
            return fail(format!("malformed variable \"{name}\" value: \"{text}\""));
        };
        variable.content = Content::TypedText(value);
        Ok(value)
    }

    /// Append the text of a variable; false (and nothing appended) when it is undefined.
    #[inline]
    pub fn append_text(&self, slot: Slot, out: &mut Vec<u8>) -> bool {
        let variable = &self.variables[slot.0 as usize];
        match variable.content {
            Content::Undefined => return false,
            Content::Computed(value) => value.append_text(out),
            Content::Text | Content::TypedText(_) => out.extend_from_slice(&variable.text),
        }
        true
    }

    /// Whether it is the result of an expression, and not text from elsewhere.
    #[inline]
    pub fn is_computed(&self, slot: Slot) -> bool {
        matches!(
            self.variables[slot.0 as usize].content,
            Content::Computed(_)
        )
    }

    /// Whether SQL's NULL is what a parameter has to carry: undefined, or the result null.
    pub fn is_null(&self, slot: Slot) -> bool {
        matches!(
            self.variables[slot.0 as usize].content,
            Content::Undefined | Content::Computed(Value::Null)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Names, Value, Variables, is_name};

    #[test]
    fn text_is_sent_as_it_came_and_typed_when_used() {
        let mut names = Names::default();
        let slot = names.slot("d");
        let mut variables = Variables::new(Arc::new(names));
        assert!(!variables.is_defined(slot));
        assert!(
            variables
                .value(slot)
                .unwrap_err()
                .to_string()
                .contains("undefined variable \"d\"")
        );
        variables.set_text(slot, b"1.50");
        assert_eq!(variables.value(slot), Ok(Value::Double(1.5)));
        let mut out = Vec::new();
        assert!(variables.append_text(slot, &mut out));
        assert_eq!(out, b"1.50");
    }

    #[test]
    fn joined_names_are_found_without_building_them() {
        let mut names = Names::default();
        names.slot("a");
        let slot = names.slot("p_total");
        assert_eq!(names.find_joined("p_", b"total"), Some(slot));
        assert_eq!(names.find_joined("p", b"total"), None);
    }

    #[test]
    fn names_begin_with_anything_but_a_digit() {
        for (text, valid) in [
            ("a1", true),
            ("_", true),
            ("é", true),
            ("1a", false),
            ("", false),
            ("a-b", false),
        ] {
            assert_eq!(is_name(text.as_bytes()), valid, "{text:?}");
        }
    }
}
