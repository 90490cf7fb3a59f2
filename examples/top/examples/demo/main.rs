//! Makes a home directory in which real guards have watched a few agents, some of them in circles.
//!
//! `cargo run -p bizar-top --example demo -- DIR`, then `HOME=DIR cargo run -p bizar-top`.

mod state;

use std::{
    env, io,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

fn main() -> io::Result<()> {
    let Some(home) = env::args_os().nth(1) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "give a directory",
        ));
    };
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(io::Error::other)?;
    let now = i64::try_from(since.as_millis()).map_err(io::Error::other)?;
    state::make(Path::new(&home), now)
}
