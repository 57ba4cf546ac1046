//! Numbers of a command line, read as C's strtol and atof read them.

/// A whole number of an option, within a range.
///
/// # Errors
/// pgbench's message.
pub fn whole(text: &str, option: &str, least: i64, greatest: i64) -> Result<i64, String> {
    let (value, rest) = prefix_integer(text);
    if !rest.trim_matches(is_space).is_empty() {
        return Err(format!("invalid value \"{text}\" for option {option}"));
    }
    match value {
        Some(value) if (least..=greatest).contains(&value) => Ok(value),
        _ => Err(format!("{option} must be in range {least}..{greatest}")),
    }
}

/// The integer a text begins with (0 where it begins with none, None where it is out of range), and what follows.
pub fn prefix_integer(text: &str) -> (Option<i64>, &str) {
    let start = text.trim_start_matches(is_space);
    let signed = start.strip_prefix(['+', '-']).unwrap_or(start);
    let digits = signed.len()
        - signed
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .len();
    if digits == 0 {
        return (Some(0), text);
    }
    let end = start.len() - signed.len() + digits;
    (start[..end].parse().ok(), &start[end..])
}

/// The number a text begins with; 0 where it begins with none. What follows is passed over.
pub fn prefix_double(text: &str) -> f64 {
    let start = text.trim_start_matches(is_space);
    (1..=start.len())
        .rev()
        .filter(|&end| start.is_char_boundary(end))
        .find_map(|end| start[..end].parse().ok())
        .unwrap_or(0.0)
}

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_a_range_and_nothing_behind() {
        let read = |text| whole(text, "-c/--clients", 1, i64::from(i32::MAX));
        assert_eq!(Ok(3), read(" +3 "));
        let invalid = |text: &str| Err(format!("invalid value \"{text}\" for option -c/--clients"));
        for text in ["three", "3x", "3 4", "1.5"] {
            assert_eq!(invalid(text), read(text));
        }
        for text in ["", "0", "-1", "2147483648", "99999999999999999999"] {
            let message = "-c/--clients must be in range 1..2147483647";
            assert_eq!(Err(message.to_owned()), read(text), "{text}");
        }
    }

    #[test]
    fn doubles_are_read_as_far_as_they_go() {
        for (text, value) in [("5x", 5.0), (" 1e2", 100.0), ("1.5.2", 1.5), ("x", 0.0)] {
            assert_eq!(value, prefix_double(text), "{text}");
        }
    }
}
