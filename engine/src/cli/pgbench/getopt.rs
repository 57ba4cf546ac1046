//! Words of a command line by the rules of GNU getopt_long: long names may be cut short, values may follow in the same
//! word or the next, options and other words may stand in any order, and `--` ends the options.

/// An option that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its long name, without the dashes; empty: it has none.
    pub long: &'static str,
    /// Its letter.
    pub letter: Option<char>,
    /// Whether a value belongs to it.
    pub takes: Takes,
    /// How much of the long name is enough.
    pub spelling: Spelling,
}

/// How much of a long name is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// What no other option begins with.
    Short,
    /// All of it: options of our own must not make the short forms of stock ones ambiguous.
    Full,
}

/// Whether a value belongs to an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It must have one.
    Value,
    /// It may have one, in the same word after `=`.
    ValueInWord,
    /// It has one unless the next word is an option.
    ValueUnlessOption,
    /// It has none.
    Nothing,
}

/// What a command line says, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An option: its place in the table of known ones, and its value (empty where it takes none).
    Option(usize, String),
    /// What is wrong with a word; the rest is not worth reading.
    Wrong(String),
}

/// Read all words: what they say, and the words that are no options.
///
/// Everything before a wrong word is read, because options act in order and an earlier one may end the program.
pub fn read(words: &[String], known: &[Known]) -> (Vec<Item>, Vec<String>) {
    let mut reader = Reader {
        words,
        next: 0,
        known,
        items: Vec::new(),
        others: Vec::new(),
    };
    reader.all();
    (reader.items, reader.others)
}

struct Reader<'a> {
    words: &'a [String],
    next: usize,
    known: &'a [Known],
    items: Vec<Item>,
    others: Vec<String>,
}

