//! The scripts a command line asks for: built in, from files or from the standard input, each with its weight.

use std::fs::File;
use std::io::{self, Read};

use super::builtin::BuiltIn;
use super::numbers::prefix_integer;
use super::options::{Origin, Script};

/// Most scripts of a run.
pub const SCRIPTS_MAX: usize = 128;

/// A built-in script as one of the mix.
pub fn of_builtin(script: &BuiltIn, weight: u32) -> Script {
    Script {
        description: script.description.to_owned(),
        text: script.text.to_owned(),
        weight,
        origin: Origin::BuiltIn,
    }
}

/// Read a script from a file; `-` is the standard input.
///
/// # Errors
/// pgbench's message.
pub fn of_file(name: &str, weight: u32) -> Result<Script, String> {
    let mut bytes = Vec::new();
    let read = if name == "-" {
        io::stdin().read_to_end(&mut bytes)
    } else {
        let mut file = File::open(name).map_err(|error| {
            format!(
                "could not open file \"{name}\": {}",
                crate::reactor::reason(&error)
            )
        })?;
        file.read_to_end(&mut bytes)
    };
    read.map_err(|error| {
        format!(
            "could not read file \"{name}\": {}",
            crate::reactor::reason(&error)
        )
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| format!("could not read file \"{name}\": it is not valid UTF-8"))?;
    Ok(Script {
        description: name.to_owned(),
        text,
        weight,
        origin: Origin::File,
    })
}

/// A name and its weight, which follows the last `@`; 1 where there is none.
///
/// # Errors
/// pgbench's message.
pub fn weighted(word: &str) -> Result<(&str, u32), String> {
    let Some(at) = word.rfind('@') else {
        return Ok((word, 1));
    };
    let digits = &word[at + 1..];
    let (number, rest) = prefix_integer(digits);
    let Some(number) = number.filter(|_| rest.is_empty() && !digits.is_empty()) else {
        return Err(format!("invalid weight specification: {}", &word[at..]));
    };
    match u32::try_from(number) {
        Ok(weight) if weight <= i32::MAX as u32 => Ok((&word[..at], weight)),
        _ => Err(format!(
            "weight specification out of range (0 .. {}): {number}",
            i32::MAX
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_follows_the_last_at() {
        assert_eq!(Ok(("a", 1)), weighted("a"));
        assert_eq!(Ok(("a@b", 3)), weighted("a@b@3"));
        assert_eq!(Ok(("a", 0)), weighted("a@0"));
        for (word, message) in [
            ("a@one", "invalid weight specification: @one"),
            ("a@", "invalid weight specification: @"),
            ("a@1x", "invalid weight specification: @1x"),
            (
                "a@-1",
                "weight specification out of range (0 .. 2147483647): -1",
            ),
            (
                "a@2147483648",
                "weight specification out of range (0 .. 2147483647): 2147483648",
            ),
        ] {
            assert_eq!(Err(message.to_owned()), weighted(word));
        }
    }

    #[test]
    fn a_missing_file_is_told() {
        let message = "could not open file \"/no/such\": No such file or directory";
        assert_eq!(Err(message.to_owned()), of_file("/no/such", 1));
    }
}
