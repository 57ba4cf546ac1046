//! Expressions from text: precedence climbing over the table in [`binary`].
//!
//! From weak to strong: OR; AND; NOT; IS, ISNULL, NOTNULL; comparisons; `| # & << >> ~`; `+ -`; `*
//! / %`; unary signs. Comparisons do not associate.

use super::expression::Expression;
use super::functions::{ARGUMENTS_MAX, Arity, Function};
use super::problem::Fault;
use super::tokens::{Token, Tokens};
use super::values::Value;
use super::variables::Names;

/// How deep an expression may nest, so that hostile input cannot exhaust the stack.
const DEPTH_MAX: usize = 200;

/// Strength of prefix NOT.
const NOT_STRENGTH: u8 = 3;
/// Strength of IS, ISNULL and NOTNULL.
const IS_STRENGTH: u8 = 4;
/// Strength of comparisons, which do not associate.
const COMPARISON_STRENGTH: u8 = 5;
/// Strength of prefix `~`, as of the other operators on bits.
const BITS_STRENGTH: u8 = 6;
/// Strength of prefix `+` and `-`.
const SIGN_STRENGTH: u8 = 9;

/// Parse `source[begin..end]` as one expression; variables are made slots of `names`.
///
/// # Errors
/// The first fault, at its place in `source`.
pub fn parse_expression(
    source: &str,
    (begin, end): (usize, usize),
    names: &mut Names,
) -> Result<Expression, Fault> {
    let mut tokens = Tokens::new(source, begin, end);
    let (offset, token) = tokens.next()?;
    let mut parser = Parser {
        tokens,
        offset,
        token,
        names,
        depth: 0,
    };
    let expression = parser.expression(0)?;
    match parser.token {
        Token::End => Ok(expression.tree),
        _ => Err(parser.unexpected()),
    }
}

/// A tree and how deep it is.
struct Parsed {
    tree: Expression,
    depth: usize,
}

/// What a binary operator makes of its sides.
#[derive(Clone, Copy)]
enum Binary {
    And,
    Or,
    /// The function, in the order as written.
    Call(Function),
    /// `a > b` is `b < a`, and so the right side is evaluated first, as in pgbench.
    Swapped(Function),
}