impl<'a> Reader<'a> {
    fn take(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.next)?;
        self.next += 1;
        Some(word)
    }

    fn all(&mut self) {
        while let Some(word) = self.take() {
            let read = match word.strip_prefix("--") {
                Some("") => {
                    self.others.extend_from_slice(&self.words[self.next..]);
                    return;
                }
                Some(long) => self.long(long),
                None => match word.strip_prefix('-') {
                    Some(letters) if !letters.is_empty() => self.letters(letters),
                    _ => {
                        self.others.push(word.to_owned());
                        Ok(())
                    }
                },
            };
            if let Err(wrong) = read {
                return self.items.push(Item::Wrong(wrong));
            }
        }
    }

    fn long(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let index = self.by_name(name, text)?;
        let Known { long, takes, .. } = self.known[index];
        let value = match (takes, value) {
            (Takes::Nothing, Some(_)) => {
                return Err(format!("option '--{long}' doesn't allow an argument"));
            }
            (_, Some(value)) => value,
            (Takes::Nothing | Takes::ValueInWord, None) => "",
            (Takes::Value | Takes::ValueUnlessOption, None) => self
                .take()
                .ok_or_else(|| format!("option '--{long}' requires an argument"))?,
        };
        self.items.push(Item::Option(index, value.to_owned()));
        Ok(())
    }

    /// The only option whose long name is this, or begins so; `text` is the word behind `--`.
    fn by_name(&self, name: &str, text: &str) -> Result<usize, String> {
        let exact = self.known.iter().position(|known| known.long == name);
        if let (Some(index), false) = (exact, name.is_empty()) {
            return Ok(index);
        }
        let begins = |known: &Known| {
            known.spelling == Spelling::Short
                && !known.long.is_empty()
                && known.long.starts_with(name)
        };
        let found: Vec<_> = (0..self.known.len())
            .filter(|&index| begins(&self.known[index]))
            .collect();
        match found.as_slice() {
            [only] => Ok(*only),
            [] => Err(format!("unrecognized option '--{text}'")),
            several => {
                let names: String = several
                    .iter()
                    .map(|&index| format!(" '--{}'", self.known[index].long))
                    .collect();
                Err(format!(
                    "option '--{name}' is ambiguous; possibilities:{names}"
                ))
            }
        }
    }

    /// Whether the next word is an option, or there is none.
    fn option_follows(&self) -> bool {
        self.words
            .get(self.next)
            .is_none_or(|word| word.len() > 1 && word.starts_with('-'))
    }

    fn letters(&mut self, letters: &str) -> Result<(), String> {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            let index = self
                .known
                .iter()
                .position(|known| known.letter == Some(letter))
                .ok_or_else(|| format!("invalid option -- '{letter}'"))?;
            let has_none = match self.known[index].takes {
                Takes::Nothing | Takes::ValueInWord => true,
                Takes::ValueUnlessOption => rest.as_str().is_empty() && self.option_follows(),
                Takes::Value => false,
            };
            if has_none {
                self.items.push(Item::Option(index, String::new()));
                continue;
            }
            let value = match rest.as_str() {
                "" => self
                    .take()
                    .ok_or_else(|| format!("option requires an argument -- '{letter}'"))?,
                value => value,
            };
            self.items.push(Item::Option(index, value.to_owned()));
            return Ok(());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known] = &[
        Known {
            long: "client",
            letter: Some('c'),
            takes: Takes::Value,
            spelling: Spelling::Short,
        },
        Known {
            long: "connect",
            letter: Some('C'),
            takes: Takes::Nothing,
            spelling: Spelling::Short,
        },
        Known {
            long: "log",
            letter: Some('l'),
            takes: Takes::Nothing,
            spelling: Spelling::Short,
        },
        Known {
            long: "clearly",
            letter: None,
            takes: Takes::ValueInWord,
            spelling: Spelling::Full,
        },
        Known {
            long: "",
            letter: Some('d'),
            takes: Takes::ValueUnlessOption,
            spelling: Spelling::Short,
        },
        Known {
            long: "log-prefix",
            letter: None,
            takes: Takes::Value,
            spelling: Spelling::Short,
        },
    ];

    fn read_line(line: &str) -> (Vec<String>, Vec<String>) {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let (items, others) = read(&words, KNOWN);
        let shown = |item| match item {
            Item::Option(index, value) => format!("{}={value}", KNOWN[index].long),
            Item::Wrong(message) => message,
        };
        (items.into_iter().map(shown).collect(), others)
    }

    #[test]
    fn every_way_to_write_an_option_means_the_same() {
        for line in [
            "-c 2 -l",
            "-c2 -l",
            "--client 2 --log",
            "--client=2 -l",
            "--cl 2 -l",
        ] {
            assert_eq!(vec!["client=2", "log="], read_line(line).0, "{line}");
        }
        assert_eq!(vec!["log=", "connect=", "client=2"], read_line("-lCc2").0);
        assert_eq!(vec!["client="], read_line("--client=").0);
    }

    #[test]
    fn values_may_be_optional_and_names_may_have_to_be_whole() {
        assert_eq!(vec!["clearly="], read_line("--clearly x").0);
        assert_eq!(vec!["clearly=x"], read_line("--clearly=x").0);
        assert_eq!(vec!["client=x"], read_line("--cl=x").0);
        assert_eq!(vec!["=", "log="], read_line("-d -l").0);
        assert_eq!(vec!["=db", "log="], read_line("-d db -l").0);
        assert_eq!(vec!["="], read_line("-d").0);
    }

    #[test]
    fn other_words_may_stand_anywhere() {
        let (items, others) = read_line("db -c -1 - -- -l");
        assert_eq!((vec!["client=-1".to_owned()]), items);
        assert_eq!(vec!["db", "-", "-l"], others);
    }

    #[test]
    fn what_is_wrong_ends_the_reading() {
        for (line, message) in [
            ("-x -l", "invalid option -- 'x'"),
            ("--nope -l", "unrecognized option '--nope'"),
            ("--nope=1", "unrecognized option '--nope=1'"),
            (
                "--c 1 -l",
                "option '--c' is ambiguous; possibilities: '--client' '--connect'",
            ),
            ("--log=1", "option '--log' doesn't allow an argument"),
            ("-c", "option requires an argument -- 'c'"),
            ("--client", "option '--client' requires an argument"),
        ] {
            assert_eq!(vec![message.to_owned()], read_line(line).0, "{line}");
        }
        assert_eq!(vec!["log=", "invalid option -- 'x'"], read_line("-lx").0);
    }
}
