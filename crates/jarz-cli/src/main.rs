//! The command line of Jarz: arguments and glue, no algorithm.

mod args;
mod commands;
mod error;
mod figures;
mod ui;

use clap::Parser;
use error::CliError;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let ui = ui::Ui { quiet: args.quiet, json: args.json };
    let word = match args.command {
        args::Command::Serve(_) | args::Command::Watch(_) => None,
        args::Command::Data(_) => Some("stopping; press Ctrl-C again to stop at once"),
        _ => Some("stopping after this iteration; press Ctrl-C again to stop at once"),
    };
    if let Err(e) = ui::catch_interrupts(word) {
        ui.warn(&format!(
            "Ctrl-C cannot be caught ({e}); stopping loses what came after the last checkpoint"
        ));
    }
    match commands::run(args.command, &ui) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Interrupted(text)) => {
            eprintln!("{text}");
            ExitCode::from(130)
        }
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}
