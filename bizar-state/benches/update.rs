//! The cost of an update beside its floors.

fn main() {}
