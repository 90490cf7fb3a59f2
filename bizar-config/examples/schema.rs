//! Prints the JSON Schema of `options.json`.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    writeln!(io::stdout(), "{:#}", bizar_config::json_schema())
}