/// Strength and meaning of a binary operator.
fn binary(token: Token<'_>) -> Option<(u8, Binary)> {
    let call = |strength, function| Some((strength, Binary::Call(function)));
    match token {
        Token::Word(word) if word.eq_ignore_ascii_case("or") => Some((1, Binary::Or)),
        Token::Word(word) if word.eq_ignore_ascii_case("and") => Some((2, Binary::And)),
        Token::Symbol(symbol) => match symbol {
            "=" => call(COMPARISON_STRENGTH, Function::Equal),
            "<>" | "!=" => call(COMPARISON_STRENGTH, Function::Unequal),
            "<" => call(COMPARISON_STRENGTH, Function::Less),
            "<=" => call(COMPARISON_STRENGTH, Function::LessOrEqual),
            ">" => Some((COMPARISON_STRENGTH, Binary::Swapped(Function::Less))),
            ">=" => Some((COMPARISON_STRENGTH, Binary::Swapped(Function::LessOrEqual))),
            "|" => call(BITS_STRENGTH, Function::BitOr),
            "#" => call(BITS_STRENGTH, Function::BitXor),
            "&" => call(BITS_STRENGTH, Function::BitAnd),
            "<<" => call(BITS_STRENGTH, Function::ShiftLeft),
            ">>" => call(BITS_STRENGTH, Function::ShiftRight),
            "+" => call(7, Function::Add),
            "-" => call(7, Function::Subtract),
            "*" => call(8, Function::Multiply),
            "/" => call(8, Function::Divide),
            "%" => call(8, Function::Modulo),
            _ => None,
        },
        _ => None,
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    offset: usize,
    token: Token<'a>,
    names: &'a mut Names,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn advance(&mut self) -> Result<Token<'a>, Fault> {
        let token = self.token;
        (self.offset, self.token) = self.tokens.next()?;
        Ok(token)
    }

    fn unexpected(&self) -> Fault {
        let message = match self.token {
            Token::End => "syntax error: the expression ends too early".to_owned(),
            Token::Integer(number) => format!("syntax error at {number}"),
            Token::Double(number) => format!("syntax error at {number}"),
            Token::BeyondInteger => "bigint constant overflow (9223372036854775808)".to_owned(),
            Token::Variable(name) => format!("syntax error at :{name}"),
            Token::Word(word) => format!("syntax error at {word}"),
            Token::Symbol(symbol) => format!("syntax error at {symbol}"),
        };
        Fault::new(self.offset, message)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Fault> {
        if self.is_word(word) {
            self.advance().map(drop)
        } else {
            Err(self.unexpected())
        }
    }

    fn expect_symbol(&mut self, symbol: &'static str) -> Result<(), Fault> {
        if self.token == Token::Symbol(symbol) {
            self.advance().map(drop)
        } else {
            Err(self.unexpected())
        }
    }

    /// Join parts to a tree, unless it gets too deep.
    fn join(
        &self,
        tree: Expression,
        depths: impl IntoIterator<Item = usize>,
    ) -> Result<Parsed, Fault> {
        let depth = 1 + depths.into_iter().max().unwrap_or(0);
        if depth > DEPTH_MAX {
            return Err(Fault::new(
                self.offset,
                format!("expression nests deeper than {DEPTH_MAX} levels"),
            ));
        }
        Ok(Parsed { tree, depth })
    }

    fn leaf(tree: Expression) -> Parsed {
        Parsed { tree, depth: 1 }
    }

    fn call_one(&self, function: Function, argument: Parsed) -> Result<Parsed, Fault> {
        self.join(
            Expression::Call(function, Box::new([argument.tree])),
            [argument.depth],
        )
    }

    fn call_two(&self, function: Function, left: Parsed, right: Parsed) -> Result<Parsed, Fault> {
        let depths = [left.depth, right.depth];
        self.join(
            Expression::Call(function, Box::new([left.tree, right.tree])),
            depths,
        )
    }

    /// An expression of operators at least as strong as `weakest`.
    fn expression(&mut self, weakest: u8) -> Result<Parsed, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Fault::new(
                self.offset,
                format!("expression nests deeper than {DEPTH_MAX} levels"),
            ));
        }
        let mut left = self.prefix()?;
        // Comparisons do not associate: one may not follow another without parentheses.
        let mut after_comparison = false;
        loop {
            if let Some((strength, operator)) =
                binary(self.token).filter(|(strength, _)| *strength >= weakest)
            {
                if strength == COMPARISON_STRENGTH && after_comparison {
                    return Err(self.unexpected());
                }
                self.advance()?;
                let right = self.expression(strength + 1)?;
                left = self.combine(operator, left, right)?;
                after_comparison = strength == COMPARISON_STRENGTH;
            } else if IS_STRENGTH >= weakest && self.begins_is() {
                left = self.is_test(left)?;
                after_comparison = false;
            } else {
                break;
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    fn combine(&self, operator: Binary, left: Parsed, right: Parsed) -> Result<Parsed, Fault> {
        let depths = [left.depth, right.depth];
        match operator {
            Binary::And => self.join(Expression::And(Box::new([left.tree, right.tree])), depths),
            Binary::Or => self.join(Expression::Or(Box::new([left.tree, right.tree])), depths),
            Binary::Call(function) => self.call_two(function, left, right),
            Binary::Swapped(function) => self.call_two(function, right, left),
        }
    }

    fn begins_is(&self) -> bool {
        self.is_word("is") || self.is_word("isnull") || self.is_word("notnull")
    }

    /// IS [NOT] NULL|TRUE|FALSE, ISNULL, NOTNULL after their left side.
    fn is_test(&mut self, left: Parsed) -> Result<Parsed, Fault> {
        let mut negated = self.is_word("notnull");
        let mut wanted = Value::Null;
        let with_word = self.is_word("is");
        self.advance()?;
        if with_word {
            if self.is_word("not") {
                negated = true;
                self.advance()?;
            }
            wanted = match self.token {
                Token::Word(word) if word.eq_ignore_ascii_case("null") => Value::Null,
                Token::Word(word) if word.eq_ignore_ascii_case("true") => Value::Boolean(true),
                Token::Word(word) if word.eq_ignore_ascii_case("false") => Value::Boolean(false),
                _ => return Err(self.unexpected()),
            };
            self.advance()?;
        }
        let test = self.call_two(Function::Is, left, Self::leaf(Expression::Constant(wanted)))?;
        if negated {
            self.call_one(Function::Not, test)
        } else {
            Ok(test)
        }
    }

    fn prefix(&mut self) -> Result<Parsed, Fault> {
        let offset = self.offset;
        match self.token {
            Token::Integer(number) => self.constant(Value::Integer(number)),
            Token::Double(number) => self.constant(Value::Double(number)),
            Token::Variable(name) => {
                let slot = self.names.slot(name);
                self.advance()?;
                Ok(Self::leaf(Expression::Variable(slot)))
            }
            Token::Symbol("(") => {
                self.advance()?;
                let inner = self.expression(0)?;
                self.expect_symbol(")")?;
                Ok(inner)
            }
            Token::Symbol("+") => {
                self.advance()?;
                self.expression(SIGN_STRENGTH)
            }
            Token::Symbol("-") => self.negative(),
            Token::Symbol("~") => {
                self.advance()?;
                let operand = self.expression(BITS_STRENGTH + 1)?;
                self.call_two(
                    Function::BitXor,
                    operand,
                    Self::leaf(Expression::Constant(Value::Integer(-1))),
                )
            }
            Token::Word(word) => self.word(word, offset),
            Token::BeyondInteger | Token::Symbol(_) | Token::End => Err(self.unexpected()),
        }
    }

    fn constant(&mut self, value: Value) -> Result<Parsed, Fault> {
        self.advance()?;
        Ok(Self::leaf(Expression::Constant(value)))
    }

    /// `-x` is `0 - x`; only here may 9223372036854775808 stand.
    fn negative(&mut self) -> Result<Parsed, Fault> {
        self.advance()?;
        if self.token == Token::BeyondInteger {
            return self.constant(Value::Integer(i64::MIN));
        }
        let operand = self.expression(SIGN_STRENGTH)?;
        self.call_two(
            Function::Subtract,
            Self::leaf(Expression::Constant(Value::Integer(0))),
            operand,
        )
    }

    fn word(&mut self, word: &'a str, offset: usize) -> Result<Parsed, Fault> {
        match word.to_ascii_lowercase().as_str() {
            "null" => self.constant(Value::Null),
            "true" => self.constant(Value::Boolean(true)),
            "false" => self.constant(Value::Boolean(false)),
            "not" => {
                self.advance()?;
                let operand = self.expression(NOT_STRENGTH)?;
                self.call_one(Function::Not, operand)
            }
            "case" => self.case(),
            "and" | "or" | "is" | "isnull" | "notnull" | "when" | "then" | "else" | "end" => {
                Err(self.unexpected())
            }
            _ => self.function(word, offset),
        }
    }

    fn case(&mut self) -> Result<Parsed, Fault> {
        self.advance()?;
        let mut branches = Vec::new();
        let mut depth = 0;
        while branches.is_empty() || self.is_word("when") {
            self.expect_word("when")?;
            let condition = self.expression(0)?;
            self.expect_word("then")?;
            let result = self.expression(0)?;
            depth = depth.max(condition.depth).max(result.depth);
            branches.push((condition.tree, result.tree));
        }
        let mut otherwise = Expression::Constant(Value::Null);
        if self.is_word("else") {
            self.advance()?;
            let last = self.expression(0)?;
            depth = depth.max(last.depth);
            otherwise = last.tree;
        }
        self.expect_word("end")?;
        self.join(
            Expression::Case(branches.into(), Box::new(otherwise)),
            [depth],
        )
    }

    fn function(&mut self, name: &str, offset: usize) -> Result<Parsed, Fault> {
        let Some((function, arity)) = Function::by_name(name) else {
            return Err(Fault::new(
                offset,
                format!("unexpected function name ({name})"),
            ));
        };
        self.advance()?;
        self.expect_symbol("(")?;
        let mut arguments = Vec::new();
        let mut depth = 0;
        while self.token != Token::Symbol(")") {
            if !arguments.is_empty() {
                self.expect_symbol(",")?;
            }
            let argument = self.expression(0)?;
            depth = depth.max(argument.depth);
            arguments.push(argument.tree);
        }
        self.advance()?;
        if arguments.len() > ARGUMENTS_MAX {
            return Err(Fault::when_run(
                offset,
                format!("too many function arguments, maximum is {ARGUMENTS_MAX}"),
            ));
        }
        match arity {
            Arity::Some if arguments.is_empty() => {
                return Err(Fault::new(
                    offset,
                    format!("at least one argument expected ({name})"),
                ));
            }
            Arity::Seeded(count) if arguments.len() == count => {
                arguments.push(Expression::Variable(self.names.slot("default_seed")));
            }
            Arity::Exactly(count) if arguments.len() == count => {}
            Arity::Seeded(count) if arguments.len() == count + 1 => {}
            Arity::Some => {}
            Arity::Exactly(_) | Arity::Seeded(_) => {
                return Err(Fault::new(
                    offset,
                    format!("unexpected number of arguments ({name})"),
                ));
            }
        }
        self.join(Expression::Call(function, arguments.into()), [depth])
    }
}
