//! The one place that reads the clock.

use std::time::{Duration, SystemTime};

use crate::{Now, process};

pub(crate) fn now() -> Now {
    let epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Now {
        clock: process::since_boot(),
        epoch_ms: u64::try_from(epoch.as_millis()).unwrap_or(u64::MAX),
    }
}
