//! `jarz watch`.

use crate::args::WatchArgs;
use crate::error::CliError;
use crate::ui::stopped;
use std::io::{IsTerminal, Write};

/// Size of a picture for a file.
const PLAIN: (u16, u16) = (100, 32);

/// Shows a run until the user has seen enough, or once.
pub fn watch(args: WatchArgs) -> Result<(), CliError> {
    let mut out = std::io::stdout();
    if args.once || !out.is_terminal() {
        let picture = jarz_view::watch_once(&args.dir, PLAIN.0, PLAIN.1)?;
        // A reader that has seen enough may close the pipe.
        let _ = out.write_all(picture.as_bytes());
        return Ok(());
    }
    Ok(jarz_view::watch(&args.dir, &stopped)?)
}
