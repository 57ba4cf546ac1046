//! Tests of the language.
