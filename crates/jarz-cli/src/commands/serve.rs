//! `jarz serve`.

use crate::args::ServeArgs;
use crate::error::CliError;
use crate::ui::{Ui, stopped};
use std::io::Write;
use std::net::SocketAddr;

/// Serves the page of a folder until the user has seen enough.
pub fn serve(args: ServeArgs, ui: &Ui) -> Result<(), CliError> {
    let ready = |address: SocketAddr| {
        let url = format!("http://{address}/");
        // Whoever waits for the line to learn the port must get it at once; a closed pipe is their choice.
        let line = if ui.json { serde_json::json!({ "url": url }).to_string() } else { url };
        let _ = writeln!(std::io::stdout(), "{line}");
        let _ = std::io::stdout().flush();
        ui.say(&format!("showing '{}' there; Ctrl-C ends it", args.dir.display()));
    };
    Ok(jarz_view::serve(&args.dir, args.port, ready, &stopped)?)
}
